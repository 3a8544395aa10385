//! JSON Patch: documents change in parts, atomically, and what is not touched keeps its text.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer, escape};

const PRICES: &str =
    r#"{"price":1.10,"big":123456789012345678901234567890,"tags":["a","b"],"@metadata":{"@collection":"Prices"}}"#;

async fn patch(server: &TestServer, id: &str, operations: &Value) -> Answer {
    let body = json!({ "Operations": operations }).to_string();
    server.send(Method::PATCH, &format!("/databases/db/json-patch?id={}", escape(id)), body).await
}

async fn text(server: &TestServer, id: &str) -> String {
    server.get(&format!("/databases/db/docs?id={}", escape(id))).await.text()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_changes_its_part_and_no_number_of_another() {
    let server = TestServer::with_database().await;
    server.must_put("Prices/1", PRICES).await;
    let operations = json!([
        {"op": "test", "path": "/price", "value": 1.1},
        {"op": "add", "path": "/tags/-", "value": "c"},
        {"op": "replace", "path": "/tags/0", "value": null},
        {"op": "copy", "from": "/big", "path": "/copy"},
        {"op": "move", "from": "/price", "path": "/old"},
        {"op": "remove", "path": "/tags/1"},
    ]);
    let answer = patch(&server, "prices/1", &operations).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let after =
        r#""big":123456789012345678901234567890,"tags":[null,"c"],"copy":123456789012345678901234567890,"old":1.10"#;
    assert!(text(&server, "prices/1").await.contains(after), "{}", text(&server, "prices/1").await);
    assert!(answer.text().contains(after), "{}", answer.text());
    let answer = answer.json();
    assert_eq!((&answer["Status"], &answer["Collection"]), (&json!("Patched"), &json!("Prices")));
    let stored = server.document("prices/1").await.unwrap();
    assert_eq!(stored["@metadata"]["@change-vector"], answer["ChangeVector"]);
    assert_eq!(stored["@metadata"]["@last-modified"], answer["LastModified"]);
    assert_eq!(stored["@metadata"]["@id"], "Prices/1", "the spelling is the stored one");
    assert_eq!(stored, answer["ModifiedDocument"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_does_not_fit_changes_nothing_and_says_why() {
    let server = TestServer::with_database().await;
    server.must_put("p/1", PRICES).await;
    let before = text(&server, "p/1").await;
    for (operations, words) in [
        (json!([{"op": "add", "path": "/x", "value": 1}, {"op": "remove", "path": "/tags/9"}]), "out of array bounds"),
        (json!([{"op": "test", "path": "/price", "value": 1.11}]), "the value there is 1.10"),
        (json!([{"op": "replace", "path": "/none", "value": 1}]), "there is no 'none'"),
        (json!([{"op": "replace", "path": "/@metadata/@collection", "value": 5}]), "'@collection' to be a string"),
        (json!([{"op": "replace", "path": "", "value": []}]), "a JSON object"),
        (json!([{"op": "add", "path": "/@metadata/@id", "value": "p/2"}]), "can't be changed"),
    ] {
        patch(&server, "p/1", &operations).await.assert_error(400, "InvalidOperationException", &["p/1", words]);
    }
    for (operations, words) in [
        (json!([{"op": "shake", "path": "/x"}]), "'shake' is no operation"),
        (json!([{"op": "add", "path": "/x"}]), "needs a 'value'"),
        (json!({"Script": "this.x = 1"}), "array of operations"),
    ] {
        patch(&server, "p/1", &operations).await.assert_error(400, "InvalidDataException", &[words]);
    }
    patch(&server, "p/1", &json!([{"op": "remove", "path": "x"}])).await.assert_error(
        400,
        "ArgumentException",
        &["pointer"],
    );
    patch(&server, "p/none", &json!([])).await.assert_error(
        400,
        "InvalidOperationException",
        &["p/none", "no such document"],
    );
    let none = server.send(Method::PATCH, "/databases/db/json-patch", "[]").await;
    none.assert_error(400, "ArgumentException", &["'id'"]);
    assert_eq!(text(&server, "p/1").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_of_tests_alone_writes_nothing() {
    let server = TestServer::with_database().await;
    let version = server.must_put("p/1", PRICES).await;
    let answer = patch(&server, "p/1", &json!([{"op": "test", "path": "/tags", "value": ["a", "b"]}])).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({"Status": "NotModified"})));
    assert_eq!(server.document("p/1").await.unwrap()["@metadata"]["@change-vector"], version);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_can_be_expected() {
    let server = TestServer::with_database().await;
    let old = server.must_put("p/1", PRICES).await;
    let new = server.must_put("p/1", PRICES).await;
    let send = |vector: String, body: &'static str| {
        let request = server.request(Method::PATCH, "/databases/db/json-patch?id=p/1").header("If-Match", vector);
        async move { Answer::read(request.body(body).send().await.unwrap()).await }
    };
    let add = r#"[{"op":"add","path":"/x","value":1}]"#;
    send(old.clone(), add).await.assert_error(409, "ConcurrencyException", &[&old, &new]);
    send(old, r#"[{"op":"test","path":"/price","value":1.1}]"#).await.assert_error(409, "ConcurrencyException", &[]);
    assert_eq!(send(new, add).await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_at_the_same_time_all_count() {
    let server = TestServer::with_database().await;
    server.must_put("p/1", r#"{"tags":[]}"#).await;
    let patches = (0..50).map(|n| {
        let (client, url) = (server.client.clone(), server.url("/databases/db/json-patch?id=p/1"));
        tokio::spawn(async move {
            let body = format!("[{{\"op\":\"add\",\"path\":\"/tags/-\",\"value\":{n}}}]");
            client.patch(url).body(body).send().await.unwrap().status()
        })
    });
    for patch in patches.collect::<Vec<_>>() {
        assert_eq!(patch.await.unwrap(), StatusCode::OK);
    }
    let mut tags: Vec<u64> =
        server.document("p/1").await.unwrap()["tags"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..50).collect::<Vec<_>>());
}

fn command(id: &str, operations: &Value) -> Value {
    json!({"Type": "JsonPatch", "Id": id, "ChangeVector": null, "JsonPatch": {"Operations": operations}, "ReturnDocument": true})
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_in_a_batch_are_applied_in_order_all_or_nothing() {
    let server = TestServer::with_database().await;
    server.must_put("p/1", PRICES).await;
    let batch = json!([
        {"Type": "PUT", "Id": "p/2", "Document": {"n": 1}},
        command("p/2", &json!([{"op": "replace", "path": "/n", "value": 2}])),
        command("P/2", &json!([{"op": "test", "path": "/n", "value": 2}, {"op": "add", "path": "/m", "value": 3}])),
        command("p/1", &json!([{"op": "test", "path": "/tags/0", "value": "a"}])),
        {"Type": "PUT", "Id": "made|", "Document": {}},
        command("p/1", &json!([{"op": "remove", "path": "/tags"}])),
    ]);
    let answer = server.batch(&batch).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let results = answer.json()["Results"].clone();
    let kinds: Vec<_> = (0..6).map(|at| results[at]["Type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["PUT", "JsonPatch", "JsonPatch", "JsonPatch", "PUT", "JsonPatch"]);
    let statuses: Vec<_> = [1, 2, 3, 5].map(|at| results[at]["PatchStatus"].as_str().unwrap().to_owned()).into();
    assert_eq!(statuses, ["Patched", "Patched", "NotModified", "Patched"]);
    let two = server.document("p/2").await.unwrap();
    assert_eq!((&two["n"], &two["m"]), (&json!(2), &json!(3)));
    assert_eq!(results[2]["ChangeVector"], two["@metadata"]["@change-vector"]);
    assert_eq!(results[4]["@id"], "made/1");
    let one = server.document("p/1").await.unwrap();
    assert_eq!(results[5]["ModifiedDocument"], one);
    assert!(one["tags"].is_null() && one["big"].is_number());

    let bad = json!([
        {"Type": "PUT", "Id": "p/3", "Document": {}},
        {"Type": "BatchTrackChanges", "TrackedEntities": {"p/1": results[5]["ChangeVector"], "p/2": results[2]["ChangeVector"]}},
        command("p/1", &json!([{"op": "remove", "path": "/none"}])),
    ]);
    server.batch(&bad).await.assert_error(
        400,
        "InvalidOperationException",
        &["command 2,", "p/1", "there is no 'none'"],
    );
    assert!(server.document("p/3").await.is_none());
    let gone =
        json!([{"Type": "DELETE", "Id": "p/1"}, command("p/1", &json!([{"op": "add", "path": "/x", "value": 1}]))]);
    server.batch(&gone).await.assert_error(400, "InvalidOperationException", &["command 1,", "no such document"]);
    assert!(server.document("p/1").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_can_name_the_versions_that_it_relies_on() {
    let server = TestServer::with_database().await;
    let (read, other) = (server.must_put("read/1", "{}").await, server.must_put("read/2", "{}").await);
    let batch = json!([
        {"Type": "PUT", "Id": "written/1", "Document": {}},
        {"Type": "BatchTrackChanges", "TrackedEntities": {"read/1": read, "read/2": other}},
        {"Type": "DELETE", "Id": "read/2"},
    ]);
    let results = server.batch(&batch).await.json()["Results"].clone();
    let kinds: Vec<_> = results.as_array().unwrap().iter().map(|result| result["Type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["PUT", "BatchTrackChanges", "DELETE"]);
    server.must_put("read/1", "{}").await;
    let late = json!([{"Type": "PUT", "Id": "written/2", "Document": {}}, {"Type": "BatchTrackChanges", "TrackedEntities": {"read/1": read}}]);
    server.batch(&late).await.assert_error(409, "ConcurrencyException", &["read/1"]);
    assert!(server.document("written/2").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn artificial_documents_cannot_be_patched() {
    let server = TestServer::with_database().await;
    let script = r#"source("Prices"); output("Counts"); fn map(doc) { emit(1, 1) } fn reduce(key, values) { #{ n: values.sum() } }"#;
    assert!(server.put_index("Counts", script).await.status.is_success());
    server.must_put("p/1", PRICES).await;
    server.wait_for_indexes().await;
    let id = server.ids("startsWith=Counts/").await.remove(0);
    let change = json!([{"op": "replace", "path": "/n", "value": 2}]);
    patch(&server, &id, &change).await.assert_error(409, "", &["belongs to index 'Counts'"]);
    server.batch(&json!([command(&id, &change)])).await.assert_error(409, "", &["belongs to index 'Counts'"]);
    let moved = json!([{"op": "replace", "path": "/@metadata/@collection", "value": "Counts"}]);
    patch(&server, "p/1", &moved).await.assert_error(409, "", &["belongs to index 'Counts'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_by_script_are_refused_by_name() {
    let server = TestServer::with_database().await;
    server.must_put("p/1", PRICES).await;
    let script = r#"{"Patch":{"Script":"this.n = 1"}}"#;
    let single = server.send(Method::PATCH, "/databases/db/docs?id=p/1", script).await;
    single.assert_error(501, "NotSupportedException", &["patches by script", "JSON Patch"]);
    let batch = server.batch(&json!([{"Type": "PATCH", "Id": "p/1", "Patch": {"Script": "this.n = 1"}}])).await;
    batch.assert_error(501, "NotSupportedException", &["command 0", "patches by script", "JSON Patch"]);
}
