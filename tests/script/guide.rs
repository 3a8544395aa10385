//! The script guide is true: every script in it compiles, runs, and gives what it says.

use treepie::script::Limits;

use crate::support::{compile, encode, json, map, map_with, on_script_stack, runner};

fn blocks() -> Vec<String> {
    let guide = include_str!("../../src/script/guide.md");
    guide
        .split("```rhai\n")
        .skip(1)
        .filter_map(|part| part.split_once("```").map(|(code, _)| code.to_owned()))
        .collect()
}

/// Maps a document with the n-th script, reduces all values of the first key, finishes; returns all three.
fn walk(n: usize, body: &str) -> (Vec<(String, String)>, Option<String>, Option<String>) {
    let (text, body) = (blocks()[n].clone(), body.to_owned());
    on_script_stack(move || {
        let has_reduce = compile(&text).unwrap().has_reduce;
        let mut runner = runner(&text);
        let entries = map_with(&mut runner, &body).unwrap();
        let Some((first, _)) = entries.first().filter(|_| has_reduce) else {
            return (entries, None, None);
        };
        let key = encode(first);
        let values: Vec<_> = entries.iter().filter(|(k, _)| k == first).map(|(_, value)| encode(value)).collect();
        let value = runner.reduce(&key, &values.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        let finished = runner.finish(&key, &value).unwrap();
        (entries, Some(json(&value)), finished)
    })
}

#[test]
fn every_script_of_the_guide_compiles() {
    assert_eq!(blocks().len(), 8);
    for block in blocks() {
        compile(&block).unwrap_or_else(|fault| panic!("{fault}\n{block}"));
    }
}

#[test]
fn every_script_of_the_guide_does_what_it_says() {
    let (_, _, finished) =
        walk(0, r#"{"OrderedAt":"1998-05-06","Lines":[{"Product":"p","Quantity":2,"PricePerUnit":1.50}]}"#);
    assert_eq!(finished.unwrap(), r#"{"Month":"1998-05","Product":"p","Average":3,"Count":1,"Total":3}"#);
    let (entries, _, finished) = walk(1, r#"{"Date":"2013-02-01","Customer":"c","Amount":5}"#);
    assert_eq!(entries.len(), 1);
    assert_eq!(finished.unwrap(), r#"{"Key":"c","Due":5,"Open":5,"Paid":0}"#);
    assert_eq!(walk(1, r#"{"Date":"2012-02-01","Customer":"c","Amount":5}"#).0, []);
    assert_eq!(walk(1, r#"{"Date":"2013-02-01","Customer":"c","Amount":0}"#).2, None);
    assert_eq!(walk(2, r#"{"Company":null}"#).2.unwrap(), r#"{"Key":"unknown","Orders":1}"#);
    assert_eq!(walk(4, "{}").0, []);
    assert_eq!(walk(4, r#"{"Lines":[{"PricePerUnit":2.5},{}]}"#).2.unwrap(), r#"{"Key":"unknown","Value":2.5}"#);
    assert_eq!(walk(5, r#"{"Price":"1250.55"}"#).0[0], ("12".into(), r#"{"Parts":1,"Rounded":1250.6}"#.into()));
    assert_eq!(walk(5, r#"{"Price":"NA"}"#).0[0].0, "0");
    let (_, value, _) = walk(6, r#"{"Team":" Ops ","Born":"1970-01-02T00:00:00","Name":"Zoë"}"#);
    assert_eq!(value.unwrap(), r#"{"Heads":1,"Names":["Zoë"],"Oldest":"1970-01-02"}"#);
    let (_, _, finished) = walk(3, r#"{"OrderedAt":"1998-05-06T10:00:00"}"#);
    assert_eq!(finished.unwrap(), r#"{"Day":"1998-05-06","Orders":1}"#);
    let (entries, _, _) = walk(7, r#"{"Lines":[{"Total":200,"Product":"a"},{"Total":100,"Product":"b"}]}"#);
    assert_eq!(entries, [("1".into(), r#"["a"]"#.into())]);
}

#[test]
fn the_fault_in_the_guide_is_a_real_one() {
    let fault = map("emit(1, doc.n + 1)", "{}").unwrap_err().to_string();
    let said = fault.split_once(" in map: ").unwrap().1;
    assert!(include_str!("../../src/script/guide.md").contains(said), "{fault}");
}

#[test]
fn the_limits_in_the_guide_are_the_defaults() {
    let limits = Limits::default();
    assert_eq!((limits.operations_max, limits.call_depth_max, limits.string_bytes_max), (1_000_000, 32, 64 << 10));
    assert_eq!((limits.array_elements_max, limits.map_properties_max), (1_000, 1_000));
    assert_eq!((limits.entries_max, limits.emitted_bytes_max), (10_000, 16 << 20));
    assert_eq!((limits.key_bytes_max, limits.value_bytes_max), (128 << 10, 1 << 20));
    assert_eq!((limits.depth_max, limits.text_bytes_max, limits.wall_max.as_secs()), (64, 1 << 20, 5));
}
