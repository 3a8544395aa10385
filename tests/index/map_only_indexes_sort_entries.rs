//! An index without `reduce` keeps its entries in the order of their keys, each with the document that emitted it.

use std::ops::Bound;

use serde_json::{Value, json};
use treepie::database::ResultRange;
use treepie::store::scan::Direction;

use crate::models::{LINES, lines};
use crate::oracle::compare;
use crate::world::{World, put};

const BY_KEY: &str = r#"
    source("Things");
    fn map(thing) { for key in thing.keys { emit(key, thing.name); } }
"#;

fn thing(id: &str, keys: &Value) -> treepie::database::Write {
    put("Things", id, &json!({ "keys": keys, "name": id }).to_string())
}

fn keys(world: &World, range: &ResultRange) -> Vec<Value> {
    world.results("ByKey", range).into_iter().map(|(key, ..)| key).collect()
}

fn range(from: Bound<&str>, to: Bound<&str>) -> ResultRange {
    ResultRange { from: from.map(str::to_owned), to: to.map(str::to_owned), ..ResultRange::all(100) }
}

/// One key of every kind, in order.
fn ladder() -> Vec<Value> {
    vec![
        json!(null),
        json!(false),
        json!(true),
        json!(-1000),
        json!(-2),
        json!(0),
        json!(3),
        json!(20),
        json!(""),
        json!("20"),
        json!("a"),
        json!("a\u{0}"),
        json!("ab"),
        json!("\u{fffd}"),
        json!("😀"),
        json!([]),
        json!([0]),
        json!([0, 1]),
        json!([1]),
        json!({}),
        json!({ "a": 2 }),
        json!({ "b": 1 }),
    ]
}

fn world_with(keys: &[Value]) -> World {
    let world = World::new();
    world.index("ByKey", BY_KEY);
    for (n, key) in keys.iter().enumerate() {
        world.write(vec![thing(&format!("things/{}", keys.len() - n), &json!([key]))]);
    }
    world.sync();
    world
}

#[test]
fn entries_come_in_key_order_both_ways_and_by_range() {
    let ladder = ladder();
    let world = world_with(&ladder);
    assert_eq!(keys(&world, &ResultRange::all(100)), ladder);
    let backward = ResultRange { direction: Direction::Backward, ..ResultRange::all(100) };
    assert_eq!(keys(&world, &backward), ladder.iter().rev().cloned().collect::<Vec<_>>());
    let page = ResultRange { skip: 3, limit: 4, ..ResultRange::all(0) };
    assert_eq!(keys(&world, &page), ladder[3..7]);
    for (n, low) in ladder.iter().enumerate() {
        assert!(ladder[..n].iter().all(|less| compare(less, low).is_lt()));
        for (m, high) in ladder.iter().enumerate() {
            let (low, high) = (low.to_string(), high.to_string());
            let inside = range(Bound::Included(&low), Bound::Excluded(&high));
            assert_eq!(keys(&world, &inside), ladder.get(n..m).unwrap_or_default());
            let behind = range(Bound::Excluded(&low), Bound::Included(&high));
            assert_eq!(keys(&world, &behind), ladder.get(n + 1..=m).unwrap_or_default());
        }
        assert_eq!(keys(&world, &ResultRange::equal(low.to_string(), 9)), std::slice::from_ref(low));
    }
}

#[test]
fn equal_keys_of_one_document_are_kept_apart_and_in_order() {
    let world = World::new();
    world.index("Pairs", r#"source("Things"); fn map(t) { for v in t.values { emit("k", v); } }"#);
    world.put("Things", "b", r#"{"values":[3,1,2,1]}"#);
    world.put("Things", "A", r#"{"values":[9]}"#);
    world.sync();
    let values = |world: &World| -> Vec<(String, Value)> {
        world.results("Pairs", &ResultRange::all(9)).into_iter().map(|(_, source, value)| (source, value)).collect()
    };
    let of_b = |values: &[i64]| values.iter().map(|value| ("b".to_owned(), json!(value))).collect::<Vec<_>>();
    assert_eq!(values(&world), [vec![("a".to_owned(), json!(9))], of_b(&[3, 1, 2, 1])].concat());
    world.put("Things", "b", r#"{"values":[1,1]}"#);
    world.delete("a");
    world.sync();
    assert_eq!(values(&world), of_b(&[1, 1]));
    world.delete("b");
    world.sync();
    assert_eq!(world.rows().len(), 0);
}

#[test]
fn keys_that_agree_in_their_first_kilobyte_are_told_apart() {
    let long = |end: &str| json!(format!("{}{end}", "x".repeat(3_000)));
    let mut expected: Vec<Value> = (0..40).map(|n| long(&format!("{n:02}"))).collect();
    expected.insert(0, json!("x".repeat(1_000)));
    expected.push(json!("y"));
    let mut world = world_with(&expected);
    assert_eq!(keys(&world, &ResultRange::all(100)), expected);
    let (from, to) = (long("10").to_string(), long("12").to_string());
    assert_eq!(keys(&world, &range(Bound::Excluded(&from), Bound::Included(&to))), [long("11"), long("12")]);
    let last = ResultRange { direction: Direction::Backward, limit: 3, ..ResultRange::all(0) };
    assert_eq!(keys(&world, &last), [json!("y"), long("39"), long("38")]);
    // Two of one document, and a key that changes in its end only.
    world.write(vec![thing("both", &json!([long("10"), long("11")]))]);
    world.write(vec![thing("both", &json!([long("10"), long("12")]))]);
    world.reopen();
    world.sync();
    let of_both: Vec<Value> =
        world.results("ByKey", &ResultRange::all(100)).into_iter().filter(|it| it.1 == "both").map(|it| it.0).collect();
    assert_eq!(of_both, [long("10"), long("12")]);
    assert_eq!(keys(&world, &ResultRange::equal(long("12").to_string(), 9)).len(), 2);
}

#[test]
fn a_hundred_thousand_byte_key_is_one_among_many() {
    let world = World::new();
    world.index("ByKey", BY_KEY);
    let long = |n: usize| json!(format!("{}{n:03}", "k".repeat(100_000)));
    world.write((0..60).map(|n| thing(&format!("things/{n}"), &json!([long(n * 7 % 60)]))).collect());
    world.sync();
    assert_eq!(keys(&world, &ResultRange::all(100)), (0..60).map(long).collect::<Vec<_>>());
    let backward = ResultRange { direction: Direction::Backward, ..ResultRange::all(100) };
    assert_eq!(keys(&world, &backward), (0..60).rev().map(long).collect::<Vec<_>>());
}

#[test]
fn groups_come_in_key_order_too_with_an_output_and_without() {
    for output in ["", r#"output("Out");"#] {
        let world = World::new();
        let script = format!(
            r#"source("Things"); {output}
            fn map(t) {{ for key in t.keys {{ emit(key, #{{ n: 1 }}); }} }}
            fn reduce(key, values) {{ #{{ n: values.sum("n") }} }}"#
        );
        world.index("ByKey", &script);
        let mut expected = ladder();
        expected.retain(|key| !key.is_object());
        expected.insert(9, json!(format!("{}1", " ".repeat(2_000))));
        expected.insert(10, json!(format!("{}2", " ".repeat(2_000))));
        world.write(vec![thing("a", &json!(expected)), thing("b", &json!(expected.iter().rev().collect::<Vec<_>>()))]);
        world.write(vec![thing("c", &json!(["gone"]))]);
        world.sync();
        world.delete("c");
        world.sync();
        assert_eq!(keys(&world, &ResultRange::all(100)), expected, "{output}");
        let values = world.results("ByKey", &ResultRange::equal("3", 2));
        assert_eq!(values, [(json!(3), String::new(), json!({ "Key": 3, "n": 2 }))]);
    }
}

#[test]
fn a_map_only_index_is_built_retracted_and_restarted_like_any_other() {
    let mut world = World::new();
    let body = |n: usize, bad: bool| json!({ "lines": ["x", n % 3], "k": n % 5, "name": n, "bad": bad }).to_string();
    for n in 0..50 {
        world.put(["Orders", "Returns"][n % 2], &format!("docs/{n}"), &body(n, n % 10 == 0));
    }
    world.index(LINES.0, LINES.1);
    world.sync();
    let check = |world: &World| {
        assert_eq!(world.results(LINES.0, &ResultRange::all(1_000)), lines(&world.sources()));
        let status = world.database().index_status().unwrap().remove(0);
        assert_eq!((status.entries, status.groups), (lines(&world.sources()).len() as u64, 0));
    };
    check(&world);
    assert_eq!(world.faults(LINES.0).len(), 5);
    for n in 0..25 {
        world.put(["Orders", "Elsewhere"][n % 2], &format!("docs/{n}"), &body(n + 1, false));
    }
    world.reopen();
    world.sync();
    check(&world);
    for n in 0..50 {
        world.delete(&format!("docs/{n}"));
    }
    world.sync();
    check(&world);
    assert_eq!((world.rows().len(), world.faults(LINES.0).len()), (0, 0));
}

#[test]
fn what_needs_results_is_refused_without_a_reduce() {
    let world = World::new();
    for (script, word) in [
        (r#"source("A"); output("B"); fn map(d) { emit(1, 1); }"#, "reduce"),
        (r#"source("A"); fn map(d) { emit(1, 1); } fn finish(key, value) { value }"#, "finish"),
        (r#"source("A"); reference("r/{Key}"); fn map(d) { emit(1, 1); }"#, "reference"),
    ] {
        let message = world.try_index("X", script).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
    let mut definition = crate::world::definition("X", r#"source("A"); fn map(d) { emit(1, 1); }"#);
    definition.output = Some("B".to_owned());
    let message = world.database().put_index(definition).unwrap_err().to_string();
    assert!(message.contains("'B'") && message.contains("reduce"), "{message}");
}
