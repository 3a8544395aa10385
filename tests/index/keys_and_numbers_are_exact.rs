//! Which keys are one group, and that numbers neither lose digits nor depend on history.

use std::collections::BTreeSet;

use treepie::script::{Fault, Phase};

use crate::models::sum_by_k;
use crate::world::{World, delete, put};

/// Puts one document for each text of `k`, and gives the groups' bodies.
fn groups_of(keys: &[&str]) -> Vec<String> {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    let body = |key: &&str| if key.is_empty() { r#"{"v":1}"#.to_owned() } else { format!(r#"{{"k":{key},"v":1}}"#) };
    world.write(keys.iter().enumerate().map(|(number, key)| put("Orders", &number.to_string(), &body(key))).collect());
    world.sync();
    let documents = world.documents("Out");
    for id in documents.keys() {
        assert_eq!(world.get(id).as_ref(), documents.get(id), "an output's id is an id like any other");
    }
    world.bodies("Out")
}

#[test]
fn large_integers_keep_every_digit() {
    let keys = ["369553424691494913", "369553424691494912", "9223372036854775807", "-9223372036854775808"];
    let expected: BTreeSet<String> = keys.iter().map(|key| format!(r#"{{"Key":{key},"n":1,"v":1}}"#)).collect();
    assert_eq!(groups_of(&keys), expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn numbers_that_are_equal_are_one_group_however_they_are_written() {
    let groups = groups_of(&["1", "1.0", "1e0", "100e-2", "\"1\""]);
    assert_eq!(groups, [r#"{"Key":"1","n":1,"v":1}"#, r#"{"Key":1,"n":4,"v":4}"#]);
    assert_eq!(groups_of(&["9007199254740993", "9007199254740992", "9007199254740993.0"]).len(), 2);
    assert_eq!(groups_of(&["0", "-0", "0.0", "-0.0", "0e5"]), [r#"{"Key":0,"n":5,"v":5}"#]);
}

#[test]
fn missing_and_null_are_one_group_and_nothing_else_is_that_group() {
    let groups = groups_of(&["null", "", "false", "0", "\"\"", "[]", "{}"]);
    let expected = [
        r#"{"Key":"","n":1,"v":1}"#,
        r#"{"Key":0,"n":1,"v":1}"#,
        r#"{"Key":[],"n":1,"v":1}"#,
        r#"{"Key":false,"n":1,"v":1}"#,
        r#"{"Key":null,"n":2,"v":2}"#,
        r#"{"n":1,"v":1}"#,
    ];
    assert_eq!(groups, expected);
}

#[test]
fn text_that_looks_the_same_is_grouped_by_code_points() {
    let texts = ["\u{e9}", "e\u{301}", "\u{c9}", "\u{2708}\u{fe0f}", "\u{2708}"];
    let keys: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    let groups = groups_of(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let expected: BTreeSet<String> = texts.iter().map(|text| format!(r#"{{"Key":"{text}","n":1,"v":1}}"#)).collect();
    assert_eq!(groups, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn keys_of_several_parts_are_never_glued_together() {
    let pairs = [
        [r#"["a","b/c"]"#, r#"["a/b","c"]"#],
        [r#"["ab",""]"#, r#"["a","b"]"#],
        [r#"["a\u0000","b"]"#, r#"["a","\u0000b"]"#],
        [r#"["1",2]"#, r#"[1,"2"]"#],
        [r#"["a|b"]"#, r#"["a","b"]"#],
        [r#"["a",["b"]]"#, r#"["a","b"]"#],
        [r#"{"a":"b"}"#, r#"["a","b"]"#],
        ["\"\u{10ffff}\u{10ffff}\"", "\"\u{10ffff}\""],
    ];
    for pair in pairs {
        assert_eq!(groups_of(&pair).len(), 2, "{pair:?}");
    }
}

#[test]
fn the_order_of_an_objects_fields_makes_no_other_key() {
    let groups = groups_of(&[r#"{"b":1,"a":{"d":2,"c":3}}"#, r#"{"a":{"c":3.0,"d":2},"b":1}"#]);
    assert_eq!(groups, [r#"{"a":{"c":3,"d":2},"b":1,"n":2,"v":2}"#]);
}

#[test]
fn decimal_sums_do_not_depend_on_the_order_of_arrival() {
    let values = ["-0.2", "-0.1", "0.1", "0.2"];
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    for order in permutations(4) {
        for (place, &value) in order.iter().enumerate() {
            world.put("Orders", &format!("orders/{place}"), &format!(r#"{{"k":{{"a":1}},"v":{}}}"#, values[value]));
            world.sync();
        }
        assert_eq!(world.bodies("Out"), [r#"{"a":1,"n":4,"v":0}"#], "{order:?}");
        world.write((0..4).map(|place| delete(&format!("orders/{place}"))).collect());
        world.sync();
        assert_eq!(world.bodies("Out"), Vec::<String>::new());
    }
}

#[test]
fn decimal_sums_stay_exact_through_a_thousand_documents_and_deletes() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    let mut cents: Vec<i64> = Vec::new();
    let mut batch = Vec::new();
    for number in 0..1000_i64 {
        let value = number * 7_919_777 % 2_000_000 - 1_000_000;
        cents.push(value);
        batch.push(put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":1,"v":{}}}"#, hundredths(value))));
    }
    world.write(batch);
    world.sync();
    let total: i64 = cents.iter().sum();
    assert_eq!(world.bodies("Out"), [format!(r#"{{"Key":1,"n":1000,"v":{}}}"#, hundredths(total))]);
    world.write((0..1000).filter(|number| number % 3 != 0).map(|number| delete(&format!("orders/{number}"))).collect());
    world.sync();
    let left: i64 = cents.iter().step_by(3).sum();
    assert_eq!(world.bodies("Out"), [format!(r#"{{"Key":1,"n":334,"v":{}}}"#, hundredths(left))]);
}

#[test]
fn a_sum_beyond_64_bits_goes_on_exactly_and_comes_back() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.write(vec![
        put("Orders", "a", r#"{"k":1,"v":9223372036854775807}"#),
        put("Orders", "b", r#"{"k":1,"v":1}"#),
        put("Orders", "c", r#"{"k":2,"v":5}"#),
    ]);
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":1,"n":2,"v":9223372036854775808}"#, r#"{"Key":2,"n":1,"v":5}"#]);
    world.delete("b");
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":1,"n":1,"v":9223372036854775807}"#, r#"{"Key":2,"n":1,"v":5}"#]);
    assert_eq!(world.faults("Sums"), []);
}

#[test]
fn a_sum_that_no_exact_number_can_hold_is_a_fault_of_its_group_alone() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.write(vec![
        put("Orders", "a", r#"{"k":1,"v":9999999999999999999999999999}"#),
        put("Orders", "b", r#"{"k":1,"v":1}"#),
        put("Orders", "c", r#"{"k":2,"v":5}"#),
    ]);
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":2,"n":1,"v":5}"#]);
    let faults: Vec<Fault> =
        world.database().index_faults("Sums").unwrap().into_iter().map(|record| record.fault).collect();
    assert!(matches!(faults.as_slice(), [fault] if fault.phase == Phase::Reduce), "{faults:?}");
    world.delete("b");
    world.sync();
    assert_eq!(world.bodies("Out").len(), 2);
    assert_eq!(world.faults("Sums"), []);
}

#[test]
fn long_keys_are_whole_keys() {
    for length in [4096, 100_000] {
        let world = World::new();
        world.index("Sums", &sum_by_k("Orders", "Out"));
        let key = |last: &str| format!("{}{last}", "k".repeat(length - 1));
        let body = |last: &str| format!(r#"{{"k":"{}","v":1}}"#, key(last));
        world.write((0..128).map(|number| put("Orders", &format!("orders/{number}"), &body("x"))).collect());
        world.put("Orders", "orders/other", &body("y"));
        world.sync();
        assert_eq!(world.faults("Sums"), []);
        let expected = [("x", 128), ("y", 1)].map(|(last, n)| format!(r#"{{"Key":"{}","n":{n},"v":{n}}}"#, key(last)));
        assert!(world.bodies("Out") == expected, "{length} characters");
        let longest = world.documents("Out").into_keys().map(|id| id.len()).max();
        assert_eq!(longest, Some("Out/".len() + 32));
    }
}

#[test]
fn a_source_id_at_the_limit_is_indexed() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    let ids = ["a".repeat(512), "é".repeat(256), "😀".repeat(128)];
    world.write(ids.iter().map(|id| put("Orders", id, r#"{"k":1,"v":1}"#)).collect());
    world.sync();
    assert_eq!(world.bodies("Out"), [r#"{"Key":1,"n":3,"v":3}"#]);
    world.write(ids.iter().map(|id| delete(id)).collect());
    world.sync();
    assert_eq!(world.bodies("Out"), Vec::<String>::new());
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let insert = |places: &Vec<usize>, at: usize| {
        let mut places = places.clone();
        places.insert(at, count - 1);
        places
    };
    shorter.iter().flat_map(|places| (0..count).map(move |at| insert(places, at))).collect()
}

/// Writes hundredths as the shortest decimal.
fn hundredths(value: i64) -> String {
    let text = format!("{}{}.{:02}", if value < 0 { "-" } else { "" }, value.abs() / 100, value.abs() % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
