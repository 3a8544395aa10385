//! Ids survive the URL, and every form of id gives what it asks for.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{TestServer, escape, ids_of};

#[tokio::test(flavor = "multi_thread")]
async fn ids_with_characters_that_mean_something_in_a_url_come_back_identical() {
    let server = TestServer::with_database().await;
    let ids = ["a+b", "a b", "a%20b", "a%2Bb", "100%", "x?y=1", "x#y", "x&y", "a;b", "ü+😀"];
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(server.put(id, format!(r#"{{"n":{n}}}"#)).await.json()["Id"], json!(id));
    }
    for (n, id) in ids.iter().enumerate() {
        let found = server.document(id).await.unwrap();
        assert_eq!((&found["n"], &found["@metadata"]["@id"]), (&json!(n), &json!(id)));
    }
    let listed: BTreeSet<String> = server.ids("startsWith=").await.into_iter().collect();
    assert_eq!(listed, ids.iter().map(|id| (*id).to_owned()).collect());
    for id in ids {
        let path = format!("/databases/db/docs?id={}", escape(id));
        assert_eq!(server.delete(&path).await.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(server.ids("startsWith=").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_plus_in_a_query_is_a_space() {
    let server = TestServer::with_database().await;
    let put = server.send(Method::PUT, "/databases/db/docs?id=a+b", "{}").await;
    assert_eq!(put.json()["Id"], "a b");
    let put = server.send(Method::PUT, "/databases/db/docs?id=a%2Bb", "{}").await;
    assert_eq!(put.json()["Id"], "a+b");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decoded_is_refused() {
    let server = TestServer::with_database().await;
    for query in ["id=%zz", "id=%4", "id=%ff%fe", "%zz=1&id=a"] {
        server.get(&format!("/databases/db/docs?{query}")).await.assert_error(400, "ArgumentException", &["decoded"]);
    }
    server.get("/databases/%ff/docs?id=a").await.assert_error(400, "ArgumentException", &["decoded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_id_an_empty_one_or_blanks_give_guids() {
    let server = TestServer::with_database().await;
    let mut made = BTreeSet::new();
    for query in ["", "?id=", "?id=%20", "?id"] {
        let put = server.send(Method::PUT, &format!("/databases/db/docs{query}"), "{}").await;
        assert_eq!(put.status, StatusCode::CREATED, "{}", put.text());
        made.insert(put.json()["Id"].as_str().unwrap().to_owned());
    }
    let commands = json!([
        {"Type": "PUT", "Document": {}}, {"Type": "PUT", "Id": null, "Document": {}}, {"Type": "PUT", "Id": "", "Document": {}},
    ]);
    let batch = server.batch(&commands).await.json();
    made.extend(batch["Results"].as_array().unwrap().iter().map(|result| result["@id"].as_str().unwrap().to_owned()));
    assert_eq!(made.len(), 7);
    for id in &made {
        assert!(id.len() == 36 && id.matches('-').count() == 4, "{id}");
        assert!(server.document(id).await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trailing_slash_gives_the_etag_of_the_write() {
    let server = TestServer::with_database().await;
    let mut written = Vec::new();
    for id in ["users/", "users/", "orders/", "/", "users//", "users|/"] {
        written.push(server.put(id, "{}").await.json()["Id"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        written,
        [
            "users/0000000000000000001-A",
            "users/0000000000000000002-A",
            "orders/0000000000000000003-A",
            "/0000000000000000004-A",
            "users//0000000000000000005-A",
            "users|/0000000000000000006-A",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trailing_pipe_gives_the_next_number_and_never_overwrites() {
    let server = TestServer::with_database().await;
    for taken in ["users/1", "users/2", "users/3"] {
        server.must_put(taken, r#"{"by":"hand"}"#).await;
    }
    let mut written = Vec::new();
    for id in ["users|", "USERS|", "users|"] {
        written.push(server.put(id, "{}").await.json()["Id"].as_str().unwrap().to_owned());
    }
    assert!(written[1].starts_with("USERS/"), "{written:?}");
    let numbers: BTreeSet<u64> = written.iter().map(|id| id[6..].parse().unwrap()).collect();
    assert!(numbers.len() == 3 && *numbers.first().unwrap() >= 4, "{written:?}");
    assert_eq!(server.document("users/2").await.unwrap()["by"], "hand");
    let commands =
        json!([{"Type": "PUT", "Id": "users|", "Document": {}}, {"Type": "PUT", "Id": "users|", "Document": {}}]);
    let batch = server.batch(&commands).await.json();
    assert_ne!(batch["Results"][0]["@id"], batch["Results"][1]["@id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_inside_the_document_must_be_the_one_it_is_written_under() {
    let server = TestServer::with_database().await;
    let body = r#"{"@metadata":{"@id":"other/1"}}"#;
    server.put("meta/1", body).await.assert_error(400, "ArgumentException", &["other/1", "meta/1"]);
    server.put("", body).await.assert_error(400, "ArgumentException", &["other/1"]);
    assert_eq!(server.put("OTHER/1", body).await.status, StatusCode::CREATED);
    let commands = json!([{"Type": "PUT", "Id": "a", "Document": {"@metadata": {"@id": "b"}}}]);
    server.batch(&commands).await.assert_error(400, "ArgumentException", &["command 0", "'a'", "'b'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_in_a_batch_must_be_strings() {
    let server = TestServer::with_database().await;
    for id in ["5", "true", "{}", "[\"a\"]"] {
        let body = format!(
            r#"{{"Commands":[{{"Type":"PUT","Id":"ok","Document":{{}}}},{{"Type":"PUT","Id":{id},"Document":{{}}}}]}}"#
        );
        let answer = server.send(Method::POST, "/databases/db/bulk_docs", body).await;
        answer.assert_error(400, "InvalidDataException", &["command 1"]);
    }
    assert_eq!(server.document("ok").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_have_at_most_512_bytes() {
    let server = TestServer::with_database().await;
    for longest in ["a".repeat(512), "é".repeat(256), "😀".repeat(128)] {
        assert_eq!(server.put(&longest, "{}").await.status, StatusCode::CREATED);
        assert!(server.document(&longest).await.is_some());
    }
    for long in ["a".repeat(513), "é".repeat(257), format!("{}/", "b".repeat(500)), format!("{}|", "b".repeat(512))] {
        server.put(&long, "{}").await.assert_error(400, "ArgumentException", &["512"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_differ_only_in_case_are_one_document_in_its_newest_spelling() {
    let server = TestServer::with_database().await;
    server.must_put("AbC", r#"{"v":1}"#).await;
    server.must_put("abc", r#"{"v":2}"#).await;
    server.must_put("Straße", r#"{"v":3}"#).await;
    server.must_put("STRASSE", r#"{"v":4}"#).await;
    let found = server.document("ABC").await.unwrap();
    assert_eq!((&found["v"], &found["@metadata"]["@id"]), (&json!(2), &json!("abc")));
    assert_eq!(server.ids("startsWith=aB").await, ["abc"]);
    let all = server.get("/databases/db/docs?start=0&pageSize=10").await.json();
    assert_eq!(ids_of(&all["Results"]), ["STRASSE", "Straße", "abc"]);
    assert_eq!(server.delete("/databases/db/docs?id=aBc").await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.document("abc").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_are_refused() {
    let server = TestServer::with_database().await;
    for id in ["a\u{1e}b", "a\u{0}", "\n"] {
        let answer = server.put(id, "{}").await;
        // A line break alone is blank, and so asks for a GUID.
        let expected = if id.trim().is_empty() { StatusCode::CREATED } else { StatusCode::BAD_REQUEST };
        assert_eq!(answer.status, expected, "{id:?}: {}", answer.text());
    }
}
