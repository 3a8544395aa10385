//! `_all_docs`: documents by id with CouchDB's rules for bounds, direction, skip and limit.

use std::collections::BTreeMap;

use proptest::prelude::*;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestServer, escape};

async fn with_documents(ids: &[&str]) -> TestServer {
    let server = TestServer::with_database().await;
    for id in ids {
        server.must_put(id, json!({ "of": id, "@metadata": { "@collection": "Items" } }).to_string()).await;
    }
    server
}

async fn all_docs(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/databases/db/_all_docs?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
    answer.json()
}

fn ids(listing: &Value) -> Vec<&str> {
    listing["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

/// A parameter whose value is the JSON of a string.
fn text(name: &str, value: &str) -> String {
    format!("{name}={}&", escape(&json!(value).to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_id_key_and_revision_and_the_document_when_asked_for() {
    let server = with_documents(&["a", "b"]).await;
    let listing = all_docs(&server, "").await;
    let document = server.document("a").await.unwrap();
    let rev = document["@metadata"]["@change-vector"].clone();
    assert_eq!((&listing["total_rows"], &listing["offset"]), (&json!(2), &json!(0)));
    assert_eq!(listing["rows"][0], json!({"id": "a", "key": "a", "value": {"rev": rev}}));
    let listing = all_docs(&server, "include_docs=true&update_seq=true&skip=1").await;
    assert_eq!((&listing["update_seq"], &listing["offset"]), (&json!(2), &json!(1)));
    let shown = &listing["rows"][0]["doc"];
    assert_eq!((&shown["_id"], &shown["of"]), (&json!("b"), &json!("b")));
    assert_eq!(shown["_rev"], listing["rows"][0]["value"]["rev"]);
    assert_eq!(shown["@metadata"]["@collection"], "Items");
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_direction_and_limit_follow_couchdbs_rules() {
    let server = with_documents(&["a", "b", "c", "d", "e"]).await;
    for (query, expected) in [
        ("startkey=\"b\"&endkey=\"d\"", "bcd"),
        ("startkey=\"b\"&endkey=\"d\"&inclusive_end=false", "bc"),
        ("startkey=\"d\"&endkey=\"b\"&descending=true", "dcb"),
        ("startkey=\"d\"&endkey=\"b\"&descending=true&inclusive_end=false", "dc"),
        ("startkey=\"bb\"&endkey=\"dd\"", "cd"),
        ("start_key=\"B\"&end_key=\"zz\"&limit=2", "bc"),
        ("descending=true&limit=2", "ed"),
        ("descending=true&skip=1&limit=2", "dc"),
        ("skip=4", "e"),
        ("skip=9", ""),
        ("limit=0", ""),
        ("startkey=\"z\"", ""),
        ("key=\"c\"", "c"),
        ("key=\"cc\"", ""),
        ("endkey={}&startkey=\"d\"", "de"),
        ("startkey=null&endkey=\"b\"", "ab"),
        ("endkey=7", ""),
        ("prefix=C", "c"),
    ] {
        assert_eq!(ids(&all_docs(&server, query).await).concat(), expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_come_in_their_order_also_those_without_a_document() {
    let server = with_documents(&["a", "b", "c"]).await;
    server.delete("/databases/db/docs?id=c").await;
    let body = json!({ "keys": ["b", "nope", "A", "c", "b", 5] });
    let answer = server.send(Method::POST, "/databases/db/_all_docs?include_docs=true", body.to_string()).await;
    let listing = answer.json();
    assert_eq!((&listing["total_rows"], &listing["offset"]), (&json!(2), &json!(null)));
    let rows = listing["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[1], json!({"key": "nope", "error": "not_found"}));
    assert_eq!(rows[3], json!({"key": "c", "error": "not_found"}));
    assert_eq!(rows[5], json!({"key": 5, "error": "not_found"}));
    assert_eq!((&rows[2]["key"], &rows[2]["id"], &rows[2]["doc"]["_id"]), (&json!("A"), &json!("a"), &json!("a")));
    assert_eq!((&rows[0], &rows[4]["doc"]["of"]), (&rows[4], &json!("b")));
    let listing = all_docs(&server, "keys=[\"a\",\"b\",\"x\"]&descending=true&skip=1&limit=1").await;
    assert_eq!(ids(&listing), ["b"]);
    // A body may hold every parameter.
    let body = json!({ "startkey": "a", "limit": 1, "include_docs": true }).to_string();
    let answer = server.send(Method::POST, "/databases/db/_all_docs?limit=5", body).await;
    assert_eq!(answer.json()["rows"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_listed_is_refused_in_couchdbs_words() {
    let server = with_documents(&["a"]).await;
    for (query, status, name, word) in [
        ("startkey=a", 400, "bad_request", "startkey"),
        ("startkey=\"d\"&endkey=\"b\"", 400, "bad_request", "exchange them"),
        ("startkey=\"b\"&endkey=\"d\"&descending=true", 400, "bad_request", "descending=false"),
        ("keys=[\"a\"]&startkey=\"a\"", 400, "bad_request", "keys"),
        ("limit=-1", 400, "bad_request", "limit"),
        ("skip=x", 400, "bad_request", "skip"),
        ("include_docs=maybe", 400, "bad_request", "include_docs"),
        ("attachments=true", 501, "not_implemented", "attachments"),
        ("collection=Items", 501, "not_implemented", "collection"),
    ] {
        let answer = server.get(&format!("/databases/db/_all_docs?{query}")).await;
        answer.assert_error(status, "Exception", &[word]);
        let body = answer.json();
        assert_eq!((&body["error"], &body["reason"]), (&json!(name), &body["Message"]), "{query}");
    }
    let missing = server.get("/databases/none/_all_docs").await;
    assert_eq!((missing.status, missing.json()["error"].as_str()), (StatusCode::NOT_FOUND, Some("not_found")));
    let answer = server.send(Method::POST, "/databases/db/_all_docs/queries", "{}").await;
    assert_eq!(answer.status, StatusCode::NOT_IMPLEMENTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_has_every_id_that_begins_with_it_and_no_other() {
    let all = ["m/a", "m/♪♫", "m/\u{FFFD}", "m/😀", "m/\u{10FFFF}", "m0", "n"];
    let server = with_documents(&all).await;
    assert_eq!(ids(&all_docs(&server, "").await), all);
    assert_eq!(ids(&all_docs(&server, "prefix=m/").await), all[..5]);
    let to_uffff = format!("{}{}", text("startkey", "m/"), text("endkey", "m/\u{FFFF}"));
    assert_eq!(ids(&all_docs(&server, &to_uffff).await), all[..3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_and_its_comments_are_one_range() {
    let server = with_documents(&[
        "post/10/comment/1",
        "post/1",
        "post/1/comment/2014-01-02T10:00/anna",
        "post/1/comment/2014-01-01T09:00/bert",
        "post/10",
        "post/2",
    ])
    .await;
    let query = format!("{}{}include_docs=true", text("startkey", "post/1"), text("endkey", "post/1/\u{FFFF}"));
    let listing = all_docs(&server, &query).await;
    let one = ["post/1", "post/1/comment/2014-01-01T09:00/bert", "post/1/comment/2014-01-02T10:00/anna"];
    assert_eq!(ids(&listing), one);
    assert!(listing["rows"].as_array().unwrap().iter().all(|row| row["doc"]["of"] == row["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_transactions_come_by_time_alone_or_newest_first() {
    let account = |n: u32| format!("acc-7:2024-{:02}-15T00:00:00Z", n + 1);
    let transactions: Vec<String> = (0..12).map(account).collect();
    let mut all: Vec<&str> = transactions.iter().map(String::as_str).collect();
    all.extend(["acc-6:2024-02-01T00:00:00Z", "acc-77:2024-02-01T00:00:00Z"]);
    let server = with_documents(&all).await;
    let spring = format!("{}{}", text("startkey", "acc-7:2024-03"), text("endkey", "acc-7:2024-06"));
    let listing = all_docs(&server, &format!("{spring}inclusive_end=false")).await;
    assert_eq!(ids(&listing), transactions[2..5]);
    assert!(listing["rows"].as_array().unwrap().iter().all(|row| row.get("doc").is_none()));
    let newest = format!("{}{}", text("startkey", "acc-7:\u{FFFF}"), text("endkey", "acc-7:"));
    let listing = all_docs(&server, &format!("{newest}descending=true&limit=2&include_docs=true")).await;
    assert_eq!(ids(&listing), [account(11).as_str(), account(10).as_str()]);
}

/// Character by character, as ids are compared.
fn lower_cased(id: &str) -> String {
    id.chars().flat_map(char::to_lowercase).collect()
}

#[derive(Clone, Debug)]
struct Request {
    start: Option<String>,
    end: Option<String>,
    inclusive: bool,
    descending: bool,
    skip: usize,
    limit: Option<usize>,
}

impl Request {
    fn query(&self) -> String {
        let bounds = [("startkey", &self.start), ("endkey", &self.end)];
        let bounds = bounds.map(|(name, key)| key.as_ref().map_or_else(String::new, |key| text(name, key)));
        let limit = self.limit.map_or_else(String::new, |limit| format!("&limit={limit}"));
        let Self { inclusive, descending, skip, .. } = self;
        format!("{}inclusive_end={inclusive}&descending={descending}&skip={skip}{limit}", bounds.concat())
    }

    /// What CouchDB's documentation says, over lower-cased ids; `None`: refused.
    fn expected(&self, all: &BTreeMap<String, String>) -> Option<Vec<String>> {
        let lower = |key: &Option<String>| key.as_ref().map(|key| lower_cased(key));
        let (start, end) = (lower(&self.start), lower(&self.end));
        let mut order: Vec<(&String, &String)> = all.iter().collect();
        if self.descending {
            order.reverse();
        }
        let before = |one: &str, other: &str| if self.descending { one > other } else { one < other };
        if let (Some(start), Some(end)) = (&start, &end)
            && before(end, start)
        {
            return None;
        }
        let wanted = order.into_iter().filter(|(id, _)| {
            let begun = start.as_ref().is_none_or(|start| !before(id, start));
            let ended = end.as_ref().is_some_and(|end| before(end, id) || (!self.inclusive && *id == end));
            begun && !ended
        });
        let wanted = wanted.skip(self.skip).take(self.limit.unwrap_or(usize::MAX));
        Some(wanted.map(|(_, id)| id.clone()).collect())
    }
}

fn request() -> impl Strategy<Value = Request> {
    let key = || prop::option::of("[a-cA-C]{0,2}(/[a-c😀é]?)?");
    (key(), key(), any::<bool>(), any::<bool>(), 0..3_usize, prop::option::of(0..6_usize)).prop_map(
        |(start, end, inclusive, descending, skip, limit)| Request { start, end, inclusive, descending, skip, limit },
    )
}

/// Any range of any ids is what sorting and filtering them gives.
#[test]
fn every_range_is_what_the_rules_say() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let letters = ["", "a", "B", "c", "cc", "😀", "é"];
    let all: Vec<String> = ["a", "b", "C", "ab", "x"]
        .iter()
        .flat_map(|one| letters.map(|two| format!("{one}/x{two}")))
        .chain(["a", "ca"].map(str::to_owned))
        .collect();
    let server = runtime.block_on(with_documents(&all.iter().map(String::as_str).collect::<Vec<_>>()));
    let by_lower: BTreeMap<String, String> = all.into_iter().map(|id| (lower_cased(&id), id)).collect();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 256, ..ProptestConfig::default() });
    let run = runner.run(&request(), |request| {
        let path = format!("/databases/db/_all_docs?{}", request.query());
        let answer = runtime.block_on(server.get(&path));
        match request.expected(&by_lower) {
            None => prop_assert_eq!(answer.status, StatusCode::BAD_REQUEST),
            Some(expected) => {
                let listing = answer.json();
                prop_assert_eq!(ids(&listing), expected);
            }
        }
        Ok(())
    });
    run.unwrap();
}
