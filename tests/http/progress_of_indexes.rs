//! How far an index has come: done and to do, what failed last, and whether it is stuck; at once and as events.

use reqwest::Method;
use serde_json::{Value, json};

use crate::sums::{SUM_BY_K, put_command};
use crate::support::TestServer;

async fn progress(server: &TestServer) -> Value {
    server.get("/databases/db/indexes/progress?name=Index").await.json()["Results"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn done_and_to_do_add_up_to_the_changes_of_the_sources() {
    let server =
        TestServer::with_index(&SUM_BY_K.replace("source(\"Items\");", "source(\"Items\"); source(\"Others\");")).await;
    server.batch(&(0..40).map(|n| put_command("Items", &format!("i/{n}"), json!({"k": n, "v": 1}))).collect()).await;
    server.wait_for_indexes().await;
    server.pause().await;
    server.batch(&(0..30).map(|n| put_command("Others", &format!("o/{n}"), json!({"k": n, "v": 1}))).collect()).await;
    for n in 0..10 {
        server.remove(&format!("i/{n}")).await;
    }
    let now = progress(&server).await;
    assert_eq!((&now["Lag"], &now["Done"], &now["IsStale"]), (&json!(40), &json!(30), &json!(true)));
    let source = |place: usize| (now["Sources"][place]["Lag"].clone(), now["Sources"][place]["Done"].clone());
    assert_eq!((source(0), source(1)), ((json!(10), json!(30)), (json!(30), json!(0))));
    assert_eq!(now["IsStuck"], false, "it was paused by will");
    server.resume().await;
    let now = progress(&server).await;
    assert_eq!((&now["Lag"], &now["Done"], &now["IsStale"]), (&json!(0), &json!(70), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_fault_is_told_until_it_is_mended() {
    let server = TestServer::with_index(&SUM_BY_K.replace("v: doc.v }", "v: doc.v + 0 }")).await;
    server.item("Items", "good", r#"{"k":1,"v":1}"#).await;
    server.item("Items", "bad", r#"{"k":1}"#).await;
    server.wait_for_indexes().await;
    let error = progress(&server).await["LastError"].clone();
    assert_eq!((&error["Document"], &error["Action"], &error["Line"]), (&json!("bad"), &json!("Map"), &json!(4)));
    assert!(error["Message"].as_str().unwrap().contains("missing or null"), "{error}");
    server.item("Items", "bad", r#"{"k":1,"v":1}"#).await;
    server.wait_for_indexes().await;
    assert_eq!(progress(&server).await["LastError"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_was_stopped_for_its_faults_is_stuck_and_says_why_to_those_who_follow() {
    let server = TestServer::with_database().await;
    server.batch(&(0..200).map(|n| put_command("Items", &format!("i/{n}"), json!({"k": n}))).collect()).await;
    server.must_index("Index", &SUM_BY_K.replace("v: doc.v }", "v: doc.v + 0 }")).await;
    let request = server.request(Method::GET, "/databases/db/indexes/progress?name=Index");
    let mut lines = crate::change_feed::Lines::of(request.header("Accept", "text/event-stream").send().await.unwrap());
    loop {
        let event = lines.next().await.unwrap();
        let Some(data) = event.strip_prefix("data: ") else { continue };
        let now = serde_json::from_str::<Value>(data).unwrap()["Results"][0].clone();
        if now["State"] == "Error" {
            assert_eq!(now["IsStuck"], true);
            assert!(now["StuckReason"].as_str().unwrap().contains("failed"), "{now}");
            assert!(now["StuckSince"].as_str().unwrap().ends_with('Z'), "{now}");
            break;
        }
    }
}
