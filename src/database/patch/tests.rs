//! The examples of RFC 6902, and what must stay as it is.

use super::*;

const BODY: &str =
    r#"{ "n" : 1.10, "big":123456789012345678901234567890,"tags" : [ "a" ,"b","c" ], "o":{"x":1e2,"a/b":1,"m~n":2} }"#;

fn document(body: &str) -> Document {
    Document::parse(body.as_bytes()).unwrap().document
}

fn steps(operations: &str) -> Vec<PatchStep> {
    let operations: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(operations).unwrap();
    let step = |operation: serde_json::Map<String, serde_json::Value>| {
        let text = |key: &str| operation[key].as_str().unwrap().to_owned();
        let value = || operation["value"].to_string();
        match operation["op"].as_str().unwrap() {
            "add" => PatchStep::Add { path: text("path"), value: value() },
            "remove" => PatchStep::Remove { path: text("path") },
            "replace" => PatchStep::Replace { path: text("path"), value: value() },
            "move" => PatchStep::Move { from: text("from"), path: text("path") },
            "copy" => PatchStep::Copy { from: text("from"), path: text("path") },
            "test" => PatchStep::Test { path: text("path"), value: value() },
            other => panic!("{other}"),
        }
    };
    operations.into_iter().map(step).collect()
}

fn patched(body: &str, operations: &str) -> Result<String, String> {
    let applied = JsonPatch::new(steps(operations)).and_then(|patch| patch.apply(&document(body)));
    applied.map(|patched| patched.document.body).map_err(|error| error.to_string())
}

#[test]
fn the_operations_of_rfc_6902() {
    for (body, operations, after) in [
        (r#"{"foo":"bar"}"#, r#"[{"op":"add","path":"/baz","value":"qux"}]"#, r#"{"foo":"bar","baz":"qux"}"#),
        (
            r#"{"foo":["bar","baz"]}"#,
            r#"[{"op":"add","path":"/foo/1","value":"qux"}]"#,
            r#"{"foo":["bar","qux","baz"]}"#,
        ),
        (r#"{"foo":["bar"]}"#, r#"[{"op":"add","path":"/foo/1","value":"qux"}]"#, r#"{"foo":["bar","qux"]}"#),
        (r#"{"foo":[]}"#, r#"[{"op":"add","path":"/foo/-","value":["x"]}]"#, r#"{"foo":[["x"]]}"#),
        (r#"{"baz":"qux","foo":"bar"}"#, r#"[{"op":"remove","path":"/baz"}]"#, r#"{"foo":"bar"}"#),
        (r#"{"foo":"bar","baz":"qux"}"#, r#"[{"op":"remove","path":"/baz"}]"#, r#"{"foo":"bar"}"#),
        (r#"{"foo":["a","b","c"]}"#, r#"[{"op":"remove","path":"/foo/1"}]"#, r#"{"foo":["a","c"]}"#),
        (r#"{"foo":[ "a" ]}"#, r#"[{"op":"remove","path":"/foo/0"}]"#, r#"{"foo":[]}"#),
        (
            r#"{"baz":"qux","foo":"bar"}"#,
            r#"[{"op":"replace","path":"/baz","value":null}]"#,
            r#"{"baz":null,"foo":"bar"}"#,
        ),
        (
            r#"{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}"#,
            r#"[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]"#,
            r#"{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}"#,
        ),
        (
            r#"{"foo":["a","b","c","d"]}"#,
            r#"[{"op":"move","from":"/foo/1","path":"/foo/3"}]"#,
            r#"{"foo":["a","c","d","b"]}"#,
        ),
        (
            r#"{"a":{"b":[1.50]}}"#,
            r#"[{"op":"copy","from":"/a","path":"/c"}]"#,
            r#"{"a":{"b":[1.50]},"c":{"b":[1.50]}}"#,
        ),
        (
            r#"{"a":1}"#,
            r#"[{"op":"copy","from":"","path":"/whole"},{"op":"remove","path":"/whole/@metadata"}]"#,
            r#"{"a":1,"whole":{"a":1}}"#,
        ),
        (
            r#"{"/":9,"~1":10}"#,
            r#"[{"op":"test","path":"/~01","value":10},{"op":"replace","path":"/~1","value":8}]"#,
            r#"{"/":8,"~1":10}"#,
        ),
        (r#"{"":{"":1}}"#, r#"[{"op":"replace","path":"//","value":2}]"#, r#"{"":{"":2}}"#),
        (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{"b":2}}]"#, r#"{"b":2}"#),
        (r#"{"a":1}"#, r#"[{"op":"move","from":"/a","path":"/a"}]"#, r#"{"a":1}"#),
        (
            r#"{"a":1}"#,
            r#"[{"op":"add","path":"/a","value":{"b":1}},{"op":"add","path":"/a/c","value":[]},{"op":"add","path":"/a/c/0","value":7}]"#,
            r#"{"a":{"b":1,"c":[7]}}"#,
        ),
        (r#"{"a":1}"#, r#"[{"op":"add","path":"/q\"\n","value":1}]"#, r#"{"a":1,"q\"\n":1}"#),
        (r"{ }", r#"[{"op":"add","path":"/a","value":1}]"#, r#"{"a":1}"#),
    ] {
        assert_eq!(patched(body, operations).as_deref(), Ok(after), "{body} {operations}");
    }
}

#[test]
fn what_is_not_touched_keeps_its_text() {
    let after = patched(
        BODY,
        r#"[{"op":"replace","path":"/tags/1","value":"B"},{"op":"add","path":"/o/new","value":0},{"op":"remove","path":"/o/a~1b"}]"#,
    );
    let expected = r#"{"n" : 1.10, "big":123456789012345678901234567890,"tags" : [ "a" ,"B","c" ], "o":{"x":1e2,"m~n":2,"new":0}}"#;
    assert_eq!(after.as_deref(), Ok(expected));
}

#[test]
fn metadata_can_be_patched_like_any_property() {
    let document = document(r#"{"a":1,"@metadata":{"@collection":"Users","k":1}}"#);
    let patch = JsonPatch::new(steps(
        r#"[{"op":"test","path":"/@metadata/@collection","value":"Users"},{"op":"replace","path":"/@metadata/@collection","value":"People"},{"op":"remove","path":"/@metadata/k"}]"#,
    ));
    let patched = patch.unwrap().apply(&document).unwrap().document;
    assert_eq!(
        (patched.collection.as_str(), patched.metadata.as_str(), patched.body.as_str()),
        ("People", "{}", r#"{"a":1}"#)
    );
}

#[test]
fn what_does_not_fit_is_refused_with_operation_and_rule() {
    for (operations, words) in [
        (
            r#"[{"op":"test","path":"/n","value":1.1},{"op":"remove","path":"/none"}]"#,
            "operation 1 of the patch, counted from 0 (remove '/none'): there is no 'none'",
        ),
        (r#"[{"op":"replace","path":"/none","value":1}]"#, "there is no 'none'"),
        (r#"[{"op":"add","path":"/none/x","value":1}]"#, "there is no 'none'"),
        (r#"[{"op":"add","path":"/n/x","value":1}]"#, "neither an object nor an array"),
        (r#"[{"op":"remove","path":"/tags/10"}]"#, "position 10 is out of array bounds: there are 3 elements"),
        (r#"[{"op":"add","path":"/tags/4","value":1}]"#, "position 4 is out of array bounds"),
        (r#"[{"op":"remove","path":"/tags/-"}]"#, "out of array bounds"),
        (r#"[{"op":"remove","path":"/tags/01"}]"#, "'01' is no position"),
        (r#"[{"op":"remove","path":"/tags/-1"}]"#, "'-1' is no position"),
        (r#"[{"op":"remove","path":"/tags/99999999999999999999999"}]"#, "out of array bounds"),
        (r#"[{"op":"test","path":"/n","value":1.11}]"#, "the value there is 1.10, and not 1.11"),
        (r#"[{"op":"test","path":"/none","value":null}]"#, "there is no 'none'"),
        (r#"[{"op":"remove","path":""}]"#, "can't be removed"),
        (r#"[{"op":"remove","path":"n"}]"#, "does not begin with '/'"),
        (r#"[{"op":"remove","path":"/a~2"}]"#, "a '~' stands for nothing"),
        (r#"[{"op":"move","from":"/o","path":"/o/x"}]"#, "into itself"),
        (r#"[{"op":"copy","from":"/none","path":"/x"}]"#, "there is no 'none'"),
        (r#"[{"op":"replace","path":"","value":[1]}]"#, "what the patch makes"),
        (r#"[{"op":"add","path":"/@metadata","value":1}]"#, "what the patch makes"),
    ] {
        let error = patched(BODY, operations).unwrap_err();
        assert!(error.contains(words), "{operations}: {error}");
    }
    let twice = PatchStep::Add { path: "/x".into(), value: r#"{"a":1,"a":2}"#.into() };
    assert!(JsonPatch::new(vec![twice]).unwrap_err().to_string().contains("duplicate key 'a'"));
    let many = vec![PatchStep::Remove { path: "/x".into() }; 10_001];
    assert!(JsonPatch::new(many).unwrap_err().to_string().contains("10000"));
}

#[test]
fn a_patch_cannot_grow_a_document_beyond_all_bounds() {
    let copies: Vec<_> = (0..40).map(|n| format!(r#"{{"op":"copy","from":"","path":"/x{n}"}}"#)).collect();
    let doubling = format!("[{}]", copies.join(","));
    let patch = JsonPatch::new(steps(&doubling)).unwrap().with_document_bytes_max(10_000);
    let error = patch.apply(&document(BODY)).unwrap_err().to_string();
    assert!(error.contains("10000 are allowed"), "{error}");
}
