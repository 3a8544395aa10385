//! Bulk inserts: stored as they arrive, answered when their array closes, broken off without losing what was stored.

use std::io::Write;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, TestServer, escape};

fn element(id: &str, n: u64) -> String {
    json!({"Id": id, "Type": "PUT", "Document": {"n": n, "@metadata": {"@collection": "Bulk"}}}).to_string()
}

fn body(documents: u64) -> String {
    let elements: Vec<String> = (0..documents).map(|n| element(&format!("bulk/{n}"), n)).collect();
    format!("[{}]", elements.join(","))
}

async fn insert(server: &TestServer, query: &str, encoding: &str, body: impl Into<reqwest::Body>) -> Answer {
    let path = format!("/databases/db/bulk_insert?{query}");
    let request = server.request(Method::POST, &path).header("Content-Encoding", encoding).body(body);
    Answer::read(request.send().await.unwrap()).await
}

async fn count(server: &TestServer) -> u64 {
    server.get("/databases/db/collections/stats").await.json()["Collections"]["Bulk"].as_u64().unwrap_or(0)
}

async fn state(server: &TestServer, id: u64) -> Value {
    server.get(&format!("/databases/db/operations/state?id={id}")).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_stored_and_the_operation_counts_them() {
    let server = TestServer::with_database().await;
    let id = server.get("/databases/db/operations/next-operation-id").await.json();
    assert_eq!(id, json!({"Id": 1, "NodeTag": "A"}));
    let answer = insert(&server, "id=1&skipOverwriteIfUnchanged=false", "identity", body(5_000)).await;
    assert_eq!((answer.status, answer.header("content-length")), (StatusCode::CREATED, Some("0")), "{}", answer.text());
    assert_eq!(count(&server).await, 5_000);
    let state = state(&server, 1).await;
    assert_eq!((&state["Status"], &state["Result"]["Total"]), (&json!("Completed"), &json!(5_000)));
    let elements = format!(
        "[{},{{\"Type\":\"HeartBeat\"}},{},{},{{\"Type\":\"PUT\",\"Document\":{{}}}}]",
        element("of/", 1),
        element("of|", 2),
        element("of|", 3)
    );
    assert_eq!(insert(&server, "", "identity", elements).await.status, StatusCode::CREATED);
    assert!(server.document("of/0000000000000005001-A").await.is_some());
    assert_eq!(server.document("of/2").await.unwrap()["n"], 3);
    assert_eq!(insert(&server, "", "identity", "[]").await.status, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn gzip_and_zstd_are_unpacked() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(body(3_000).as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(body(3_000).as_bytes(), 3).unwrap();
    for (encoding, packed) in [("gzip", gzip), ("zstd", zstd)] {
        let server = TestServer::with_database().await;
        assert_eq!(insert(&server, "", encoding, packed.clone()).await.status, StatusCode::CREATED, "{encoding}");
        assert_eq!(count(&server).await, 3_000);
        let half = packed[..packed.len() / 2].to_vec();
        insert(&server, "", encoding, half).await.assert_error(400, "BulkInsertAbortedException", &["ended"]);
        let mut broken = packed;
        broken.iter_mut().skip(6).for_each(|byte| *byte = 0xA5);
        insert(&server, "", encoding, broken).await.assert_error(400, "", &[]);
    }
    let server = TestServer::with_database().await;
    insert(&server, "", "br", "[]").await.assert_error(415, "NotSupportedException", &["br", "zstd"]);
}

/// Begins an insert by hand, for bodies that reqwest can't send.
async fn begin(server: &TestServer, id: u64, encoding: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /databases/db/bulk_insert?id={id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn send(stream: &mut TcpStream, piece: &[u8]) {
    stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
    stream.write_all(piece).await.unwrap();
    stream.write_all(b"\r\n").await.unwrap();
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_array_is_answered_though_the_request_goes_on() {
    let server = TestServer::with_database().await;
    let mut plain = begin(&server, 1, "identity").await;
    for byte in body(2).as_bytes() {
        send(&mut plain, &[*byte]).await;
    }
    assert!(read_head(&mut plain).await.starts_with("HTTP/1.1 201"));
    // As the Node.js client: flushed, and neither the trailer of gzip nor the last chunk ever sent.
    let mut packed = begin(&server, 2, "gzip").await;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for piece in [&body(4)[..20], &body(4)[20..]] {
        gzip.write_all(piece.as_bytes()).unwrap();
        gzip.flush().unwrap();
        send(&mut packed, &std::mem::take(gzip.get_mut())).await;
    }
    assert!(read_head(&mut packed).await.starts_with("HTTP/1.1 201"));
    assert_eq!(count(&server).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_can_be_killed() {
    let server = TestServer::with_database().await;
    let mut stream = begin(&server, 7, "identity").await;
    send(&mut stream, b"[").await;
    loop {
        let answer = server.get("/databases/db/operations/state?id=7").await;
        if answer.status == StatusCode::OK {
            assert_eq!(answer.json()["Status"], "InProgress");
            break;
        }
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    insert(&server, "id=7", "identity", "[]").await.assert_error(409, "ConcurrencyException", &["operation 7"]);
    let killed = server.send(Method::POST, "/databases/db/operations/kill?id=7", "").await;
    assert_eq!(killed.status, StatusCode::NO_CONTENT);
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 400"));
    assert_eq!(state(&server, 7).await["Status"], "Canceled");
    server.get("/databases/db/operations/next-operation-id").await;
    server.send(Method::POST, "/databases/db/operations/kill?id=1", "").await;
    insert(&server, "id=1", "identity", "[]").await.assert_error(400, "BulkInsertAbortedException", &["kill"]);
    let unknown = server.send(Method::POST, "/databases/db/operations/kill?id=99", "").await;
    assert_eq!(unknown.status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/databases/db/operations/state?id=99").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_whole_batches() {
    let server = TestServer::with_database().await;
    let mut stream = begin(&server, 3, "identity").await;
    let text = body(5_000);
    for piece in text.as_bytes()[..text.len() - 10].chunks(16 * 1024) {
        send(&mut stream, piece).await;
    }
    drop(stream);
    loop {
        let state = state(&server, 3).await;
        if state["Status"] == "Faulted" {
            assert!(state["Result"]["Type"].as_str().unwrap().contains("BulkInsert"), "{state}");
            break;
        }
        tokio::task::yield_now().await;
    }
    let stored = count(&server).await;
    assert!(stored < 5_000 && stored > 0, "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_insert_is_refused_by_its_place() {
    let server = TestServer::with_database().await;
    for (text, status, kind, words) in [
        ("{}".to_owned(), 400, "InvalidDataException", vec!["array of objects"]),
        ("[1]".to_owned(), 400, "InvalidDataException", vec!["array of objects"]),
        (
            format!("[{},{{\"Id\":\"x\"}}]", element("a", 1)),
            400,
            "InvalidOperationException",
            vec!["Document 1", "'Type'"],
        ),
        ("[{\"Id\":5,\"Type\":\"PUT\",\"Document\":{}}]".to_owned(), 400, "InvalidDataException", vec!["Document 0"]),
        ("[{\"Id\":\"x\",\"Type\":\"DELETE\"}]".to_owned(), 400, "ArgumentException", vec!["Document 0", "PUT only"]),
        ("[{\"Id\":\"x\",\"Type\":\"Counters\"}]".to_owned(), 501, "NotSupportedException", vec!["'Counters'"]),
        (
            format!("[{},{}]", element("a", 1), element(&"x".repeat(600), 1)),
            400,
            "ArgumentException",
            vec!["Document 1", "512"],
        ),
        ("[{\"Id\":\"a\"".to_owned(), 400, "BulkInsertAbortedException", vec!["ended", "0 documents were stored"]),
    ] {
        insert(&server, "", "identity", text).await.assert_error(status, kind, &words);
    }
    let refused = insert(&server, "skipOverwriteIfUnchanged=true", "identity", "[]").await;
    refused.assert_error(501, "NotSupportedException", &["skipOverwriteIfUnchanged"]);
    assert_eq!(server.ids(&format!("startsWith={}", escape("a"))).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_deleted_in_the_background() {
    let server = TestServer::with_database().await;
    insert(&server, "", "identity", body(3_000)).await;
    server.must_put("other", "{}").await;
    let delete = async |query: &str| {
        let body = json!({"Query": query, "QueryParameters": null}).to_string();
        server.send(Method::DELETE, "/databases/db/queries?allowStale=true", body).await
    };
    let begun = delete("from 'Bulk'").await.json();
    assert_eq!(begun["OperationNodeTag"], "A");
    let done = loop {
        let state = state(&server, begun["OperationId"].as_u64().unwrap()).await;
        if state["Status"] != "InProgress" {
            break state;
        }
    };
    assert_eq!((&done["Status"], &done["Result"]["Total"]), (&json!("Completed"), &json!(3_000)), "{done}");
    assert_eq!(count(&server).await, 0);
    assert!(server.document("other").await.is_some());
    delete("from Bulk update { }").await.assert_error(501, "NotSupportedException", &["update"]);
}
