//! Artificial documents are documents: indexes over them follow every change, through several levels and restarts.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::{DateTime, date};
use serde_json::Value;

use crate::models::{PARITIES, SUMS};
use crate::world::{World, delete, put};

fn level(source: &str, output: &str, unit: &str) -> String {
    format!(
        r#"
            source("{source}");
            output("{output}");
            fn map(doc) {{ emit(#{{ At: doc.At.{unit}() }}, #{{ Amount: doc.Amount, Count: doc.Count ?? 1 }}); }}
            fn reduce(key, values) {{ #{{ Amount: values.sum("Amount"), Count: values.sum("Count") }} }}
        "#
    )
}

/// 30 invoices every six hours, then three a month for 30 months, later each month.
fn invoice_times() -> Vec<DateTime> {
    let first = date(2017, 1, 1).at(0, 0, 0, 0);
    let second = date(2018, 1, 1).at(0, 0, 0, 0);
    let dense = (0..30_i64).map(|number| first + (6 * number).hours());
    let sparse =
        (0..30_i64).flat_map(|number| [6, 12, 18].map(|hours| second + number.months() + (hours * number).hours()));
    dense.chain(sparse).collect()
}

fn invoice(number: usize, at: DateTime) -> treepie::database::Write {
    put("Invoices", &format!("invoices/{number}"), &format!(r#"{{"At":"{at}","Amount":{}}}"#, number + 1))
}

fn totals(world: &World, collection: &str) -> BTreeMap<String, (i64, i64)> {
    let read = |body: &String| {
        let body: Value = serde_json::from_str(body).unwrap();
        let number = |field: &str| body[field].as_i64().unwrap();
        (body["At"].to_string().trim_matches('"').to_owned(), (number("Amount"), number("Count")))
    };
    world.bodies(collection).iter().map(read).collect()
}

/// What each period must hold, from the invoices themselves: periods are prefixes of the time's text.
fn expected(world: &World, prefix: usize) -> BTreeMap<String, (i64, i64)> {
    let mut periods: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for body in world.bodies("Invoices") {
        let body: Value = serde_json::from_str(&body).unwrap();
        let period = periods.entry(body["At"].as_str().unwrap()[..prefix].to_owned()).or_default();
        *period = (period.0 + body["Amount"].as_i64().unwrap(), period.1 + 1);
    }
    periods
}

fn assert_levels(world: &World) {
    for (collection, prefix) in [("Daily", 10), ("Monthly", 7), ("Yearly", 4)] {
        let periods: BTreeMap<String, (i64, i64)> = totals(world, collection);
        assert_eq!(periods, expected(world, prefix), "{collection}");
    }
}

fn three_levels(world: &World) {
    world.index("Daily", &level("Invoices", "Daily", "day"));
    world.index("Monthly", &level("Daily", "Monthly", "month"));
    world.index("Yearly", &level("Monthly", "Yearly", "year"));
}

#[test]
fn days_add_up_to_months_and_months_to_years() {
    let world = World::new();
    three_levels(&world);
    world.write(invoice_times().into_iter().enumerate().map(|(number, at)| invoice(number, at)).collect());
    world.sync();
    let counts = ["Invoices", "Daily", "Monthly", "Yearly"].map(|collection| world.bodies(collection).len());
    assert_eq!(counts, [120, 93, 31, 4]);
    assert_levels(&world);
}

#[test]
fn the_upper_level_goes_on_following_after_it_was_built() {
    for reopened in [false, true] {
        let mut world = World::new();
        three_levels(&world);
        let march = date(2020, 3, 5).at(10, 0, 0, 0);
        let steps: [Vec<treepie::database::Write>; 5] = [
            (0..3).map(|number| invoice(number, march)).collect(),
            vec![invoice(3, march + 1.day())],
            vec![invoice(1, march + 1.month())],
            vec![delete("invoices/0"), invoice(0, march + 1.year())],
            (0..4).map(|number| delete(&format!("invoices/{number}"))).collect(),
        ];
        for step in steps {
            world.write(step);
            if reopened {
                world.reopen();
            }
            world.sync();
            assert_levels(&world);
        }
        for collection in ["Daily", "Monthly", "Yearly"] {
            assert_eq!(world.bodies(collection), Vec::<String>::new());
        }
    }
}

#[test]
fn levels_that_are_put_in_any_order_end_alike() {
    let worlds = [World::new(), World::new()];
    let documents = || {
        (0..50).map(|number| {
            put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":{},"v":{number}}}"#, number % 9))
        })
    };
    worlds[0].index(SUMS.name, SUMS.script);
    worlds[0].index(PARITIES.name, PARITIES.script);
    worlds[0].write(documents().collect());
    worlds[1].write(documents().collect());
    worlds[1].index(PARITIES.name, PARITIES.script);
    worlds[1].index(SUMS.name, SUMS.script);
    for world in &worlds {
        world.sync();
        world.assert_equals(&SUMS);
        world.assert_equals(&PARITIES);
    }
    assert_eq!(worlds[0].rows(), worlds[1].rows());
    let ids = worlds.each_ref().map(|world| world.etags("Parities").into_keys().collect::<Vec<_>>());
    assert_eq!(ids[0], ids[1]);
}
