//! A definition can be tried out before it is put: what it emits, what comes of it, what fails, what it costs; nothing is written.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::TestServer;

const ORDERS: &str = r#"source("Orders");
output("Sales");
fn map(order) {
    for line in order.Lines {
        emit(#{ Product: line.Product }, #{ Count: 1, Total: line.Quantty ?? line.Price, Big: order.Custmer.Name });
    }
    if order.Lines.count("Discont") > 0 { emit("never", #{}); }
}
fn reduce(key, values) {
    #{ Count: values.sum("Count"), Total: values.sum("Total"), Tax: values.sum("Tex") }
}
fn finish(key, value) {
    value.Average = value.Total / value.Count;
    value.Name = key.Produkt;
    value
}
"#;

async fn with_orders() -> TestServer {
    let server = TestServer::with_database().await;
    for (id, lines) in [
        ("orders/1", json!([{"Product": "a", "Price": 2}, {"Product": "b", "Price": 3.50}])),
        ("orders/2", json!([{"Product": "a", "Price": 4}])),
        ("orders/3", json!([{"Product": "a", "Price": "much"}])),
    ] {
        server.item("Orders", id, &json!({"Lines": lines}).to_string()).await;
    }
    server.item("Others", "others/1", "{}").await;
    server
}

async fn test(server: &TestServer, query: &str, body: impl Into<reqwest::Body>) -> crate::support::Answer {
    server.send(Method::POST, &format!("/databases/db/indexes/test?{query}"), body).await
}

fn fields(tried: &Value) -> Vec<(String, String)> {
    let text = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    tried["UnknownFields"].as_array().unwrap().iter().map(|it| (text(it, "Phase"), text(it, "Field"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_documents_show_entries_groups_faults_and_costs_and_nothing_is_written() {
    let server = with_orders().await;
    let etag = server.last_etag().await;
    let answer = test(&server, "name=Sales", ORDERS).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let tried = answer.json();
    let documents = tried["Documents"].as_array().unwrap();
    assert_eq!(documents.len(), 3);
    let first = documents.iter().find(|it| it["Id"] == "orders/1").unwrap();
    assert_eq!(first["Entries"][0], json!({"Key": {"Product": "a"}, "Value": {"Big": null, "Count": 1, "Total": 2}}));
    assert!(first["Cost"]["Operations"].as_u64().unwrap() > 5 && first["Cost"]["Micros"].is_u64(), "{first}");
    assert!(answer.text().contains("\"Total\":3.5"), "numbers are exact");
    let groups = tried["Groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    let b = groups.iter().find(|it| it["Key"]["Product"] == "b").unwrap();
    assert_eq!(b["Result"], json!({"Product": "b", "Average": 3.5, "Count": 1, "Name": null, "Tax": 0, "Total": 3.5}));
    assert!(b["Id"].as_str().unwrap().starts_with("Sales/"));
    let a = groups.iter().find(|it| it["Key"]["Product"] == "a").unwrap();
    assert_eq!((&a["Entries"], &a["Result"]), (&json!(3), &Value::Null));
    assert_eq!((&a["Fault"]["Phase"], &a["Fault"]["Line"]), (&json!("Reduce"), &json!(10)));
    assert!(a["Fault"]["Message"].as_str().unwrap().contains("Total"), "{a}");
    assert_eq!(
        (&tried["Map"]["Calls"], &tried["Reduce"]["Calls"], &tried["Reduce"]["Faults"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert!(tried["Map"]["OperationsMost"].as_u64() <= tried["Map"]["Operations"].as_u64());
    assert_eq!(server.last_etag().await, etag);
    assert_eq!(server.get("/databases/db/indexes?namesOnly=true").await.json(), json!({"Results": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_nothing_has_are_told_by_their_whole_path() {
    let server = with_orders().await;
    let tried = test(&server, "id=orders/1&id=orders/2", ORDERS).await.json();
    let field = |phase: &str, field: &str| (phase.to_owned(), field.to_owned());
    assert_eq!(
        fields(&tried),
        [
            field("Map", "Custmer"),
            field("Map", "Lines[].Discont"),
            field("Map", "Lines[].Quantty"),
            field("Reduce", "Tex"),
            field("Finish", "Produkt"),
        ]
    );
    let quantity = tried["UnknownFields"][2].clone();
    assert_eq!(quantity["Reads"], 3, "{quantity}");
    server.item("Orders", "orders/4", r#"{"Lines":[{"Product":"c","Quantty":1}],"Custmer":null}"#).await;
    let tried = test(&server, "", ORDERS).await.json();
    assert_eq!(fields(&tried), [field("Map", "Lines[].Discont"), field("Reduce", "Tex"), field("Finish", "Produkt")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_in_json_is_tried_on_documents_that_come_along() {
    let server = TestServer::with_database().await;
    let definition = json!({
        "Maps": ["source(\"A\"); fn map(doc) { emit(doc.k, #{ n: 1 }); }", "source(\"B\"); fn map(doc) { emit(doc.k, #{ n: 10 }); }"],
        "Reduce": "fn reduce(key, values) { #{ n: values.sum(\"n\") } }",
    });
    let documents = json!([
        {"k": 1, "@metadata": {"@collection": "A", "@id": "a/1"}},
        {"k": 1, "@metadata": {"@collection": "B"}},
        {"k": 2, "@metadata": {"@collection": "C"}},
        {"k": 5, "@metadata": {"@collection": "A", "@id": "A/1"}},
    ]);
    let body = json!({"IndexDefinition": definition, "Documents": documents}).to_string();
    let tried = test(&server, "", body).await.json();
    let ids: Vec<&str> = tried["Documents"].as_array().unwrap().iter().map(|it| it["Id"].as_str().unwrap()).collect();
    assert_eq!((ids, &tried["NotTaken"]), (vec!["sample/2", "A/1"], &json!(1)), "of one id the last one counts");
    assert_eq!(tried["Groups"][0]["Result"], json!({"Key": 1, "n": 10}));
    assert_eq!((&tried["Groups"][1]["Result"], &tried["Groups"][1]["Id"]), (&json!({"Key": 5, "n": 1}), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_equals_the_index_that_is_put_then() {
    let server = TestServer::with_database().await;
    let put =
        |n: u32| crate::sums::put_command("Items", &format!("items/{n}"), json!({"k": n % 3, "name": format!("{n},")}));
    server.batch(&(0..400).map(put).collect()).await;
    // Brackets show the very calls: the tree of a trial is that of the index.
    let script = r#"source("Items"); output("Out"); fn map(doc) { emit(doc.k, #{ s: doc.name }); }
        fn reduce(key, values) { let text = "("; for value in values { text += value.s; } #{ s: text + ")" } }"#;
    let tried = test(&server, "count=1000", script).await.json();
    server.must_index("Index", script).await;
    server.wait_for_indexes().await;
    let mut results: Vec<String> =
        tried["Groups"].as_array().unwrap().iter().map(|it| it["Result"].to_string()).collect();
    results.sort();
    let bodies: Vec<String> =
        server.bodies("Out").await.iter().map(|it| serde_json::from_str::<Value>(it).unwrap().to_string()).collect();
    assert_eq!(results, bodies);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_tried_is_refused_by_name() {
    let server = with_orders().await;
    let broken = ORDERS.replace("for line in order.Lines {", "for line in order.Lines");
    test(&server, "name=Sales", broken).await.assert_error(400, ".IndexCompilationException", &["Sales", ":5:"]);
    let query = json!({"IndexDefinition": {"Maps": ["x"]}, "Query": "from index 'x'"}).to_string();
    test(&server, "", query).await.assert_error(501, "NotSupportedException", &["query"]);
    test(&server, "", "{\"Maps\":[]}").await.assert_error(400, "InvalidDataException", &["IndexDefinition"]);
    let bad = json!({"IndexDefinition": {"Maps": ["source(\"A\"); fn map(d) {}"]}, "Documents": [{"@metadata": 1}]});
    test(&server, "", bad.to_string()).await.assert_error(400, "InvalidDataException", &["document 0"]);
    test(&server, "count=x", ORDERS).await.assert_error(400, "ArgumentException", &["'count'"]);
    let endless = "source(\"Orders\"); fn map(doc) { loop {} } fn reduce(key, values) { 1 }";
    let tried = test(&server, "", endless).await.json();
    assert_eq!(tried["Map"]["Faults"], 3);
    assert!(tried["Documents"][0]["Fault"]["Message"].as_str().unwrap().contains("operations"), "{tried}");
    let path = "/databases/db/indexes/test";
    assert_eq!(server.send(Method::PUT, path, ORDERS).await.status, StatusCode::CREATED, "a name like any other");
    assert_eq!(server.delete(path).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_that_loads_is_tried_with_what_comes_along_and_what_is_stored() {
    let server = TestServer::with_database().await;
    server.item("Customers", "customers/1", r#"{"region":"north"}"#).await;
    let script = r#"source("Orders");
        fn map(doc) { let c = load(doc.customer, "Customers"); emit(c.region, #{ v: doc.v, zip: c.zipp }); }"#;
    let documents = json!([
        {"v": 1, "customer": "customers/1", "@metadata": {"@collection": "Orders"}},
        {"v": 2, "customer": "customers/2", "@metadata": {"@collection": "Orders"}},
        {"region": "south", "@metadata": {"@collection": "Customers", "@id": "customers/2"}},
    ]);
    let body = json!({"IndexDefinition": {"Maps": [script]}, "Documents": documents}).to_string();
    let tried = test(&server, "", body).await.json();
    let key = |place: usize| tried["Documents"][place]["Entries"][0]["Key"].clone();
    assert_eq!((key(0), key(1)), (json!("north"), json!("south")));
    assert_eq!(tried["Groups"], json!([]), "an index without a reduce has no groups");
    assert_eq!(fields(&tried), [("Map".to_owned(), "Customers: zipp".to_owned())]);
}
