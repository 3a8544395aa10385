//! What a script does wrong stays with its document, its group or its index; nothing it asks for reaches the server.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::sums::SUM_BY_K;
use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_document_and_one_bad_group_harm_nobody_and_their_faults_tell_the_place() {
    let picky = "source(\"Items\");\noutput(\"Out\");\nfn map(doc) {\n    emit(doc.k, #{ v: doc.a.b + 0 });\n}\n\
                 fn reduce(key, values) {\n    if key == 3 { throw \"no threes\"; }\n    #{ v: values.sum(\"v\") }\n}\n";
    let server = TestServer::with_index(picky).await;
    for (id, body) in [
        ("good1", r#"{"k":1,"a":{"b":1}}"#),
        ("bad", r#"{"k":1,"a":null}"#),
        ("good2", r#"{"k":2,"a":{"b":2}}"#),
        ("d", r#"{"k":3,"a":{"b":1}}"#),
    ] {
        server.item("Items", id, body).await;
    }
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"v":1}"#, r#"{"Key":2,"v":2}"#]);
    let errors = server.get("/databases/db/indexes/errors?name=Index").await.json()["Results"][0]["Errors"].clone();
    let of =
        |document: &str| errors.as_array().unwrap().iter().find(|error| error["Document"] == document).unwrap().clone();
    let (map, reduce) = (of("bad"), of("3"));
    assert_eq!((&map["Action"], &map["Line"], &map["Script"]), (&json!("Map"), &json!(4), &json!("script")));
    assert!(map["Column"].is_u64() && map["Timestamp"].as_str().unwrap().ends_with('Z'), "{map}");
    assert!(map["Message"].as_str().unwrap().contains("missing or null"), "{map}");
    assert!(map["Hint"].as_str().unwrap().contains("??"), "{map}");
    assert_eq!((&reduce["Action"], &reduce["Line"]), (&json!("Reduce"), &json!(7)));
    assert!(reduce["Error"].as_str().unwrap().contains("no threes"), "{reduce}");
    let stats = server.get("/databases/db/indexes/stats?name=Index").await.json()["Results"][0].clone();
    assert_eq!((&stats["MapErrors"], &stats["ReduceErrors"], &stats["IsStale"]), (&json!(1), &json!(1), &json!(false)));
    server.item("Items", "bad", r#"{"k":1,"a":{"b":10}}"#).await;
    server.item("Items", "d", r#"{"k":4,"a":{"b":1}}"#).await;
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"v":11}"#, r#"{"Key":2,"v":2}"#, r#"{"Key":4,"v":1}"#]);
    assert_eq!(server.faults("Index").await, [], "what was fixed is no fault any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_that_changes_its_document_changes_only_its_own_copy() {
    let evil = r#"source("Items"); output("Evil");
        fn map(doc) {
            doc._id = "evil"; doc.v = 999; doc["@metadata"] = #{}; doc.tags = [];
            emit(doc.k, #{ n: 1, v: doc.v });
        }
        fn reduce(key, values) { #{ n: values.sum("n"), v: values.sum("v") } }"#;
    for evil_first in [true, false] {
        let server = TestServer::with_database().await;
        let mut indexes = [("Evil", evil), ("Index", SUM_BY_K)];
        if !evil_first {
            indexes.reverse();
        }
        for (name, script) in indexes {
            server.must_index(name, script).await;
        }
        server.item("Items", "a", r#"{"k":1,"v":2,"tags":["t"]}"#).await;
        server.wait_for_indexes().await;
        assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"n":1,"v":2}"#]);
        assert_eq!(server.bodies("Evil").await, [r#"{"Key":1,"n":1,"v":999}"#]);
        assert_eq!(server.bodies("Items").await, [r#"{"k":1,"tags":["t"],"v":2}"#]);
        server.remove("a").await;
        server.wait_for_indexes().await;
        assert_eq!((server.bodies("Out").await.len(), server.bodies("Evil").await.len()), (0, 0));
    }
}

/// Bodies of maps that would never end or take all memory, plain and hidden behind `try`.
const HOSTILE: [&str; 8] = [
    "while true {}",
    "again(doc);",
    "let s = \"x\"; loop { s += s; }",
    "let a = []; for i in 0..1000 { let s = \"\"; while s.len() < 60000 { s += \"0123456789\"; } a.push(s + i); }",
    "try { while true {} } catch(e) { emit(7, #{ n: 7, v: 7 }); }",
    "try { again(doc); } catch(e) { emit(7, #{ n: 7, v: 7 }); }",
    "try { let s = \"x\"; loop { s += s; } } catch(e) { emit(7, #{ n: 7, v: 7 }); }",
    "let a = []; for i in 0..1000 { a.push(i); } a.map(|x| a.map(|y| a.map(|z| x + y + z)));",
];

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_never_end_fail_alone_and_the_server_stays_quick_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    server.must_index("Index", SUM_BY_K).await;
    for (number, body) in HOSTILE.iter().enumerate() {
        let script = format!(
            "source(\"Items\"); output(\"Hostile{number}\"); fn again(doc) {{ again(doc) + again(doc) }} \
             fn map(doc) {{ {body} }} fn reduce(key, values) {{ values[0] }}"
        );
        server.must_index(&format!("Hostile{number}"), &script).await;
    }
    for round in 1..=2 {
        server.item("Items", &format!("items/{round}"), r#"{"k":1,"v":1}"#).await;
        let path = "/databases/db/bulk_docs?waitForIndexesTimeout=00:01:00&waitForSpecificIndex=Index";
        let waited = server.send(reqwest::Method::POST, path, "{\"Commands\":[]}").await;
        assert!(waited.status.is_success(), "{}", waited.text());
        assert_eq!(server.bodies("Out").await, [format!("{{\"Key\":1,\"n\":{round},\"v\":{round}}}")]);
        server.wait_for_indexes().await;
        for (number, body) in HOSTILE.iter().enumerate() {
            let faults = server.faults(&format!("Hostile{number}")).await;
            assert_eq!(faults.len(), round, "{body}: {faults:?}");
            assert_eq!(server.bodies(&format!("Hostile{number}")).await.len(), 0, "{body}");
        }
        server.stop().await;
        server = TestServer::start_on(directory.path(), |_| {}).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_ask_for_clock_sleep_text_to_run_or_output_are_refused_or_fail_at_once() {
    let server = TestServer::with_database().await;
    for (number, body) in [
        "sleep(60);",
        "let t = timestamp();",
        "eval(\"1+1\");",
        "import \"x\" as y;",
        "print(\"noise\");",
        "let r = rand();",
    ]
    .iter()
    .enumerate()
    {
        let begun = Instant::now();
        let name = format!("Asks{number}");
        let script =
            format!("{}\n// {body}", SUM_BY_K.replace("Out", &name).replace("emit(", &format!("{body} emit(")));
        let put = server.put_index(&name, &script).await;
        if put.status.is_success() {
            server.item("Items", "a", r#"{"k":1,"v":1}"#).await;
            server.wait_for_indexes().await;
            assert_eq!(server.faults(&name).await.len(), 1, "{body}");
            assert_eq!(server.bodies(&name).await.len(), 0, "{body}");
            server.delete(&format!("/databases/db/indexes?name={name}")).await;
        } else {
            put.assert_error(400, ".IndexCompilationException", &[&name]);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{body} does not block");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_any_script_come_out_as_they_went_in_and_are_counted_by_characters() {
    let script = r#"source("Items"); output("Out");
        fn map(doc) {
            emit(id(doc), #{ t: doc.t, len: doc.t.len(), lower: doc.t.to_lower(), upper: doc.t.to_upper(),
                             second: if doc.t.len() > 1 { doc.t.sub_string(1, 1) } else { () } });
        }
        fn reduce(key, values) { values[0] }"#;
    let server = TestServer::with_index(script).await;
    let texts = ["a😀b", "Ä", "ß", "İ", "\0x", "e\u{301}", "😀é"];
    let lower = ["a😀b", "ä", "ß", "i\u{307}", "\0x", "e\u{301}", "😀é"];
    for (number, text) in texts.iter().enumerate() {
        server.item("Items", &format!("t/{number}"), &json!({"t": text}).to_string()).await;
    }
    server.wait_for_indexes().await;
    assert_eq!(server.faults("Index").await, []);
    let bodies: Vec<serde_json::Value> =
        server.bodies("Out").await.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let of = |number: usize| bodies.iter().find(|it| it["Key"] == format!("t/{number}")).unwrap();
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(of(number)["t"], *text);
        assert_eq!(of(number)["len"], text.chars().count());
        assert_eq!(of(number)["lower"], lower[number]);
    }
    assert_eq!((&of(0)["second"], &of(2)["upper"]), (&json!("😀"), &json!("SS")));
}
