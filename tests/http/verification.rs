//! A verification over HTTP: lines that tell what was compared, while the server serves.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sums::{SUM_BY_K, put_command};
use crate::support::{Answer, TestServer};

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_database_is_told_index_by_index_and_the_last_line_says_that_all_was_told() {
    let server = TestServer::with_index(SUM_BY_K).await;
    server.must_index("Above", &SUM_BY_K.replace("Items", "Out").replace("\"Out\");\nfn", "\"Above\");\nfn")).await;
    let put = |n: u32| put_command("Items", &format!("items/{n}"), json!({"k": n % 7, "v": n}));
    server.batch(&(0..900).map(put).collect()).await;
    server.wait_for_indexes().await;
    for (method, query) in
        [(Method::GET, ""), (Method::POST, ""), (Method::GET, "?name=index&limit=5&timeout=00:00:10")]
    {
        let answer = server.send(method.clone(), &format!("/databases/db/indexes/verify{query}"), "").await;
        assert_eq!(answer.header("content-type"), Some("application/x-ndjson; charset=utf-8"));
        let told: Vec<Value> = lines(&answer).into_iter().filter(|line| line["Event"] != "Progress").collect();
        let (last, verified) = told.split_last().unwrap();
        assert_eq!(*last, json!({"Event": "Done", "Differences": 0, "NotNamed": 0}));
        assert_eq!(verified.len(), if query.is_empty() { 2 } else { 1 }, "{verified:?}");
        let index = verified.iter().find(|line| line["Index"] == "Index").unwrap();
        assert_eq!(
            (&index["Event"], &index["RowsDiffer"], &index["ArtificialDocumentsDiffer"]),
            (&json!("Verified"), &json!(0), &json!(0))
        );
        assert_eq!(
            (
                &index["Documents"],
                &index["Entries"],
                &index["Groups"],
                &index["ArtificialDocuments"],
                &index["DocumentsWaiting"]
            ),
            (&json!(900), &json!(900), &json!(7), &json!(7), &json!(0))
        );
        assert!(index["ThroughEtag"].as_u64() >= Some(900) && index["Seconds"].is_number(), "{index}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_index_is_refused_and_one_that_is_not_built_is_told_in_the_last_line() {
    let server = TestServer::with_index(SUM_BY_K).await;
    let unknown = server.get("/databases/db/indexes/verify?name=none").await;
    unknown.assert_error(404, ".IndexDoesNotExistException", &["none"]);
    server.get("/databases/db/indexes/verify?limit=x").await.assert_error(400, "ArgumentException", &["'limit'"]);
    server.wait_for_indexes().await;
    let path = "/databases/db/admin/indexes/disable?name=Index";
    assert_eq!(server.send(Method::POST, path, "").await.status, StatusCode::NO_CONTENT);
    let told = lines(&server.get("/databases/db/indexes/verify?name=Index").await);
    assert_eq!(told.last().unwrap()["Event"], "Done", "one that is turned off is sound all the same");
    let put = server.send(Method::PUT, "/databases/db/indexes/verify", SUM_BY_K.replace("Out", "Out2")).await;
    assert_eq!(put.status, StatusCode::CREATED, "a name like any other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_does_not_hold_up_a_stop() {
    let mut server = TestServer::with_index(SUM_BY_K).await;
    let put = |n: u32| put_command("Items", &format!("items/{n}"), json!({"k": n % 7, "v": n}));
    server.batch(&(0..5_000).map(put).collect()).await;
    server.wait_for_indexes().await;
    let request = server.request(Method::GET, "/databases/db/indexes/verify");
    let verifying = tokio::spawn(async move { request.send().await.map(|response| response.status()) });
    server.tell_to_stop();
    server.stopped().await;
    drop(verifying.await.unwrap());
}
