//! The change feed: from a position, within limits, waiting, without end.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::TestServer;

/// Long enough for a loaded machine; nothing that works waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a streamed answer line by line.
pub(crate) struct Lines {
    stream: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) async fn open(server: &TestServer, path: &str) -> Self {
        let response = server.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Self::of(response)
    }

    pub(crate) fn of(response: reqwest::Response) -> Self {
        Self { stream: response.bytes_stream().boxed(), buffer: Vec::new() }
    }

    /// The next line; `None` at the end of a whole answer.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            match tokio::time::timeout(PATIENCE, self.stream.next()).await.unwrap() {
                Some(chunk) => self.buffer.extend_from_slice(&chunk.unwrap()),
                None => return None,
            }
        }
    }

    pub(crate) async fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next().await.unwrap()).unwrap()
    }
}

/// Etags 1 to 6: a, b, c written; a written again (4), b deleted (5), d in another collection (6).
async fn with_changes() -> TestServer {
    let server = TestServer::with_database().await;
    for id in ["a", "b", "c", "a"] {
        server.must_put(id, r#"{"x":[1,"@metadata"],"@metadata":{"@collection":"Items"}}"#).await;
    }
    server.delete("/databases/db/docs?id=b").await;
    server.must_put("d/1", "{\n \"lines\":\n 2,\"@metadata\":{\"@collection\":\"Others\"}}").await;
    server
}

async fn feed(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/databases/db/_changes?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

fn seqs(feed: &Value) -> Vec<u64> {
    feed["results"].as_array().unwrap().iter().map(|row| row["seq"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_has_the_newest_version_of_each_document_in_order() {
    let server = with_changes().await;
    let whole = feed(&server, "").await;
    assert_eq!(seqs(&whole), [3, 4, 5, 6]);
    assert_eq!((&whole["last_seq"], &whole["pending"]), (&json!(6), &json!(0)));
    let vector = server.document("a").await.unwrap()["@metadata"]["@change-vector"].clone();
    let wanted = json!({"seq": 4, "id": "a", "changes": [{"rev": vector}], "collection": "Items"});
    assert_eq!(whole["results"][1], wanted);
    assert_eq!((&whole["results"][2]["id"], &whole["results"][2]["deleted"]), (&json!("b"), &json!(true)));
    assert!(whole["results"][2]["changes"][0]["rev"].as_str().unwrap().starts_with("A:5-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_is_exclusive_and_never_replays_everything() {
    let server = with_changes().await;
    for (since, expected) in
        [("0", vec![3, 4, 5, 6]), ("2", vec![3, 4, 5, 6]), ("5", vec![6]), ("6", vec![]), ("now", vec![])]
    {
        let found = feed(&server, &format!("since={since}")).await;
        assert_eq!(seqs(&found), expected, "{since}");
        assert_eq!(found["last_seq"], 6);
    }
    for since in ["7", "x", "-1", "3.0", "99999999999999999999", "3-abc"] {
        let answer = server.get(&format!("/databases/db/_changes?since={since}")).await;
        answer.assert_error(400, "ArgumentException", &["since"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_says_what_lies_beyond() {
    let server = with_changes().await;
    let first = feed(&server, "limit=2").await;
    assert_eq!((seqs(&first), &first["last_seq"], &first["pending"]), (vec![3, 4], &json!(4), &json!(2)));
    let next = feed(&server, "limit=2&since=4").await;
    assert_eq!((seqs(&next), &next["last_seq"], &next["pending"]), (vec![5, 6], &json!(6), &json!(0)));
    assert_eq!(seqs(&feed(&server, "limit=0").await), [3]);
    let newest = feed(&server, "limit=2&descending=true").await;
    assert_eq!((seqs(&newest), &newest["pending"]), (vec![6, 5], &json!(2)));
    assert_eq!(seqs(&feed(&server, "descending=true&since=4").await), [6, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_can_be_one_collection_or_prefix() {
    let server = with_changes().await;
    let items = feed(&server, "collection=ITEMS").await;
    assert_eq!((seqs(&items), &items["last_seq"]), (vec![3, 4, 5], &json!(6)));
    assert_eq!(seqs(&feed(&server, "prefix=D/").await), [6]);
    let nothing = feed(&server, "collection=Nope").await;
    assert_eq!((seqs(&nothing), &nothing["last_seq"]), (vec![], &json!(6)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_can_be_that_of_some_documents() {
    let server = with_changes().await;
    assert_eq!(seqs(&feed(&server, "filter=_doc_ids&doc_ids=[\"B\",\"d/1\"]").await), [5, 6]);
    let path = "/databases/db/_changes?filter=_doc_ids&since=4&feed=longpoll&style=all_docs";
    let answer = server.send(Method::POST, path, r#"{"doc_ids":["a","d/1","none"]}"#).await;
    assert_eq!(seqs(&answer.json()), [6]);
    for body in ["", "{}"] {
        let answer = server.send(Method::POST, "/databases/db/_changes?limit=1", body).await;
        assert_eq!(seqs(&answer.json()), [3]);
    }
    let answer = server.send(Method::POST, "/databases/db/_changes", "[]").await;
    answer.assert_error(400, "InvalidDataException", &["doc_ids"]);
    let answer = server.send(Method::POST, "/databases/db/_changes", r#"{"selector":{"a":1}}"#).await;
    answer.assert_error(501, "NotSupportedException", &["selector"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_can_come_along() {
    let server = with_changes().await;
    let whole = feed(&server, "include_docs=true").await;
    let row = &whole["results"][1];
    let mut document = server.document("a").await.unwrap();
    document["_id"] = json!("a");
    document["_rev"] = row["changes"][0]["rev"].clone();
    assert_eq!(row["doc"], document);
    let deleted = &whole["results"][2];
    let left = json!({"_id": "b", "_rev": deleted["changes"][0]["rev"], "_deleted": true});
    assert_eq!(deleted["doc"], left);
    let mut lines =
        Lines::open(&server, "/databases/db/_changes?feed=continuous&include_docs=true&since=5&timeout=0").await;
    assert_eq!(lines.next_json().await["doc"]["lines"], 2);
    assert_eq!(lines.next_json().await, json!({"last_seq": 6, "pending": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_answers_at_once_or_with_the_first_change() {
    let server = with_changes().await;
    let found = feed(&server, "feed=longpoll&since=4").await;
    assert_eq!((seqs(&found), &found["last_seq"]), (vec![5, 6], &json!(6)));
    let empty = feed(&server, "feed=longpoll&since=now&timeout=1").await;
    assert_eq!((seqs(&empty), &empty["last_seq"]), (vec![], &json!(6)));
    let mut waiting = Lines::open(&server, "/databases/db/_changes?feed=longpoll&since=now&collection=Items").await;
    assert_eq!(waiting.next().await.unwrap(), "{\"results\":[");
    server.must_put("other", "{}").await;
    server.must_put("e", r#"{"@metadata":{"@collection":"Items"}}"#).await;
    assert_eq!(waiting.next_json().await["id"], "e");
    let mut rest = String::new();
    while let Some(line) = waiting.next().await {
        rest.push_str(&line);
    }
    assert_eq!(rest, "],\"last_seq\":8,\"pending\":0}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuous_feed_goes_on_through_filters_and_heartbeats() {
    let server = with_changes().await;
    let path = "/databases/db/_changes?feed=continuous&since=5&heartbeat=100";
    let mut lines = Lines::open(&server, path).await;
    assert_eq!(lines.next_json().await["seq"], 6);
    assert_eq!(lines.next().await.unwrap(), "");
    for n in 0..3 {
        server.must_put("e", format!("{{\"n\":{n}}}")).await;
        let line = loop {
            let line = lines.next().await.unwrap();
            if !line.is_empty() {
                break line;
            }
        };
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["seq"], 7 + n);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continuous_feed_ends_at_its_limit_or_after_its_time() {
    let server = with_changes().await;
    let mut lines = Lines::open(&server, "/databases/db/_changes?feed=continuous&limit=1").await;
    assert_eq!(lines.next_json().await["seq"], 3);
    assert_eq!(lines.next_json().await, json!({"last_seq": 3, "pending": 3}));
    assert_eq!(lines.next().await, None);
    let mut lines = Lines::open(&server, "/databases/db/_changes?feed=continuous&since=now&timeout=10").await;
    assert_eq!(lines.next_json().await, json!({"last_seq": 6, "pending": 0}));
    assert_eq!(lines.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_ids_to_go_on_from() {
    let server = with_changes().await;
    let mut lines = Lines::open(&server, "/databases/db/_changes?feed=eventsource&since=4&limit=1").await;
    let data = lines.next().await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(data.strip_prefix("data: ").unwrap()).unwrap()["seq"], 5);
    assert_eq!(lines.next().await.unwrap(), "id: 5");
    assert_eq!(lines.next().await.unwrap(), "");
    let request = server.request(Method::GET, "/databases/db/_changes?feed=eventsource&since=0&limit=1");
    let response = request.header("Last-Event-ID", "5").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(response.text().await.unwrap().contains("id: 6\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_feed_cannot_do_is_refused_by_name() {
    let server = with_changes().await;
    for (query, status, word) in [
        ("feed=forever", 400, "feed"),
        ("heartbeat=0", 400, "heartbeat"),
        ("heartbeat=soon", 400, "heartbeat"),
        ("timeout=soon", 400, "timeout"),
        ("limit=-1", 400, "limit"),
        ("descending=true&feed=continuous", 400, "descending"),
        ("filter=app/important", 501, "filter"),
        ("filter=_selector", 501, "_selector"),
        ("doc_ids=[]", 400, "_doc_ids"),
        ("filter=_doc_ids", 400, "doc_ids"),
        ("filter=_doc_ids&doc_ids=x", 400, "doc_ids"),
        ("style=odd", 400, "style"),
        ("attachments=true", 501, "attachments"),
    ] {
        let answer = server.get(&format!("/databases/db/_changes?{query}")).await;
        answer.assert_error(status, "Exception", &[word]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_feed_is_whole_and_in_order() {
    let server = TestServer::with_database().await;
    for part in 0..5 {
        let commands: Vec<_> = (0..4_000)
            .map(|n| json!({"Type": "PUT", "Id": format!("n/{}", part * 4_000 + n), "Document": {"n": n}}))
            .collect();
        assert_eq!(server.batch(&json!(commands)).await.status, StatusCode::CREATED);
    }
    let whole = feed(&server, "").await;
    assert_eq!(seqs(&whole), (1..=20_000).collect::<Vec<_>>());
    assert_eq!(seqs(&feed(&server, "descending=true&limit=9000").await), (11_001..=20_000).rev().collect::<Vec<_>>());
    let rare = feed(&server, "prefix=n/19999").await;
    assert_eq!((seqs(&rare), &rare["last_seq"]), (vec![20_000], &json!(20_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_ends_when_its_database_is_deleted() {
    let server = with_changes().await;
    let mut lines = Lines::open(&server, "/databases/db/_changes?feed=continuous&since=now&heartbeat=60000").await;
    let body = r#"{"DatabaseNames":["db"],"HardDelete":true}"#;
    let deleted = server.send(Method::DELETE, "/admin/databases", body).await;
    assert_eq!(deleted.json()["PendingDeletes"], json!([]));
    assert_eq!(lines.next_json().await["last_seq"], 6);
    assert_eq!(lines.next().await, None);
}
