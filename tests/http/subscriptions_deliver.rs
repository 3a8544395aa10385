//! What a subscription delivers: everything, in order, at least once, and nothing again that was acknowledged.

use reqwest::StatusCode;
use serde_json::json;

use crate::subscription::{Stream, acknowledge, create, put_numbered, state, update};
use crate::support::TestServer;

/// Sums `n` by the remainder of three, into `Out`.
const SUMS: &str = r#"
    source("Items");
    output("Out");
    fn map(doc) { emit(#{ K: doc.k }, #{ Sum: doc.n }); }
    fn reduce(key, values) { #{ Sum: values.sum("Sum") } }
"#;

async fn put_item(server: &TestServer, id: &str, k: &str, n: i32) {
    let document = json!({ "k": k, "n": n, "@metadata": { "@collection": "Items" } });
    server.must_put(id, document.to_string()).await;
}

async fn delete(server: &TestServer, id: &str) {
    assert_eq!(server.delete(&format!("/databases/db/docs?id={id}")).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_come_in_order_and_wait_for_their_acknowledgement() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=5).await;
    put_numbered(&server, "Others", 1..=2).await;
    create(&server, "from Items", json!({})).await;
    let mut stream = Stream::open(&server, "s", "&batch=2").await;
    let first = stream.batch().await;
    assert_eq!(first.ids(), ["items/1", "items/2"]);
    let line = &first.lines[0];
    let document = server.document("items/1").await.unwrap();
    assert_eq!((&line["Document"], &line["Collection"], &line["Etag"]), (&document, &json!("Items"), &json!(1)));
    assert_eq!(line["ChangeVector"], document["@metadata"]["@change-vector"]);
    assert_eq!((&first.end["Through"], &first.end["IsCaughtUp"]), (&json!(2), &json!(false)));
    stream.acknowledge(&server, "s").await;
    assert_eq!(stream.batch().await.ids(), ["items/3", "items/4"]);
    // By position, as whoever has only the printed lines does.
    assert_eq!(acknowledge(&server, "s", "&through=4").await.status, StatusCode::NO_CONTENT);
    let last = stream.batch().await;
    assert_eq!((last.ids(), &last.end["IsCaughtUp"]), (vec!["items/5".to_owned()], &json!(true)));
    stream.acknowledge(&server, "s").await;
    put_numbered(&server, "Items", 6..=6).await;
    assert_eq!(stream.batch().await.ids(), ["items/6"]);
}

/// Case C60: what was not acknowledged comes again with its latest version, deletions too, and nothing is skipped.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_acknowledged_comes_again_as_it_is_then() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    assert_eq!(server.put_index("Sums", SUMS).await.status, StatusCode::CREATED);
    for n in 1..=30 {
        put_item(&server, &format!("items/{n}"), &format!("{n:02}"), n).await;
    }
    server.wait_for_indexes().await;
    create(&server, "from Out", json!({ "IncludeDeletes": true })).await;
    let mut stream = Stream::open(&server, "s", "&batch=10&wholeRuns=false").await;
    let first = stream.batch().await;
    assert_eq!(first.lines.len(), 10);
    let third = first.lines[2]["Document"]["K"].as_str().unwrap().parse::<i32>().unwrap();
    let fifth = first.lines[4]["Document"]["K"].as_str().unwrap().parse::<i32>().unwrap();
    drop(stream);
    put_item(&server, &format!("items/{third}"), &format!("{third:02}"), 1_000).await;
    delete(&server, &format!("items/{fifth}")).await;
    server.wait_for_indexes().await;
    server.stop().await;

    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let mut stream = Stream::open(&server, "s", "&batch=100").await;
    let again = stream.batch().await;
    let etags = again.etags();
    assert!(etags.windows(2).all(|pair| pair[0] < pair[1]), "{etags:?}");
    let mut wanted: Vec<_> = first.ids();
    let (changed, gone) = (wanted[2].clone(), wanted[4].clone());
    wanted.retain(|id| *id != changed && *id != gone);
    let ids = again.ids();
    assert_eq!(ids[..8], wanted[..], "the others come first and as before");
    assert_eq!(ids.len(), 30);
    assert_eq!(ids[28..], [changed, format!("-{gone}")]);
    assert_eq!(again.lines[28]["Document"]["Sum"], 1_000);
    stream.acknowledge(&server, "s").await;
    put_item(&server, "items/31", "31", 31).await;
    assert_eq!(stream.batch().await.lines[0]["Document"]["K"], "31", "nothing of it again");
    drop(stream);
    server.stop().await;
}

/// Case C62: at the boundary, and from positions whose change is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_position_is_exclusive_also_where_its_change_is_gone() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=9).await;
    put_numbered(&server, "Items", 3..=3).await;
    delete(&server, "items/5").await;
    put_numbered(&server, "Items", 7..=7).await;
    create(&server, "from Items (Deletes = true)", json!({})).await;
    for (start, ids) in [
        ("12", vec![]),
        ("11", vec!["items/7"]),
        ("7", vec!["items/8", "items/9", "items/3", "-items/5", "items/7"]),
        ("3", vec!["items/4", "items/6", "items/8", "items/9", "items/3", "-items/5", "items/7"]),
    ] {
        assert_eq!(update(&server, json!({ "ChangeVector": start })).await.status, StatusCode::OK);
        let mut stream = Stream::open(&server, "s", "&closeWhenNoDocsLeft=true").await;
        if ids.is_empty() {
            assert_eq!(stream.line().await.unwrap()["Data"]["NoDocsLeft"], true);
        } else {
            assert_eq!(stream.batch().await.ids(), ids, "{start}");
        }
    }
    for bad in ["13", "x", "-1", "12-abc"] {
        update(&server, json!({ "ChangeVector": bad })).await.assert_error(400, "ArgumentException", &[bad]);
        acknowledge(&server, "s", &format!("&through={bad}")).await.assert_error(400, "ArgumentException", &[bad]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_never_matches_still_moves_the_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    put_numbered(&server, "Items", 1..=6_000).await;
    create(&server, "from Items", json!({ "Script": "fn filter(doc) { doc.n == \"never\" || doc.n > 6000 }" })).await;
    let mut stream = Stream::open(&server, "s", "&closeWhenNoDocsLeft=true").await;
    assert_eq!(stream.line().await.unwrap()["Data"]["NoDocsLeft"], true);
    drop(stream);
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let vector = state(&server, "s").await["ChangeVectorForNextBatchStartingPoint"].clone();
    let through: u64 = vector.as_str().unwrap()[2..].split('-').next().unwrap().parse().unwrap();
    assert!(through >= 4_096, "it would look at everything again: {through}");
    put_numbered(&server, "Items", 6_001..=6_001).await;
    let mut stream = Stream::open(&server, "s", "").await;
    assert_eq!(stream.batch().await.ids(), ["items/6001"]);
    drop(stream);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_script_is_told_with_its_document_and_stops_nothing() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=2).await;
    server.must_put("items/bad", r#"{"n":"x","@metadata":{"@collection":"Items"}}"#).await;
    put_numbered(&server, "Items", 3..=4).await;
    let script = "fn filter(doc) { doc.n > 1 } fn project(doc) { #{ Double: doc.n * 2 } }";
    create(&server, "from Items", json!({ "Script": script })).await;
    let mut stream = Stream::open(&server, "s", "").await;
    let batch = stream.batch().await;
    assert_eq!(batch.ids(), ["items/2", "items/bad", "items/3", "items/4"]);
    assert_eq!(batch.lines[0]["Document"]["Double"], 4);
    let metadata = &batch.lines[0]["Document"]["@metadata"];
    assert_eq!((&metadata["@projection"], &metadata["@id"]), (&json!(true), &json!("items/2")));
    assert!(batch.lines[1]["Exception"].as_str().unwrap().contains("filter"), "{:?}", batch.lines[1]);
    assert!(batch.lines[1].get("Document").is_none());
    stream.acknowledge(&server, "s").await;
    let faults = server.get("/databases/db/subscriptions/faults?name=s").await.json();
    assert_eq!((&faults["Results"][0]["Id"], &faults["Results"][0]["Etag"]), (&json!("items/bad"), &json!(3)));
    assert_eq!((&state(&server, "s").await["Faults"], faults["Results"].as_array().unwrap().len()), (&json!(1), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_are_delivered_where_they_are_asked_for() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=3).await;
    create(&server, "from Items", json!({ "IncludeDeletes": true })).await;
    let plain = json!({ "Name": "plain", "Query": "from Items" });
    assert_eq!(crate::subscription::put(&server, &plain).await.status, StatusCode::CREATED);
    delete(&server, "items/1").await;
    server.must_put("items/2", r#"{"@metadata":{"@collection":"Others"}}"#).await;
    let mut stream = Stream::open(&server, "s", "").await;
    let batch = stream.batch().await;
    assert_eq!(batch.ids(), ["items/3", "-items/1", "-items/2"]);
    assert_eq!((&batch.lines[1]["Etag"], batch.lines[1].get("Document")), (&json!(4), None));
    assert!(batch.lines[1]["ChangeVector"].as_str().unwrap().starts_with("A:4-"));
    let mut stream = Stream::open(&server, "plain", "").await;
    assert_eq!(stream.batch().await.ids(), ["items/3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_delivered_before_stands_beside_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    assert_eq!(server.put_index("Sums", SUMS).await.status, StatusCode::CREATED);
    put_item(&server, "items/1", "a", 1).await;
    put_item(&server, "items/2", "b", 5).await;
    server.wait_for_indexes().await;
    create(&server, "from Out", json!({ "IncludePrevious": true, "IncludeDeletes": true })).await;
    let mut stream = Stream::open(&server, "s", "").await;
    let first = stream.batch().await;
    assert!(first.lines.iter().all(|line| line.get("Previous").is_none()), "{first:?}");
    stream.acknowledge(&server, "s").await;
    drop(stream);
    // Two updates that nobody sees come as one, from what was seen to what is.
    for n in [2, 3] {
        put_item(&server, "items/1", "a", n).await;
        server.wait_for_indexes().await;
    }
    delete(&server, "items/2").await;
    server.wait_for_indexes().await;
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let mut stream = Stream::open(&server, "s", "").await;
    let batch = stream.batch().await;
    assert_eq!((&batch.lines[0]["Previous"]["Sum"], &batch.lines[0]["Document"]["Sum"]), (&json!(1), &json!(3)));
    assert_eq!((&batch.lines[1]["Deleted"], &batch.lines[1]["Previous"]["Sum"]), (&json!(true), &json!(5)));
    // What is in hand and not acknowledged is not what was seen, until it is.
    put_item(&server, "items/1", "a", 4).await;
    server.wait_for_indexes().await;
    drop(stream);
    let mut stream = Stream::open(&server, "s", "").await;
    let batch = stream.batch().await;
    assert_eq!(batch.lines[1]["Previous"]["Sum"], 1, "{batch:?}");
    put_item(&server, "items/1", "a", 5).await;
    server.wait_for_indexes().await;
    stream.acknowledge(&server, "s").await;
    let batch = stream.batch().await;
    assert_eq!((&batch.lines[0]["Previous"]["Sum"], &batch.lines[0]["Document"]["Sum"]), (&json!(4), &json!(5)));
    drop(stream);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_says_its_run_and_how_complete_it_is() {
    let server = TestServer::with_database().await;
    assert_eq!(server.put_index("Sums", SUMS).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    let documents = |n: i32| {
        let command = |k: &str| {
            let document = json!({ "k": k, "n": n, "@metadata": { "@collection": "Items" } });
            json!({ "Type": "PUT", "Id": format!("items/{k}"), "Document": document })
        };
        json!([command("a"), command("b"), command("c")])
    };
    assert_eq!(server.batch(&documents(1)).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    create(&server, "from Out", json!({})).await;
    // A batch of two would cut the run, which holds three.
    let mut stream = Stream::open(&server, "s", "&batch=2").await;
    let batch = stream.batch().await;
    let runs: Vec<_> =
        batch.lines.iter().map(|line| (line["Run"].as_u64(), line["CompleteThrough"].as_u64())).collect();
    let last = batch.etags()[2];
    assert_eq!(runs, [(Some(last), Some(3)); 3], "one commit, numbered by its last etag");
    assert_eq!((&batch.end["Through"], &batch.end["IsCaughtUp"]), (&json!(last), &json!(true)));
    stream.acknowledge(&server, "s").await;
    assert_eq!(server.batch(&documents(2)).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    let next = stream.batch().await;
    assert_eq!(next.lines.len(), 3);
    let written = next.lines[0]["CompleteThrough"].as_u64().unwrap();
    assert_eq!(written, last + 3);
    assert!(next.lines.iter().all(|line| line["Run"].as_u64() > Some(last)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_caught_up_is_complete_through_the_sources_etag() {
    let server = TestServer::with_database().await;
    for n in 1..=5 {
        put_item(&server, &format!("items/{n}"), "a", n).await;
    }
    assert_eq!(server.put_index("Sums", SUMS).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    create(&server, "from Out", json!({})).await;
    let mut stream = Stream::open(&server, "s", "").await;
    let batch = stream.batch().await;
    assert_eq!((batch.lines.len(), &batch.lines[0]["Document"]["Sum"]), (1, &json!(15)));
    assert_eq!((&batch.end["IsCaughtUp"], &batch.end["CompleteThrough"]), (&json!(true), &json!(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_documents_can_be_one_subscription() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=1).await;
    put_numbered(&server, "Others", 1..=1).await;
    create(&server, "from @all_docs", json!({ "IncludeDeletes": true })).await;
    let mut stream = Stream::open(&server, "s", "").await;
    assert_eq!(stream.batch().await.ids(), ["items/1", "others/1"]);
    stream.acknowledge(&server, "s").await;
    delete(&server, "items/1").await;
    let batch = stream.batch().await;
    assert_eq!((batch.ids(), &batch.lines[0]["Collection"]), (vec!["-items/1".to_owned()], &json!("Items")));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_sent_events_carry_the_same() {
    let server = TestServer::with_database().await;
    server.must_put("items/1", "{\n\"n\":\n1,\"@metadata\":{\"@collection\":\"Items\"}}").await;
    create(&server, "from Items", json!({})).await;
    let path = "/databases/db/subscriptions/stream?name=s&heartbeat=100";
    let request = server.request(reqwest::Method::GET, path).header("accept", "text/event-stream");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut lines = crate::change_feed::Lines::of(response);
    assert_eq!(lines.next().await.unwrap(), "event: status");
    assert!(lines.next().await.unwrap().contains("Accepted"));
    assert_eq!(lines.next().await.unwrap(), "");
    let data = lines.next().await.unwrap();
    let data: serde_json::Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(data["Document"]["n"], 1);
    assert_eq!((lines.next().await.unwrap(), lines.next().await.unwrap()), ("id: 1".to_owned(), String::new()));
    assert_eq!(lines.next().await.unwrap(), "event: batch");
    while lines.next().await.unwrap() != ": heartbeat" {}
}
