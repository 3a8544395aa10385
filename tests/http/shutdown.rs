//! A server that is told to stop ends its streams, answers what it has in hand, closes, and keeps what it confirmed.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::change_feed::Lines;
use crate::support::{Answer, TestServer};

#[tokio::test(flavor = "multi_thread")]
async fn open_feeds_end_in_good_order() {
    let mut server = TestServer::with_database().await;
    server.must_put("a", "{}").await;
    let mut continuous =
        Lines::open(&server, "/databases/db/_changes?feed=continuous&since=now&heartbeat=3600000").await;
    let mut longpoll = Lines::open(&server, "/databases/db/_changes?feed=longpoll&since=now&timeout=3600000").await;
    let mut events = Lines::open(&server, "/databases/db/_changes?feed=eventsource&since=0").await;
    assert!(events.next().await.unwrap().starts_with("data: "));
    server.tell_to_stop();
    assert_eq!(continuous.next_json().await, json!({"last_seq": 1, "pending": 0}));
    assert_eq!(continuous.next().await, None);
    let mut text = String::new();
    while let Some(line) = longpoll.next().await {
        text.push_str(&line);
    }
    assert_eq!(text, "{\"results\":[],\"last_seq\":1,\"pending\":0}");
    while events.next().await.is_some() {}
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    let mut vectors = Vec::new();
    for n in 0..20 {
        vectors.push(server.must_put(&format!("a/{n}"), format!("{{\"n\":{n}}}")).await);
    }
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    for (n, vector) in vectors.iter().enumerate() {
        let found = server.document(&format!("a/{n}")).await.unwrap();
        assert_eq!((&found["n"], &found["@metadata"]["@change-vector"]), (&json!(n), &json!(vector)));
    }
    let guid = server.put("", "{}").await.json()["Id"].clone();
    assert_eq!(guid.as_str().unwrap().len(), 36);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_hand_is_answered_before_the_end() {
    let mut server = TestServer::with_database().await;
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    let head =
        "PUT /databases/db/docs?id=late HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    // The leave to go on is given when the handler begins to read: from here on the request is in hand.
    let mut leave = [0; 25];
    connection.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.tell_to_stop();
    // The listener is closed first; as long as the request is in hand the server goes on.
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    connection.write_all(b"{\"a\":1}").await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 ") && answer.contains("\"late\""), "{answer}");
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_indexes_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    // A script that never ends and is tried again and again keeps its index behind.
    let change = |settings: &mut treepie::server::ServerSettings| {
        settings.database.script_limits.operations_max = u64::MAX;
        settings.database.script_limits.wall_max = Duration::from_millis(5);
    };
    let mut server = TestServer::start_as(directory.path(), change).await;
    server.create("db").await;
    let script = r#"source("Items"); fn map(doc) { while true { } } fn reduce(key, values) { values.count() }"#;
    let put = server.put_index("Slow", script).await;
    assert_eq!(put.status, 201, "{}", put.text());
    let body = r#"{"Commands":[{"Type":"PUT","Id":"a","Document":{"@metadata":{"@collection":"Items"}}}]}"#;
    let path = "/databases/db/bulk_docs?waitForIndexesTimeout=00:59:00";
    let waiting = tokio::spawn(server.request(reqwest::Method::POST, path).body(body).send());
    while server.document("a").await.is_none() {
        tokio::task::yield_now().await;
    }
    server.tell_to_stop();
    let answer = Answer::read(waiting.await.unwrap().unwrap()).await;
    answer.assert_error(500, "System.TimeoutException", &["stops", "stored"]);
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_ends_does_not_hold_the_server_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let change = |limits: &mut treepie::server::ServerLimits| limits.shutdown_max = Duration::from_millis(100);
    let mut server = TestServer::start_on(directory.path(), change).await;
    server.create("db").await;
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    let head =
        "PUT /databases/db/docs?id=late HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.read_exact(&mut [0; 25]).await.unwrap();
    server.tell_to_stop();
    server.stopped().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    assert_eq!(server.document("late").await, None);
    server.stop().await;
}
