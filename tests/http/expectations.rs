//! Optimistic concurrency: a write that expects another version changes nothing.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, TestServer};

async fn conditional(server: &TestServer, method: Method, id: &str, if_match: &str) -> Answer {
    let request = server.request(method, &format!("/databases/db/docs?id={id}")).header("If-Match", if_match);
    Answer::read(request.body(r#"{"N":2}"#).send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_expected_version_is_replaced_with_or_without_quotes() {
    let server = TestServer::with_database().await;
    let first = server.must_put("cc/1", "{}").await;
    let put = conditional(&server, Method::PUT, "cc/1", &format!("\"{first}\"")).await;
    assert_eq!(put.status, StatusCode::CREATED);
    let second = put.json()["ChangeVector"].as_str().unwrap().to_owned();
    assert_eq!(conditional(&server, Method::PUT, "cc/1", &second).await.status, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_version_is_a_conflict_that_tells_both() {
    let server = TestServer::with_database().await;
    let first = server.must_put("cc/1", "{}").await;
    let second = server.must_put("cc/1", r#"{"N":1}"#).await;
    for method in [Method::PUT, Method::DELETE] {
        let answer = conditional(&server, method, "cc/1", &format!("\"{first}\"")).await;
        answer.assert_error(409, ".ConcurrencyException", &["cc/1", &first, &second]);
        let body = answer.json();
        assert_eq!((&body["Id"], &body["ExpectedChangeVector"]), (&json!("cc/1"), &json!(first)));
        assert_eq!(body["ActualChangeVector"], json!(second));
    }
    assert_eq!(server.document("cc/1").await.unwrap()["N"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_document_does_not_have_the_expected_version() {
    let server = TestServer::with_database().await;
    let vector = server.must_put("cc/1", "{}").await;
    for method in [Method::PUT, Method::DELETE] {
        let answer = conditional(&server, method, "cc/missing", &vector).await;
        answer.assert_error(409, ".ConcurrencyException", &["cc/missing"]);
        assert_eq!(answer.json()["ActualChangeVector"], json!(null));
    }
    assert_eq!(server.document("cc/missing").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_expectation_means_a_new_document() {
    let server = TestServer::with_database().await;
    assert_eq!(conditional(&server, Method::PUT, "cc/new", "\"\"").await.status, StatusCode::CREATED);
    let answer = conditional(&server, Method::PUT, "cc/new", "\"\"").await;
    answer.assert_error(409, ".ConcurrencyException", &["cc/new"]);
    assert_eq!(answer.json()["ExpectedChangeVector"], "");
    conditional(&server, Method::PUT, "cc/new", "*").await.assert_error(400, "ArgumentException", &["If-Match"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_unmet_expectation_refuses_the_whole_batch() {
    let server = TestServer::with_database().await;
    let stale = server.must_put("cc/1", "{}").await;
    server.must_put("cc/1", r#"{"N":1}"#).await;
    let put = |expected: serde_json::Value| {
        json!([
            {"Type": "PUT", "Id": "cc/batch", "Document": {"N": 1}},
            {"Type": "PUT", "Id": "cc/1", "ChangeVector": expected, "Document": {"N": 9}},
        ])
    };
    for expected in [json!(stale), json!("")] {
        let answer = server.batch(&put(expected)).await;
        answer.assert_error(409, ".ConcurrencyException", &["cc/1"]);
        assert_eq!(answer.json()["Id"], "cc/1");
    }
    assert_eq!(server.document("cc/batch").await, None);
    assert_eq!(server.document("cc/1").await.unwrap()["N"], 1);
    assert_eq!(server.batch(&put(json!(null))).await.status, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_writers_that_expect_one_version_exactly_one_wins() {
    let server = TestServer::with_database().await;
    let vector = server.must_put("a", "{}").await;
    let writers: Vec<_> = (0..16).map(|_| conditional(&server, Method::PUT, "a", &vector)).collect();
    let statuses: Vec<u16> =
        futures_util::future::join_all(writers).await.iter().map(|answer| answer.status.as_u16()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 15, "{statuses:?}");
}
