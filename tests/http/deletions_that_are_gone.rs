//! Tombstones go in the end: whoever could miss a deletion by that is told, and nobody else notices.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::TestServer;

/// A server that keeps no tombstones when it is told to clean up.
async fn forgetful() -> (TestServer, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let change = |settings: &mut treepie::server::ServerSettings| {
        settings.database.tombstones.kept_min = Duration::ZERO;
        settings.database.tombstones.every = Duration::from_secs(3_600);
    };
    let server = TestServer::start_as(directory.path(), change).await;
    server.create("db").await;
    (server, directory)
}

async fn clean_up(server: &TestServer) -> u64 {
    let answer = server.send(Method::POST, "/databases/db/admin/tombstones/cleanup", "").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()["Value"].as_u64().unwrap()
}

async fn feed(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/databases/db/_changes?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
    answer.json()
}

/// Follows `last_seq` in pages, as CouchDB's clients do; returns the ids that were shown, without those that were deleted.
async fn fold(server: &TestServer, mut since: String, limit: u32) -> Vec<String> {
    let mut alive = std::collections::BTreeSet::new();
    loop {
        let page = feed(server, &format!("since={since}&limit={limit}")).await;
        let rows = page["results"].as_array().unwrap();
        for row in rows {
            let id = row["id"].as_str().unwrap().to_owned();
            if row["deleted"] == true {
                alive.remove(&id)
            } else {
                alive.insert(id)
            };
        }
        since = page["last_seq"].as_str().map_or_else(|| page["last_seq"].to_string(), str::to_owned);
        if rows.is_empty() {
            return alive.into_iter().collect();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_comes_back_too_late_is_told_and_not_left_in_the_dark() {
    let (server, _directory) = forgetful().await;
    for id in ["a", "b", "c"] {
        server.must_put(id, r#"{"@metadata":{"@collection":"Items"}}"#).await;
    }
    server.delete("/databases/db/docs?id=b").await;
    assert_eq!(feed(&server, "since=2").await["results"][1]["deleted"], true);
    assert_eq!(clean_up(&server).await, 1);
    for query in ["since=2", "since=2&collection=Items", "since=3&feed=longpoll", "since=1&feed=continuous"] {
        let answer = server.get(&format!("/databases/db/_changes?{query}")).await;
        answer.assert_error(410, "Exception", &["through etag 4", "from 0"]);
        assert_eq!(answer.json()["error"], "gone");
    }
    // Whoever has seen the deletion goes on, and so does one whose collection lost none.
    assert_eq!(feed(&server, "since=4").await["results"], json!([]));
    assert_eq!(feed(&server, "since=2&collection=Others").await["results"], json!([]));
    let info = server.get("/databases/db").await.json();
    assert_eq!((&info["doc_del_count"], &info["purge_seq"], &info["update_seq"]), (&json!(0), &json!(4), &json!(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_reader_needs_no_tombstones_however_small_its_pages() {
    let (server, _directory) = forgetful().await;
    for n in 0..20 {
        server.must_put(&format!("n/{n:02}"), "{}").await;
    }
    for n in (0..20).step_by(2) {
        server.delete(&format!("/databases/db/docs?id=n/{n:02}")).await;
    }
    assert_eq!(clean_up(&server).await, 10);
    let left: Vec<String> = (1..20).step_by(2).map(|n| format!("n/{n:02}")).collect();
    for limit in [1, 3, 100] {
        assert_eq!(fold(&server, "0".to_owned(), limit).await, left, "{limit}");
    }
    // While it pages, the place says when it began.
    let page = feed(&server, "limit=2").await;
    assert_eq!((&page["last_seq"], &page["results"][1]["seq"]), (&json!("4-30"), &json!("4-30")));
    // What is deleted after it began it must not miss.
    server.delete("/databases/db/docs?id=n/01").await;
    let next = feed(&server, "since=4-30").await;
    assert_eq!(next["results"].as_array().unwrap().last().unwrap()["deleted"], true);
    assert_eq!(clean_up(&server).await, 1);
    let late = server.get("/databases/db/_changes?since=4-30").await;
    late.assert_error(410, "Exception", &["through etag 31"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_tombstones_back_can_be_seen() {
    let (server, _directory) = forgetful().await;
    server.must_put("a", r#"{"k":1,"@metadata":{"@collection":"Items"}}"#).await;
    let script = "source(\"Items\"); fn map(d) { emit(d.k, 1); } fn reduce(k, v) { v.sum() }";
    assert_eq!(server.put_index("Counts", script).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    server.send(Method::POST, "/databases/db/admin/indexes/disable?name=Counts", "").await;
    server.delete("/databases/db/docs?id=a").await;
    assert_eq!(clean_up(&server).await, 0);
    let state = server.get("/databases/db/admin/tombstones/state").await.json();
    let line = &state["Results"][0];
    assert_eq!((&line["Collection"], &line["Tombstones"]), (&json!("Items"), &json!(1)));
    assert_eq!(line["HeldBy"], "index 'Counts'");
}
