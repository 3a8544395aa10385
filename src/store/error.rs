//! What can go wrong in the store, and who must act.

use crate::id::IdError;

/// Who must act on an error. Matched without a wildcard where it is mapped to HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The caller's request is wrong.
    Caller,
    /// What was asked for is not there.
    Missing,
    /// Somebody else was first, or it belongs to somebody else.
    Conflict,
    /// Not now; ask again.
    Busy,
    /// Stored data is damaged.
    Corrupt,
    /// The server failed (disk full, sync failed, a bug).
    Internal,
}

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An id breaks a rule.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A document breaks a rule.
    #[error(transparent)]
    Document(#[from] super::document::DocumentError),
    /// The document's change vector is not the expected one.
    #[error("document '{id}' has change vector {}, but {} was expected; load it again and repeat the change", show(.actual), expected_words(.expected))]
    Concurrency { id: String, expected: String, actual: Option<String> },
    /// A finished identity id is taken already; the caller takes a higher number.
    #[error("document '{id}' exists already")]
    Taken { id: String, operation: usize },
    /// A user wrote into a collection, or onto an id, that an index owns.
    #[error(
        "'{id}' belongs to index '{index}', which writes the collection '{collection}'; change its source documents, or delete the index"
    )]
    Owned { id: String, collection: String, index: String },
    /// A condition of the commit no longer holds.
    #[error("{0}")]
    Condition(String),
    /// The store is closing or has been poisoned by a failed sync.
    #[error("the database does not take writes: {0}")]
    Closed(String),
    /// A stored row can't be read.
    #[error("damaged row in {family} at {key}: {detail}")]
    Corrupt { family: &'static str, key: String, detail: String },
    /// RocksDB failed.
    #[error("storage failed")]
    Storage(#[source] rocksdb::Error),
}

impl StoreError {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        todo!()
    }
}

fn show(actual: &Option<String>) -> &str {
    actual.as_deref().unwrap_or("none (it does not exist)")
}

fn expected_words(expected: &str) -> &str {
    if expected.is_empty() { "a new document" } else { expected }
}
