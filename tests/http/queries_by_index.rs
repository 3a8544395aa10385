//! Questions that indexes answer: results by the fields of their keys, and map-only indexes in place of scans. Keys that are lists
//! are read along with others, because a condition holds for a list where it holds for an element.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{TestServer, escape, ids_of};

const BY_CITY: &str =
    r#"source("Orders"); fn map(order) { emit(#{ City: order.ShipTo.City, Total: order.Total }, 0); }"#;
const BY_TAG: &str =
    r#"source("Orders"); fn map(order) { for tag in order.Tags { emit(#{ Tag: tag }, #{ Length: tag.len() }); } }"#;
const SALES: &str = r#"
    source("Orders");
    fn map(order) { emit(#{ City: order.ShipTo.City, Tags: order.Tags.len() }, #{ Count: 1 }); }
    fn reduce(key, values) { #{ Count: values.sum("Count") } }
"#;

async fn with_orders() -> TestServer {
    let server = TestServer::with_database().await;
    let orders: Vec<Value> = (0..200)
        .map(|n| {
            let tags: Vec<String> = (0..n % 3).map(|tag| format!("t{}", (n + tag) % 5)).collect();
            let city = if n % 20 == 7 { json!(["Kyiv", "Lviv"]) } else { json!(format!("City {:02}", n % 20)) };
            let metadata = json!({ "@collection": "Orders" });
            let order = json!({ "ShipTo": { "City": city }, "Total": n % 7, "Tags": tags, "@metadata": metadata });
            json!({ "Type": "PUT", "Id": format!("orders/{n:03}"), "Document": order })
        })
        .collect();
    assert_eq!(server.batch(&json!(orders)).await.status, StatusCode::CREATED);
    server
}

impl TestServer {
    async fn asked(&self, query: &str) -> (Vec<String>, Value) {
        let body = json!({ "Query": query }).to_string();
        let answer = self.send(Method::POST, "/databases/db/queries", body.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {answer:?}");
        let explained = self.send(Method::POST, "/databases/db/queries?debug=explain", body).await.json();
        let (answer, ids) = (answer.json(), ids_of(&answer.json()["Results"]));
        assert_eq!(answer["TotalResults"], explained["TotalResults"], "{query}");
        (ids, explained)
    }

    async fn build_index(&self, name: &str, script: &str) {
        self.must_index(name, script).await;
        self.wait_for_indexes().await;
    }
}

const QUESTIONS: [(&str, u64); 8] = [
    ("from Orders where ShipTo.City = 'City 03'", 20),
    ("from Orders where ShipTo.City = 'City 03' and Total > 4", 20),
    ("from Orders where ShipTo.City in ('City 03', 'City 05', 'Nowhere') order by Total desc", 30),
    ("from Orders where ShipTo.City = 'Lviv'", 10),
    ("from Orders where startsWith(ShipTo.City, 'City 1') and Total = 2", 110),
    ("from Orders where ShipTo.City >= 'City 18' order by id() desc limit 5", 30),
    ("from Orders as o where o.ShipTo.City = 'City 03' order by o.ShipTo.City, o.Total limit 2, 3", 20),
    ("from Orders where ShipTo.City between 'City 02' and 'City 02' limit 4", 20),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_map_only_index_answers_for_its_collection_and_changes_no_answer() {
    let server = with_orders().await;
    let mut scanned = Vec::new();
    for (query, _) in QUESTIONS {
        scanned.push(server.asked(query).await.0);
    }
    server.build_index("Orders/ByCity", BY_CITY).await;
    for ((query, read), expected) in QUESTIONS.into_iter().zip(scanned) {
        let (found, explained) = server.asked(query).await;
        assert_eq!(found, expected, "{query}");
        assert!(explained["Plan"].as_str().unwrap().contains("index 'Orders/ByCity'"), "{query}: {explained}");
        assert!(explained["RowsRead"].as_u64().unwrap() <= read, "{query}: {explained}");
    }
    let page = server.asked("from Orders order by ShipTo.City, Total limit 3").await;
    assert!(page.1["RowsRead"].as_u64().unwrap() <= 4, "{:?}", page.1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_lags_makes_no_answer_old() {
    let server = with_orders().await;
    server.build_index("Orders/ByCity", BY_CITY).await;
    server.send(Method::POST, "/databases/db/admin/indexes/stop", "").await;
    let moved = r#"{"ShipTo":{"City":"City 03"},"Total":1,"@metadata":{"@collection":"Orders"}}"#;
    server.must_put("orders/new", moved).await;
    server.must_put("orders/003", moved.replace("City 03", "Elsewhere")).await;
    server.delete("/databases/db/docs?id=orders/023").await;
    let (found, explained) = server.asked("from Orders where ShipTo.City = 'City 03'").await;
    let mut expected: Vec<String> = (2..10).map(|n| format!("orders/{:03}", n * 20 + 3)).collect();
    expected.push("orders/new".to_owned());
    assert_eq!(found, expected);
    assert!(explained["Plan"].as_str().unwrap().contains("index 'Orders/ByCity'"), "{explained}");
    assert_eq!(explained["IsStale"], false);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_only_index_is_asked_for_its_entries_documents() {
    let server = with_orders().await;
    server.build_index("Orders/ByTag", BY_TAG).await;
    let (found, _) = server.asked("from index 'Orders/ByTag' where Tag = 't2' order by id()").await;
    let (scanned, _) = server.asked("from Orders where Tags = 't2'").await;
    assert_eq!(found, scanned);
    let (all, explained) = server.asked("from index 'Orders/ByTag' where Length = 2").await;
    let (tagged, _) = server.asked("from Orders where Tags in ('t0','t1','t2','t3','t4')").await;
    assert_eq!(all.len(), tagged.len(), "each document once: {explained}");
    let path = format!("/databases/db/indexes/Orders%2FByTag/results?key={}&limit=2", escape(r#"{"Tag":"t2"}"#));
    let rows = server.get(&path).await.json()["rows"].clone();
    assert_eq!(rows[0], json!({ "id": found[0], "key": { "Tag": "t2" }, "value": { "Length": 2 } }));
    let refused = server.get("/databases/db/indexes/Orders%2FByTag/results?group_level=1").await;
    assert_eq!(refused.status.as_u16(), 400, "{refused:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_read_by_the_first_fields_of_their_keys() {
    let server = with_orders().await;
    server.build_index("Sales", SALES).await;
    for script in [SALES.to_owned(), SALES.replace("source", "output(\"Sales\"); source")] {
        server.build_index("Sales", &script).await;
        for (query, found, read) in [
            ("from index Sales where City = 'City 04'", 3, 6),
            ("from index Sales where City = 'City 04' and Tags >= 1", 2, 5),
            ("from index Sales where City in ('City 04', 'City 05') and Tags = 0", 2, 5),
            ("from index Sales where City = 'Lviv'", 3, 3),
            // Ranges include their bounds: what stands at 'City 17' itself is read and left out.
            ("from index Sales where City > 'City 17' order by City desc, Tags", 9, 12),
            ("from index Sales where Count > 0", 60, 60),
        ] {
            let body = json!({ "Query": query }).to_string();
            let explained = server.send(Method::POST, "/databases/db/queries?debug=explain", body).await.json();
            assert_eq!(explained["RowsShown"], found, "{query}: {explained}");
            assert!(explained["RowsRead"].as_u64().unwrap() <= read, "{query}: {explained}");
        }
    }
    server.stop().await;
}
