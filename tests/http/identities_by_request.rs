//! Identities by request: the next number, seeds, the list; and what they mean to the documents saved after.

use std::collections::HashSet;

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
async fn identities_of_a_batch_pass_over_every_second_number_that_is_taken() {
    let server = TestServer::with_database().await;
    let taken: Vec<_> = (1..=100)
        .map(|n| json!({"Type": "PUT", "Id": format!("users/{}", 2 * n), "Document": {"by": "hand"}}))
        .collect();
    assert_eq!(server.batch(&json!(taken)).await.status, StatusCode::CREATED);
    let put = |id: &str| json!({"Type": "PUT", "Id": id, "Document": {"by": "identity"}});
    let answer = server.batch(&json!(vec![put("users|"); 80])).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    let results = answer.json()["Results"].as_array().unwrap().clone();
    let ids: HashSet<&str> = results.iter().map(|result| result["@id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 80);
    for n in 1..=100 {
        assert_eq!(server.document(&format!("users/{}", 2 * n)).await.unwrap()["by"], "hand");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_gives_way_to_the_ids_that_its_own_batch_names() {
    let server = TestServer::with_database().await;
    let put = |id: &str| json!({"Type": "PUT", "Id": id, "Document": {"asked": id}});
    let named: Vec<_> = (1..=200).map(|n| format!("users/{n}")).collect();
    for identity_first in [true, false] {
        let mut commands: Vec<_> = named.iter().map(|id| put(id)).collect();
        commands.insert(if identity_first { 0 } else { 200 }, put("users|"));
        let answer = server.batch(&json!(commands)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        let made = answer.json()["Results"][if identity_first { 0 } else { 200 }]["@id"].as_str().unwrap().to_owned();
        assert!(made.strip_prefix("users/").unwrap().parse::<u64>().unwrap() > 200, "{made}");
        assert_eq!(server.document("users/1").await.unwrap()["asked"], "users/1");
        assert_eq!(server.document(&made).await.unwrap()["asked"], "users|");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_identities_of_a_batch_may_all_meet_documents() {
    let server = TestServer::with_database().await;
    let put = |id: String| json!({"Type": "PUT", "Id": id, "Document": {}});
    let taken: Vec<_> = (0..150).map(|n| put(format!("kind{n}/1"))).collect();
    assert_eq!(server.batch(&json!(taken)).await.status, StatusCode::CREATED);
    let asked: Vec<_> = (0..150).map(|n| put(format!("kind{n}|"))).collect();
    let answer = server.batch(&json!(asked)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    for (n, result) in answer.json()["Results"].as_array().unwrap().iter().enumerate() {
        assert_eq!(result["@id"], format!("kind{n}/2"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_are_seeded_at_once_all_or_none_of_them_checked() {
    let server = TestServer::with_database().await;
    let seed = async |body: &str| server.send(Method::POST, "/databases/db/identity/seed", body.to_owned()).await;
    let answer = seed(r#"{"Identities":{"Users|":1990,"orders":7}}"#).await;
    assert_eq!(answer.json(), json!({"Identities": {"users|": 1990, "orders|": 7}, "Force": false}));
    let answer = seed(r#"{"Identities":{"users|":5,"orders|":9}}"#).await;
    assert_eq!(answer.json()["Identities"], json!({"users|": 1990, "orders|": 9}));
    let answer = seed(r#"{"Identities":{"users|":5},"Force":true}"#).await;
    assert_eq!(answer.json()["Identities"], json!({"users|": 5}));
    for (body, word) in [
        (r#"{"Identities":{"a|":1,"b\u0001|":1}}"#, "U+0001"),
        (r#"{"Identities":{"a|":1,"b|":9223372036854775808}}"#, "9223372036854775807"),
        (r#"{"Identities":{"a|":-1}}"#, "Identities"),
        (r#"{"identities":{"a|":1}}"#, "Identities"),
    ] {
        seed(body).await.assert_error(400, "", &[word]);
    }
    assert_eq!(server.get("/databases/db/debug/identities").await.json(), json!({"users|": 5, "orders|": 9}));
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
