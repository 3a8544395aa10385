//! The life of an index over HTTP: a changed definition beside the one that serves, swap, cancel, roll back; states, locks, priority;
//! faults that are told and cleared; waiting for what a write concerns.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use treepie::database::DatabaseSettings;
use treepie::script::Limits;

use crate::support::{Answer, TestServer};

const SUM: &str = r#"
source("Items");
output("Sums");
fn map(doc) { emit(#{ k: doc.k }, #{ n: 1, v: doc.v }); }
fn reduce(key, values) { #{ n: values.sum("n"), v: values.sum("v") } }
"#;

async fn with_sums() -> TestServer {
    let server = TestServer::with_database().await;
    for (id, k, v) in [("a", "x", 1), ("b", "x", 2), ("c", "y", 5)] {
        put_item(&server, id, k, v).await;
    }
    assert_eq!(server.put_index("Sums", SUM).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    server
}

async fn put_item(server: &TestServer, id: &str, k: &str, v: i32) {
    server.must_put(id, json!({"k": k, "v": v, "@metadata": {"@collection": "Items"}}).to_string()).await;
}

async fn post(server: &TestServer, path: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(Method::POST, &format!("/databases/db/{path}"), body).await
}

async fn must_post(server: &TestServer, path: &str) {
    let answer = post(server, path, Value::Null).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{path}: {}", answer.text());
}

async fn values(server: &TestServer, collection: &str) -> Vec<i64> {
    let answer = server.get(&format!("/databases/db/collections/docs?name={collection}")).await.json();
    let mut values: Vec<i64> =
        answer["Results"].as_array().unwrap().iter().map(|document| document["v"].as_i64().unwrap()).collect();
    values.sort_unstable();
    values
}

async fn names(server: &TestServer) -> Value {
    server.get("/databases/db/indexes?namesOnly=true").await.json()["Results"].clone()
}

async fn line(server: &TestServer, name: &str) -> Value {
    server.get(&format!("/databases/db/indexes/stats?name={name}")).await.json()["Results"][0].clone()
}

/// Has the replacement of `Sums` stand still while it is looked at.
async fn held() -> TestServer {
    let server = with_sums().await;
    must_post(&server, "admin/indexes/stop?name=Sums").await;
    let put = server.put_index("Sums", &SUM.replace("v: doc.v", "v: doc.v * 10")).await;
    assert_eq!(put.json()["Results"][0]["Changed"], true);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_definition_is_listed_as_a_replacement_until_it_takes_over() {
    let server = held().await;
    assert_eq!(names(&server).await, json!(["Sums", "ReplacementOf/Sums"]));
    let stats = server.get("/databases/db/stats").await.json()["Indexes"].clone();
    assert_eq!((&stats[1]["Name"], &stats[1]["IsStale"]), (&json!("ReplacementOf/Sums"), &json!(true)));
    let shown = server.get("/databases/db/indexes?name=replacementof/sums").await.json()["Results"][0].clone();
    assert!(shown["Maps"][0].as_str().unwrap().contains("doc.v * 10"), "{shown}");
    let progress = server.get("/databases/db/indexes/progress").await.json()["Results"][1].clone();
    assert_eq!((&progress["Replaces"], &progress["Phase"]), (&json!("Sums"), &json!("Mapping")));
    assert_eq!(values(&server, "Sums").await, [3, 5]);
    must_post(&server, "admin/indexes/start").await;
    server.wait_for_indexes().await;
    assert_eq!((names(&server).await, values(&server, "Sums").await), (json!(["Sums"]), vec![30, 50]));
    let again = server.put_index("Sums", &SUM.replace("v: doc.v", "v: doc.v * 10")).await;
    assert_eq!(again.json()["Results"][0]["Changed"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_cancelled_by_deleting_the_replacement_or_putting_the_present_definition() {
    let server = held().await;
    assert_eq!(server.delete("/databases/db/indexes?name=ReplacementOf/Sums").await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.delete("/databases/db/indexes?name=ReplacementOf/Sums").await.status, StatusCode::NOT_FOUND);
    assert_eq!(names(&server).await, json!(["Sums"]));
    server.put_index("Sums", &SUM.replace("v: doc.v", "v: doc.v * 10")).await;
    assert_eq!(server.put_index("SUMS", SUM).await.json()["Results"][0]["Changed"], true);
    assert_eq!(names(&server).await, json!(["Sums"]));
    must_post(&server, "admin/indexes/start?name=sums").await;
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Sums").await, [3, 5]);
    let reserved = server.put_index("ReplacementOf/Other", &SUM.replace("Sums", "Others")).await;
    reserved.assert_error(400, ".IndexInvalidException", &["reserved"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_swapped_now_and_rolled_back() {
    let server = held().await;
    post(&server, "indexes/replace?name=Sums", Value::Null).await.assert_error(
        400,
        ".IndexInvalidException",
        &["Paused"],
    );
    must_post(&server, "admin/indexes/start?name=Sums").await;
    server.wait_for_indexes().await;
    post(&server, "indexes/replace?name=Sums", Value::Null).await.assert_error(
        400,
        ".IndexInvalidException",
        &["not changing"],
    );
    post(&server, "indexes/replace?name=none", Value::Null).await.assert_error(404, "DoesNotExistException", &["none"]);
    must_post(&server, "indexes/rollback?name=sums").await;
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Sums").await, [3, 5]);
    assert_eq!(server.get("/databases/db/indexes/Sums").await.text(), SUM);
    must_post(&server, "indexes/rollback?name=Sums").await;
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Sums").await, [30, 50]);
    post(&server, "indexes/rollback?name=none", Value::Null).await.assert_error(404, "DoesNotExistException", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_index_keeps_its_definition_silently_or_with_an_error() {
    let server = with_sums().await;
    let lock = async |mode: &str| {
        let body = json!({"IndexNames": ["SUMS"], "Mode": mode});
        assert_eq!(post(&server, "indexes/set-lock", body).await.status, StatusCode::NO_CONTENT);
        assert_eq!(line(&server, "Sums").await["LockMode"], mode);
    };
    let other = SUM.replace("v: doc.v", "v: 0");
    lock("LockedIgnore").await;
    let put = server.put_index("Sums", &other).await;
    assert_eq!((put.status, &put.json()["Results"][0]["Changed"]), (StatusCode::CREATED, &json!(false)));
    lock("LockedError").await;
    let put = server.put_index("Sums", &other).await;
    put.assert_error(400, ".IndexInvalidException", &["Cannot edit existing index Sums with lock mode LockedError"]);
    assert_eq!(server.put_index("Sums", SUM).await.status, StatusCode::CREATED, "the same is no change");
    post(&server, "indexes/rollback?name=Sums", Value::Null).await.assert_error(
        400,
        ".IndexInvalidException",
        &["locked"],
    );
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Sums").await, [3, 5]);
    lock("Unlock").await;
    assert_eq!(server.put_index("Sums", &other).await.json()["Results"][0]["Changed"], true);
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Sums").await, [0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_mode_priority_and_state_of_a_definition_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    let mut asked = json!({
        "Name": "Sums", "Maps": [SUM], "LockMode": "LockedIgnore", "Priority": "Low", "State": "Disabled",
    });
    let put = server.send(Method::PUT, "/databases/db/admin/indexes", json!({"Indexes": [asked]}).to_string()).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text());
    assert_eq!(post(&server, "indexes/has-changed", asked.clone()).await.json(), json!({"Changed": false}));
    asked["Priority"] = json!("High");
    assert_eq!(post(&server, "indexes/has-changed", asked).await.json(), json!({"Changed": true}));
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let shown = server.get("/databases/db/indexes?name=Sums").await.json()["Results"][0].clone();
    assert_eq!(
        (&shown["LockMode"], &shown["Priority"], &shown["State"]),
        (&json!("LockedIgnore"), &json!("Low"), &json!("Disabled"))
    );
    must_post(&server, "admin/indexes/enable?name=Sums").await;
    put_item(&server, "a", "x", 1).await;
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Sums").await, [1], "of low priority, it works all the same");
    let high = json!({"IndexNames": ["Sums"], "Priority": "High"});
    assert_eq!(post(&server, "indexes/set-priority", high).await.status, StatusCode::NO_CONTENT);
    assert_eq!(line(&server, "Sums").await["Priority"], "High");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_index_may_leave_its_documents_as_ordinary_ones() {
    let server = with_sums().await;
    let path = "/databases/db/indexes?name=Sums&keepOutputs=true";
    assert_eq!(server.delete(path).await.status, StatusCode::NO_CONTENT);
    assert_eq!((names(&server).await, values(&server, "Sums").await), (json!([]), vec![3, 5]));
    let id = server.ids("startsWith=Sums/&pageSize=1").await.remove(0);
    let document = server.document(&id).await.unwrap();
    assert!(document["@metadata"].get("@flags").is_none(), "{document}");
    let put = server.put(&id, r#"{"v":7,"@metadata":{"@collection":"Sums"}}"#).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text());
    server.put_index("Sums", SUM).await.assert_error(400, ".IndexInvalidException", &["2 documents"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_document_and_one_bad_group_are_told_apart_and_cleared_when_mended() {
    let server = TestServer::with_database().await;
    let script = "source(\"Items\");\noutput(\"Out\");\nfn map(doc) { emit(doc.k, #{ v: doc.a.b + 0 }); }\n\
                  fn reduce(key, values) { if key == 3 { throw \"no threes\"; } #{ v: values.sum(\"v\") } }\n";
    server.put_index("Picky", script).await;
    let item = async |id: &str, k: i32, a: Value| {
        server.must_put(id, json!({"k": k, "a": a, "@metadata": {"@collection": "Items"}}).to_string()).await;
    };
    let good = |b: i32| json!({ "b": b });
    for (id, k, a) in [("good1", 1, good(1)), ("bad", 1, Value::Null), ("good2", 2, good(2)), ("d", 3, good(1))] {
        item(id, k, a).await;
    }
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Out").await, [1, 2]);
    let errors = async || {
        let answer = server.get("/databases/db/indexes/errors?name=Picky").await.json();
        answer["Results"][0]["Errors"].as_array().unwrap().clone()
    };
    let told = errors().await;
    let of = |action: &str| told.iter().find(|error| error["Action"] == action).unwrap();
    assert_eq!((&of("Map")["Document"], &of("Reduce")["Document"]), (&json!("bad"), &json!("3")));
    assert!(of("Map")["Error"].as_str().unwrap().contains("script:3:"), "{told:?}");
    assert!(of("Reduce")["Error"].as_str().unwrap().contains("script:4:"), "{told:?}");
    assert_eq!(line(&server, "Picky").await["IsStale"], false, "it has moved past the bad document");
    assert_eq!(server.delete("/databases/db/indexes/errors?name=PICKY").await.status, StatusCode::NO_CONTENT);
    assert_eq!(errors().await.len(), 0);
    assert_eq!(values(&server, "Out").await, [1, 2], "what fails still has no result");
    item("bad", 1, Value::Null).await;
    server.wait_for_indexes().await;
    assert_eq!(errors().await.len(), 1, "it fails again, and is told again");
    item("bad", 1, good(10)).await;
    item("d", 4, good(1)).await;
    server.wait_for_indexes().await;
    assert_eq!((values(&server, "Out").await, errors().await.len()), (vec![1, 2, 11], 0));
    assert_eq!(server.delete("/databases/db/indexes/errors").await.status, StatusCode::NO_CONTENT);
    let missing = server.delete("/databases/db/indexes/errors?name=none").await;
    missing.assert_error(404, ".IndexDoesNotExistException", &["none"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_in_error_goes_on_when_it_is_enabled() {
    let server = TestServer::with_database().await;
    for n in 0..150 {
        put_item(&server, &format!("items/{n}"), "x", n).await;
    }
    server.put_index("Bad", &SUM.replace("emit(", "if doc.v >= 0 { throw \"bad\"; } emit(")).await;
    let path = "/databases/db/bulk_docs?waitForIndexesTimeout=00:00:30&waitForIndexThrow=true";
    let waited = server.send(Method::POST, path, "{\"Commands\":[]}").await;
    waited.assert_error(500, "System.TimeoutException", &["Bad"]);
    assert_eq!(line(&server, "Bad").await["State"], "Error");
    let commands: Vec<Value> = (0..150)
        .map(|n| json!({"Type": "PUT", "Id": format!("items/{n}"), "Document": {"k": "x", "v": -1, "@metadata": {"@collection": "Items"}}}))
        .collect();
    let batch = json!({ "Commands": commands }).to_string();
    assert_eq!(server.send(Method::POST, "/databases/db/bulk_docs", batch).await.status, StatusCode::CREATED);
    must_post(&server, "admin/indexes/enable?name=Bad").await;
    server.wait_for_indexes().await;
    assert_eq!(
        (line(&server, "Bad").await["State"].clone(), values(&server, "Sums").await),
        (json!("Normal"), vec![-150])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_the_indexes_that_it_concerns_and_those_behind_them() {
    let server = with_sums().await;
    server.put_index("Above", &SUM.replace("Items", "Sums").replace("output(\"Sums\")", "output(\"Above\")")).await;
    server.put_index("Beside", &SUM.replace("Items", "Others").replace("output(\"Sums\")", "output(\"Beside\")")).await;
    server.wait_for_indexes().await;
    must_post(&server, "admin/indexes/stop?name=Beside").await;
    server.must_put("o", r#"{"k":"x","v":1,"@metadata":{"@collection":"Others"}}"#).await;
    let put = async |id: &str, collection: &str, v: i32| {
        let path = format!("/databases/db/docs?id={id}&waitForIndexesTimeout=00:00:00.5");
        let body = json!({"k": "x", "v": v, "@metadata": {"@collection": collection}}).to_string();
        server.send(Method::PUT, &path, body).await
    };
    let patient = "/databases/db/docs?id=a&waitForIndexesTimeout=00:00:30";
    let body = json!({"k": "x", "v": 100, "@metadata": {"@collection": "Items"}}).to_string();
    assert_eq!(server.send(Method::PUT, patient, body).await.status, StatusCode::CREATED);
    assert_eq!(
        values(&server, "Above").await,
        [5, 102],
        "the chain behind has taken it in, whatever stands still beside"
    );
    put("o", "Others", 2).await.assert_error(500, "System.TimeoutException", &["Beside", "stored"]);
    must_post(&server, "admin/indexes/start").await;
    server.wait_for_indexes().await;
    assert_eq!(values(&server, "Beside").await, [2]);
    must_post(&server, "admin/indexes/stop?name=Sums").await;
    put("a", "Elsewhere", 1).await.assert_error(500, "System.TimeoutException", &["Sums"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_what_serves_and_not_for_a_definition_under_way() {
    let server = held().await;
    server.put_index("Above", &SUM.replace("Items", "Sums").replace("output(\"Sums\")", "output(\"Above\")")).await;
    server.put_index("Beside", &SUM.replace("output(\"Sums\")", "output(\"Beside\")")).await;
    let path = "/databases/db/docs?id=d&waitForIndexesTimeout=00:00:30&waitForSpecificIndex=Beside";
    let body = r#"{"k":"z","v":1,"@metadata":{"@collection":"Items"}}"#;
    assert_eq!(server.send(Method::PUT, path, body).await.status, StatusCode::CREATED);
    assert_eq!(values(&server, "Beside").await, [1, 3, 5]);
    assert_eq!(names(&server).await, json!(["Above", "Beside", "Sums", "ReplacementOf/Sums"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_script_that_is_no_longer_accepted_is_listed_with_its_reason_and_can_be_replaced_or_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    put_item(&server, "a", "x", 1).await;
    let long = format!("{SUM}// {}", "x".repeat(2_000));
    server.put_index("Sums", &long).await;
    server.put_index("Others", &long.replace("\"Sums\"", "\"Others\"")).await;
    server.wait_for_indexes().await;
    server.stop().await;
    let script_limits = Limits { text_bytes_max: 1_000, ..Limits::default() };
    let narrow = DatabaseSettings { script_limits, ..DatabaseSettings::default() };
    let server = TestServer::start_as(directory.path(), |settings| settings.database = narrow).await;
    assert_eq!(names(&server).await, json!(["Others", "Sums"]));
    let stats = line(&server, "Sums").await;
    assert_eq!((&stats["State"], &stats["IsInvalidIndex"]), (&json!("Error"), &json!(true)));
    let errors = server.get("/databases/db/indexes/errors?name=Sums").await.json()["Results"][0]["Errors"].clone();
    assert!(errors[0]["Error"].as_str().unwrap().contains("1000"), "{errors}");
    assert_eq!(values(&server, "Sums").await, [1], "its documents stay");
    server.put("mine", r#"{"@metadata":{"@collection":"Sums"}}"#).await.assert_error(409, "Exception", &["Sums"]);
    let disable = post(&server, "admin/indexes/disable?name=Sums", Value::Null).await;
    disable.assert_error(400, ".IndexInvalidException", &["corrected"]);
    put_item(&server, "a", "x", 2).await;
    assert_eq!(server.put_index("Sums", SUM).await.status, StatusCode::CREATED);
    assert_eq!(server.delete("/databases/db/indexes?name=others").await.status, StatusCode::NO_CONTENT);
    server.wait_for_indexes().await;
    assert_eq!((values(&server, "Sums").await, values(&server, "Others").await), (vec![2], vec![]));
    assert_eq!(names(&server).await, json!(["Sums"]));
    server.stop().await;
}
