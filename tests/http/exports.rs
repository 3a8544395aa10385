//! An export is a database as JSON lines; an import of it stores the same and gives no number out again.

use std::fmt::Write as _;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};

const TOTALS: &str = r#"source("Items"); output("Totals");
    fn map(doc) { emit(doc.k, #{ n: 1 }); } fn reduce(key, values) { #{ n: values.sum("n") } }"#;

async fn export(server: &TestServer, query: &str) -> String {
    let answer = server.get(&format!("/databases/db/export?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.text()
}

async fn import(server: &TestServer, query: &str, lines: &str) -> Answer {
    server.send(Method::POST, &format!("/databases/copy/import?{query}"), lines.to_owned()).await
}

/// Each document of a list as text, without what the server knows about it.
async fn bodies(server: &TestServer, database: &str) -> Vec<String> {
    let text = server.get(&format!("/databases/{database}/streams/docs?startsWith=&format=json")).await.text();
    let mut parts: Vec<&str> = text.split("\"@change-vector\"").collect();
    // What comes after the last one is only its version.
    parts.pop();
    parts.into_iter().map(|part| part.split_once("},{").map_or(part, |(_, part)| part).to_owned()).collect()
}

async fn filled() -> TestServer {
    let server = TestServer::with_database().await;
    server.create("copy").await;
    server.put_index("Totals", TOTALS).await;
    for (id, body) in [
        (
            "items/1",
            r#"{"k":1,"n":369553424691494913,"x":1.50,"@metadata":{"@collection":"Items","own":[1,{"a":null}]}}"#,
        ),
        ("items/2", "{\r\n  \"k\": 1,\n  \"t\": \"ü😀\\n\\\"\"\n,\"@metadata\":{\"@collection\":\"Items\"}}"),
        ("Items/ü+😀", r#"{"k":2,"@metadata":{"@collection":"Items"}}"#),
        ("plain", "{}"),
        ("@odd", r#"{"@end":{"Documents":0}}"#),
    ] {
        server.must_put(id, body).await;
    }
    server.must_put("users|", "{}").await;
    server.get("/databases/db/hilo/next?tag=Orders&lastBatchSize=0&lastMax=0").await;
    server.wait_for_indexes().await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_stores_what_was_exported_and_numbers_go_on() {
    let server = filled().await;
    let lines = export(&server, "").await;
    for line in lines.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    assert!(!lines.contains("FromIndex") && lines.contains("369553424691494913") && lines.contains("1.50"));
    let done = import(&server, "", &lines).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    let wanted = json!({"Lines": lines.lines().count(), "Documents": 7, "Identities": 1, "HiLo": 1, "Indexes": 1});
    assert_eq!(done.json(), wanted);
    let path = "/databases/copy/bulk_docs?waitForIndexesTimeout=00:00:30&waitForIndexThrow=true";
    assert_eq!(server.send(Method::POST, path, "{\"Commands\":[]}").await.status, StatusCode::CREATED);
    let (before, after) = (bodies(&server, "db").await, bodies(&server, "copy").await);
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        let flat = |text: &str| text.replace(['\r', '\n'], " ");
        assert_eq!(flat(before), flat(after));
    }
    let user = server.send(Method::PUT, "/databases/copy/docs?id=users|", "{}").await.json();
    assert_eq!(user["Id"], "users/2");
    let range = server.get("/databases/copy/hilo/next?tag=orders&lastBatchSize=0&lastMax=0").await.json();
    assert_eq!(range["Low"], 33);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_into_a_database_that_is_ahead_lowers_no_number() {
    let server = filled().await;
    let lines = export(&server, "").await;
    for _ in 0..3 {
        server.send(Method::PUT, "/databases/copy/docs?id=users|", "{}").await;
        server.get("/databases/copy/hilo/next?tag=orders&lastBatchSize=0&lastMax=0").await;
    }
    for _ in 0..2 {
        assert_eq!(import(&server, "", &lines).await.status, StatusCode::OK);
    }
    let user = server.send(Method::PUT, "/databases/copy/docs?id=users|", "{}").await.json();
    assert_eq!(user["Id"], "users/4");
    let range = server.get("/databases/copy/hilo/next?tag=orders&lastBatchSize=0&lastMax=0").await.json();
    assert!(range["Low"].as_u64().unwrap() > 96, "{range}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn artificial_documents_come_along_when_asked_instead_of_their_indexes() {
    let server = filled().await;
    let lines = export(&server, "artificial=true").await;
    assert!(lines.contains("\"@id\":\"Totals/") && !lines.contains("\"@index\""));
    let done = import(&server, "", &lines).await;
    assert_eq!((done.status, &done.json()["Documents"]), (StatusCode::OK, &json!(9)), "{}", done.text());
    let path = "/databases/copy/docs?startsWith=Totals/";
    let totals = server.get(path).await.json();
    let id = totals["Results"][0]["@metadata"]["@id"].as_str().unwrap();
    assert_eq!(server.delete(&format!("/databases/copy/docs?id={id}")).await.status, StatusCode::NO_CONTENT);
    server.stop().await;
}

fn lines(from: u64, to: u64, bad: Option<u64>) -> String {
    let head = r#"{"@treepie":{"Version":1,"Database":"x","Exported":"now","LastEtag":0,"Artificial":false}}"#;
    let mut lines = format!("{head}\n");
    for n in from..to {
        let body = if bad == Some(n) { "\"k\":01".to_owned() } else { format!("\"k\":{n}") };
        let _ = writeln!(lines, "{{{body},\"@metadata\":{{\"@id\":\"a/{n}\"}}}}");
    }
    let _ = writeln!(lines, "{{\"@end\":{{\"Documents\":{}}}}}", to - from);
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_line_is_named_and_the_import_goes_on_behind_what_is_stored() {
    let server = TestServer::start().await;
    server.create("copy").await;
    let refused = import(&server, "", &lines(0, 5_000, Some(4_000))).await;
    refused.assert_error(400, "InvalidDataException", &["Line 4002", "lines 1 to 4001 are stored", "fromLine=4002"]);
    let stats = server.get("/databases/copy/stats").await.json();
    assert_eq!(stats["CountOfDocuments"], 4_000);
    let done = import(&server, "fromLine=4002", &lines(0, 5_000, None)).await;
    assert_eq!((done.status, &done.json()["Documents"]), (StatusCode::OK, &json!(1_000)), "{}", done.text());
    let stats = server.get("/databases/copy/stats").await.json();
    assert_eq!(stats["CountOfDocuments"], 5_000);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_export_is_refused() {
    let server = TestServer::start().await;
    server.create("copy").await;
    let whole = lines(0, 3, None);
    let without_end = whole.lines().take(4).collect::<Vec<_>>().join("\n");
    let with_one_missing = whole.lines().filter(|line| !line.contains("a/1")).collect::<Vec<_>>().join("\n");
    let head = whole.lines().next().unwrap();
    for (body, words) in [
        ("", "cut off"),
        (without_end.as_str(), "cut off"),
        (with_one_missing.as_str(), "3 documents were exported, and 2"),
        (r#"{"k":1,"@metadata":{"@id":"a"}}"#, "Line 1: It must be {\"@treepie\""),
        (&head.replace("\"Version\":1", "\"Version\":9"), "version 9"),
        (&format!("{head}\n{{\"k\":1}}"), "Line 2: The document has no @metadata.@id"),
        (&format!("{head}\n{{\"@metadata\":{{\"@id\":\"users|\"}}}}"), "Line 2"),
        (&format!("{head}\n\n{{\"@identity\":{{\"Name\":\"\",\"Last\":1}}}}"), "Line 3"),
        (&format!("{whole}{{}}"), "after the last line"),
        (&format!("{head}\nnonsense"), "Line 2"),
    ] {
        let answer = import(&server, "", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}: {}", answer.text());
        assert!(answer.json()["Message"].as_str().unwrap().contains(words), "{body}: {}", answer.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_an_index_owns_is_refused_with_its_line() {
    let server = filled().await;
    let everything = export(&server, "artificial=true").await;
    assert_eq!(import(&server, "", &export(&server, "").await).await.status, StatusCode::OK);
    let line = everything.lines().position(|line| line.contains("\"@id\":\"Totals/")).unwrap() + 1;
    let refused = import(&server, "", &everything).await;
    refused.assert_error(409, "InvalidOperationException", &[&format!("Line {line}:"), "index 'Totals'"]);
    server.stop().await;
}
