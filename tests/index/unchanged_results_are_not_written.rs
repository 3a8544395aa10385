//! A result that did not change gets no new version: no etag moves, and nobody downstream wakes.

use crate::models::{PARITIES, SUMS};
use crate::world::{World, put};

const AMOUNTS: &str = r#"
    source("Payments");
    output("Days");
    fn map(payment) { emit(payment.day, #{ amount: payment.amount }); }
    fn reduce(key, values) { #{ amount: values.sum("amount") } }
"#;

fn payments(from: u64, amount: u64) -> Vec<treepie::database::Write> {
    let body = |number: u64| format!(r#"{{"day":{},"amount":{amount}}}"#, number % 3);
    (from..from + 10).map(|number| put("Payments", &format!("payments/{number}"), &body(number))).collect()
}

#[test]
fn documents_that_add_nothing_move_no_output() {
    let world = World::new();
    world.index("Days", AMOUNTS);
    world.write(payments(0, 5));
    world.sync();
    let etags = world.etags("Days");
    assert_eq!(etags.len(), 3);
    let last = world.write(payments(10, 0)).last_etag;
    world.sync();
    assert_eq!(world.etags("Days"), etags);
    assert_eq!(world.last_etag(), last, "nothing but the payments was written");
}

#[test]
fn a_document_written_again_unchanged_moves_no_output() {
    let world = World::new();
    world.index("Days", AMOUNTS);
    world.write(payments(0, 5));
    world.sync();
    let (etags, rows) = (world.etags("Days"), world.rows());
    let before = world.database().index_counters("Days").unwrap();
    let last = world.write(payments(0, 5)).last_etag;
    world.sync();
    assert_eq!(world.etags("Days"), etags);
    assert_eq!(world.last_etag(), last);
    assert_eq!(world.rows(), rows);
    let after = world.database().index_counters("Days").unwrap();
    assert_eq!(after.reduce_calls, before.reduce_calls, "equal entries are not reduced again");
    assert_eq!(after.map_calls, before.map_calls + 10);
}

#[test]
fn a_change_outside_what_the_script_reads_moves_no_output() {
    let world = World::new();
    world.index("Days", AMOUNTS);
    world.put("Payments", "payments/1", r#"{"day":1,"amount":5,"note":"old"}"#);
    world.sync();
    let etags = world.etags("Days");
    let last = world.put("Payments", "payments/1", r#"{"note":"new","amount":5.00,"day":1e0}"#);
    world.sync();
    assert_eq!(world.etags("Days"), etags);
    assert_eq!(world.last_etag(), last);
}

#[test]
fn an_unchanged_output_does_not_run_the_index_above_it() {
    let world = World::new();
    world.index(SUMS.name, SUMS.script);
    world.index(PARITIES.name, PARITIES.script);
    for number in 0..6 {
        world.put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":{},"v":1}}"#, number % 3));
    }
    world.sync();
    let before = world.database().index_counters(PARITIES.name).unwrap();
    world.put("Orders", "orders/0", r#"{"k":0,"v":1,"note":"seen"}"#);
    world.sync();
    let after = world.database().index_counters(PARITIES.name).unwrap();
    assert_eq!(after.map_calls, before.map_calls);
    assert_eq!(after.reduce_calls, before.reduce_calls);
}

#[test]
fn a_changed_group_moves_its_own_output_only() {
    let world = World::new();
    world.index("Days", AMOUNTS);
    world.write(payments(0, 5));
    world.sync();
    let before = world.documents("Days");
    world.put("Payments", "payments/0", r#"{"day":0,"amount":6}"#);
    world.sync();
    let after = world.documents("Days");
    let moved: Vec<&String> =
        after.iter().filter(|(id, now)| now.etag != before[*id].etag).map(|(_, now)| &now.body).collect();
    assert_eq!(moved, [r#"{"Key":0,"amount":21}"#]);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "ids stay");
}
