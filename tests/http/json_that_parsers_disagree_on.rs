//! JSON that parsers disagree on is refused, the same in a single put and in a batch.

use reqwest::{Method, StatusCode};

use crate::support::TestServer;

async fn put_both_ways(server: &TestServer, document: &[u8]) -> [StatusCode; 2] {
    let single = server.put("single", document.to_vec()).await;
    let mut batch = br#"{"Commands":[{"Type":"PUT","Id":"batch","Document":"#.to_vec();
    batch.extend_from_slice(document);
    batch.extend_from_slice(b"}]}");
    let batch = server.send(Method::POST, "/databases/db/bulk_docs", batch).await;
    for answer in [&single, &batch] {
        assert!(answer.status == StatusCode::CREATED || answer.json()["Message"].is_string(), "{}", answer.text());
    }
    [single.status, batch.status]
}

fn nested(depth: usize) -> Vec<u8> {
    let arrays = depth - 1;
    format!("{{\"a\":{}{}}}", "[".repeat(arrays), "]".repeat(arrays)).into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_or_broken_documents_are_refused() {
    let server = TestServer::with_database().await;
    let bad: [&[u8]; 21] = [
        br#"{"a":1,"a":2}"#,
        br#"{"a":1,"\u0061":2}"#,
        br#"{"o":{"x":1,"x":2}}"#,
        br#"{"@metadata":{"@id":"x","@id":"y"}}"#,
        br#"{"@metadata":{},"@metadata":{}}"#,
        br#"{"a":1e400}"#,
        br#"{"a":NaN}"#,
        br#"{"a":"\ud83d"}"#,
        br#"{"a":1,}"#,
        br#"{"a":[1,]}"#,
        br#"{"a":01}"#,
        b"{\"a\":\"\n\"}",
        b"{\"a\":\"\xff\"}",
        br"[1,2]",
        br"7",
        br"null",
        br#"{"a""#,
        br#"{"@metadata":5}"#,
        br#"{"@metadata":[]}"#,
        br#"{"@metadata":{"@collection":7}}"#,
        br"{'a':1}",
    ];
    for document in bad {
        let statuses = put_both_ways(&server, document).await;
        assert_eq!(statuses, [StatusCode::BAD_REQUEST; 2], "{}", String::from_utf8_lossy(document));
    }
    for document in ["", "{} {}", "{}x", "\u{feff}{}"] {
        assert_eq!(server.put("single", document).await.status, StatusCode::BAD_REQUEST, "{document}");
    }
    assert_eq!(server.document("single").await, None);
    assert_eq!(server.document("batch").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_documents_are_taken_to_127_levels() {
    let server = TestServer::with_database().await;
    assert_eq!(put_both_ways(&server, &nested(127)).await, [StatusCode::CREATED; 2]);
    let text = server.get("/databases/db/docs?id=single").await.text();
    assert!(text.contains(&"[".repeat(126)), "{text}");
    for depth in [128, 100_000] {
        assert_eq!(put_both_ways(&server, &nested(depth)).await, [StatusCode::BAD_REQUEST; 2], "{depth}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_where_the_fault_is() {
    let server = TestServer::with_database().await;
    let answer = server.put("a", "{\n  \"a\": 1,\n  \"b\": x\n}").await;
    answer.assert_error(400, "InvalidDataException", &["3"]);
}
