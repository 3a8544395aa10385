//! Indexes over the results of indexes: they follow every step below them, also across restarts, and never in a circle.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::{DateTime, date};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sums::SUM_BY_K;
use crate::support::TestServer;

fn level(source: &str, output: &str, unit: &str) -> String {
    format!(
        r#"source("{source}"); output("{output}");
           fn map(doc) {{ emit(#{{ At: doc.At.{unit}() }}, #{{ Amount: doc.Amount, Count: doc.Count ?? 1 }}); }}
           fn reduce(key, values) {{ #{{ Amount: values.sum("Amount"), Count: values.sum("Count") }} }}"#
    )
}

/// 30 invoices every six hours, then three a month for 30 months, later each month.
fn invoice_times() -> Vec<DateTime> {
    let first = date(2017, 1, 1).at(0, 0, 0, 0);
    let second = date(2018, 1, 1).at(0, 0, 0, 0);
    let dense = (0..30_i64).map(|number| first + (6 * number).hours());
    let sparse =
        (0..30_i64).flat_map(|number| [6, 12, 18].map(|hours| second + number.months() + (hours * number).hours()));
    dense.chain(sparse).collect()
}

/// The invoices that should be there: time and amount, by number.
type Invoices = BTreeMap<usize, (DateTime, i64)>;

/// A server on a directory, and what should be in it.
struct Books {
    server: Option<TestServer>,
    directory: tempfile::TempDir,
    invoices: Invoices,
    steps: usize,
}

impl Books {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = TestServer::start_on(directory.path(), |_| {}).await;
        server.create("db").await;
        for (source, output, unit) in
            [("Invoices", "Daily", "day"), ("Daily", "Monthly", "month"), ("Monthly", "Yearly", "year")]
        {
            server.must_index(output, &level(source, output, unit)).await;
        }
        Self { server: Some(server), directory, invoices: Invoices::new(), steps: 0 }
    }

    fn server(&self) -> &TestServer {
        self.server.as_ref().unwrap()
    }

    async fn put(&mut self, number: usize, at: DateTime, amount: i64) {
        let body = json!({"At": at.to_string(), "Amount": amount}).to_string();
        self.server().item("Invoices", &format!("invoices/{number}"), &body).await;
        self.invoices.insert(number, (at, amount));
        self.check().await;
    }

    async fn delete(&mut self, number: usize) {
        self.server().remove(&format!("invoices/{number}")).await;
        self.invoices.remove(&number);
        self.check().await;
    }

    /// All levels are what the invoices add up to; every fortieth time the server is started again before they are looked at.
    async fn check(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(40) {
            self.server.take().unwrap().stop().await;
            self.server = Some(TestServer::start_on(self.directory.path(), |_| {}).await);
        }
        self.server().wait_for_indexes().await;
        for (collection, prefix) in [("Daily", 10), ("Monthly", 7), ("Yearly", 4)] {
            let mut expected: BTreeMap<String, (i64, i64)> = BTreeMap::new();
            for (at, amount) in self.invoices.values() {
                let period = expected.entry(at.to_string()[..prefix].to_owned()).or_default();
                *period = (period.0 + amount, period.1 + 1);
            }
            let found: BTreeMap<String, (i64, i64)> =
                self.server().bodies(collection).await.iter().map(|body| read(body)).collect();
            assert_eq!(found, expected, "{collection} after step {}", self.steps);
        }
    }

    async fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for (count, collection) in counts.iter_mut().zip(["Invoices", "Daily", "Monthly", "Yearly"]) {
            *count = self.server().bodies(collection).await.len();
        }
        counts
    }
}

fn read(body: &str) -> (String, (i64, i64)) {
    let body: Value = serde_json::from_str(body).unwrap();
    let number = |field: &str| body[field].as_i64().unwrap();
    (body["At"].to_string().trim_matches('"').to_owned(), (number("Amount"), number("Count")))
}

#[tokio::test(flavor = "multi_thread")]
async fn three_levels_are_right_at_every_step_of_adding_changing_and_deleting_also_across_restarts() {
    let mut books = Books::open().await;
    for (number, at) in invoice_times().into_iter().enumerate() {
        let amount = i64::try_from(number).unwrap() + 1;
        books.put(number, at, amount).await;
    }
    assert_eq!(books.counts().await, [120, 93, 31, 4]);
    for (number, at) in invoice_times().into_iter().enumerate().step_by(2) {
        books.put(number, at + 1.month(), 1000).await;
    }
    for number in 0..120 {
        books.delete(number).await;
    }
    assert_eq!(books.counts().await, [0; 4]);
    books.server.take().unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_would_feed_itself_is_refused_with_the_whole_way() {
    let server = TestServer::with_database().await;
    let over = |source: &str, output: &str| SUM_BY_K.replace("Items", source).replace("Out", output);
    server.put_index("Self", &over("A", "A")).await.assert_error(
        400,
        ".IndexInvalidException",
        &["'A'", "own sources"],
    );
    server.must_index("First", &over("A", "B")).await;
    server.must_index("Second", &over("B", "C")).await;
    let refused = server.put_index("Third", &over("C", "A")).await;
    refused.assert_error(400, ".IndexInvalidException", &["'Third'", "'First'", "'Second'", "'A'", "'B'", "'C'"]);
    let names = server.get("/databases/db/indexes?namesOnly=true").await.json();
    assert_eq!(names, json!({"Results": ["First", "Second"]}), "nothing half-made is left");
    server.item("A", "a", r#"{"k":1,"v":2}"#).await;
    server.wait_for_indexes().await;
    assert_eq!((server.bodies("B").await.len(), server.bodies("C").await.len()), (1, 1), "the others go on");
    server.must_index("Diamond", &over("C", "D").replace("source(\"C\");", "source(\"C\"); source(\"B\");")).await;
    server.item("C2", "c", r#"{"k":1,"v":2}"#).await;
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("D").await.len(), 1, "two ways to one index are no circle");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_collection_that_holds_documents_is_refused_and_one_that_is_owned_is_closed_to_users() {
    let server = TestServer::with_database().await;
    server.item("Out", "Out/1", r#"{"mine":true}"#).await;
    server.put_index("Index", SUM_BY_K).await.assert_error(400, ".IndexInvalidException", &["'Out'", "1"]);
    assert_eq!(server.document("Out/1").await.unwrap()["mine"], true);
    server.remove("Out/1").await;
    server.must_index("Index", SUM_BY_K).await;
    server.item("Items", "a", r#"{"k":1,"v":2}"#).await;
    server.wait_for_indexes().await;
    let id = server.versions("Out").await.into_keys().next().unwrap();
    let before = server.bodies("Out").await;
    let put = server.put(&id, "{}").await;
    assert!(put.status.is_client_error() && put.text().contains("Index"), "{}", put.text());
    let deleted = server.delete(&format!("/databases/db/docs?id={id}")).await;
    assert!(deleted.status.is_client_error() && deleted.text().contains("Index"), "{}", deleted.text());
    let other = server.put("other", r#"{"@metadata":{"@collection":"out"}}"#).await;
    assert!(other.status.is_client_error() && other.text().contains("Index"), "{}", other.text());
    assert_eq!(server.bodies("Out").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_move_to_another_collection_whole_and_a_reset_changes_nothing() {
    let server = TestServer::with_index(&SUM_BY_K.replace("Out", "Out1")).await;
    for (id, k) in [("a", 1), ("b", 1), ("c", 2)] {
        server.item("Items", id, &json!({"k": k, "v": 1}).to_string()).await;
    }
    server.wait_for_indexes().await;
    let before = server.bodies("Out1").await;
    assert_eq!(before.len(), 2);
    server.must_index("Index", &SUM_BY_K.replace("Out", "Out2")).await;
    server.wait_for_indexes().await;
    assert_eq!((server.bodies("Out1").await.len(), server.bodies("Out2").await), (0, before.clone()));
    let versions = server.versions("Out2").await;
    for _ in 0..2 {
        server.rebuild("Index").await;
        assert_eq!((server.bodies("Out2").await, server.versions("Out2").await), (before.clone(), versions.clone()));
    }
    let free =
        server.send(Method::PUT, "/databases/db/docs?id=Out1/x", r#"{"@metadata":{"@collection":"Out1"}}"#).await;
    assert_eq!(free.status, StatusCode::CREATED, "what was given up is free: {}", free.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_loads_what_it_writes_is_refused_also_by_way_of_another_index() {
    let server = TestServer::with_database().await;
    let loading = |source: &str, loaded: &str, output: &str| {
        format!(
            r#"source("{source}"); output("{output}");
               fn map(doc) {{ emit(doc.k, #{{ v: load(doc.other, "{loaded}").v }}); }}
               fn reduce(key, values) {{ #{{ v: values.sum("v") }} }}"#
        )
    };
    server.put_index("Self", &loading("A", "B", "B")).await.assert_error(400, ".IndexInvalidException", &["'B'"]);
    server.must_index("First", &loading("A", "X", "B")).await;
    let refused = server.put_index("Second", &loading("B", "A2", "X")).await;
    refused.assert_error(400, ".IndexInvalidException", &["'Second'", "'First'", "'X'", "'B'"]);
    assert_eq!(server.get("/databases/db/indexes?namesOnly=true").await.json(), json!({"Results": ["First"]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_whose_pattern_meets_nothing_is_a_fault_of_its_group_until_the_document_is_mended() {
    let script = r#"source("Items"); output("Sales"); reference("reports/{day}/{product}");
        fn map(doc) { emit(#{ day: doc.day, product: doc.product }, #{ n: 1 }); }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#;
    let server = TestServer::with_index(script).await;
    server.item("Items", "bad", r#"{"day":null,"product":"pie"}"#).await;
    server.item("Items", "good", r#"{"day":"2026-01-02","product":"pie"}"#).await;
    server.wait_for_indexes().await;
    assert_eq!(server.ids("startsWith=reports/").await, ["reports/2026-01-02/pie"]);
    let faults = server.faults("Index").await;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].2.contains("day"), "{faults:?}");
    server.item("Items", "bad", r#"{"day":"2026-01-03","product":"pie"}"#).await;
    server.wait_for_indexes().await;
    assert_eq!(server.ids("startsWith=reports/").await, ["reports/2026-01-02/pie", "reports/2026-01-03/pie"]);
    assert_eq!(server.faults("Index").await, []);
}
