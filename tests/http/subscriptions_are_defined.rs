//! Subscriptions are created, listed, changed and deleted as RavenDB's clients do it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::subscription::{Stream, acknowledge, create, put, put_numbered, state, update};
use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_created_and_says_how_it_is_doing() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=3).await;
    let answer = put(&server, &json!({ "Query": "from 'Items' as doc", "Name": null, "MentorNode": null })).await;
    assert_eq!(answer.json(), json!({ "Name": "1", "RaftCommandIndex": 1 }));
    create(&server, "from Items", json!({ "IncludeDeletes": true, "ChangeVector": "LastDocument" })).await;
    let found = state(&server, "S").await;
    assert_eq!(
        (&found["SubscriptionId"], &found["SubscriptionName"], &found["Query"], &found["Disabled"]),
        (&json!(2), &json!("s"), &json!("from Items"), &json!(false))
    );
    let vector = found["ChangeVectorForNextBatchStartingPoint"].as_str().unwrap();
    assert!(vector.starts_with("A:3-"), "{vector}");
    assert_eq!((&found["IncludeDeletes"], &found["LastBatchAckTime"]), (&json!(true), &Value::Null));
    assert_eq!(state(&server, "1").await["ChangeVectorForNextBatchStartingPoint"], Value::Null);
    let list = server.get("/databases/db/subscriptions?start=1&pageSize=10").await.json();
    assert_eq!((list["Results"].as_array().unwrap().len(), &list["Results"][0]["SubscriptionName"]), (1, &json!("s")));
    let task = server.get("/databases/db/task?type=Subscription&key=2").await.json();
    assert_eq!((&task["TaskName"], &task["ResponsibleNode"]["NodeTag"]), (&json!("s"), &json!("A")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_subscription_can_not_be_is_refused_by_name() {
    let server = TestServer::with_database().await;
    create(&server, "from Items", json!({})).await;
    put(&server, &json!({ "Name": "S", "Query": "from Items" })).await.assert_error(
        409,
        "ConcurrencyException",
        &["'s'"],
    );
    for (wanted, status, words) in [
        (json!({}), 400, vec!["Query", "from Orders"]),
        (json!({ "Query": "frm Items" }), 400, vec!["from Orders"]),
        (json!({ "Query": "from Items where n > 3" }), 501, vec!["'where'", "filter"]),
        (json!({ "Query": "from Items (Revisions = true)" }), 501, vec!["revisions"]),
        (json!({ "Query": "from Items include Other" }), 501, vec!["'include'"]),
        (json!({ "Query": "from Items", "ChangeVector": "x" }), 400, vec!["'x'", "LastDocument"]),
        (json!({ "Query": "from Items", "ChangeVector": "A:1-AAAAAAAAAAAAAAAAAAAAAA" }), 400, vec!["another database"]),
        (json!({ "Query": "from Items", "ChangeVector": "9" }), 400, vec!["'9'", "lies ahead"]),
        (json!({ "Query": "from Items", "Name": "a\nb" }), 400, vec!["control characters"]),
        (json!({ "Query": "from Items", "Name": "x".repeat(257) }), 400, vec!["256 bytes"]),
        (json!({ "Query": "from @all_docs", "IncludePrevious": true }), 400, vec!["@all_docs"]),
        (json!({ "Query": "from Items", "Script": "fn filter(doc) { doc. }" }), 400, vec!["script"]),
        (json!({ "Query": "from Items", "Script": "fn other() { 1 }" }), 400, vec!["neither", "filter"]),
    ] {
        let answer = put(&server, &wanted).await;
        answer.assert_error(status, "", &words);
    }
    assert_eq!(server.get("/databases/db/subscriptions").await.json()["Results"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_changed_renamed_turned_off_and_deleted() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=3).await;
    create(&server, "from Items", json!({})).await;
    assert_eq!(update(&server, json!({ "Query": "from Items" })).await.status, StatusCode::NOT_MODIFIED);
    assert_eq!(update(&server, json!({ "Query": "from Others" })).await.json()["Name"], "s");
    let moved = update(&server, json!({ "Query": "from Items", "ChangeVector": "2" })).await;
    assert_eq!(moved.status, StatusCode::OK);
    let mut stream = Stream::open(&server, "s", "").await;
    assert_eq!(stream.batch().await.ids(), ["items/3"]);

    let renamed = server.send(Method::POST, "/databases/db/subscriptions/update", r#"{"Id":1,"Name":"t"}"#).await;
    assert_eq!(renamed.json()["Name"], "t");
    let over = stream.line().await.unwrap();
    assert_eq!((&over["Status"], &over["Data"]["CanReconnect"]), (&json!("Closed"), &json!(true)));

    let off = "/databases/db/admin/tasks/state?key=1&type=Subscription&disable=true&taskName=t";
    assert_eq!(server.send(Method::POST, off, "").await.json()["TaskId"], 1);
    let refused = server.get("/databases/db/subscriptions/stream?name=t").await;
    refused.assert_error(409, "SubscriptionClosedException", &["'t'", "disabled"]);

    let missing = server.send(Method::POST, "/databases/db/subscriptions/update", r#"{"Name":"nope"}"#).await;
    missing.assert_error(400, "SubscriptionDoesNotExistException", &["nope"]);
    for _ in 0..2 {
        let deleted = server.delete("/databases/db/subscriptions?taskName=t").await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }
    for path in ["state", "stream", "faults"] {
        let answer = server.get(&format!("/databases/db/subscriptions/{path}?name=t")).await;
        answer.assert_error(404, "SubscriptionDoesNotExistException", &["'t'"]);
    }
    acknowledge(&server, "t", "&through=1").await.assert_error(404, "SubscriptionDoesNotExistException", &["'t'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_positions_outlive_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    put_numbered(&server, "Items", 1..=5).await;
    create(&server, "from Items", json!({ "Script": "fn filter(doc) { doc.n != 4 }" })).await;
    let mut stream = Stream::open(&server, "s", "&batch=2").await;
    assert_eq!(stream.batch().await.ids(), ["items/1", "items/2"]);
    stream.acknowledge(&server, "s").await;
    drop(stream);
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let mut stream = Stream::open(&server, "s", "").await;
    assert_eq!(stream.batch().await.ids(), ["items/3", "items/5"]);
    assert_eq!(state(&server, "s").await["Delivered"], 2);
    drop(stream);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_where_the_tcp_protocol_is_spoken() {
    let server = TestServer::with_database().await;
    let path = "/info/remote-task/tcp?database=db&remote-task=s&tag=Subscription%2Fdb&verify-database=true";
    for path in [path, "/info/tcp?tcp=x", "/databases/db/info/tcp?tcp=x"] {
        let info = server.get(path).await.json();
        assert_eq!(info["Url"], format!("tcp://{}", server.address));
        assert_eq!((&info["Certificate"], &info["NodeTag"]), (&Value::Null, &json!("A")));
    }
    let missing = server.get("/info/remote-task/tcp?database=nope&verify-database=true").await;
    assert_eq!(missing.header("database-missing"), Some("nope"));
}
