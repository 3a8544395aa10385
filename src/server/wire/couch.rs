//! The JSON of CouchDB's paths, but for rows, which are written as they are read.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::snapshot::DatabaseCount;

/// What a database holds.
#[derive(Debug, Serialize)]
pub(crate) struct DatabaseInfo {
    db_name: String,
    doc_count: u64,
    doc_del_count: u64,
    update_seq: u64,
    purge_seq: u64,
    sizes: Sizes,
    compact_running: bool,
    cluster: Cluster,
    disk_format_version: u32,
    instance_start_time: &'static str,
    props: serde_json::Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct Sizes {
    file: u64,
}

/// One node has the one copy of everything.
#[derive(Debug, Serialize)]
struct Cluster {
    q: u8,
    n: u8,
    w: u8,
    r: u8,
}

/// What was asked is done.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    ok: bool,
}

/// The body of a `POST _changes`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ChangesBody {
    /// The documents whose changes are wanted.
    pub(crate) doc_ids: Option<Vec<String>>,
    /// A selector.
    pub(crate) selector: Option<Value>,
}

impl DatabaseInfo {
    pub(crate) fn new(db_name: String, count: &DatabaseCount, update_seq: u64, purge_seq: u64, bytes: u64) -> Self {
        Self {
            db_name,
            doc_count: count.documents,
            doc_del_count: count.tombstones,
            update_seq,
            purge_seq,
            sizes: Sizes { file: bytes },
            compact_running: false,
            cluster: Cluster { q: 1, n: 1, w: 1, r: 1 },
            disk_format_version: crate::store::keyspace::FORMAT_VERSION,
            instance_start_time: "0",
            props: serde_json::Map::new(),
        }
    }
}

impl Done {
    pub(crate) const OK: Self = Self { ok: true };
}
