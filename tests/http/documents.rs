//! Single documents are written and read as RavenDB's clients expect.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, TestServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_comes_back_with_its_metadata() {
    let server = TestServer::with_database().await;
    let put =
        server.put("users/ayende", r#"{"Name": "Ayende", "@metadata": {"@collection": "Users", "custom": [1]}}"#).await;
    assert_eq!(put.status, StatusCode::CREATED);
    let vector = put.json()["ChangeVector"].as_str().unwrap().to_owned();
    assert_eq!(put.json(), json!({"Id": "users/ayende", "ChangeVector": vector}));
    assert!(vector.starts_with("A:1-"), "{vector}");

    let get = server.get("/databases/db/docs?&id=users/ayende").await;
    assert_eq!(get.status, StatusCode::OK);
    assert_eq!(get.header("etag"), Some(format!("\"{vector}\"").as_str()));
    assert_eq!(get.header("content-type"), Some("application/json; charset=utf-8"));
    let body = get.json();
    assert_eq!(body["Includes"], json!({}));
    let document = &body["Results"][0];
    assert_eq!(document["Name"], "Ayende");
    let metadata = document["@metadata"].as_object().unwrap();
    assert_eq!(metadata["@collection"], "Users");
    assert_eq!(metadata["@id"], "users/ayende");
    assert_eq!(metadata["@change-vector"], json!(vector));
    assert_eq!(metadata["custom"], json!([1]));
    let modified = metadata["@last-modified"].as_str().unwrap();
    assert!(modified.len() == 28 && modified.ends_with('Z') && modified.as_bytes()[19] == b'.', "{modified}");
    assert_eq!(metadata.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_keep_their_digits() {
    let server = TestServer::with_database().await;
    let body =
        r#"{"i":9007199254740993,"big":123456789012345678901234567890,"d":1.10,"e":1e3,"neg0":-0.0,"tiny":1e-400}"#;
    server.must_put("nums/1", body).await;
    let text = server.get("/databases/db/docs?id=nums/1").await.text();
    assert!(text.starts_with(&format!("{{\"Results\":[{},\"@metadata\":", &body[..body.len() - 1])), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_document_is_404_without_a_body_and_null_among_several() {
    let server = TestServer::with_database().await;
    server.must_put("items/1", r#"{"N":1}"#).await;
    server.must_put("items/2", r#"{"N":2}"#).await;
    let answer = server.get("/databases/db/docs?id=items/999").await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::NOT_FOUND, 0));
    let answer = server.get("/databases/db/docs?id=items/1&id=items/999&id=ITEMS/1&id=items/2").await;
    let results = answer.json()["Results"].clone();
    assert_eq!(results.as_array().unwrap().len(), 4);
    assert_eq!((&results[0]["N"], &results[2]["N"], &results[3]["N"]), (&json!(1), &json!(1), &json!(2)));
    assert!(results[1].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_ids_go_in_the_body() {
    let server = TestServer::with_database().await;
    let ids: Vec<String> = (0..300).map(|n| format!("items/{n}")).collect();
    for id in ids.iter().step_by(2) {
        server.must_put(id, format!(r#"{{"Id":"{id}"}}"#)).await;
    }
    let body = json!({ "Ids": ids }).to_string();
    let answer = server.send(Method::POST, "/databases/db/docs?&loadHash=7", body).await.json();
    for (position, (id, found)) in ids.iter().zip(answer["Results"].as_array().unwrap()).enumerate() {
        assert_eq!(found.is_null(), position % 2 == 1, "{id}");
        assert!(found.is_null() || found["Id"] == json!(id));
    }
    assert_eq!(answer["Includes"], json!({}));
    server.send(Method::POST, "/databases/db/docs", r#"{"Ids":[1]}"#).await.assert_error(
        400,
        "InvalidDataException",
        &["Ids"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_the_caller_holds_is_not_sent_again() {
    let server = TestServer::with_database().await;
    let vector = server.must_put("a", "{}").await;
    let conditional = |method: Method, value: String| {
        let request = server.request(method, "/databases/db/docs?id=a").header("If-None-Match", value);
        async move { Answer::read(request.send().await.unwrap()).await }
    };
    let known = conditional(Method::GET, format!("\"{vector}\"")).await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(conditional(Method::HEAD, vector.clone()).await.status, StatusCode::NOT_MODIFIED);
    assert_eq!(conditional(Method::GET, "\"A:0-other\"".to_owned()).await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn head_says_whether_a_document_is_there() {
    let server = TestServer::with_database().await;
    let vector = server.must_put("a", "{}").await;
    let head = server.send(Method::HEAD, "/databases/db/docs?id=A", "").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.header("etag"), Some(format!("\"{vector}\"").as_str()));
    assert_eq!(server.send(Method::HEAD, "/databases/db/docs?id=b", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_is_204_whether_or_not_there_was_a_document() {
    let server = TestServer::with_database().await;
    server.must_put("items/7", "{}").await;
    for _ in 0..2 {
        assert_eq!(server.delete("/databases/db/docs?id=items/7").await.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(server.document("items/7").await, None);
    server.delete("/databases/db/docs").await.assert_error(400, "ArgumentException", &["'id'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_alone_can_be_asked_for() {
    let server = TestServer::with_database().await;
    server.must_put("a", r#"{"N":1,"@metadata":{"@collection":"Items"}}"#).await;
    for query in ["id=a", "startsWith=a", "pageSize=1"] {
        let answer = server.get(&format!("/databases/db/docs?{query}&metadataOnly=true")).await.json();
        let document = answer["Results"][0].as_object().unwrap().clone();
        assert_eq!(document.len(), 1, "{query}");
        assert_eq!(document["@metadata"]["@collection"], "Items");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_included_by_path() {
    let server = TestServer::with_database().await;
    server.must_put("companies/1", r#"{"Name":"HR"}"#).await;
    server.must_put("products/1", r#"{"Name":"Tea"}"#).await;
    server
        .must_put(
            "orders/1",
            r#"{"Company":"companies/1","Lines":[{"Product":"products/1"},{"Product":"products/2"}]}"#,
        )
        .await;
    let answer = server.get("/databases/db/docs?id=orders/1&include=Company&include=Lines[].Product").await.json();
    assert_eq!(answer["Includes"]["companies/1"]["Name"], "HR");
    assert_eq!(answer["Includes"]["products/1"]["Name"], "Tea");
    assert!(answer["Includes"]["products/2"].is_null());
    assert_eq!(answer["Includes"].as_object().unwrap().len(), 3);
    let refused = server.get("/databases/db/docs?id=orders/1&include=Company(companies/)").await;
    refused.assert_error(501, "NotSupportedException", &["Company(companies/)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_sets_cannot_be_set_by_a_caller() {
    let server = TestServer::with_database().await;
    let body = r#"{"N":1,"@metadata":{"@collection":"Metas","@change-vector":"A:99-zzz","@last-modified":"2001-01-01T00:00:00.0000000Z","@flags":"Artificial","custom":"kept"}}"#;
    let vector = server.must_put("meta/1", body).await;
    let metadata = server.document("meta/1").await.unwrap()["@metadata"].clone();
    assert_eq!(metadata["@change-vector"], json!(vector));
    assert_ne!(metadata["@last-modified"], "2001-01-01T00:00:00.0000000Z");
    assert_eq!(metadata["custom"], "kept");
    assert!(metadata["@flags"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_empty_or_null_among_others_stands_for_no_document() {
    let server = TestServer::with_database().await;
    server.must_put("a/1", "{}").await;
    let by_url = server.get("/databases/db/docs?id=a/1&id=&id=a/2").await;
    let path = "/databases/db/docs";
    let by_body = server.send(Method::POST, path, r#"{"Ids":["a/1",null,"a/2"," "]}"#).await;
    for (answer, results) in [(by_url, 3), (by_body, 4)] {
        let answer = answer.json()["Results"].as_array().unwrap().clone();
        assert_eq!((answer.len(), answer.iter().filter(|document| document.is_null()).count()), (results, results - 1));
        assert_eq!(answer[0]["@metadata"]["@id"], "a/1");
    }
}
