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
    /// It was there and is not kept any more.
    Gone,
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
    #[error("document '{id}' has change vector {}, but {} was expected; load it again and repeat the change", show(.actual.as_deref()), expected_words(.expected))]
    Concurrency {
        /// The document.
        id: String,
        /// The expected change vector; empty where no document was expected.
        expected: String,
        /// The change vector it has; `None` where there is no document.
        actual: Option<String>,
    },
    /// A finished identity id is taken already; the caller takes a higher number.
    #[error("document '{id}' exists already")]
    Taken {
        /// The finished id.
        id: String,
        /// Which of the commit's operations, from 0.
        operation: usize,
    },
    /// A user wrote into a collection, or onto an id, that an index owns.
    #[error(
        "'{id}' belongs to index '{index}', which writes the collection '{collection}'; change its source documents, or delete the index"
    )]
    Owned {
        /// The document.
        id: String,
        /// The owned collection.
        collection: String,
        /// The name of the owner.
        index: String,
    },
    /// An index needs an id under which a document of somebody else stands.
    #[error(
        "document '{id}' of collection '{collection}' stands where an index has to write; delete it or move it to another id"
    )]
    Foreign {
        /// The document.
        id: String,
        /// Its collection.
        collection: String,
        /// Which of the commit's operations, from 0.
        operation: usize,
    },
    /// A reader of the feed wants to go on where deletions are no longer kept.
    #[error(
        "the deletions after etag {since} are not all known any more: tombstones through etag {through} were cleaned up; \
         read everything anew, from 0, or go on after {through} without them"
    )]
    Purged {
        /// The etag after which the reader wanted to go on.
        since: u64,
        /// The etag from which on deletions are complete.
        through: u64,
    },
    /// A condition or a bound of the commit does not hold.
    #[error("{0}")]
    Condition(String),
    /// Not now: the write queue is full, or the nodes that must agree can't be reached.
    #[error("{0}")]
    Busy(String),
    /// The store is closing or has been poisoned by a failed write or sync.
    #[error("the database does not take writes: {0}")]
    Closed(String),
    /// Another process, or another store of this one, has the directory open.
    #[error(
        "the database in '{path}' is in use by another process, or open twice in this one; stop the other one first"
    )]
    InUse {
        /// The directory.
        path: String,
    },
    /// The directory holds something that this version can't read.
    #[error("the database in '{path}' can't be opened: {detail}")]
    Format {
        /// The directory.
        path: String,
        /// What was found, and the way out.
        detail: String,
    },
    /// A setting is wrong.
    #[error("{0}")]
    Setting(String),
    /// A stored row can't be read.
    #[error("damaged row in {family} at {key}: {detail}")]
    Corrupt {
        /// The family.
        family: &'static str,
        /// The key, as text where it is text and in hex where not.
        key: String,
        /// What is wrong with it.
        detail: String,
    },
    /// RocksDB failed.
    #[error("storage failed: {0}")]
    Storage(#[source] rocksdb::Error),
    /// The file system or the operating system failed.
    #[error("{action} failed: {source}")]
    System {
        /// What was being done.
        action: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl StoreError {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Id(_) | Self::Document(_) | Self::Setting(_) => ErrorKind::Caller,
            Self::Concurrency { .. }
            | Self::Taken { .. }
            | Self::Owned { .. }
            | Self::Foreign { .. }
            | Self::Condition(_) => ErrorKind::Conflict,
            Self::Purged { .. } => ErrorKind::Gone,
            Self::Busy(_) | Self::InUse { .. } => ErrorKind::Busy,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Storage(error) if error.kind() == rocksdb::ErrorKind::Corruption => ErrorKind::Corrupt,
            Self::Closed(_) | Self::Format { .. } | Self::Storage(_) | Self::System { .. } => ErrorKind::Internal,
        }
    }

    /// Names a damaged row: keys of text are shown as text, others in hex, cut to 80 characters.
    pub(crate) fn corrupt(family: super::keyspace::Family, key: &[u8], detail: impl std::fmt::Display) -> Self {
        use std::fmt::Write as _;

        let key = match std::str::from_utf8(key) {
            Ok(text) if !text.chars().any(char::is_control) => crate::id::cut(text),
            _ => key.iter().take(40).fold(String::from("0x"), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }),
        };
        Self::Corrupt { family: family.name(), key, detail: detail.to_string() }
    }
}

fn show(actual: Option<&str>) -> String {
    actual.map_or_else(|| "none (it does not exist)".to_owned(), |actual| format!("'{actual}'"))
}

fn expected_words(expected: &str) -> String {
    if expected.is_empty() { "a new document".to_owned() } else { format!("'{expected}'") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::keyspace::Family;

    #[test]
    fn a_concurrency_error_says_what_was_found_and_what_was_expected() {
        let error = StoreError::Concurrency { id: "a".into(), expected: String::new(), actual: Some("A:1-x".into()) };
        assert_eq!(
            error.to_string(),
            "document 'a' has change vector 'A:1-x', but a new document was expected; load it again and repeat the change"
        );
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }

    #[test]
    fn a_damaged_row_is_named_by_text_or_hex() {
        let text = StoreError::corrupt(Family::Documents, b"users/1", "cut short").to_string();
        assert_eq!(text, "damaged row in documents at users/1: cut short");
        let bytes = StoreError::corrupt(Family::Changes, &[0, 1, 255], "cut short").to_string();
        assert_eq!(bytes, "damaged row in changes at 0x0001ff: cut short");
    }
}
