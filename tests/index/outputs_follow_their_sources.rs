//! Whatever happens to source documents, the artificial documents are those of the documents that are left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use crate::models::{SHAPES, SUMS, sum_by_k};
use crate::world::{World, delete, documents, put};

/// Two largest `v` of each group, with the ids of their documents.
const TOP_TWO: &str = r#"
    source("Orders");
    output("TopTwo");
    fn map(doc) { emit(doc.k, #{ top: [#{ v: doc.v, id: id(doc) }] }); }
    fn reduce(key, values) {
        let best = ();
        let next = ();
        for value in values {
            for entry in value.top {
                if best == () || entry.v > best.v { next = best; best = entry; }
                else if next == () || entry.v > next.v { next = entry; }
            }
        }
        let top = [best];
        if next != () { top.push(next); }
        #{ top: top }
    }
"#;

#[test]
fn groups_whose_documents_all_died_in_a_pause_are_gone() {
    let mut world = World::new();
    world.index(SUMS.name, SUMS.script);
    let ids: Vec<String> = (0..1500).map(|number| format!("orders/{number}")).collect();
    let puts =
        ids.iter().enumerate().map(|(number, id)| put("Orders", id, &format!(r#"{{"k":{},"v":1}}"#, number % 10)));
    world.write(puts.collect());
    world.sync();
    assert_eq!(world.bodies("Sums").len(), 10);
    world.database().pause_indexes(Some(SUMS.name)).unwrap();
    world.write(ids.iter().map(|id| delete(id)).collect());
    world.database().resume_indexes(Some(SUMS.name)).unwrap();
    world.sync();
    assert_eq!(world.bodies("Sums"), Vec::<String>::new());
    world.reopen();
    world.sync();
    assert_eq!(world.bodies("Sums"), Vec::<String>::new());
}

#[test]
fn a_delete_retracts_what_was_indexed_and_not_what_was_stored_last() {
    let world = World::new();
    world.index(
        "TagDays",
        r#"
            source("Tagged");
            output("TagDays");
            fn map(doc) { for tag in doc.tags { emit(#{ tag: tag, day: doc.day }, #{ n: 1 }); } }
            fn reduce(key, values) { #{ n: values.sum("n") } }
        "#,
    );
    world.put("Tagged", "t", r#"{"tags":["p","q"],"day":1}"#);
    world.sync();
    let both = [r#"{"day":1,"tag":"p","n":1}"#, r#"{"day":1,"tag":"q","n":1}"#];
    assert_eq!(world.bodies("TagDays"), both);
    world.database().pause_indexes(None).unwrap();
    world.delete("t");
    world.put("Tagged", "t", r#"{"tags":["p","q"],"day":1}"#);
    world.database().resume_indexes(None).unwrap();
    world.sync();
    assert_eq!(world.bodies("TagDays"), both, "deleted and put again unchanged");
    world.database().pause_indexes(None).unwrap();
    world.put("Tagged", "t", r#"{"tags":["p","q"],"day":2}"#);
    world.delete("t");
    world.database().resume_indexes(None).unwrap();
    world.sync();
    assert_eq!(world.bodies("TagDays"), Vec::<String>::new(), "changed and deleted in one pause");
}

#[test]
fn a_document_that_moves_to_another_collection_leaves_the_index_of_its_old_one() {
    for delete_first in [true, false] {
        let world = World::new();
        world.index("UserSums", &sum_by_k("Users", "UserSums"));
        world.index("PeopleSums", &sum_by_k("People", "PeopleSums"));
        world.put("Users", "x", r#"{"k":1,"v":1}"#);
        world.sync();
        assert_eq!(world.bodies("UserSums").len(), 1);
        let mut batch = vec![put("People", "x", r#"{"k":1,"v":1}"#)];
        if delete_first {
            batch.insert(0, delete("x"));
        }
        world.write(batch);
        world.sync();
        assert_eq!(world.bodies("UserSums"), Vec::<String>::new());
        assert_eq!(world.bodies("PeopleSums"), [r#"{"Key":1,"n":1,"v":1}"#]);
        assert_eq!(world.documents("Users").len(), 0);
        assert_eq!(world.documents("People").len(), 1);
    }
}

#[test]
fn an_aggregate_returns_to_no_value_when_its_last_value_goes() {
    let world = World::new();
    world.index(
        "Extremes",
        r#"
            source("Orders");
            output("Extremes");
            fn map(doc) { emit(#{ k: doc.k }, #{ sum: doc.v, min: doc.v }); }
            fn reduce(key, values) {
                let sum = ();
                let min = ();
                for value in values {
                    if value.sum != () { sum = if sum == () { value.sum } else { sum + value.sum }; }
                    if value.min != () && (min == () || value.min < min) { min = value.min; }
                }
                #{ sum: sum, min: min }
            }
        "#,
    );
    world.write(vec![put("Orders", "a", r#"{"k":1,"v":5}"#), put("Orders", "b", r#"{"k":1,"v":null}"#)]);
    world.sync();
    assert_eq!(world.bodies("Extremes"), [r#"{"k":1,"min":5,"sum":5}"#]);
    world.delete("a");
    world.sync();
    assert_eq!(world.bodies("Extremes"), [r#"{"k":1,"min":null,"sum":null}"#]);
}

#[test]
fn values_reach_the_reduce_in_the_order_of_their_documents_whatever_the_order_of_arrival() {
    let documents = [("a", 9), ("b", 8), ("c", 7)];
    let body = |name: &str, v: i64| format!(r#"{{"k":1,"v":{v},"name":"{name}","lines":["x"]}}"#);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let world = World::new();
        world.index("TopTwo", TOP_TWO);
        world.index(SHAPES.name, SHAPES.script);
        for (id, v) in order.map(|place| documents[place]) {
            world.put("Orders", id, &body(id, v));
            world.sync();
        }
        world.put("Orders", "a", &body("a", 1));
        world.sync();
        let top = [r#"{"Key":1,"top":[{"id":"b","v":8},{"id":"c","v":7}]}"#];
        assert_eq!(world.bodies("TopTwo"), top);
        assert_eq!(world.bodies("Shapes"), [r#"{"Key":"x","s":"(abc)"}"#]);
        assert!(world.database().delete_index("TopTwo").unwrap());
        world.index("TopTwo", TOP_TWO);
        world.sync();
        assert_eq!(world.bodies("TopTwo"), top, "after a rebuild");
    }
}

#[test]
fn a_document_counts_once_for_each_entry_it_emits_and_never_for_one_it_stopped_to_emit() {
    let world = World::new();
    world.index(
        "Products",
        r#"
            source("Orders");
            output("Products");
            fn map(order) { for line in order.lines { emit([line], #{ n: 1 }); } }
            fn reduce(key, values) { #{ n: values.sum("n") } }
        "#,
    );
    let steps: [(&str, &[&str]); 4] = [
        (r#"{"lines":["A","A","B"]}"#, &[r#"{"Key":["A"],"n":2}"#, r#"{"Key":["B"],"n":1}"#]),
        (r#"{"lines":["A"]}"#, &[r#"{"Key":["A"],"n":1}"#]),
        (r#"{"lines":[]}"#, &[]),
        (r#"{"lines":null}"#, &[]),
    ];
    for (body, expected) in steps {
        world.put("Orders", "o", body);
        world.sync();
        assert_eq!(world.bodies("Products"), expected, "{body}");
    }
}

#[test]
fn ids_beyond_ascii_keep_their_own_entries() {
    let world = World::new();
    world.index(SUMS.name, SUMS.script);
    for (id, k) in [("gespräche/1", "a"), ("gespräche/2", "b"), ("日本/1", "c"), ("😀/1", "d")] {
        world.put("Orders", id, &format!(r#"{{"k":"{k}","v":1}}"#));
    }
    world.sync();
    assert_eq!(world.bodies("Sums").len(), 4);
    world.assert_equals(&SUMS);
    world.delete("GESPRÄCHE/1");
    world.sync();
    let left = ["b", "c", "d"].map(|k| format!(r#"{{"Key":"{k}","n":1,"v":1}}"#));
    assert_eq!(world.bodies("Sums"), left);
}

#[test]
fn no_snapshot_shows_half_of_a_document() {
    const SNAPSHOTS: u64 = 100;
    const TRANSFERS_MAX: u64 = 20_000;
    let world = World::new();
    world.index(
        "Balances",
        r#"
            source("Transfers");
            output("Balances");
            fn map(transfer) {
                emit(transfer.from, #{ amount: -transfer.amount });
                emit(transfer.to, #{ amount: transfer.amount });
            }
            fn reduce(key, values) { #{ amount: values.sum("amount") } }
        "#,
    );
    // A first build shows its outputs part by part; what comes after it must be whole.
    world.put("Transfers", "transfers/first", r#"{"from":"account 0","to":"account 1","amount":1}"#);
    world.sync();
    let seen = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let balances = documents(&world.database().store().snapshot(), "Balances");
                let total: i64 = balances.values().map(|document| amount(&document.body)).sum();
                assert_eq!(total, 0, "{balances:?}");
                seen.fetch_add(u64::from(!balances.is_empty()), Ordering::AcqRel);
            }
        });
        let mut number = 0;
        while number < TRANSFERS_MAX && seen.load(Ordering::Acquire) < SNAPSHOTS && !reader.is_finished() {
            let (from, to) = (number % 7, (number * 3 + 1) % 7);
            let body = format!(r#"{{"from":"account {from}","to":"account {to}","amount":{number}}}"#);
            world.put("Transfers", &format!("transfers/{}", number % 40), &body);
            number += 1;
        }
        done.store(true, Ordering::Release);
    });
    assert!(seen.into_inner() >= SNAPSHOTS, "too few snapshots held an output");
}

fn amount(body: &str) -> i64 {
    serde_json::from_str::<Value>(body).unwrap()["amount"].as_i64().unwrap()
}
