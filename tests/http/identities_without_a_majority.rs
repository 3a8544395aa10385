//! Nodes that can't agree: identities are refused, and nothing else is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::{Method, StatusCode};
use serde_json::json;
use treepie::store::StoreError;
use treepie::store::coordinator::{Coordinator, Coordinators};

use crate::support::TestServer;

/// Coordinators that lose their majority at a word.
#[derive(Clone, Debug, Default)]
struct Cluster {
    is_lost: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Member {
    cluster: Cluster,
    own: Arc<dyn Coordinator>,
}

impl Coordinators for Cluster {
    fn coordinator(&self, _: &Path, embedded: Arc<dyn Coordinator>) -> Arc<dyn Coordinator> {
        Arc::new(Member { cluster: self.clone(), own: embedded })
    }
}

impl Member {
    fn agree(&self) -> Result<&dyn Coordinator, StoreError> {
        if self.cluster.is_lost.load(Ordering::SeqCst) {
            return Err(StoreError::Busy("a majority of the nodes can't be reached now; ask again later".to_owned()));
        }
        Ok(self.own.as_ref())
    }
}

impl Coordinator for Member {
    fn next_identities(&self, key: &str, above: u64, count: u64) -> Result<u64, StoreError> {
        self.agree()?.next_identities(key, above, count)
    }

    fn seed_identity(&self, key: &str, value: u64, force: bool) -> Result<u64, StoreError> {
        self.agree()?.seed_identity(key, value, force)
    }

    fn list_identities(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.agree()?.list_identities()
    }

    fn value(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.own.value(name)
    }

    fn compare_and_set(&self, name: &str, from: Option<Vec<u8>>, to: Option<Vec<u8>>) -> Result<bool, StoreError> {
        self.agree()?.compare_and_set(name, from, to)
    }

    fn close(&self) -> Result<(), StoreError> {
        self.own.close()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identities_are_refused_with_nothing_stored_and_every_other_way_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::default();
    let server = TestServer::start_as(directory.path(), |settings| {
        settings.database.store.coordinators = Some(Arc::new(cluster.clone()));
    })
    .await;
    server.create("db").await;
    assert_eq!(server.put("users|", "{}").await.json()["Id"], "users/1");

    cluster.is_lost.store(true, Ordering::SeqCst);
    let etag = server.get("/databases/db/stats").await.json()["LastDocEtag"].clone();
    let refused = server.put("users|", "{}").await;
    refused.assert_error(503, "", &["majority"]);
    assert!(refused.header("retry-after").is_some());
    let put = |id: &str| json!({"Type": "PUT", "Id": id, "Document": {}});
    let batch = json!([put("a/1"), put("users/"), put("users|"), put("")]);
    server.batch(&batch).await.assert_error(503, "", &["majority"]);
    for (method, path) in [
        (Method::POST, "identity/next?name=users"),
        (Method::POST, "identity/seed?name=users&value=9"),
        (Method::GET, "debug/identities"),
    ] {
        server.send(method, &format!("/databases/db/{path}"), "").await.assert_error(503, "", &["majority"]);
    }
    let stats = server.get("/databases/db/stats").await.json();
    assert_eq!((&stats["LastDocEtag"], &stats["CountOfDocuments"]), (&etag, &json!(1)), "nothing was stored");

    assert_eq!(server.put("a/1", "{}").await.status, StatusCode::CREATED);
    assert_eq!(server.put("", "{}").await.json()["Id"].as_str().unwrap().len(), 36);
    assert!(server.put("users/", "{}").await.json()["Id"].as_str().unwrap().ends_with("-A"));
    assert_eq!(server.get("/databases/db/hilo/next?tag=users").await.json()["Low"], 1);
    let batch = server.batch(&json!([put("a/2"), put("users/"), put("")])).await;
    assert_eq!(batch.status, StatusCode::CREATED, "{batch:?}");

    cluster.is_lost.store(false, Ordering::SeqCst);
    assert_eq!(server.put("users|", "{}").await.json()["Id"], "users/2");
    server.stop().await;
}
