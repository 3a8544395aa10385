//! Identities by request: the next number, seeds, the list; and what they mean to the documents saved after.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, TestServer};

async fn post(server: &TestServer, path: &str) -> Answer {
    server.send(Method::POST, &format!("/databases/db/{path}"), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn names_count_without_regard_to_case_and_with_or_without_the_bar() {
    let server = TestServer::with_database().await;
    for (name, number) in [("users%7C", 1), ("users", 2), ("USERS|", 3), ("invoices", 1)] {
        let answer = post(&server, &format!("identity/next?name={name}")).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({"NewIdentityValue": number})));
    }
    assert_eq!(server.put("users|", "{}").await.json()["Id"], "users/4");
    let listed = server.get("/databases/db/debug/identities").await;
    assert_eq!((listed.status, listed.text().as_str()), (StatusCode::OK, r#"{"invoices|":1,"users|":4}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_raises_and_lowers_only_by_force() {
    let server = TestServer::with_database().await;
    for (query, value) in [
        ("name=users%7C&value=100", 100),
        ("name=Users&value=5", 100),
        ("name=users%7C&value=50&force=true", 50),
        ("name=users%7C&value=50&force=false", 50),
        ("name=fresh&value=0", 0),
    ] {
        let answer = post(&server, &format!("identity/seed?{query}")).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({"NewSeedValue": value})), "{query}");
    }
    assert_eq!(server.put("users|", "{}").await.json()["Id"], "users/51");
    assert_eq!(server.put("fresh|", "{}").await.json()["Id"], "fresh/1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_was_lowered_overwrites_nothing() {
    let server = TestServer::with_database().await;
    for _ in 0..3 {
        server.must_put("users|", "{}").await;
    }
    post(&server, "identity/seed?name=users&value=0&force=true").await;
    assert_eq!(server.put("users|", r#"{"later":true}"#).await.json()["Id"], "users/4");
    assert!(server.document("users/1").await.unwrap()["later"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_answers_with_each_id_in_order() {
    let server = TestServer::with_database().await;
    server.must_put("users/2", r#"{"by":"hand"}"#).await;
    let put = |id: serde_json::Value| json!({"Type": "PUT", "Id": id, "Document": {}});
    let ids = [json!("users|"), json!("users|"), json!("users/"), json!(null), json!("users|"), json!("users/")];
    let answer = server.batch(&json!(ids.map(put))).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    let results = answer.json()["Results"].as_array().unwrap().clone();
    let ids: Vec<&str> = results.iter().map(|result| result["@id"].as_str().unwrap()).collect();
    let numbers = [ids[0], ids[1], ids[4]].map(|id| id.strip_prefix("users/").unwrap().parse::<u64>().unwrap());
    assert!(numbers[0] < numbers[1] && numbers[1] < numbers[2] && !numbers.contains(&2), "{ids:?}");
    assert_eq!((ids[2], ids[5]), ("users/0000000000000000004-A", "users/0000000000000000007-A"));
    assert_eq!(ids[3].len(), 36);
    assert_eq!(server.document("users/2").await.unwrap()["by"], "hand");
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_refused() {
    let server = TestServer::with_database().await;
    for (path, word) in [
        ("identity/next", "'name'"),
        ("identity/next?name=", "'name'"),
        ("identity/next?name=a%01", "U+0001"),
        ("identity/seed?name=users", "'value'"),
        ("identity/seed?name=users&value=-1", "'value'"),
        ("identity/seed?name=users&value=x", "'value'"),
        ("identity/seed?name=users&value=9223372036854775808", "'value'"),
        ("identity/seed?name=users&value=1&force=maybe", "'force'"),
    ] {
        post(&server, path).await.assert_error(400, "ArgumentException", &[word]);
    }
    assert_eq!(server.get("/databases/db/debug/identities").await.json(), json!({}));
}
