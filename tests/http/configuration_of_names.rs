//! Separators, the older rule for a trailing slash, kinds of GUID: set for the server or one database, at once and for good.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};

const OF_SERVER: &str = "/admin/configuration/client";
const OF_DATABASE: &str = "/databases/db/admin/configuration/client";

async fn put(server: &TestServer, path: &str, body: &Value) {
    let answer = server.send(Method::PUT, path, body.to_string()).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
}

async fn configuration(server: &TestServer) -> Value {
    server.get("/databases/db/configuration/client").await.json()
}

async fn saved(server: &TestServer, id: &str) -> String {
    server.put(id, "{}").await.json()["Id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_separator_counts_at_once_and_leaves_stored_ids_alone() {
    let server = TestServer::with_database().await;
    assert_eq!(saved(&server, "users|").await, "users/1");
    put(&server, OF_DATABASE, &json!({"IdentityPartsSeparator": "-"})).await;
    assert_eq!(saved(&server, "users|").await, "users-2");
    assert_eq!(saved(&server, "users-").await, "users-0000000000000000003-A");
    assert_eq!(saved(&server, "users/").await, "users/");
    assert_eq!(server.get("/databases/db/hilo/next?tag=users").await.json()["Prefix"], "users-");
    assert!(server.document("users/1").await.is_some());
    put(&server, OF_DATABASE, &json!({"IdentityPartsSeparator": null})).await;
    assert_eq!(saved(&server, "users|").await, "users/3");
    server.delete("/databases/db/docs?id=users/").await;
    assert_eq!(server.document("users/").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_wins_over_the_server_unless_it_is_disabled() {
    let server = TestServer::with_database().await;
    server.create("other").await;
    assert_eq!(server.get("/configuration/client").await.text(), "null");
    put(&server, OF_SERVER, &json!({"IdentityPartsSeparator": "#", "MaxNumberOfRequestsPerSession": 7})).await;
    assert_eq!(saved(&server, "users#").await, "users#0000000000000000001-A");
    put(&server, OF_DATABASE, &json!({"IdentityPartsSeparator": "-", "Disabled": false})).await;
    assert_eq!(saved(&server, "users|").await, "users-1");
    assert_eq!(configuration(&server).await["Configuration"]["MaxNumberOfRequestsPerSession"], Value::Null);
    let other = server.get("/databases/other/configuration/client").await.json();
    assert_eq!(other["Configuration"]["IdentityPartsSeparator"], "#");
    put(&server, OF_DATABASE, &json!({"IdentityPartsSeparator": "-", "Disabled": true})).await;
    assert_eq!(saved(&server, "users|").await, "users#2");
    assert_eq!(configuration(&server).await["Configuration"]["MaxNumberOfRequestsPerSession"], 7);
    put(&server, OF_SERVER, &json!({"IdentityPartsSeparator": "#", "Disabled": true})).await;
    assert_eq!(saved(&server, "users|").await, "users/3");
    assert_eq!(configuration(&server).await["Configuration"]["Disabled"], true);
    server.create("later").await;
    put(&server, OF_SERVER, &json!({"IdentityPartsSeparator": "$"})).await;
    server.create("latest").await;
    for database in ["later", "latest"] {
        let answer = server.send(Method::PUT, &format!("/databases/{database}/docs?id=users|"), "{}").await;
        assert_eq!(answer.json()["Id"], "users$1", "{database}");
    }
    let shown = server.get("/configuration/client").await.json();
    assert_eq!((&shown["IdentityPartsSeparator"], &shown["Etag"]), (&json!("$"), &json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_notice_a_change_by_its_etag() {
    let server = TestServer::with_database().await;
    let refresh = async |held: &str| {
        let request = server.request(Method::GET, "/databases/db/stats").header("Client-Configuration-Etag", held);
        Answer::read(request.send().await.unwrap()).await.header("refresh-client-configuration").map(str::to_owned)
    };
    assert_eq!(refresh("\"0\"").await, None);
    put(&server, OF_DATABASE, &json!({"IdentityPartsSeparator": "-"})).await;
    assert_eq!(refresh("0").await.as_deref(), Some("true"));
    assert_eq!(refresh("\"None\"").await.as_deref(), Some("true"), "the Python client has none");
    assert_eq!(refresh("1").await, None);
    put(&server, OF_SERVER, &json!({"MaxNumberOfRequestsPerSession": 80})).await;
    assert_eq!(refresh("1").await.as_deref(), Some("true"));
    let text = server.get("/databases/db/configuration/client").await.text();
    assert!(text.starts_with(r#"{"Etag":2,"Configuration":{"IdentityPartsSeparator":"-","Etag":2,"#), "{text}");
    for field in ["Disabled", "ReadBalanceBehavior", "LoadBalanceBehavior", "LoadBalancerContextSeed"] {
        assert!(!configuration(&server).await["Configuration"][field].is_null(), "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_separate_is_refused_and_changes_nothing() {
    let server = TestServer::with_database().await;
    for path in [OF_DATABASE, OF_SERVER] {
        for (body, kind, word) in [
            (json!({"IdentityPartsSeparator": "|"}), "ArgumentException", "'|'"),
            (json!({"IdentityPartsSeparator": "--"}), "ArgumentException", "'--'"),
            (json!({"IdentityPartsSeparator": "\n"}), "ArgumentException", "another single character"),
            (json!({"IdentityPartsSeparator": 5}), "InvalidDataException", "client configuration"),
            (json!({"ReadBalanceBehavior": "Often"}), "InvalidDataException", "Often"),
            (json!([]), "InvalidDataException", "client configuration"),
        ] {
            server.send(Method::PUT, path, body.to_string()).await.assert_error(400, kind, &[word]);
        }
    }
    assert_eq!(configuration(&server).await, json!({"Etag": 0, "Configuration": null}));
    assert_eq!(saved(&server, "users|").await, "users/1");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_outlives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    for name in ["db", "other"] {
        server.create(name).await;
    }
    put(&server, OF_SERVER, &json!({"IdentityPartsSeparator": "#"})).await;
    put(&server, OF_DATABASE, &json!({"IdentityPartsSeparator": "-"})).await;
    put(&server, "/databases/db/admin/configuration/settings", &json!({"guid": "v7"})).await;
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    assert_eq!(saved(&server, "users|").await, "users-1");
    assert_eq!(saved(&server, "").await.chars().nth(14), Some('7'));
    let other = server.send(Method::PUT, "/databases/other/docs?id=users|", "{}").await;
    assert_eq!(other.json()["Id"], "users#1");
    assert_eq!(configuration(&server).await["Etag"], 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_rule_for_a_trailing_slash_is_a_setting_of_a_database() {
    let server = TestServer::start().await;
    let record = json!({"DatabaseName": "db", "Settings": {"trailing_slash": "identity", "Indexing.Other": "1"}});
    let created = server.send(Method::PUT, "/admin/databases?name=db", record.to_string()).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    server.must_put("users/1", r#"{"by":"hand"}"#).await;
    assert_eq!(saved(&server, "users/").await, "users/2");
    assert_eq!(server.document("users/1").await.unwrap()["by"], "hand");
    let settings = json!({"trailing_slash": "identity"});
    assert_eq!(server.get("/admin/databases?name=db").await.json()["Settings"], settings);
    assert_eq!(server.get("/databases/db/admin/record").await.json()["Settings"], settings);
    assert_eq!(server.get("/databases/db/admin/configuration/settings").await.json(), settings);
    put(&server, "/databases/db/admin/configuration/settings", &json!({"trailing_slash": "server-side"})).await;
    assert_eq!(saved(&server, "users/").await, "users/0000000000000000003-A");
}

#[tokio::test(flavor = "multi_thread")]
async fn guids_are_random_or_ordered_by_time() {
    let server = TestServer::with_database().await;
    assert_eq!(saved(&server, "").await.chars().nth(14), Some('4'));
    put(&server, "/databases/db/admin/configuration/settings", &json!({"guid": "v7"})).await;
    assert_eq!(saved(&server, "").await.chars().nth(14), Some('7'));
    put(&server, "/databases/db/admin/configuration/settings", &json!({})).await;
    assert_eq!(saved(&server, "").await.chars().nth(14), Some('4'));
    for (body, word) in [(json!({"guid": "v5"}), "'v5'"), (json!({"trailing_slash": "maybe"}), "'maybe'")] {
        let path = "/databases/db/admin/configuration/settings";
        server.send(Method::PUT, path, body.to_string()).await.assert_error(400, "ArgumentException", &[word]);
    }
    let record = json!({"Settings": {"guid": "v9"}}).to_string();
    server.send(Method::PUT, "/admin/databases?name=x", record).await.assert_error(400, "ArgumentException", &["'v9'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_the_server_hold_where_a_database_says_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let change = |settings: &mut treepie::server::ServerSettings| {
        settings.database.store.id_rules.trailing_slash_is_identity = true;
        settings.database.store.id_rules.guid_v7 = true;
    };
    let server = TestServer::start_as(directory.path(), change).await;
    server.create("db").await;
    assert_eq!(saved(&server, "users/").await, "users/1");
    assert_eq!(saved(&server, "").await.chars().nth(14), Some('7'));
    put(&server, "/databases/db/admin/configuration/settings", &json!({"guid": "v4"})).await;
    assert_eq!(saved(&server, "").await.chars().nth(14), Some('4'));
    assert_eq!(saved(&server, "users/").await, "users/2");
    server.stop().await;
}
