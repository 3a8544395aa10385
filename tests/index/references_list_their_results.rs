//! Reference documents: readable ids, made of results by a pattern, that list the artificial documents with these values.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treepie::database::Write;
use treepie::store::commit::Expected;

use crate::world::{World, delete, put};

const SALES: &str = r#"
    source("Orders");
    output("Sales");
    reference("sales/{Product}/{Month:yyyy}");
    fn map(order) { emit(#{ Product: order.Product, Month: order.Month }, #{ n: 1, v: order.v }); }
    fn reduce(key, values) { #{ n: values.sum("n"), v: values.sum("v") } }
"#;

fn order(id: &str, product: &Value, month: &str, v: i64) -> Write {
    put("Orders", id, &json!({ "Product": product, "Month": month, "v": v }).to_string())
}

/// What each reference lists: for every listed document its month and value.
fn listed(world: &World, collection: &str) -> BTreeMap<String, Vec<String>> {
    let sales = world.documents("Sales");
    let show = |id: &Value| {
        let body: Value = serde_json::from_str(&sales[id.as_str().unwrap()].body).unwrap();
        format!("{}={}", body["Month"].as_str().unwrap(), body["v"])
    };
    let read = |body: &str| {
        let body: Value = serde_json::from_str(body).unwrap();
        let ids = body["ReduceOutputs"].as_array().unwrap().clone();
        assert!(ids.is_sorted_by(|a, b| a.as_str() < b.as_str()), "{ids:?}");
        let mut shown: Vec<String> = ids.iter().map(show).collect();
        shown.sort();
        shown
    };
    world.documents(collection).into_iter().map(|(id, document)| (id, read(&document.body))).collect()
}

#[track_caller]
fn assert_listed(world: &World, expected: &[(&str, &[&str])]) {
    world.sync();
    let expected: BTreeMap<String, Vec<String>> = expected
        .iter()
        .map(|(id, months)| ((*id).to_owned(), months.iter().map(|month| (*month).to_owned()).collect()))
        .collect();
    assert_eq!(listed(world, "Sales/References"), expected);
}

fn orders() -> Vec<Write> {
    vec![
        order("o/1", &json!("tea"), "1998-01", 1),
        order("o/2", &json!("tea"), "1998-02", 2),
        order("o/3", &json!("tea"), "1999-01", 3),
        order("o/4", &json!("Cake"), "1998-01", 4),
    ]
}

const LISTED: [(&str, &[&str]); 3] = [
    ("sales/Cake/1998", &["1998-01=4"]),
    ("sales/tea/1998", &["1998-01=1", "1998-02=2"]),
    ("sales/tea/1999", &["1999-01=3"]),
];

#[test]
fn each_reference_lists_the_results_that_make_its_id() {
    let mut world = World::new();
    world.index("Sales", SALES);
    world.write(orders());
    assert_listed(&world, &LISTED);
    let etags = world.etags("Sales/References");
    world.write(vec![order("o/1", &json!("tea"), "1998-01", 10)]);
    let changed = [LISTED[0], ("sales/tea/1998", &["1998-01=10", "1998-02=2"]), LISTED[2]];
    assert_listed(&world, &changed);
    assert_eq!(world.etags("Sales/References"), etags, "a value that is not in the id moves nothing");
    world.write(vec![order("o/2", &json!("tea"), "1999-02", 2), delete("o/4")]);
    assert_listed(&world, &[("sales/tea/1998", &["1998-01=10"]), ("sales/tea/1999", &["1999-01=3", "1999-02=2"])]);
    world.reopen();
    world.write(vec![order("o/5", &json!("tea"), "1999-02", 1), delete("o/1")]);
    assert_listed(&world, &[("sales/tea/1999", &["1999-01=3", "1999-02=3"])]);
    let document = world.get("SALES/TEA/1999").unwrap();
    assert!(document.flags.artificial);
    assert_eq!(document.collection, "Sales/References");
    world.write(vec![delete("o/2"), delete("o/3"), delete("o/5")]);
    assert_listed(&world, &[]);
    assert_eq!(world.rows().len(), 0);
}

#[test]
fn a_first_build_lists_the_same_and_keeps_what_is_right_already() {
    let world = World::new();
    world.write(orders());
    world.index("Sales", SALES);
    assert_listed(&world, &LISTED);
    let etags = world.etags("Sales/References");
    world.database().reset_index("Sales").unwrap();
    assert_listed(&world, &LISTED);
    assert_eq!(world.etags("Sales/References"), etags, "a build anew writes only what differs");
    world.index("Sales", &SALES.replace("v: order.v", "v: order.v * 2").replace(":yyyy", ":'y'yyyy"));
    world.sync();
    let ids: Vec<String> = world.documents("Sales/References").into_keys().collect();
    assert_eq!(ids, ["sales/Cake/y1998", "sales/tea/y1998", "sales/tea/y1999"]);
    world.index("Sales", &SALES.replace("{Product}/{Month:yyyy}\"", "all/{Product}\", \"Shelves\""));
    world.sync();
    assert_eq!(listed(&world, "Shelves").len(), 2);
    assert_eq!(world.documents("Sales/References").len(), 0);
    world.put("Sales/References", "mine", "{}");
    world.index("Sales", &SALES.replace("reference(", "// reference("));
    world.sync();
    assert_eq!((world.documents("Shelves").len(), world.documents("Sales").len()), (0, 4));
    assert!(world.database().delete_index("Sales").unwrap());
    assert_eq!(world.rows().len(), 0);
}

#[test]
fn references_keep_their_ids_when_they_move_to_another_collection() {
    let mut world = World::new();
    world.write(orders());
    world.index("Sales", SALES);
    assert_listed(&world, &LISTED);
    let moved = SALES.replace("{Month:yyyy}\"", "{Month:yyyy}\", \"Shelves\"");
    for round in 0..2 {
        world.index("Sales", &moved);
        world.sync();
        assert_eq!(listed(&world, "Shelves").len(), LISTED.len(), "round {round}");
        assert_eq!(world.documents("Sales/References").len(), 0);
        world.reopen();
        world.index("Sales", SALES);
        assert_listed(&world, &LISTED);
        assert_eq!(world.documents("Shelves").len(), 0);
    }
}

#[test]
fn values_that_make_no_id_are_faults_of_their_groups_alone() {
    let world = World::new();
    world.index("Sales", SALES);
    world.write(vec![
        order("o/1", &json!("tea"), "1998-01", 1),
        order("o/2", &json!(null), "1998-01", 2),
        order("o/3", &json!(""), "1998-01", 3),
        order("o/4", &json!(["tea"]), "1998-01", 4),
        order("o/5", &json!("a/b"), "1998-01", 5),
        order("o/6", &json!("tea"), "soon", 6),
        put("Orders", "o/7", r#"{"Product":"tea","v":7}"#),
    ]);
    assert_listed(&world, &[("sales/a/b/1998", &["1998-01=5"]), ("sales/tea/1998", &["1998-01=1"])]);
    assert_eq!(world.documents("Sales").len(), 7, "the results themselves are there");
    let faults = world.faults("Sales");
    assert_eq!(faults.len(), 5, "{faults:?}");
    for (key, words) in [
        (r#"{"Month":"1998-01","Product":null}"#, "'Product' of the reference pattern"),
        (r#"{"Month":"1998-01","Product":""}"#, "empty"),
        (r#"{"Month":"1998-01","Product":["tea"]}"#, "array"),
        (r#"{"Month":"soon","Product":"tea"}"#, "no date"),
        (r#"{"Month":null,"Product":"tea"}"#, "is null"),
    ] {
        let found = faults.iter().any(|(subject, fault)| subject == key && fault.contains(words));
        assert!(found, "{key}: {faults:?}");
    }
    world.write(vec![order("o/2", &json!("tea"), "1998-02", 2), delete("o/3"), delete("o/4")]);
    world.write(vec![order("o/6", &json!("tea"), "1998-03", 6), delete("o/7")]);
    let months: &[&str] = &["1998-01=1", "1998-02=2", "1998-03=6"];
    assert_listed(&world, &[("sales/a/b/1998", &["1998-01=5"]), ("sales/tea/1998", months)]);
    assert_eq!(world.faults("Sales"), []);
}

#[test]
fn a_field_that_no_result_has_is_a_fault_that_names_those_it_has() {
    let world = World::new();
    world.index("Sales", &SALES.replace("{Product}", "{Produkt}"));
    world.write(orders());
    assert_listed(&world, &[]);
    let faults = world.faults("Sales");
    assert!(
        faults.len() == 4 && faults[0].1.contains("'Produkt'") && faults[0].1.contains("Month, Product, n, v"),
        "{faults:?}"
    );
}

#[test]
fn two_spellings_of_one_id_are_one_reference() {
    let build = |first: &str, second: &str| {
        let world = World::new();
        world.index("Sales", SALES);
        for (n, product) in [first, second].iter().enumerate() {
            world.write(vec![order(&format!("o/{n}"), &json!(product), "1998-01", 1)]);
            world.sync();
        }
        world.documents("Sales/References").into_iter().map(|(id, it)| (id, it.body)).collect::<Vec<_>>()
    };
    let (one, other) = (build("TEA", "tea"), build("tea", "TEA"));
    assert_eq!(one.len(), 1);
    assert_eq!(one, other, "its spelling does not depend on who came first");
}

#[test]
fn a_reference_lists_ten_thousand_results_and_no_more() {
    let world = World::new();
    world.index(
        "Sales",
        &SALES.replace("{Product}/{Month:yyyy}", "all/{n}").replace("Month: order.Month", "Month: id(order)"),
    );
    let some = |from: usize, to: usize| {
        world.write((from..to).map(|n| order(&format!("o/{n}"), &json!("p"), "x", 1)).collect());
        world.sync();
    };
    some(0, 9_999);
    some(9_999, 10_000);
    let count = |world: &World| {
        let body = world.get("sales/all/1").map(|document| document.body);
        body.map(|body| serde_json::from_str::<Value>(&body).unwrap()["ReduceOutputs"].as_array().unwrap().len())
    };
    assert_eq!(count(&world), Some(10_000));
    some(10_000, 10_002);
    assert_eq!(count(&world), None);
    let faults = world.faults("Sales");
    assert!(faults.len() == 1 && faults[0].0 == "sales/all/1" && faults[0].1.contains("10000"), "{faults:?}");
    world.database().reset_index("Sales").unwrap();
    world.sync();
    assert_eq!(count(&world), None);
    world.write(vec![delete("o/5"), delete("o/6")]);
    world.sync();
    assert_eq!((count(&world), world.faults("Sales").len()), (Some(10_000), 0));
}

#[test]
fn many_references_at_once_are_written_in_bounded_commits() {
    const REFERENCES: usize = 20;
    let world = World::new();
    // Each lists 400 ids of 240 bytes: 20 of them are more than one commit takes.
    let output = "s".repeat(207);
    world.index(
        "Sales",
        &format!(
            r#"source("Orders"); output("{output}"); reference("sales/{{R}}", "Refs");
            fn map(order) {{ for r in 0..{REFERENCES} {{ emit(#{{ Of: id(order), N: r }}, #{{ R: r + order.add, v: 1 }}); }} }}
            fn reduce(key, values) {{ values.first() }}"#
        ),
    );
    let body = |add: usize| json!({ "add": add }).to_string();
    world.write((0..400).map(|n| put("Orders", &format!("o/{n}"), &body(0))).collect());
    world.sync();
    let count = |world: &World, id: &str| {
        let body: Value = serde_json::from_str(&world.get(id).unwrap().body).unwrap();
        body["ReduceOutputs"].as_array().unwrap().len()
    };
    assert_eq!((world.documents("Refs").len(), count(&world, "sales/7")), (REFERENCES, 400));
    let before = world.database().index_counters("Sales").unwrap().runs;
    world.put("Orders", "o/0", &body(REFERENCES));
    world.sync();
    assert_eq!((world.documents("Refs").len(), count(&world, "sales/7")), (2 * REFERENCES, 399));
    assert_eq!(count(&world, "sales/27"), 1);
    assert!(world.database().index_counters("Sales").unwrap().runs > before + 1, "one run was not enough");
    assert!(!world.database().index_status().unwrap()[0].stale);
}

#[test]
fn foreign_documents_stay_and_users_cannot_write_what_is_owned() {
    let world = World::new();
    world.put("Mine", "sales/tea/1998", r#"{"mine":true}"#);
    world.index("Sales", SALES);
    world.write(orders());
    world.sync();
    assert_eq!(world.get("sales/tea/1998").unwrap().body, r#"{"mine":true}"#);
    let faults = world.faults("Sales");
    assert!(faults.len() == 1 && faults[0].0 == "sales/tea/1998" && faults[0].1.contains("'Mine'"), "{faults:?}");
    assert_eq!(world.documents("Sales/References").len(), 2);
    for attempt in [
        put("Other", "sales/tea/1999", "{}"),
        put("Sales/References", "new", "{}"),
        delete("Sales/Cake/1998"),
        Write::Delete { id: "sales/tea/1999".to_owned(), expected: Expected::Any },
    ] {
        let message = world.database().write(vec![attempt]).unwrap_err().to_string();
        assert!(message.contains("Sales"), "{message}");
    }
    world.delete("sales/tea/1998");
    world.write(vec![order("o/6", &json!("tea"), "1998-03", 6)]);
    let months: &[&str] = &["1998-01=1", "1998-02=2", "1998-03=6"];
    assert_listed(&world, &[LISTED[0], ("sales/tea/1998", months), LISTED[2]]);
    assert_eq!(world.faults("Sales"), []);
}

#[test]
fn an_id_belongs_to_one_index_also_among_references_and_results() {
    let world = World::new();
    world.index("Sales", SALES);
    world.index("Again", &SALES.replace("output(\"Sales\")", "output(\"Again\")"));
    world.write(orders());
    world.sync();
    let (first, second) = (world.documents("Sales/References"), world.documents("Again/References"));
    assert_eq!(first.len() + second.len(), 3, "each id once");
    assert_eq!(world.faults("Sales").len() + world.faults("Again").len(), 3, "and the other one has a fault");
    let hash = format!("{:032x}", 7);
    world.put("Codes", "c", &json!({ "Code": hash }).to_string());
    world.index(
        "Codes",
        r#"source("Codes"); output("CodeList"); reference("Sales/{Code}");
        fn map(c) { emit(#{ Code: c.Code }, #{ n: 1 }); } fn reduce(key, values) { values.first() }"#,
    );
    world.sync();
    assert!(world.get(&format!("Sales/{hash}")).is_none());
    let faults = world.faults("Codes");
    assert!(faults.len() == 1 && faults[0].1.contains("'Sales'") && faults[0].1.contains("artificial"), "{faults:?}");
}

#[test]
fn loops_and_shared_collections_are_refused_with_references_and_loads_too() {
    let world = World::new();
    world.index("Sales", SALES);
    let script = |source: &str, load: &str, rest: &str| {
        let load = if load.is_empty() { String::new() } else { format!("load(d.x, \"{load}\");") };
        format!(
            "source(\"{source}\"); {rest} fn map(d) {{ {load} emit(#{{ k: d.k }}, #{{ n: 1 }}); }} \
             fn reduce(key, values) {{ values.first() }}"
        )
    };
    for (name, script, words) in [
        ("Loads", script("A", "B", "output(\"B\");"), &["'B'", "loads from"][..]),
        ("Reads", script("B/References", "", "output(\"B\"); reference(\"b/{k}\");"), &["'B/References'"]),
        ("Shares", script("A", "", "output(\"Sales/References\");"), &["belongs to index 'Sales'"]),
        ("Shares", script("A", "", "output(\"C\"); reference(\"c/{k}\", \"SALES\");"), &["belongs to index 'Sales'"]),
        ("Twice", script("A", "", "output(\"C\"); reference(\"c/{k}\", \"c\");"), &["share"]),
        (
            "Back",
            script("Sales/References", "", "output(\"Orders\");"),
            &["'Back'", "'Sales'", "'Sales/References'", "'Orders'"],
        ),
        (
            "All",
            script("x", "", "").replace("\"x\"", "ALL_DOCS").replace("fn map", "output(\"C\"); fn map"),
            &["ALL_DOCS"],
        ),
        ("None", script("A", "", "output(\"C\"); reference(\"c\");"), &["no field"]),
        ("Switched", script("A", "", "output(\"C\"); reference(\"c/{k:zz}\");"), &["not understood"]),
    ] {
        let message = world.try_index(name, &script).unwrap_err().to_string();
        for word in words {
            assert!(message.contains(word), "{name}: '{word}' is not in: {message}");
        }
    }
    world.put("C/References", "mine", "{}");
    let message =
        world.try_index("Full", &script("A", "", "output(\"C\"); reference(\"c/{k}\");")).unwrap_err().to_string();
    assert!(message.contains("holds 1 document"), "{message}");
    world.delete("mine");
    world.index("Full", &script("A", "", "output(\"C\"); reference(\"c/{k}\");"));
    world.index("Left", &script("C", "C/References", "output(\"L\");"));
    world.index("Right", &script("C/References", "C", "output(\"R\");"));
    world.index("Joined", &script("L", "R", "output(\"J\"); reference(\"j/{k}\");"));
    let message = world
        .try_index("Full", &script("A", "J/References", "output(\"C\"); reference(\"c/{k}\");"))
        .unwrap_err()
        .to_string();
    for word in ["'Full' writes 'C'", "'Joined' writes 'J/References', which 'Full' loads"] {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
    let message = world
        .try_index("Full", &script("A", "", "output(\"D\"); reference(\"c/{k}\", \"C\");"))
        .unwrap_err()
        .to_string();
    assert!(message.contains("between output and reference documents"), "{message}");
}

#[test]
fn references_can_be_mapped_and_loaded_like_any_documents() {
    let world = World::new();
    world.index("Sales", SALES);
    world.index(
        "Sizes",
        r#"source("Sales/References"); output("Sizes");
        fn map(reference) { emit(reference.ReduceOutputs.len(), #{ n: 1 }); }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#,
    );
    world.index(
        "Years",
        r#"source("Questions"); output("Years");
        fn map(question) {
            for output in load("sales/" + question.About, "Sales/References").ReduceOutputs {
                emit(question.About, #{ v: load(output, "Sales").v });
            }
        }
        fn reduce(key, values) { #{ v: values.sum("v") } }"#,
    );
    world.write(orders());
    world.put("Questions", "q", r#"{"About":"tea/1998"}"#);
    world.sync();
    assert_eq!(world.bodies("Sizes"), [r#"{"Key":1,"n":2}"#, r#"{"Key":2,"n":1}"#]);
    assert_eq!(world.bodies("Years"), [r#"{"Key":"tea/1998","v":3}"#]);
    world.write(vec![order("o/7", &json!("tea"), "1998-12", 40), order("o/1", &json!("tea"), "1998-01", 2)]);
    world.sync();
    assert_eq!(world.bodies("Sizes"), [r#"{"Key":1,"n":2}"#, r#"{"Key":3,"n":1}"#]);
    assert_eq!(world.bodies("Years"), [r#"{"Key":"tea/1998","v":44}"#]);
}
