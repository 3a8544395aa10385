//! Lists of documents: by prefix, by pattern, newest first, in pages.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{TestServer, escape};

async fn with_items(ids: &[&str]) -> TestServer {
    let server = TestServer::with_database().await;
    for id in ids {
        server.must_put(id, r#"{"@metadata":{"@collection":"Items"}}"#).await;
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_lists_in_id_order_page_by_page() {
    let ids =
        ["items/1", "items/2", "items/3", "items/4", "items/5", "items/6", "items/7", "items/10", "item", "items0"];
    let server = with_items(&ids).await;
    assert_eq!(server.ids("startsWith=items/&start=0&pageSize=3").await, ["items/1", "items/10", "items/2"]);
    assert_eq!(server.ids("startsWith=items/&start=3&pageSize=3").await, ["items/3", "items/4", "items/5"]);
    assert_eq!(server.ids("startsWith=ITEMS%2F&startAfter=items/3&pageSize=2").await, ["items/4", "items/5"]);
    assert_eq!(server.ids("startsWith=items/&startAfter=items/6x&pageSize=9").await, ["items/7"]);
    assert_eq!(server.ids("startsWith=items/&startAfter=zzz").await, [""; 0]);
    assert_eq!(server.ids("startsWith=items/").await.len(), 8);
    assert_eq!(server.ids("startsWith=nothing").await, [""; 0]);
    assert_eq!(server.get("/databases/db/docs?startsWith=items/&pageSize=1").await.json()["Includes"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_apply_to_the_rest_of_the_id() {
    let server = with_items(&["items/1", "items/10", "items/12", "items/2", "items/A1", "other/1"]).await;
    assert_eq!(server.ids("startsWith=items/&matches=1*&exclude=*0&pageSize=10").await, ["items/1", "items/12"]);
    assert_eq!(server.ids("startsWith=items/&matches=2|a?").await, ["items/2", "items/A1"]);
    assert_eq!(server.ids("startsWith=items/&exclude=1*|a*").await, ["items/2"]);
    assert_eq!(server.ids("startsWith=ITEMS/&matches=??&start=1&pageSize=1").await, ["items/12"]);
    assert_eq!(server.ids("matches=*/1").await, ["items/1", "other/1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_prefix_the_newest_come_first() {
    let server = with_items(&["a", "b", "c", "d"]).await;
    server.must_put("b", r#"{"again":true}"#).await;
    server.delete("/databases/db/docs?id=c").await;
    assert_eq!(server.ids("start=0&pageSize=2").await, ["b", "d"]);
    assert_eq!(server.ids("start=2&pageSize=25").await, ["a"]);
    assert_eq!(server.ids("").await, ["b", "d", "a"]);
    assert_eq!(server.ids("etag=0&pageSize=1").await, ["a"]);
    assert_eq!(server.ids("etag=4").await, ["d", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_may_be_empty_but_must_be_numbers() {
    let server = with_items(&["a"]).await;
    assert_eq!(server.ids("start=0&pageSize=0").await, [""; 0]);
    assert_eq!(server.ids("start=0&pageSize=-1").await, [""; 0]);
    assert_eq!(server.ids("start=99999999999999999999").await, [""; 0]);
    for query in ["start=a", "pageSize=1.5", "etag=-1", "metadataOnly=perhaps"] {
        let name = query.split('=').next().unwrap();
        let answer = server.get(&format!("/databases/db/docs?{query}")).await;
        answer.assert_error(400, "ArgumentException", &[name]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_is_no_range_of_characters() {
    let ids = ["m/a", "m/♪♫", "m/\u{FFFD}", "m/😀", "m/\u{10FFFF}", "m0", "n"];
    let server = with_items(&ids).await;
    assert_eq!(server.ids("startsWith=").await, ids);
    assert_eq!(server.ids("startsWith=m/").await, &ids[..5]);
    for id in ids {
        assert_eq!(server.ids(&format!("startsWith={}", escape(id))).await, [id]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_stops_where_it_ends() {
    let server = with_items(&["sales/1", "sales/10", "sales2/1", "sale/1", "SALES/x", "sales", "s\u{10FFFF}x"]).await;
    assert_eq!(server.ids("startsWith=sales/").await, ["sales/1", "sales/10", "SALES/x"]);
    assert_eq!(server.ids("startsWith=sales").await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_is_streamed_whole() {
    let server = TestServer::with_database().await;
    let filler = "x".repeat(1_000);
    for part in 0..10 {
        let commands: Vec<_> = (0..500)
            .map(|n| json!({"Type": "PUT", "Id": format!("l/{:05}", part * 500 + n), "Document": {"filler": filler}}))
            .collect();
        assert_eq!(server.batch(&json!(commands)).await.status, StatusCode::CREATED);
    }
    let answer = server.get("/databases/db/docs?startsWith=l/").await;
    assert!(answer.header("content-length").is_none() && answer.body.len() > 5_000_000);
    let results = answer.json()["Results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 5_000);
    assert_eq!(results[4_999]["@metadata"]["@id"], "l/04999");
    assert_eq!(server.get("/databases/db/docs").await.json()["Results"].as_array().unwrap().len(), 5_000);
    assert!(server.get("/databases/db/docs?startsWith=l/&pageSize=2").await.header("content-length").is_some());
}
