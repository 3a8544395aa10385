//! `load(id, "Collection")`: a document is mapped again when one that it has loaded comes, changes, moves or goes.

use serde_json::{Value, json};

use crate::models::sum_by_k;
use crate::world::{World, delete, put};

const BY_COUNTRY: &str = r#"
    source("Orders");
    output("Countries");
    fn map(order) {
        let company = load(order.Company, "Companies");
        emit(company.Country ?? "unknown", #{ Orders: 1 });
    }
    fn reduce(key, values) { #{ Orders: values.sum("Orders") } }
"#;

fn order(n: usize, company: &str) -> treepie::database::Write {
    put("Orders", &format!("orders/{n}"), &json!({ "Company": company }).to_string())
}

fn company(id: &str, country: &str) -> treepie::database::Write {
    put("Companies", id, &json!({ "Country": country }).to_string())
}

fn counts(world: &World, collection: &str) -> Vec<(String, i64)> {
    let read = |body: &String| {
        let body: Value = serde_json::from_str(body).unwrap();
        (body["Key"].as_str().unwrap().to_owned(), body["Orders"].as_i64().unwrap())
    };
    world.bodies(collection).iter().map(read).collect()
}

#[track_caller]
fn assert_counts(world: &World, expected: &[(&str, i64)]) {
    world.sync();
    let expected: Vec<(String, i64)> = expected.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect();
    assert_eq!(counts(world, "Countries"), expected);
}

#[test]
fn a_loaded_document_that_comes_changes_moves_or_goes_maps_its_dependents_again() {
    let mut world = World::new();
    world.write(vec![order(1, "companies/1"), order(2, "COMPANIES/1"), order(3, "companies/2")]);
    world.index("ByCountry", BY_COUNTRY);
    assert_counts(&world, &[("unknown", 3)]);
    world.write(vec![company("Companies/1", "Peru")]);
    assert_counts(&world, &[("Peru", 2), ("unknown", 1)]);
    world.write(vec![company("companies/1", "Chile"), company("companies/2", "Chile")]);
    assert_counts(&world, &[("Chile", 3)]);
    world.reopen();
    world.put("Elsewhere", "companies/1", r#"{"Country":"Chile"}"#);
    assert_counts(&world, &[("Chile", 1), ("unknown", 2)]);
    world.write(vec![company("companies/1", "Oman")]);
    assert_counts(&world, &[("Chile", 1), ("Oman", 2)]);
    world.write(vec![delete("companies/1"), order(3, "companies/1")]);
    assert_counts(&world, &[("unknown", 3)]);
    let rows = world.rows();
    let fresh = World::new();
    fresh.index("ByCountry", BY_COUNTRY);
    fresh.write(vec![order(3, "companies/1"), order(2, "COMPANIES/1"), order(1, "companies/1")]);
    fresh.sync();
    assert_eq!(fresh.rows(), rows);
}

#[test]
fn only_what_has_loaded_a_document_is_mapped_again() {
    let world = World::new();
    world.index("ByCountry", BY_COUNTRY);
    world.write((0..50).map(|n| order(n, &format!("companies/{}", n % 10))).collect());
    world.sync();
    let before = world.database().index_counters("ByCountry").unwrap().map_calls;
    world.write(vec![company("companies/3", "Peru"), company("companies/77", "Peru")]);
    assert_counts(&world, &[("Peru", 5), ("unknown", 45)]);
    assert_eq!(world.database().index_counters("ByCountry").unwrap().map_calls, before + 5);
    world.write(vec![order(3, "companies/4")]);
    world.sync();
    let before = world.database().index_counters("ByCountry").unwrap().map_calls;
    world.write(vec![company("companies/3", "Chile")]);
    assert_counts(&world, &[("Chile", 4), ("unknown", 46)]);
    assert_eq!(world.database().index_counters("ByCountry").unwrap().map_calls, before + 4);
}

#[test]
fn what_can_be_no_document_of_the_collection_is_nothing() {
    let world = World::new();
    world.index("ByCountry", BY_COUNTRY);
    world.put("Orders", "orders/1", r#"{"Company":null}"#);
    world.put("Orders", "orders/2", "{}");
    world.put("Orders", "orders/3", r#"{"Company":"a\u0000b"}"#);
    world.put("Orders", "orders/4", &json!({ "Company": "x".repeat(600) }).to_string());
    world.put("Orders", "orders/5", r#"{"Company":""}"#);
    world.put("Orders", "orders/6", r#"{"Company":"orders/5"}"#);
    assert_counts(&world, &[("unknown", 6)]);
    world.put("Orders", "orders/7", r#"{"Company":7}"#);
    world.sync();
    let faults = world.faults("ByCountry");
    assert!(faults[0].0 == "orders/7" && faults[0].1.contains("load needs a string"), "{faults:?}");
}

#[test]
fn a_fault_that_a_loaded_document_causes_goes_with_it() {
    let world = World::new();
    world.index(
        "ByCountry",
        &BY_COUNTRY.replace("company.Country ?? \"unknown\"", "company.Country.to_upper() + \"!\""),
    );
    world.write(vec![order(1, "companies/1"), company("companies/1", "Peru")]);
    assert_counts(&world, &[("PERU!", 1)]);
    world.put("Companies", "companies/1", r#"{"Country":[1]}"#);
    assert_counts(&world, &[]);
    assert_eq!(world.faults("ByCountry").len(), 1);
    world.write(vec![company("companies/1", "Chile")]);
    assert_counts(&world, &[("CHILE!", 1)]);
    assert_eq!(world.faults("ByCountry").len(), 0);
}

#[test]
fn a_document_may_load_itself_and_its_own_collection() {
    let world = World::new();
    world.index(
        "Chains",
        r#"
        source("Employees");
        output("Countries");
        fn map(employee) {
            let boss = load(employee.Boss, "Employees");
            let own = load(id(employee), "employees");
            emit((boss.Name ?? "nobody") + ">" + own.Name, #{ Orders: 1 });
        }
        fn reduce(key, values) { #{ Orders: values.sum("Orders") } }
        "#,
    );
    let employee =
        |id: &str, name: &str, boss: &str| put("Employees", id, &json!({ "Name": name, "Boss": boss }).to_string());
    world.write(vec![employee("e/1", "Ann", "e/1"), employee("e/2", "Bo", "e/1"), employee("e/3", "Cy", "e/2")]);
    assert_counts(&world, &[("Ann>Ann", 1), ("Ann>Bo", 1), ("Bo>Cy", 1)]);
    world.write(vec![employee("e/1", "Al", "e/3")]);
    assert_counts(&world, &[("Al>Bo", 1), ("Bo>Cy", 1), ("Cy>Al", 1)]);
    world.write(vec![delete("e/1")]);
    assert_counts(&world, &[("Bo>Cy", 1), ("nobody>Bo", 1)]);
}

#[test]
fn what_is_loaded_may_be_the_output_of_another_index_and_so_on() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Sales", "Sums"));
    world.write(vec![put("Sales", "s/1", r#"{"k":"a","v":5}"#)]);
    world.sync();
    let sum = world.documents("Sums").into_keys().next().unwrap();
    world.index(
        "ByTotal",
        r#"
        source("Orders");
        output("Countries");
        fn map(order) {
            let total = load(order.Company, "Sums").v;
            emit(if total == () { "none" } else { "of " + total }, #{ Orders: 1 });
        }
        fn reduce(key, values) { #{ Orders: values.sum("Orders") } }
        "#,
    );
    world.index(
        "Loading",
        r#"
        source("Watchers");
        output("Seen");
        fn map(watcher) { emit(load(watcher.At, "Countries").Key ?? "nothing", #{ Orders: 1 }); }
        fn reduce(key, values) { #{ Orders: values.sum("Orders") } }
        "#,
    );
    world.write(vec![order(1, &sum)]);
    assert_counts(&world, &[("of 5", 1)]);
    let country = world.documents("Countries").into_keys().next().unwrap();
    world.put("Watchers", "w", &json!({ "At": country }).to_string());
    world.sync();
    assert_eq!(counts(&world, "Seen"), [("of 5".to_owned(), 1)]);
    world.put("Sales", "s/2", r#"{"k":"a","v":2}"#);
    assert_counts(&world, &[("of 7", 1)]);
    assert_eq!(counts(&world, "Seen"), [("nothing".to_owned(), 1)], "two levels away, in the same wait");
    world.delete("s/2");
    assert_counts(&world, &[("of 5", 1)]);
    assert_eq!(counts(&world, "Seen"), [("of 5".to_owned(), 1)]);
    world.write(vec![delete("s/1")]);
    assert_counts(&world, &[("none", 1)]);
}

#[test]
fn many_dependents_are_mapped_again_in_bounded_runs_across_a_restart() {
    const ORDERS: usize = 5_000;
    let mut world = World::new();
    world.index("ByCountry", BY_COUNTRY);
    world.write(vec![company("companies/1", "Peru")]);
    for batch in 0..ORDERS / 1_000 {
        world.write((0..1_000).map(|n| order(batch * 1_000 + n, "companies/1")).collect());
    }
    assert_counts(&world, &[("Peru", 5_000)]);
    let before = world.database().index_counters("ByCountry").unwrap().runs;
    world.write(vec![company("companies/1", "Chile")]);
    world.write(vec![company("companies/1", "Oman"), order(0, "companies/2")]);
    world.reopen();
    world.write(vec![company("companies/2", "Fiji")]);
    assert_counts(&world, &[("Fiji", 1), ("Oman", 4_999)]);
    let counters = world.database().index_counters("ByCountry").unwrap();
    assert!(counters.runs >= 4, "{counters:?} after {before} runs");
    assert!(!world.database().index_status().unwrap()[0].stale);
}

#[test]
fn a_definition_must_write_out_what_it_loads_and_where() {
    let world = World::new();
    let script = |load: &str| format!("source(\"A\"); const C = \"B\"; fn map(d) {{ let x = {load}; emit(1, x); }}");
    for (load, word) in [
        ("load(d.x, C)", "written out"),
        ("load(d.x, d.y)", "written out"),
        ("load(d.x)", "written out"),
        ("load(d.x, \"@empty\")", "reserved"),
        ("load(d.x, \"\")", "is empty"),
    ] {
        let message = world.try_index("X", &script(load)).unwrap_err().to_string();
        assert!(message.contains(word), "{load}: {message}");
    }
    let in_reduce = r#"source("A"); fn map(d) { emit(1, 1); } fn reduce(k, v) { load("x", "B") }"#;
    world.index("InReduce", in_reduce);
    world.put("A", "a", "{}");
    world.sync();
    assert!(world.faults("InReduce")[0].1.contains("load works in map functions only"));
    world.index("Fine", &script("d.x.load(\"B\")"));
}

#[test]
fn a_document_loads_a_thousand_others_and_no_more() {
    let world = World::new();
    world.index(
        "Many",
        r#"source("A"); output("Out");
        fn map(d) { for n in 0..d.n { load("b/" + n, "B"); load("b/0", "B"); } emit(1, #{ n: d.n }); }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#,
    );
    world.put("A", "fits", r#"{"n":1000}"#);
    world.put("A", "does not", r#"{"n":1001}"#);
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":1,"n":1000}"#]);
    let faults = world.faults("Many");
    assert!(faults.len() == 1 && faults[0].1.contains("loads_max"), "{faults:?}");
}
