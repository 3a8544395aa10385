//! Results are those of the documents that are there, whatever happened in between: deletes, moves, pauses, any order.

use serde_json::{Value, json};

use crate::sums::{SUM_BY_K, delete_command, put_command};
use crate::support::TestServer;

const NONE: [String; 0] = [];

#[tokio::test(flavor = "multi_thread")]
async fn results_go_when_all_their_documents_died_in_a_pause() {
    let server = TestServer::with_index(SUM_BY_K).await;
    let put = |number: u32| put_command("Items", &format!("items/{number}"), json!({"k": number % 10, "v": 1}));
    server.batch(&(0..1500).map(put).collect()).await;
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await.len(), 10);
    server.pause().await;
    server.batch(&(0..1500).map(|number| delete_command(&format!("items/{number}"))).collect()).await;
    server.resume().await;
    assert_eq!(server.bodies("Out").await, NONE);
    assert_eq!(server.ids("startsWith=Out/").await, NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_takes_back_what_was_indexed_and_not_what_was_stored_last() {
    let tags = r#"source("Items"); output("Out");
        fn map(doc) { for tag in doc.tags { emit(#{ tag: tag, day: doc.day }, #{ n: 1 }); } }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#;
    let server = TestServer::with_index(tags).await;
    server.item("Items", "t", r#"{"tags":["p","q"],"day":1}"#).await;
    server.wait_for_indexes().await;
    let whole = server.bodies("Out").await;
    assert_eq!(whole, [r#"{"day":1,"n":1,"tag":"p"}"#, r#"{"day":1,"n":1,"tag":"q"}"#]);
    server.pause().await;
    server.remove("t").await;
    server.item("Items", "t", r#"{"tags":["p","q"],"day":1}"#).await;
    server.resume().await;
    assert_eq!(server.bodies("Out").await, whole, "deleted and put again as it was");
    server.pause().await;
    server.item("Items", "t", r#"{"tags":["p","q"],"day":2}"#).await;
    server.remove("t").await;
    server.resume().await;
    assert_eq!(server.bodies("Out").await, NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_moves_to_another_collection_leaves_the_index_of_its_old_one() {
    for is_deleted_first in [true, false] {
        let server = TestServer::with_index(SUM_BY_K).await;
        server.must_index("People", &SUM_BY_K.replace("Items", "People").replace("Out", "OfPeople")).await;
        server.item("Items", "x", r#"{"k":1,"v":1}"#).await;
        server.wait_for_indexes().await;
        assert_eq!((server.bodies("Out").await.len(), server.bodies("OfPeople").await.len()), (1, 0));
        let put = put_command("People", "x", json!({"k": 1, "v": 1}));
        let commands = if is_deleted_first { json!([delete_command("x"), put]) } else { json!([put]) };
        server.batch(&commands).await;
        server.wait_for_indexes().await;
        assert_eq!(server.bodies("Out").await, NONE);
        assert_eq!(server.bodies("OfPeople").await, [r#"{"Key":1,"n":1,"v":1}"#]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregate_returns_to_no_value_when_its_last_value_goes() {
    let script = r#"source("Items"); output("Out");
        fn map(doc) { emit(doc.k, #{ v: doc.v, sum: doc.v, min: doc.v }); }
        fn reduce(key, values) {
            let known = false;
            for value in values { if value.sum != () { known = true; } }
            #{ sum: if known { values.sum("sum") } else { () }, min: values.min("min") }
        }"#;
    let server = TestServer::with_index(script).await;
    server.item("Items", "a", r#"{"k":1,"v":5}"#).await;
    server.item("Items", "b", r#"{"k":1,"v":null}"#).await;
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"min":5,"sum":5}"#]);
    server.remove("a").await;
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"min":null,"sum":null}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reduce_that_minds_the_order_gives_the_same_in_any_order_of_arrival() {
    let script = r#"source("Items"); output("Out");
        fn map(doc) { emit(doc.k, #{ names: doc.name, top: [#{ v: doc.v, name: doc.name }] }); }
        fn reduce(key, values) {
            let best = values.concat("top");
            best.sort(|a, b| if a.v > b.v { -1 } else { 1 });
            #{ names: values.concat("names"), top: best.extract(0..2) }
        }
        fn finish(key, value) { #{ names: value.names, top: value.top.map(|it| it.name) } }"#;
    let server = TestServer::with_index(script).await;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (k, order) in orders.iter().enumerate() {
        for &place in order {
            let (name, v) = [("a", 9), ("b", 8), ("c", 7)][place];
            server.item("Items", &format!("{k}/{name}"), &json!({"k": k, "v": v, "name": name}).to_string()).await;
            server.wait_for_indexes().await;
        }
        server.item("Items", &format!("{k}/a"), &json!({"k": k, "v": 1, "name": "a"}).to_string()).await;
    }
    let expected = (0..6).map(|k| format!(r#"{{"Key":{k},"names":"abc","top":["b","c"]}}"#)).collect::<Vec<_>>();
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await, expected);
    server.rebuild("Index").await;
    assert_eq!(server.bodies("Out").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_did_not_change_gets_no_new_version() {
    let server =
        TestServer::with_index(SUM_BY_K.replace("n: 1, ", "").replace("n: values.sum(\"n\"), ", "").as_str()).await;
    let payment =
        |number: u32, v: u32| put_command("Items", &format!("items/{number}"), json!({"k": number % 3, "v": v}));
    server.batch(&(0..10).map(|number| payment(number, 7)).collect()).await;
    server.wait_for_indexes().await;
    let versions = server.versions("Out").await;
    assert_eq!(versions.len(), 3);
    server.batch(&(10..20).map(|number| payment(number, 0)).collect()).await;
    let last = server.last_etag().await;
    server.wait_for_indexes().await;
    assert_eq!(server.versions("Out").await, versions, "ten documents that add nothing");
    assert_eq!(server.last_etag().await, last);
    server.batch(&json!([payment(1, 7)])).await;
    let last = server.last_etag().await;
    server.wait_for_indexes().await;
    assert_eq!(server.versions("Out").await, versions, "a document written again as it was");
    assert_eq!(server.last_etag().await, last);
    let path = format!("/databases/db/_changes?since={last}&collection=Out");
    assert_eq!(server.get(&path).await.json()["results"], json!([]), "nobody is told of anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_entry_of_a_document_counts_and_those_it_no_longer_emits_are_gone() {
    let lines = r#"source("Items"); output("Out");
        fn map(order) { for line in order.lines { emit([line], #{ n: 1 }); } }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#;
    let server = TestServer::with_index(lines).await;
    for (body, expected) in [
        (r#"{"lines":["A","A","B"]}"#, vec![r#"{"Key":["A"],"n":2}"#, r#"{"Key":["B"],"n":1}"#]),
        (r#"{"lines":["A"]}"#, vec![r#"{"Key":["A"],"n":1}"#]),
        (r#"{"lines":[]}"#, vec![]),
    ] {
        server.item("Items", "o", body).await;
        server.wait_for_indexes().await;
        assert_eq!(server.bodies("Out").await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_beyond_ascii_keep_their_own_entries() {
    let server = TestServer::with_index(SUM_BY_K).await;
    for (id, k) in [("gespräche/1", "a"), ("gespräche/2", "b"), ("日本/1", "c"), ("😀/1", "d")] {
        server.item("Items", id, &json!({"k": k, "v": 1}).to_string()).await;
    }
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await.len(), 4);
    server.remove("gespräche/1").await;
    server.wait_for_indexes().await;
    let keys: Vec<Value> = server.bodies("Out").await.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(keys.iter().map(|it| it["Key"].as_str().unwrap()).collect::<Vec<_>>(), ["b", "c", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_list_shows_half_of_a_document() {
    let transfers = r#"source("Transfers"); output("Accounts");
        fn map(doc) { emit(doc.from, #{ amount: 0 - doc.x }); emit(doc.to, #{ amount: doc.x }); }
        fn reduce(key, values) { #{ amount: values.sum("amount") } }"#;
    let server = TestServer::with_index(transfers).await;
    let writing = async {
        for number in 0..300 {
            let (from, to) = (number % 7, (number * 3 + 1) % 7);
            let body = json!({"from": from, "to": to, "x": number}).to_string();
            server.item("Transfers", &format!("transfers/{}", number % 50), &body).await;
        }
    };
    let reading = async {
        for _ in 0..300 {
            let accounts = server.bodies("Accounts").await;
            let amount = |body: &String| serde_json::from_str::<Value>(body).unwrap()["amount"].as_i64().unwrap();
            assert_eq!(accounts.iter().map(amount).sum::<i64>(), 0, "{accounts:?}");
        }
    };
    tokio::join!(writing, reading);
}
