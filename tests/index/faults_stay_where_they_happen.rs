//! A script's failure concerns one document or one group: it is recorded, everything else goes on, and it clears up with its cause.

use treepie::index::status::IndexState;
use treepie::script::Phase;

use crate::models::{SUMS, sum_by_k};
use crate::world::{World, put};

const PICKY: &str = r#"source("Orders");
output("Picky");
fn map(doc) {
    emit(doc.k, #{ v: doc.a.b + 0 });
}
fn reduce(key, values) {
    if key == 3 { throw "no threes"; }
    #{ v: values.sum("v") }
}
"#;

#[test]
fn one_bad_document_and_one_bad_group_harm_nobody_else() {
    let world = World::new();
    world.index("Picky", PICKY);
    world.write(vec![
        put("Orders", "good1", r#"{"k":1,"a":{"b":1}}"#),
        put("Orders", "bad", r#"{"k":1,"a":null}"#),
        put("Orders", "good2", r#"{"k":2,"a":{"b":2}}"#),
        put("Orders", "d", r#"{"k":3,"a":{"b":1}}"#),
    ]);
    world.sync();
    assert_eq!(world.bodies("Picky"), [r#"{"Key":1,"v":1}"#, r#"{"Key":2,"v":2}"#]);
    let faults = world.database().index_faults("Picky").unwrap();
    let map = faults.iter().find(|record| record.subject == "bad").unwrap();
    assert_eq!((map.fault.phase, map.fault.line), (Phase::Map, Some(4)));
    assert!(map.fault.column.is_some());
    let reduce = faults.iter().find(|record| record.subject == "3").unwrap();
    assert_eq!((reduce.fault.phase, reduce.fault.line), (Phase::Reduce, Some(7)));
    assert!(reduce.fault.message.contains("no threes"), "{}", reduce.fault.message);
    let status = world.database().index_status().unwrap().remove(0);
    assert!(!status.stale, "the index moved past the bad document");
    assert_eq!((status.state, status.map_faults, status.reduce_faults), (IndexState::Normal, 1, 1));
    world.put("Orders", "bad", r#"{"k":1,"a":{"b":10}}"#);
    world.put("Orders", "d", r#"{"k":4,"a":{"b":1}}"#);
    world.sync();
    assert_eq!(world.bodies("Picky"), [r#"{"Key":1,"v":11}"#, r#"{"Key":2,"v":2}"#, r#"{"Key":4,"v":1}"#]);
    assert_eq!(world.faults("Picky"), [], "what was fixed is no fault any more");
}

#[test]
fn a_document_that_turns_bad_takes_back_what_it_gave() {
    let mut world = World::new();
    world.index(SUMS.name, SUMS.script);
    world.put("Orders", "orders/1", r#"{"k":1,"v":1}"#);
    world.put("Orders", "orders/2", r#"{"k":1,"v":2}"#);
    world.sync();
    world.put("Orders", "orders/2", r#"{"k":1,"v":2,"bad":true}"#);
    world.sync();
    assert_eq!(world.bodies("Sums"), [r#"{"Key":1,"n":1,"v":1}"#]);
    assert_eq!(world.faults("Sums").len(), 1);
    world.reopen();
    world.sync();
    assert_eq!(world.bodies("Sums"), [r#"{"Key":1,"n":1,"v":1}"#]);
    assert_eq!(world.faults("Sums")[0].0, "orders/2");
    world.put("Orders", "orders/2", r#"{"k":1,"v":3}"#);
    world.sync();
    assert_eq!(world.bodies("Sums"), [r#"{"Key":1,"n":2,"v":4}"#]);
    assert_eq!(world.faults("Sums"), [], "what was fixed is no fault any more");
}

#[test]
fn a_group_that_turns_bad_is_withdrawn_and_comes_back_by_itself() {
    let world = World::new();
    world.index(
        "Limited",
        r#"
            source("Orders");
            output("Limited");
            fn map(doc) { emit(doc.k, #{ v: doc.v }); }
            fn reduce(key, values) {
                let total = values.sum("v");
                if total > 100 { throw "too much"; }
                #{ v: total }
            }
        "#,
    );
    world.put("Orders", "orders/1", r#"{"k":"a","v":60}"#);
    world.sync();
    let first_id = |world: &World| world.etags("Limited").into_keys().next();
    let id = first_id(&world);
    world.put("Orders", "orders/2", r#"{"k":"a","v":50}"#);
    world.sync();
    assert_eq!(world.bodies("Limited"), Vec::<String>::new(), "an old value would be a lie");
    assert_eq!(world.faults("Limited")[0].0, "\"a\"");
    world.put("Orders", "orders/2", r#"{"k":"a","v":40}"#);
    world.sync();
    assert_eq!(world.bodies("Limited"), [r#"{"Key":"a","v":100}"#]);
    assert_eq!(first_id(&world), id);
    assert_eq!(world.faults("Limited"), [], "what was fixed is no fault any more");
}

#[test]
fn a_fault_below_withdraws_the_whole_large_group() {
    let world = World::new();
    world.index(
        "Checked",
        r#"
            source("Orders");
            output("Checked");
            fn map(doc) { emit("all", #{ v: doc.v }); }
            fn reduce(key, values) {
                for value in values { if value.v < 0 { throw "negative"; } }
                #{ v: values.sum("v") }
            }
        "#,
    );
    world.write((0..300).map(|number| put("Orders", &format!("orders/{number}"), r#"{"v":1}"#)).collect());
    world.sync();
    assert_eq!(world.bodies("Checked"), [r#"{"Key":"all","v":300}"#]);
    world.put("Orders", "orders/150", r#"{"v":-1}"#);
    world.sync();
    assert_eq!(world.bodies("Checked"), Vec::<String>::new());
    world.put("Orders", "orders/10", r#"{"v":5}"#);
    world.sync();
    assert_eq!(world.bodies("Checked"), Vec::<String>::new(), "still bad, elsewhere");
    world.put("Orders", "orders/150", r#"{"v":2}"#);
    world.sync();
    assert_eq!(world.bodies("Checked"), [r#"{"Key":"all","v":305}"#]);
}

#[test]
fn a_map_that_changes_its_document_changes_only_its_own_copy() {
    const MEDDLER: &str = r#"
        source("Orders");
        output("Meddled");
        fn map(doc) {
            doc._id = "evil";
            doc.v = 999;
            doc.tags = [];
            emit(doc.k, #{ v: doc.v, tags: doc.tags.len() });
        }
        fn reduce(key, values) { #{ v: values.sum("v"), tags: values.sum("tags") } }
    "#;
    const BODY: &str = r#"{"k":1,"v":5,"tags":["a","b"]}"#;
    let honest = sum_by_k("Orders", "Honest").replace("v: doc.v }", "v: doc.v + doc.tags.len() }");
    for meddler_first in [true, false] {
        let world = World::new();
        if meddler_first {
            world.index("Meddled", MEDDLER);
        }
        world.index("Honest", &honest);
        world.index("Meddled", MEDDLER);
        world.put("Orders", "orders/1", BODY);
        world.sync();
        assert_eq!(world.bodies("Honest"), [r#"{"Key":1,"n":1,"v":7}"#]);
        assert_eq!(world.bodies("Meddled"), [r#"{"Key":1,"tags":0,"v":999}"#]);
        assert_eq!(world.get("orders/1").unwrap().body, BODY);
        assert!(world.get("evil").is_none());
        world.delete("orders/1");
        world.sync();
        assert_eq!(world.bodies("Meddled"), Vec::<String>::new(), "its entries belong to the real id");
    }
}

#[test]
fn too_many_faults_stop_an_index_and_no_other() {
    let mut world = World::new();
    world.index("Sums", SUMS.script);
    world.index("Healthy", &sum_by_k("Orders", "Healthy"));
    let orders = |bad: std::ops::Range<usize>| {
        (0..100).map(move |number| {
            let bad = bad.contains(&number);
            put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":{},"v":1,"bad":{bad}}}"#, number % 5))
        })
    };
    let state = |world: &World, name: &str| {
        world.database().index_status().unwrap().into_iter().find(|status| status.name == name).unwrap().state
    };
    world.write(orders(0..10).collect());
    world.sync();
    assert_eq!(state(&world, "Sums"), IndexState::Normal, "a tenth may fail");
    world.write(orders(0..90).collect());
    world.sync_only(&["Healthy"]);
    let _ = world.database().wait_for_indexes(Some(&["Sums".to_owned()]), std::time::Duration::from_secs(30));
    assert_eq!(state(&world, "Sums"), IndexState::Error);
    world.reopen();
    assert_eq!(state(&world, "Sums"), IndexState::Error, "also after a restart");
    world.put("Orders", "orders/100", r#"{"k":0,"v":100}"#);
    world.sync_only(&["Healthy"]);
    assert_eq!(state(&world, "Healthy"), IndexState::Normal);
    assert_eq!(world.bodies("Healthy")[0], r#"{"Key":0,"n":21,"v":120}"#);
    assert!(world.database().delete_index("Sums").unwrap());
    world.sync();
}

#[test]
fn fewer_than_a_hundred_attempts_never_stop_an_index() {
    let world = World::new();
    world.index("Sums", SUMS.script);
    let bad = |number: usize| put("Orders", &format!("orders/{number}"), r#"{"k":1,"v":1,"bad":true}"#);
    world.write((0..99).map(bad).collect());
    world.sync();
    assert_eq!(world.database().index_status().unwrap()[0].state, IndexState::Normal);
    assert_eq!(world.faults("Sums").len(), 99);
}

#[test]
fn the_fault_of_a_document_is_gone_however_its_id_is_spelled_when_it_is_mended() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out").replace("emit(", "if doc.bad == true { throw \"bad\" } emit("));
    world.put("Orders", "Orders/Ä", r#"{"k":"orders/ä","bad":true}"#);
    world.sync();
    assert_eq!(world.faults("Sums").len(), 1);
    world.put("Orders", "orders/ä", r#"{"k":"orders/ä","bad":true}"#);
    world.sync();
    assert_eq!(world.faults("Sums").len(), 1, "still one document");
    world.put("Orders", "ORDERS/Ä", r#"{"k":"orders/ä","v":1}"#);
    world.sync();
    assert_eq!(world.faults("Sums"), []);
}

#[test]
fn the_faults_of_groups_with_long_keys_are_told_apart_and_shown_short() {
    let world = World::new();
    let script =
        sum_by_k("Orders", "Out").replace("fn reduce(key, values) {", "fn reduce(key, values) { throw \"no\";");
    world.index("Sums", &script);
    for last in ["a", "b"] {
        let key = format!("{}{last}", "x".repeat(100_000));
        world.put("Orders", &format!("orders/{last}"), &format!(r#"{{"k":"{key}","v":1}}"#));
    }
    world.sync();
    let faults = world.faults("Sums");
    assert_eq!(faults.len(), 2);
    assert_ne!(faults[0].0, faults[1].0);
    assert!(faults.iter().all(|(subject, _)| subject.len() < 1_100 && subject.starts_with("\"xxx")), "{faults:?}");
    world.delete("orders/a");
    world.sync();
    assert_eq!(world.faults("Sums").len(), 1);
}

#[test]
fn a_users_document_under_an_id_that_a_group_needs_stays_until_its_user_deletes_it() {
    let world = World::new();
    world.put("Orders", "orders/1", r#"{"k":1,"v":5}"#);
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.sync();
    let id = world.documents("Out").into_keys().next().unwrap();
    assert!(world.database().delete_index("Sums").unwrap());
    world.put("Users", &id, r#"{"mine":true}"#);
    world.put("Orders", "orders/2", r#"{"k":2,"v":7}"#);
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":2,"n":1,"v":7}"#]);
    let faults = world.faults("Sums");
    assert!(faults.len() == 1 && faults[0].0 == "1" && faults[0].1.contains(&format!("'{id}' is taken")), "{faults:?}");
    assert_eq!(world.get(&id).unwrap().body, r#"{"mine":true}"#);
    world.delete(&id);
    world.put("Orders", "orders/1", r#"{"k":1,"v":6}"#);
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":1,"n":1,"v":6}"#, r#"{"Key":2,"n":1,"v":7}"#]);
    assert_eq!(world.faults("Sums"), []);
}
