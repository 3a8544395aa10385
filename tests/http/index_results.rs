//! An index's results by key and by ranges of keys, as CouchDB's views are asked.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{TestServer, escape};

const SALES: &str = r#"
    source("Orders");
    fn map(order) { for tag in order.Tags { emit([order.Year, order.Month, tag], order.Total); } }
    fn reduce(key, values) { values.sum() }
    fn finish(key, value) { #{ Total: value } }
"#;

async fn with_sales(script: &str) -> TestServer {
    let server = TestServer::with_database().await;
    for (n, year, month, total, tags) in [
        (1, 2024, "01", "1.10", r#"["a","b"]"#),
        (2, 2024, "02", "2", r#"["a"]"#),
        (3, 2025, "01", "4", r#"["b"]"#),
        (4, 2025, "01", "8", r#"["b","c"]"#),
        (5, 2026, "03", "16", r#"["a"]"#),
    ] {
        let body = format!(
            r#"{{"Year":{year},"Month":"{month}","Total":{total},"Tags":{tags},"@metadata":{{"@collection":"Orders"}}}}"#
        );
        server.must_put(&format!("Orders/{n}"), body).await;
    }
    assert_eq!(server.put_index("Sales/ByTag", script).await.status, StatusCode::CREATED);
    server
}

impl TestServer {
    async fn results(&self, query: &str) -> Value {
        let answer = self.get(&format!("/databases/db/indexes/Sales%2FByTag/results?update=true&{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {answer:?}");
        answer.json()
    }

    async fn keys(&self, query: &str) -> Vec<String> {
        let rows = self.results(query).await["rows"].clone();
        rows.as_array().unwrap().iter().map(|row| row["key"].to_string()).collect()
    }
}

const ALL: [&str; 6] = [
    r#"[2024,"01","a"]"#,
    r#"[2024,"01","b"]"#,
    r#"[2024,"02","a"]"#,
    r#"[2025,"01","b"]"#,
    r#"[2025,"01","c"]"#,
    r#"[2026,"03","a"]"#,
];

fn some(range: std::ops::Range<usize>) -> Vec<String> {
    ALL[range].iter().map(|&key| key.to_owned()).collect()
}

fn reversed(range: std::ops::Range<usize>) -> Vec<String> {
    let mut keys = some(range);
    keys.reverse();
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_come_in_key_order_within_bounds_and_direction() {
    let server = with_sales(SALES).await;
    let (b, d) = (escape("[2024,\"02\"]"), escape("[2025,\"01\",\"b\"]"));
    let (low, high) = (escape("[2025]"), escape("[2025,{}]"));
    for (query, expected) in [
        (String::new(), some(0..6)),
        ("descending=true".to_owned(), reversed(0..6)),
        (format!("startkey={b}&endkey={d}"), some(2..4)),
        (format!("start_key={b}&end_key={d}&inclusive_end=false"), some(2..3)),
        (format!("startkey={d}&endkey={b}&descending=true"), reversed(2..4)),
        (format!("startkey={d}&endkey={b}&descending=true&inclusive_end=false"), reversed(2..4)),
        (format!("startkey={low}&endkey={high}"), some(3..5)),
        (format!("startkey={high}&endkey={low}"), some(0..0)),
        (format!("startkey={b}&endkey={d}&descending=true"), some(0..0)),
        ("skip=1&limit=2".to_owned(), some(1..3)),
        ("descending=true&skip=1&limit=2".to_owned(), reversed(3..5)),
        ("limit=0".to_owned(), some(0..0)),
        (format!("key={d}"), some(3..4)),
        (
            format!("keys={}", escape(r#"[[2026,"03","a"],[2024,"01","a"],[1]]"#)),
            vec![ALL[5].to_owned(), ALL[0].to_owned()],
        ),
    ] {
        assert_eq!(server.keys(&query).await, expected, "{query}");
    }
    let answer = server.results("limit=1").await;
    assert_eq!((&answer["index"], &answer["stale"]), (&json!("Sales/ByTag"), &json!(false)));
    assert_eq!(answer["rows"][0]["value"]["Total"], json!(1.1));
    let path = "/databases/db/indexes/Sales%2FByTag/results";
    let by_body = server.send(Method::POST, path, r#"{"keys":[[2026,"03","a"]]}"#).await.json();
    assert_eq!(by_body["rows"][0]["key"], json!([2026, "03", "a"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_added_up_by_the_beginning_of_their_keys() {
    let server = with_sales(SALES).await;
    let totals = async |query: &str| {
        let rows = server.results(query).await["rows"].clone();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| (row["key"].to_string(), row["value"]["Total"].to_string())).collect::<Vec<_>>()
    };
    let pairs =
        |rows: &[(&str, &str)]| rows.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>();
    assert_eq!(totals("group_level=1").await, pairs(&[("[2024]", "4.2"), ("[2025]", "20"), ("[2026]", "16")]));
    assert_eq!(
        totals("group_level=2&descending=true&limit=2").await,
        pairs(&[(r#"[2026,"03"]"#, "16"), (r#"[2025,"01"]"#, "20")])
    );
    assert_eq!(totals("group_level=0").await, pairs(&[("null", "40.2")]));
    assert_eq!(totals("group=false").await, pairs(&[("null", "40.2")]));
    let query = format!("group_level=0&startkey={}", escape("[2025]"));
    assert_eq!(totals(&query).await, pairs(&[("null", "36")]));
    assert_eq!(totals("group_level=9").await.len(), 6);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_over_many_entries_are_right_too() {
    let server = TestServer::with_database().await;
    let commands: Vec<Value> = (0..3_000)
        .map(|n| {
            let document = json!({ "Year": 2024, "Month": n % 2, "Total": n, "Tags": ["t"], "@metadata": { "@collection": "Orders" } });
            json!({ "Type": "PUT", "Id": format!("orders/{n}"), "Document": document })
        })
        .collect();
    assert_eq!(server.batch(&json!(commands)).await.status, StatusCode::CREATED);
    assert_eq!(server.put_index("Sales/ByTag", SALES).await.status, StatusCode::CREATED);
    let rows = server.results("group_level=1").await["rows"].clone();
    assert_eq!(rows, json!([{ "key": [2024], "value": { "Key": [2024], "Total": 4_498_500 } }]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_come_with_the_ids_of_their_documents() {
    let server = with_sales(SALES).await;
    let rows = server.results(&format!("reduce=false&key={}", escape("[2025,\"01\",\"b\"]"))).await["rows"].clone();
    let key = json!([2025, "01", "b"]);
    assert_eq!(
        rows,
        json!([{ "id": "Orders/3", "key": key, "value": 4 }, { "id": "Orders/4", "key": key, "value": 8 }])
    );
    assert_eq!(server.results("reduce=false").await["rows"].as_array().unwrap().len(), 7);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_documents_come_with_their_ids() {
    let server = with_sales(&SALES.replace("source(\"Orders\");", "source(\"Orders\"); output(\"Sales\");")).await;
    let rows = server.results("limit=1").await["rows"].clone();
    let document = server.document(rows[0]["id"].as_str().unwrap()).await.unwrap();
    assert_eq!((&document["Total"], &rows[0]["value"]["Total"]), (&json!(1.1), &json!(1.1)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_named() {
    let server = with_sales(SALES).await;
    let path = "/databases/db/indexes/Sales%2FByTag/results";
    for (query, status, words) in [
        ("startkey=abc", 400, "'startkey'"),
        ("key=1&startkey=2", 400, "startkey"),
        ("include_docs=true", 501, "include_docs"),
        ("group_level=-1", 400, "group_level"),
        ("reduce=false&group_level=1", 400, "group_level"),
        ("stale=maybe", 400, "stale"),
        ("keys=5", 400, "keys"),
    ] {
        let answer = server.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.status.as_u16(), status, "{query}: {answer:?}");
        assert!(answer.json()["Message"].as_str().unwrap().contains(words), "{query}: {answer:?}");
    }
    let missing = server.get("/databases/db/indexes/Nope/results").await;
    missing.assert_error(404, "IndexDoesNotExistException", &["Nope"]);
    server.stop().await;
}
