//! Clients that go away in the middle leave nothing half done and nothing running.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn half_a_body_writes_nothing() {
    let server = TestServer::with_database().await;
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    let body = r#"{"Commands":[{"Type":"PUT","Id":"a","Document":{}}]}"#;
    let head =
        format!("POST /databases/db/bulk_docs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len() + 1);
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(body.as_bytes()).await.unwrap();
    drop(connection);
    server.must_put("b", "{}").await;
    assert_eq!(server.document("a").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_client_has_gone_is_written_whole_or_not_at_all() {
    let server = TestServer::with_database().await;
    for round in 0..20 {
        let commands: Vec<_> =
            (0..200).map(|n| format!(r#"{{"Type":"PUT","Id":"r{round}/{n:03}","Document":{{"n":{n}}}}}"#)).collect();
        let body = format!("{{\"Commands\":[{}]}}", commands.join(","));
        let head =
            format!("POST /databases/db/bulk_docs HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(body.as_bytes()).await.unwrap();
        drop(connection);
    }
    // A later write is answered after all that were queued before it.
    server.must_put("last", "{}").await;
    for round in 0..20 {
        let count = server.ids(&format!("startsWith=r{round}/")).await.len();
        assert!(count == 0 || count == 200, "round {round}: {count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_without_a_reader_is_let_go() {
    let server = TestServer::start_with(|limits| limits.requests_max = 4).await;
    server.create("db").await;
    for _ in 0..20 {
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        let request = "GET /databases/db/_changes?feed=continuous&heartbeat=100 HTTP/1.1\r\nHost: x\r\n\r\n";
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut byte = [0; 1];
        connection.read_exact(&mut byte).await.unwrap();
        drop(connection);
        // As soon as the feed is let go there is room for the next request.
        let room = async {
            while server.get("/databases/db/stats").await.status != 200 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), room).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_is_cut_off_and_no_answer_looks_complete() {
    let server = TestServer::start_with(|limits| limits.unread_max = Duration::from_millis(100)).await;
    server.create("db").await;
    let filler = "x".repeat(100_000);
    for n in 0..300 {
        server.must_put(&format!("big/{n:03}"), format!(r#"{{"x":"{filler}"}}"#)).await;
    }
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    let request = "GET /databases/db/docs?startsWith=big/ HTTP/1.1\r\nHost: x\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 1];
    connection.read_exact(&mut first).await.unwrap();
    // The listing's thread is given back while this client reads no more; then all that was sent is read.
    let body = r#"{"DatabaseNames":["db"],"HardDelete":true}"#;
    let deleted = server.send(reqwest::Method::DELETE, "/admin/databases", body).await;
    assert_eq!(deleted.json()["PendingDeletes"], serde_json::json!([]));
    let mut answer = Vec::new();
    let end = connection.read_to_end(&mut answer).await;
    assert!(end.is_err() || !answer.ends_with(b"0\r\n\r\n"));
    assert!(answer.len() < 300 * 100_000);
}
