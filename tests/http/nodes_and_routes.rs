//! What clients ask first, and what they get for paths that Treepie does not have.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, TestServer};

#[tokio::test(flavor = "multi_thread")]
async fn the_server_tells_its_version_and_health() {
    let server = TestServer::start().await;
    let version = server.get("/build/version").await.json();
    for field in ["ProductVersion", "BuildVersion", "CommitHash", "FullVersion"] {
        assert!(!version[field].is_null(), "{field}");
    }
    assert_eq!(server.get("/healthz").await.status, StatusCode::OK);
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["Ready"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn topologies_lead_back_to_the_url_that_was_used() {
    let server = TestServer::start().await;
    server.create("Demo").await;
    let topology = server.get("/topology?name=demo&first-topology-update&applicationIdentifier=53f4be6a").await.json();
    let node = json!({"Url": server.url(""), "ClusterTag": "A", "Database": "Demo", "ServerRole": "Member"});
    assert_eq!(topology, json!({"Nodes": [node], "Etag": 1}));
    server.get("/topology?name=none").await.assert_error(503, ".DatabaseDoesNotExistException", &["none"]);
    let cluster = server.get("/cluster/topology?first-topology-update").await.json();
    assert_eq!(cluster["Topology"]["Members"], json!({"A": server.url("")}));
    for field in ["TopologyId", "Promotables", "Watchers", "LastNodeId", "Etag", "AllNodes"] {
        assert!(!cluster["Topology"][field].is_null(), "{field}");
    }
    assert!(cluster["Status"].is_object());
    let info = server.get("/cluster/node-info").await.json();
    assert_eq!((&info["NodeTag"], &info["ServerRole"]), (&json!("A"), &json!("Leader")));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_keep_their_default_configuration() {
    let server = TestServer::with_database().await;
    let text = server.get("/databases/db/configuration/client").await.text();
    assert_eq!(text, r#"{"Etag":0,"Configuration":null}"#);
    let ask = |etag: &str| {
        let request = server.request(Method::GET, "/databases/db/stats").header("Client-Configuration-Etag", etag);
        async move { Answer::read(request.send().await.unwrap()).await }
    };
    for (etag, refresh) in [("0", None), ("\"0\"", None), ("\"None\"", None), ("7", Some("true"))] {
        assert_eq!(ask(etag).await.header("refresh-client-configuration"), refresh, "{etag}");
    }
    assert_eq!(server.get("/databases/db/healthcheck").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_another_separator() {
    let directory = tempfile::tempdir().unwrap();
    let change = |settings: &mut treepie::server::ServerSettings| {
        settings.database.store.id_rules.separator = '#';
        settings.public_url = Some("https://db.example.com/".to_owned());
    };
    let server = TestServer::start_as(directory.path(), change).await;
    server.create("db").await;
    let answer = server.get("/databases/db/configuration/client").await;
    assert!(answer.text().starts_with(r#"{"Etag":1,"#), "{}", answer.text());
    let configuration = answer.json()["Configuration"].clone();
    assert_eq!(configuration["IdentityPartsSeparator"], "#");
    for field in ["Etag", "Disabled", "ReadBalanceBehavior", "LoadBalanceBehavior", "LoadBalancerContextSeed"] {
        assert!(!configuration[field].is_null(), "{field}");
    }
    assert_eq!(server.put("users#", "{}").await.json()["Id"], "users#0000000000000000001-A");
    assert_eq!(server.put("users/", "{}").await.json()["Id"], "users/");
    assert!(server.document("users/").await.is_some());
    let topology = server.get("/topology?name=db").await.json();
    assert_eq!(topology["Nodes"][0]["Url"], "https://db.example.com");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_methods_are_404_with_an_error() {
    let server = TestServer::with_database().await;
    for (method, path) in [
        (Method::GET, "/nope"),
        (Method::GET, "/databases/db/nope?x=1"),
        (Method::PATCH, "/databases/db/collections/stats"),
        (Method::POST, "/databases/db/docs/"),
        (Method::DELETE, "/build/version"),
    ] {
        let answer = server.send(method, path, "").await;
        answer.assert_error(404, ".RouteNotFoundException", &[path.split('?').next().unwrap()]);
        assert_eq!(answer.json()["Url"], path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_treepie_does_not_have_is_501_by_name() {
    let server = TestServer::with_database().await;
    for (method, path, word) in [
        (Method::PATCH, "/databases/db/queries?queryHash=1", "patching by query"),
        (Method::GET, "/databases/db/streams/timeseries", "stream"),
        (Method::POST, "/databases/db/subscriptions/try", "subscriptions"),
        (Method::PATCH, "/databases/db/docs?id=a", "patches"),
        (Method::GET, "/databases/db/revisions?id=a", "revisions"),
        (Method::PUT, "/databases/db/attachments?id=a", "attachments"),
        (Method::GET, "/databases/db/counters", "counters"),
        (Method::GET, "/databases/db/timeseries", "time series"),
        (Method::POST, "/databases/db", "bulk_docs"),
        (Method::POST, "/databases/db/_find", "_find"),
        (Method::POST, "/admin/databases/disable", "databases"),
    ] {
        let answer = server.send(method, path, "").await;
        answer.assert_error(501, "NotSupportedException", &[word]);
    }
}
