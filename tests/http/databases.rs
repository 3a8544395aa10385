//! Databases are created, listed, deleted, and found again after a restart.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::TestServer;

const SMALL: &str = r#"{"DatabaseName": "Wire", "Settings": {}, "Disabled": false}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_created_once() {
    let server = TestServer::start().await;
    let path = "/admin/databases?name=Wire&replicationFactor=1&raft-request-id=b71a2c93";
    let answer = server.send(Method::PUT, path, SMALL).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let body = answer.json();
    assert_eq!(body["Name"], "Wire");
    assert!(body["RaftCommandIndex"].is_u64());
    assert_eq!(body["NodesAddedTo"], json!([server.url("")]));
    for field in ["Members", "Promotables", "Rehabs", "PriorityOrder"] {
        assert!(body["Topology"][field].is_array(), "{field}");
    }
    assert_eq!(body["Topology"]["Stamp"], json!({"Index": 1, "Term": 1, "LeadersTicks": 0}));
    server.send(Method::PUT, "/admin/databases?name=WIRE", "").await.assert_error(
        409,
        ".ConcurrencyException",
        &["WIRE"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_names_and_records_are_refused() {
    let server = TestServer::start().await;
    for name in ["We*ird", "a/b", "..", "%20", "%C3%BC", &"x".repeat(129)] {
        let answer = server.send(Method::PUT, &format!("/admin/databases?name={name}"), "").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}: {}", answer.text());
    }
    server.send(Method::PUT, "/admin/databases", "").await.assert_error(400, "ArgumentException", &["'name'"]);
    let path = "/admin/databases?name=x";
    server.send(Method::PUT, path, r#"{"DatabaseName":"y"}"#).await.assert_error(400, "ArgumentException", &["y", "x"]);
    server.send(Method::PUT, path, r#"{"Encrypted":true}"#).await.assert_error(
        501,
        "NotSupportedException",
        &["Encrypted"],
    );
    server.send(Method::PUT, path, "[").await.assert_error(400, "InvalidDataException", &["database record"]);
    server.send(Method::PUT, "/admin/databases?name=x&replicationFactor=2", "").await.assert_error(
        400,
        "",
        &["one node"],
    );
    assert_eq!(server.get("/databases?namesOnly=true").await.json(), json!({"Databases": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_matched_without_regard_to_case_and_shown_as_created() {
    let server = TestServer::start().await;
    server.create("Wire").await;
    server.create("demo").await;
    assert_eq!(server.get("/databases?namesOnly=true").await.json(), json!({"Databases": ["demo", "Wire"]}));
    let paged = server.get("/databases?namesOnly=true&start=1&pageSize=1").await.json();
    assert_eq!(paged, json!({"Databases": ["Wire"]}));
    assert_eq!(server.get("/databases").await.json()["Databases"][1]["Name"], "Wire");
    let put = server.send(Method::PUT, "/databases/WIRE/docs?id=a", "{}").await;
    assert_eq!(put.status, StatusCode::CREATED);
    assert_eq!(server.get("/databases/wire/docs?id=a").await.status, StatusCode::OK);
    let record = server.get("/admin/databases?name=wIRE").await.json();
    assert_eq!(record["DatabaseName"], "Wire");
    for field in ["Etag", "LockMode", "AutoIndexes", "Settings", "Topology", "DatabaseState"] {
        assert!(!record[field].is_null(), "{field}");
    }
    assert_eq!(server.get("/admin/databases?name=none").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_database_is_told_apart_from_a_missing_document() {
    let server = TestServer::start().await;
    let answer = server.get("/databases/NoSuch/docs?id=x").await;
    answer.assert_error(503, ".DatabaseDoesNotExistException", &["NoSuch"]);
    assert_eq!(answer.header("database-missing"), Some("NoSuch"));
    assert_eq!(answer.json()["Url"], "/databases/NoSuch/docs?id=x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_deleted_while_its_indexes_build() {
    let server = TestServer::with_database().await;
    let document = |n: u32| json!({ "k": n % 700, "@metadata": { "@collection": "Orders" } });
    let commands: Vec<_> =
        (0..20_000).map(|n| json!({ "Id": format!("orders/{n}"), "Type": "PUT", "Document": document(n) })).collect();
    let batch = json!(commands);
    for round in 0..3 {
        assert_eq!(server.batch(&batch).await.status, StatusCode::CREATED, "{round}");
        for name in ["A", "B"] {
            let script = format!(
                r#"source("Orders"); output("Out{name}");
                   fn map(order) {{ emit(order.k, #{{ n: 1 }}); }}
                   fn reduce(key, values) {{ #{{ n: values.sum("n") }} }}"#
            );
            assert_eq!(server.put_index(name, &script).await.status, StatusCode::CREATED, "{round}");
        }
        let body = r#"{"DatabaseNames":["db"],"HardDelete":true}"#;
        let answer = server.send(Method::DELETE, "/admin/databases", body).await;
        assert_eq!(answer.json()["PendingDeletes"], json!([]), "{round}");
        assert!(!server.data().join("databases/db").exists());
        server.create("db").await;
        let answer = server.get("/databases/db/indexes").await;
        assert_eq!(answer.json()["Results"], json!([]), "nothing of the old one is in the new one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_database_is_gone_and_its_name_free() {
    let server = TestServer::with_database().await;
    server.must_put("a", "{}").await;
    let body = r#"{"DatabaseNames":["DB"],"HardDelete":true,"FromNodes":null,"TimeToWaitForConfirmation":null}"#;
    let answer = server.send(Method::DELETE, "/admin/databases", body).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json()["PendingDeletes"], json!([]));
    assert!(answer.json()["RaftCommandIndex"].is_u64());
    server.get("/databases/db/docs?id=a").await.assert_error(503, ".DatabaseDoesNotExistException", &[]);
    assert!(!server.data().join("databases/db").exists());
    assert_eq!(std::fs::read_dir(server.data().join("removed")).unwrap().count(), 0);
    server.create("db").await;
    assert_eq!(server.document("a").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soft_deletion_keeps_the_files() {
    let server = TestServer::with_database().await;
    let body = r#"{"DatabaseNames":["db"],"HardDelete":false}"#;
    assert_eq!(server.send(Method::DELETE, "/admin/databases", body).await.status, StatusCode::OK);
    assert_eq!(server.get("/databases?namesOnly=true").await.json(), json!({"Databases": []}));
    assert_eq!(std::fs::read_dir(server.data().join("removed")).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_names_an_unknown_database_deletes_none() {
    let server = TestServer::with_database().await;
    let body = r#"{"DatabaseNames":["db","other"],"HardDelete":true}"#;
    server.send(Method::DELETE, "/admin/databases", body).await.assert_error(404, "", &["other", "nothing"]);
    server.must_put("a", "{}").await;
    server.send(Method::DELETE, "/admin/databases", "{}").await.assert_error(400, "", &["DatabaseNames"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_are_found_again_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("Wire").await;
    let put = server.send(Method::PUT, "/databases/Wire/docs?id=a", r#"{"N":1}"#).await;
    assert_eq!(put.status, StatusCode::CREATED);
    let id = server.get("/cluster/node-info").await.json()["ServerId"].clone();
    server.stop().await;
    std::fs::create_dir_all(directory.path().join("databases/NOT-one")).unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    assert_eq!(server.get("/databases?namesOnly=true").await.json(), json!({"Databases": ["Wire"]}));
    assert_eq!(server.get("/databases/Wire/docs?id=a").await.json()["Results"][0]["N"], 1);
    assert_eq!(server.get("/cluster/node-info").await.json()["ServerId"], id);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_opened_does_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("good").await;
    server.create("bad").await;
    server.stop().await;
    for entry in std::fs::read_dir(directory.path().join("databases/bad")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() == "CURRENT" {
            std::fs::write(path, "nonsense").unwrap();
        }
    }
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    assert_eq!(server.send(Method::PUT, "/databases/good/docs?id=a", "{}").await.status, StatusCode::CREATED);
    server.get("/databases/bad/docs?id=a").await.assert_error(500, ".DatabaseLoadFailureException", &["bad"]);
    assert_eq!(server.get("/readyz").await.json()["Failed"], json!(["bad"]));
    let body = r#"{"DatabaseNames":["bad"],"HardDelete":true}"#;
    assert_eq!(server.send(Method::DELETE, "/admin/databases", body).await.status, StatusCode::OK);
    server.create("bad").await;
    server.stop().await;
}
