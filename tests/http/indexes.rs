//! Index definitions over HTTP: put, shown, refused, deleted, and how indexes are doing.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestServer, ids_of};

const SUM: &str = r#"
source("Items");
output("Sums");
fn map(doc) { emit(#{ k: doc.k }, #{ n: 1, v: doc.v }); }
fn reduce(key, values) { #{ n: values.sum("n"), v: values.sum("v") } }
"#;

fn definition(name: &str, output: &str) -> Value {
    json!({
        "Name": name,
        "Maps": [r#"source("Items"); fn map(doc) { emit(#{ k: doc.k }, #{ n: 1 }); }"#],
        "Reduce": r#"fn reduce(key, values) { #{ n: values.sum("n") } }"#,
        "OutputReduceToCollection": output,
        "Fields": {}, "Configuration": {}, "AdditionalSources": {}, "AdditionalAssemblies": [], "CompoundFields": [],
        "Priority": null, "State": null, "LockMode": null, "IndexType": "JavaScriptMapReduce",
    })
}

async fn put_definitions(server: &TestServer, path: &str, definitions: Value) -> crate::support::Answer {
    server.send(Method::PUT, path, json!({ "Indexes": definitions }).to_string()).await
}

async fn with_items() -> TestServer {
    let server = TestServer::with_database().await;
    for (id, k, v) in [("a", "x", 1), ("b", "x", 2), ("c", "y", 5)] {
        server.must_put(id, json!({"k": k, "v": v, "@metadata": {"@collection": "Items"}}).to_string()).await;
    }
    server
}

async fn sums(server: &TestServer, collection: &str) -> Vec<(String, Value)> {
    let answer = server.get(&format!("/databases/db/collections/docs?name={collection}")).await.json();
    let documents = answer["Results"].as_array().unwrap().clone();
    let mut sums: Vec<_> = documents.iter().map(|it| (it["k"].as_str().unwrap().to_owned(), it["n"].clone())).collect();
    sums.sort_by(|a, b| a.0.cmp(&b.0));
    sums
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_becomes_artificial_documents() {
    let server = with_items().await;
    let put = server.put_index("Sales/By k", SUM).await;
    assert_eq!(put.status, StatusCode::CREATED, "{}", put.text());
    assert_eq!(put.json()["Results"][0]["Index"], "Sales/By k");
    assert!(put.json()["Results"][0]["RaftCommandIndex"].is_u64());
    let shown = server.get("/databases/db/indexes/sales%2Fby%20K").await;
    assert_eq!((shown.text().as_str(), shown.header("content-type")), (SUM, Some("text/plain; charset=utf-8")));
    server.get("/databases/db/indexes/none").await.assert_error(404, ".IndexDoesNotExistException", &["none"]);
    server.wait_for_indexes().await;
    assert_eq!(sums(&server, "Sums").await, [("x".to_owned(), json!(2)), ("y".to_owned(), json!(1))]);
    let found = server.get("/databases/db/docs?startsWith=Sums/").await.json()["Results"].clone();
    assert_eq!(found[0]["@metadata"]["@flags"], "Artificial, FromIndex");
    assert!(ids_of(&found).iter().all(|id| id.len() == "Sums/".len() + 32));
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_in_json_are_put_and_shown() {
    let server = with_items().await;
    for path in ["/databases/db/indexes", "/databases/db/admin/indexes"] {
        let put = put_definitions(&server, path, json!([definition("Sums", "Out")])).await;
        assert_eq!(put.status, StatusCode::CREATED, "{}", put.text());
        assert_eq!(put.json()["Results"][0]["Index"], "Sums");
    }
    server.wait_for_indexes().await;
    assert_eq!(sums(&server, "Out").await.len(), 2);
    let shown = server.get("/databases/db/indexes?name=SUMS").await.json()["Results"][0].clone();
    for field in ["Name", "Maps", "Reduce"] {
        assert_eq!(shown[field], definition("Sums", "Out")[field]);
    }
    assert_eq!((&shown["OutputReduceToCollection"], &shown["Type"]), (&json!("Out"), &json!("MapReduce")));
    assert_eq!(
        (&shown["Priority"], &shown["State"], &shown["LockMode"]),
        (&json!("Normal"), &json!("Normal"), &json!("Unlock"))
    );
    for field in ["AdditionalSources", "AdditionalAssemblies", "Fields", "Configuration"] {
        assert!(shown[field].is_object() || shown[field].is_array(), "{field}");
    }
    for field in
        ["ReduceOutputIndex", "PatternForOutputReduceToCollectionReferences", "PatternReferencesCollectionName"]
    {
        assert!(shown.as_object().unwrap().contains_key(field), "{field}");
    }
    assert_eq!(server.get("/databases/db/indexes/Sums").await.json(), shown);
    let names = server.get("/databases/db/indexes?namesOnly=true&start=0&pageSize=10").await.json();
    assert_eq!(names, json!({"Results": ["Sums"]}));
    assert_eq!(server.get("/databases/db/indexes?start=1").await.json(), json!({"Results": []}));
    server.get("/databases/db/indexes?name=none").await.assert_error(404, ".IndexDoesNotExistException", &["none"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_does_not_compile_is_refused_with_its_place() {
    let server = TestServer::with_database().await;
    let bad = "source(\"Items\");\nfn map(doc) {\n    emit(doc.k, 1;\n}\n";
    let answer = server.put_index("Bad", bad).await;
    answer.assert_error(400, ".IndexCompilationException", &["Bad", "3:"]);
    server.put_index("Bad", "fn map(doc) { }").await.assert_error(400, ".IndexCompilationException", &["source"]);
    let answer = server.send(Method::PUT, "/databases/db/indexes/Bad", vec![0xff, 0xfe]).await;
    answer.assert_error(400, "InvalidDataException", &["UTF-8"]);
    assert_eq!(server.get("/databases/db/indexes?namesOnly=true").await.json(), json!({"Results": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_definitions_with_a_bad_one_none_is_stored() {
    let server = with_items().await;
    let mut bad = definition("Two/Bad", "Out2");
    bad["Maps"] = json!(["this is no script"]);
    let path = "/databases/db/admin/indexes";
    let answer = put_definitions(&server, path, json!([definition("Two/Good", "Out1"), bad])).await;
    answer.assert_error(400, ".IndexCompilationException", &["Two/Bad"]);
    let clash = json!([definition("Two/Good", "Out1"), definition("Two/Clash", "Out1")]);
    let answer = put_definitions(&server, path, clash).await;
    answer.assert_error(400, ".IndexInvalidException", &["Two/Clash", "Out1"]);
    assert_eq!(server.get("/databases/db/indexes?namesOnly=true").await.json(), json!({"Results": []}));
    let answer =
        put_definitions(&server, path, json!([definition("Two/Good", "Out1"), definition("Two/Other", "Out2")])).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_would_change_results_are_refused_by_name() {
    let server = TestServer::with_database().await;
    let mut asked = definition("Sums", "Out");
    asked["Fields"] = json!({"k": {"Indexing": "Search"}});
    let answer = put_definitions(&server, "/databases/db/indexes", json!([asked])).await;
    answer.assert_error(400, ".IndexInvalidException", &["Fields"]);
    let answer = put_definitions(&server, "/databases/db/indexes", json!([{"Name": "NoMaps"}])).await;
    answer.assert_error(400, ".IndexInvalidException", &["Maps"]);
    let answer = server.send(Method::PUT, "/databases/db/indexes", "{}").await;
    answer.assert_error(400, "InvalidDataException", &["Indexes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_holds_documents_cannot_become_an_output() {
    let server = with_items().await;
    server.must_put("Sums/1", r#"{"mine":true,"@metadata":{"@collection":"Sums"}}"#).await;
    server.put_index("Sums", SUM).await.assert_error(400, ".IndexInvalidException", &["Sums", "1"]);
    assert_eq!(server.document("Sums/1").await.unwrap()["mine"], true);
    let own = SUM.replace("Sums", "Items");
    server.put_index("Own", &own).await.assert_error(400, ".IndexInvalidException", &["Items"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_cannot_write_what_an_index_owns() {
    let server = with_items().await;
    assert_eq!(server.put_index("Sums", SUM).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    let id = server.ids("startsWith=Sums/&pageSize=1").await.remove(0);
    let before = server.document(&id).await;
    let put = server.put(&id, r#"{"n":0,"@metadata":{"@collection":"Sums"}}"#).await;
    put.assert_error(409, "Exception", &["Sums"]);
    server.put("Sums/new", r#"{"@metadata":{"@collection":"Sums"}}"#).await.assert_error(409, "Exception", &["Sums"]);
    server.delete(&format!("/databases/db/docs?id={id}")).await.assert_error(409, "Exception", &["Sums"]);
    assert_eq!(server.document(&id).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_an_index_deletes_its_documents() {
    let server = with_items().await;
    for path in ["/databases/db/indexes?name=sums", "/databases/db/indexes/Sums"] {
        assert_eq!(server.put_index("Sums", SUM).await.status, StatusCode::CREATED);
        server.wait_for_indexes().await;
        assert_eq!(sums(&server, "Sums").await.len(), 2);
        assert_eq!(server.delete(path).await.status, StatusCode::NO_CONTENT);
        assert_eq!(sums(&server, "Sums").await.len(), 0);
        assert_eq!(server.delete(path).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_may_be_named_like_a_report() {
    let server = with_items().await;
    assert_eq!(server.put_index("stats", SUM).await.status, StatusCode::CREATED);
    assert_eq!(server.get("/databases/db/indexes?namesOnly=true").await.json(), json!({"Results": ["stats"]}));
    assert_eq!(server.delete("/databases/db/indexes/stats").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_have_the_fields_of_the_recording() {
    let server = with_items().await;
    server.put_index("Sums", SUM).await;
    server.wait_for_indexes().await;
    let stats = server.get("/databases/db/indexes/stats?name=Sums").await.json();
    assert_eq!(stats["@metadata"]["NodeTag"], "A");
    let line = &stats["Results"][0];
    assert_eq!((&line["Name"], &line["MapAttempts"], &line["MapErrors"]), (&json!("Sums"), &json!(3), &json!(0)));
    assert_eq!((&line["EntriesCount"], &line["ErrorsCount"], &line["IsStale"]), (&json!(3), &json!(0), &json!(false)));
    assert_eq!(
        (&line["State"], &line["Status"], &line["Type"]),
        (&json!("Normal"), &json!("Running"), &json!("MapReduce"))
    );
    assert_eq!(line["Collections"]["Items"]["LastProcessedDocumentEtag"], 3);
    assert_eq!(line["Collections"]["Items"]["DocumentLag"], 0);
    assert_eq!(line["ReduceOutputCollection"], "Sums");
    for field in ["LockMode", "Priority", "SourceType", "MapSuccesses", "ReduceSuccesses", "IsInvalidIndex"] {
        assert!(!line[field].is_null(), "{field}");
    }
    let progress = server.get("/databases/db/indexes/progress?name=sums").await.json()["Results"][0].clone();
    assert_eq!(
        (&progress["Lag"], &progress["IsBuilding"], &progress["IsStale"]),
        (&json!(0), &json!(false), &json!(false))
    );
    assert_eq!((&progress["Groups"], &progress["Sources"][0]["Lag"]), (&json!(2), &json!(0)));
    assert_eq!((&progress["Done"], &progress["Sources"][0]["Done"]), (&json!(3), &json!(3)));
    assert_eq!(
        (&progress["IsStuck"], &progress["StuckReason"], &progress["LastError"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    assert_eq!((&progress["Type"], &progress["IndexRunningStatus"]), (&json!("MapReduce"), &json!("Running")));
    let items = &progress["Collections"]["Items"];
    assert_eq!(
        (&items["LastProcessedItemEtag"], &items["NumberOfItemsToProcess"], &items["TotalNumberOfItems"]),
        (&json!(3), &json!(0), &json!(3))
    );
    let staleness = server.get("/databases/db/indexes/staleness?name=Sums").await.json();
    assert_eq!(staleness, json!({"IsStale": false, "StalenessReasons": []}));
    let errors = server.get("/databases/db/indexes/errors?&name=Sums").await.json();
    assert_eq!(errors["Results"], json!([{"Name": "Sums", "Errors": []}]));
    let in_stats = server.get("/databases/db/stats").await.json()["Indexes"][0].clone();
    assert_eq!(
        (&in_stats["Name"], &in_stats["IsStale"], &in_stats["LockMode"]),
        (&json!("Sums"), &json!(false), &json!("Unlock"))
    );
    for report in ["stats", "errors", "progress", "staleness"] {
        let answer = server.get(&format!("/databases/db/indexes/{report}?name=none")).await;
        answer.assert_error(404, ".IndexDoesNotExistException", &["none"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_can_be_followed_as_events() {
    let server = with_items().await;
    server.put_index("Sums", SUM).await;
    let request = server.request(Method::GET, "/databases/db/indexes/progress?name=Sums");
    let response = request.header("Accept", "text/event-stream").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut lines = crate::change_feed::Lines::of(response);
    for _ in 0..2 {
        let event = lines.next().await.unwrap();
        let report: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(report["Results"][0]["Name"], "Sums");
        assert_eq!(lines.next().await.unwrap(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_write_can_wait_for_indexes_too() {
    let server = with_items().await;
    server.put_index("Sums", SUM).await;
    let path = "/databases/db/docs?id=d&waitForIndexesTimeout=00:00:30";
    let body = r#"{"k":"z","v":1,"@metadata":{"@collection":"Items"}}"#;
    assert_eq!(server.send(Method::PUT, path, body).await.status, StatusCode::CREATED);
    assert_eq!(sums(&server, "Sums").await.len(), 3);
    assert_eq!(server.delete(path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(sums(&server, "Sums").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_fails_is_listed_and_the_others_count() {
    let server = with_items().await;
    server.must_put("bad", r#"{"k":"x","v":"text","@metadata":{"@collection":"Items"}}"#).await;
    let script = SUM.replace("v: doc.v", "v: doc.v + 1").replace("doc.k }", "doc.k, w: doc.v * 1 }");
    assert_eq!(server.put_index("Sums", &script).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    let errors = server.get("/databases/db/indexes/errors?name=Sums").await.json()["Results"][0]["Errors"].clone();
    let error = &errors[0];
    assert_eq!((&error["Document"], &error["Action"]), (&json!("bad"), &json!("Map")));
    assert!(error["Timestamp"].as_str().unwrap().ends_with('Z') && !error["Error"].as_str().unwrap().is_empty());
    assert_eq!(errors.as_array().unwrap().len(), 1);
    let line = server.get("/databases/db/indexes/stats?name=Sums").await.json()["Results"][0].clone();
    assert_eq!((&line["MapErrors"], &line["ErrorsCount"]), (&json!(1), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_index_is_waited_for_in_vain() {
    let server = with_items().await;
    server.put_index("Sums", SUM).await;
    server.wait_for_indexes().await;
    let stop = |verb: &str, query: &str| {
        let path = format!("/databases/db/admin/indexes/{verb}{query}");
        let server = &server;
        async move { server.send(Method::POST, &path, "").await }
    };
    assert_eq!(stop("stop", "?name=SUMS").await.status, StatusCode::NO_CONTENT);
    let status = server.get("/databases/db/indexes/status").await.json();
    assert_eq!(status["Indexes"], json!([{"Name": "Sums", "Status": "Paused"}]));
    let body =
        r#"{"Commands":[{"Type":"PUT","Id":"d","Document":{"k":"y","v":1,"@metadata":{"@collection":"Items"}}}]}"#;
    let path = "/databases/db/bulk_docs?waitForIndexesTimeout=00:00:00.050&waitForSpecificIndex=Sums";
    server.send(Method::POST, path, body).await.assert_error(500, "System.TimeoutException", &["Sums", "stored"]);
    assert!(server.document("d").await.is_some());
    let unknown = "/databases/db/bulk_docs?waitForIndexesTimeout=00:00:01&waitForSpecificIndex=none";
    let answer = server.send(Method::POST, unknown, body.replace("\"d\"", "\"e\"")).await;
    answer.assert_error(404, ".IndexDoesNotExistException", &["none"]);
    assert!(server.document("e").await.is_none());
    let patient = server.send(Method::POST, &format!("{path}&waitForIndexThrow=false"), body).await;
    assert_eq!(patient.status, StatusCode::CREATED);
    assert_eq!(stop("start", "").await.status, StatusCode::NO_CONTENT);
    server.wait_for_indexes().await;
    assert_eq!(sums(&server, "Sums").await[1], ("y".to_owned(), json!(2)));
    stop("stop", "?name=none").await.assert_error(404, ".IndexDoesNotExistException", &["none"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_one_index_leaves_those_with_longer_names() {
    let server = with_items().await;
    for name in ["sales", "sales2", "sale", "sales/x"] {
        let script = SUM.replace("Sums", &format!("Out-{}", name.replace('/', "-")));
        assert_eq!(server.put_index(name, &script).await.status, StatusCode::CREATED);
    }
    server.wait_for_indexes().await;
    assert_eq!(server.delete("/databases/db/indexes/SALES").await.status, StatusCode::NO_CONTENT);
    let names = server.get("/databases/db/indexes?namesOnly=true").await.json();
    assert_eq!(names, json!({"Results": ["sale", "sales/x", "sales2"]}));
    for (collection, count) in [("Out-sales", 0), ("Out-sales2", 2), ("Out-sale", 2), ("Out-sales-x", 2)] {
        assert_eq!(sums(&server, collection).await.len(), count, "{collection}");
    }
}

async fn index_state(server: &TestServer) -> Value {
    server.get("/databases/db/stats").await.json()["Indexes"][0]["State"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_builds_anew_and_rewrites_nothing_that_comes_out_the_same() {
    let server = with_items().await;
    server.put_index("Sums", SUM).await;
    server.wait_for_indexes().await;
    let before = server.get("/databases/db/docs?startsWith=Sums/").await.text();
    let reset = Method::from_bytes(b"RESET").unwrap();
    let answer = server.send(reset.clone(), "/databases/db/indexes?name=SUMS", "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
    server.wait_for_indexes().await;
    assert_eq!(server.get("/databases/db/docs?startsWith=Sums/").await.text(), before);
    let stats = server.get("/databases/db/indexes/stats?name=Sums").await.json();
    assert_eq!(stats["Results"][0]["MapAttempts"], 3);
    let answer = server.send(reset, "/databases/db/indexes?name=none", "").await;
    answer.assert_error(404, ".IndexDoesNotExistException", &["none"]);
    server.send(Method::PATCH, "/databases/db/indexes", "").await.assert_error(404, ".RouteNotFoundException", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_turned_off_stays_off_until_it_is_turned_on() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    server.put_index("Sums", SUM).await;
    let turn = async |server: &TestServer, verb: &str, name: &str| {
        let path = format!("/databases/db/admin/indexes/{verb}?name={name}&clusterWide=false");
        server.send(Method::POST, &path, "").await
    };
    assert_eq!(turn(&server, "disable", "sums").await.status, StatusCode::NO_CONTENT);
    assert_eq!(index_state(&server).await, "Disabled");
    server.must_put("a", r#"{"k":"x","v":1,"@metadata":{"@collection":"Items"}}"#).await;
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    assert_eq!(index_state(&server).await, "Disabled");
    server.send(Method::POST, "/databases/db/admin/indexes/start", "").await;
    server.wait_for_indexes().await;
    assert_eq!(server.ids("startsWith=Sums/").await, [""; 0]);
    let running = server.get("/databases/db/indexes/status").await.json();
    assert_eq!(running["Indexes"][0]["Status"], "Disabled");
    assert_eq!(turn(&server, "enable", "Sums").await.status, StatusCode::NO_CONTENT);
    server.wait_for_indexes().await;
    assert_eq!((index_state(&server).await, server.ids("startsWith=Sums/").await.len()), (json!("Normal"), 1));
    turn(&server, "disable", "none").await.assert_error(404, ".IndexDoesNotExistException", &["none"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_compared_and_settings_checked() {
    let server = with_items().await;
    put_definitions(&server, "/databases/db/admin/indexes", json!([definition("Counts", "Counts")])).await;
    let post = async |path: &str, body: Value| {
        server.send(Method::POST, &format!("/databases/db/indexes/{path}"), body.to_string()).await
    };
    assert_eq!(post("has-changed", definition("Counts", "Counts")).await.json(), json!({"Changed": false}));
    assert_eq!(post("has-changed", definition("Counts", "Other")).await.json(), json!({"Changed": true}));
    assert_eq!(post("has-changed", definition("New", "New")).await.json(), json!({"Changed": true}));
    let names = json!(["Counts"]);
    assert_eq!(post("set-lock", json!({"IndexNames": names, "Mode": "Unlock"})).await.status, StatusCode::NO_CONTENT);
    let locked = post("set-lock", json!({"IndexNames": names, "Mode": "Locked"})).await;
    locked.assert_error(400, "ArgumentException", &["'Locked'", "LockedError"]);
    let low = post("set-priority", json!({"IndexNames": names, "Priority": "Low"})).await;
    assert_eq!(low.status, StatusCode::NO_CONTENT);
    let none = post("set-priority", json!({"IndexNames": ["none"], "Priority": "Low"})).await;
    none.assert_error(404, ".IndexDoesNotExistException", &["none"]);
}
