//! Everything that a caller can make large or slow has a limit, and an answer that names it.

use std::io::Write;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, TestServer};

async fn with_small_limits() -> TestServer {
    let server = TestServer::start_with(|limits| {
        limits.document_bytes_max = 1_000;
        limits.batch_bytes_max = 4_000;
        limits.request_bytes_max = 2_000;
    })
    .await;
    server.create("db").await;
    server
}

fn document_of(bytes: usize) -> String {
    let frame = r#"{"x":""}"#.len();
    format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes - frame))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_may_have_so_many_bytes_and_no_more() {
    let server = with_small_limits().await;
    assert_eq!(server.put("a", document_of(1_000)).await.status, StatusCode::CREATED);
    server.put("a", document_of(1_001)).await.assert_error(413, "BadRequestException", &["1000", "document_bytes_max"]);
    let chunks = futures_util::stream::iter((0..1_001).map(|_| Ok::<_, std::io::Error>("x")));
    let chunked = server.send(Method::PUT, "/databases/db/docs?id=a", reqwest::Body::wrap_stream(chunks)).await;
    chunked.assert_error(413, "BadRequestException", &["document_bytes_max"]);
    let large: serde_json::Value = serde_json::from_str(&document_of(1_001)).unwrap();
    let batch =
        server.batch(&json!([{"Type": "PUT", "Id": "b", "Document": {}}, {"Type": "PUT", "Document": large}])).await;
    batch.assert_error(413, "BadRequestException", &["command 1", "document_bytes_max"]);
    assert_eq!(server.document("b").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_and_other_bodies_have_limits_of_their_own() {
    let server = with_small_limits().await;
    let answer = server.send(Method::POST, "/databases/db/bulk_docs", "x".repeat(4_001)).await;
    answer.assert_error(413, "BadRequestException", &["4000", "batch_bytes_max"]);
    for (method, path) in [(Method::PUT, "/databases/db/indexes/a"), (Method::POST, "/databases/db/docs")] {
        let answer = server.send(method, path, "x".repeat(2_001)).await;
        answer.assert_error(413, "BadRequestException", &["2000", "request_bytes_max"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_arrives_also_while_a_large_body_is_being_sent() {
    let server = with_small_limits().await;
    for _ in 0..5 {
        let answer = server.put("a", vec![b'x'; 20 << 20]).await;
        answer.assert_error(413, "BadRequestException", &["document_bytes_max"]);
        let answer = server.send(Method::POST, "/databases/none/bulk_docs", vec![b'x'; 20 << 20]).await;
        answer.assert_error(503, ".DatabaseDoesNotExistException", &["none"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_packet_does_not_become_a_huge_batch() {
    let server = with_small_limits().await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&vec![b' '; 1 << 20]).unwrap();
    let packed = packer.finish().unwrap();
    assert!(packed.len() < 4_000);
    let request = server.request(Method::POST, "/databases/db/bulk_docs").header("Content-Encoding", "gzip");
    let answer = Answer::read(request.body(packed).send().await.unwrap()).await;
    answer.assert_error(413, "BadRequestException", &["batch_bytes_max"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_share_a_budget() {
    let server = TestServer::start_with(|limits| limits.bodies_bytes_max = 64 * 1024).await;
    server.create("db").await;
    let answer = server.put("a", document_of(100_000)).await;
    answer.assert_error(503, "RavenException", &["bodies_bytes_max"]);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.put("a", document_of(50_000)).await.status, StatusCode::CREATED);
    assert_eq!(server.put("a", document_of(50_000)).await.status, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stalls_is_given_up() {
    let server = TestServer::start_with(|limits| limits.body_pause_max = Duration::from_millis(50)).await;
    server.create("db").await;
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    let head = "PUT /databases/db/docs?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"a\":";
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let count = connection.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("body_pause_max"), "{answer}");
    assert_eq!(server.document("a").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_head_may_not_be_endless() {
    let server = TestServer::start_with(|limits| limits.head_bytes_max = 8 * 1024).await;
    let request = server.request(Method::GET, "/build/version").header("X-Long", "x".repeat(20_000));
    assert_eq!(request.send().await.unwrap().status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_hand_are_counted_and_health_is_always_told() {
    let server = TestServer::start_with(|limits| limits.requests_max = 2).await;
    server.create("db").await;
    let mut feeds = Vec::new();
    for _ in 0..2 {
        let path = "/databases/db/_changes?feed=continuous&heartbeat=1000";
        feeds.push(crate::change_feed::Lines::open(&server, path).await);
        // The second line is sent by a feed that is under way.
        assert_eq!(feeds.last_mut().unwrap().next().await.unwrap(), "");
    }
    server.get("/databases/db/stats").await.assert_error(503, "RavenException", &["requests_max"]);
    assert_eq!(server.get("/healthz").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_are_bounded() {
    let server = TestServer::start_with(|limits| limits.includes_max = 3).await;
    server.create("db").await;
    server.must_put("a", r#"{"few":["x/1","x/2","x/3"],"many":["x/1","x/2","x/3","x/4"]}"#).await;
    assert_eq!(server.get("/databases/db/docs?id=a&include=few").await.status, StatusCode::OK);
    let answer = server.get("/databases/db/docs?id=a&include=many").await;
    answer.assert_error(400, "ArgumentException", &["includes_max"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_are_bounded() {
    let server = TestServer::start().await;
    server.create("db").await;
    let answer = server.get(&format!("/databases/db/docs?startsWith=a&matches={}", "*a".repeat(3_000))).await;
    answer.assert_error(400, "ArgumentException", &["matches", "4096"]);
}
