//! Prometheus reads how the server, its databases and its indexes are doing.

#![allow(clippy::float_cmp, reason = "counts are whole numbers, which are exact")]

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::StatusCode;
use serde_json::json;
use treepie::store::{Probe, Step};

use crate::support::TestServer;

/// The value of the one figure with this name and these labels.
fn value(text: &str, name: &str, labels: &str) -> f64 {
    let begin = format!("treepie_{name}{labels} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&begin));
    line.unwrap_or_else(|| panic!("no {begin} in\n{text}")).parse().unwrap()
}

async fn metrics(server: &TestServer) -> String {
    let answer = server.get("/metrics").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(answer.text().ends_with("# EOF\n"));
    answer.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_follow_what_happens() {
    let server = TestServer::with_database().await;
    let script = r#"source("Items"); output("Totals");
        fn map(doc) { if doc.bad { throw "bad"; } emit(doc.k, #{ n: 1 }); }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#;
    server.put_index("Totals \"a\\b\"", script).await;
    for n in 0..10 {
        let document = json!({"k": 1, "bad": n == 3, "@metadata": {"@collection": "Items"}});
        server.must_put(&format!("items/{n}"), document.to_string()).await;
    }
    server.wait_for_indexes().await;
    let text = metrics(&server).await;
    let database = r#"{database="db"}"#;
    let index = r#"{database="db",index="Totals \"a\\b\""}"#;
    assert_eq!(value(&text, "documents", database), 11.0);
    assert_eq!(value(&text, "writable", database), 1.0);
    assert!(value(&text, "commits_total", database) >= 11.0);
    assert!(value(&text, "syncs_total", database) >= 10.0);
    assert!(value(&text, "sync_seconds_count", database) >= 10.0);
    assert!(value(&text, "sync_seconds_sum", database) > 0.0);
    let (commits, groups) =
        (value(&text, "group_commits_sum", database), value(&text, "group_commits_count", database));
    assert!(groups >= 1.0 && commits >= groups, "{commits} {groups}");
    assert_eq!(value(&text, "index_lag_documents", index), 0.0);
    assert_eq!(value(&text, "index_groups", index), 1.0);
    assert_eq!(value(&text, "index_entries", index), 9.0);
    let faults = r#"{database="db",index="Totals \"a\\b\"",phase="map"}"#;
    assert!(value(&text, "index_faults_total", faults) >= 1.0);
    assert!(value(&text, "index_reduce_calls_total", index) >= 1.0);
    assert!(value(&text, "http_answers_total", r#"{status="2xx"}"#) >= 12.0);
    assert!(value(&text, "http_connections", "") >= 1.0);
    server.get("/databases/none/docs?id=a").await;
    let errors = r#"{status="5xx"}"#;
    assert!(value(&metrics(&server).await, "http_answers_total", errors) > value(&text, "http_answers_total", errors));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_of_the_dashboard_is_there() {
    let server = TestServer::with_database().await;
    server.put_index("Ix", r#"source("Items"); fn map(doc) { emit(doc.k, 1); } fn reduce(k, v) { v.count() }"#).await;
    server.wait_for_indexes().await;
    let text = metrics(&server).await;
    let there: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/grafana/treepie.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<serde_json::Value>(&dashboard).unwrap();
    let word = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let named: BTreeSet<&str> = dashboard.split(word).filter(|word| word.starts_with("treepie_")).collect();
    assert!(named.len() > 20, "{named:?}");
    for name in named {
        assert!(there.contains(name), "the dashboard shows {name}, which is not in /metrics");
    }
    server.stop().await;
}

/// Ends the committer as a failed disk would: nothing can be written any more.
#[derive(Debug, Default)]
struct Breaks(std::sync::atomic::AtomicBool);

impl Probe for Breaks {
    fn reached(&self, step: Step) {
        let is_broken = self.0.load(std::sync::atomic::Ordering::Relaxed);
        assert!(!(is_broken && step == Step::BeforeWrite), "the disk has failed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_takes_no_writes_any_more_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let breaks = std::sync::Arc::new(Breaks::default());
    let probe = std::sync::Arc::clone(&breaks);
    let server = TestServer::start_as(directory.path(), |settings| settings.database.store.probe = Some(probe)).await;
    server.create("db").await;
    server.must_put("a", "{}").await;
    assert_eq!(server.get("/readyz").await.status, StatusCode::OK);
    breaks.0.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(server.put("b", "{}").await.status, StatusCode::INTERNAL_SERVER_ERROR);
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    let ready = ready.json();
    assert!(ready["RefusingWrites"]["db"].is_string() && ready["Ready"] == false, "{ready}");
    assert_eq!(server.get("/healthz").await.status, StatusCode::OK);
    assert!(server.document("a").await.is_some(), "reads go on");
    assert_eq!(value(&metrics(&server).await, "writable", r#"{database="db"}"#), 0.0);
}
