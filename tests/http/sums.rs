//! An index that counts and adds up by a key, and the few words that tests of results speak: put, take away, take in, read.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{TestServer, escape};

/// Counts, and adds `v` up, by `k`; from `Items` to `Out`.
pub(crate) const SUM_BY_K: &str = r#"
source("Items");
output("Out");
fn map(doc) { emit(doc.k, #{ n: 1, v: doc.v }); }
fn reduce(key, values) { #{ n: values.sum("n"), v: values.sum("v") } }
"#;

impl TestServer {
    /// A server whose database has this index.
    pub(crate) async fn with_index(script: &str) -> Self {
        let server = Self::with_database().await;
        server.must_index("Index", script).await;
        server
    }

    /// Puts an index, which must be taken.
    pub(crate) async fn must_index(&self, name: &str, script: &str) {
        let answer = self.put_index(name, script).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    }

    /// Puts a document into a collection; `body` is JSON text of an object, sent as it is.
    pub(crate) async fn item(&self, collection: &str, id: &str, body: &str) {
        self.must_put(id, in_collection(collection, body)).await;
    }

    /// Deletes a document.
    pub(crate) async fn remove(&self, id: &str) {
        let answer = self.delete(&format!("/databases/db/docs?id={}", escape(id))).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
    }

    /// Pauses all indexes.
    pub(crate) async fn pause(&self) {
        let answer = self.send(Method::POST, "/databases/db/admin/indexes/stop", "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
    }

    /// Lets all indexes go on, and waits until they have taken in everything.
    pub(crate) async fn resume(&self) {
        let answer = self.send(Method::POST, "/databases/db/admin/indexes/start", "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
        self.wait_for_indexes().await;
    }

    /// Builds an index anew and waits for it.
    pub(crate) async fn rebuild(&self, name: &str) {
        let reset = Method::from_bytes(b"RESET").unwrap();
        let answer = self.send(reset, &format!("/databases/db/indexes?name={name}"), "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
        self.wait_for_indexes().await;
    }

    /// The bodies of a collection's documents as text, digit by digit, sorted.
    pub(crate) async fn bodies(&self, collection: &str) -> Vec<String> {
        let mut bodies: Vec<String> = self.listed(collection).await.into_values().map(|(body, _)| body).collect();
        bodies.sort();
        bodies
    }

    /// The change vector of each of a collection's documents.
    pub(crate) async fn versions(&self, collection: &str) -> BTreeMap<String, String> {
        self.listed(collection).await.into_iter().map(|(id, (_, version))| (id, version)).collect()
    }

    async fn listed(&self, collection: &str) -> BTreeMap<String, (String, String)> {
        let path = format!("/databases/db/collections/docs?name={}&pageSize=100000", escape(collection));
        let answer = self.get(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let read: BTreeMap<String, Vec<BTreeMap<String, Box<serde_json::value::RawValue>>>> =
            serde_json::from_slice(&answer.body).unwrap();
        let document = |fields: &BTreeMap<String, Box<serde_json::value::RawValue>>| {
            let metadata: Value = serde_json::from_str(fields["@metadata"].get()).unwrap();
            let text = |name: &str| metadata[name].as_str().unwrap().to_owned();
            let own = fields.iter().filter(|(name, _)| *name != "@metadata");
            let own: Vec<String> = own.map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
            (text("@id"), (format!("{{{}}}", own.join(",")), text("@change-vector")))
        };
        read["Results"].iter().map(document).collect()
    }

    /// The faults of an index: what they are about, when they happened, and what they say.
    pub(crate) async fn faults(&self, index: &str) -> Vec<(String, String, String)> {
        let answer = self.get(&format!("/databases/db/indexes/errors?name={index}")).await.json();
        let errors = answer["Results"][0]["Errors"].as_array().unwrap().clone();
        let text = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
        errors.iter().map(|it| (text(it, "Document"), text(it, "Action"), text(it, "Error"))).collect()
    }

    /// The etag that was given out last.
    pub(crate) async fn last_etag(&self) -> u64 {
        self.get("/databases/db/stats").await.json()["LastDatabaseEtag"].as_u64().unwrap()
    }
}

/// The text of a document in a collection.
pub(crate) fn in_collection(collection: &str, body: &str) -> String {
    let inside = body.trim().strip_prefix('{').unwrap();
    let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"@metadata\":{{\"@collection\":{}}}{comma}{inside}", Value::from(collection))
}

/// A put, as a command of a batch.
pub(crate) fn put_command(collection: &str, id: &str, mut body: Value) -> Value {
    body["@metadata"] = json!({"@collection": collection});
    json!({"Type": "PUT", "Id": id, "Document": body})
}

/// A delete, as a command of a batch.
pub(crate) fn delete_command(id: &str) -> Value {
    json!({"Type": "DELETE", "Id": id})
}
