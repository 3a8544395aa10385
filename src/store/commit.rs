//! What a commit asks for and what it answers; the pipeline itself.

use super::document::{Document, DocumentFlags};
use super::keyspace::{Family, KeyRange};
use crate::id::DocumentId;

/// One atomic change of a database: all of it, or nothing and no trace.
#[derive(Debug, Default)]
pub struct Commit {
    /// Who writes.
    pub author: Author,
    /// Document writes, applied in order.
    pub operations: Vec<Operation>,
    /// Index rows, applied in order.
    pub rows: Vec<RowChange>,
    /// Collections that begin or cease to belong to an index.
    pub claims: Vec<ClaimChange>,
    /// What must hold at this commit's turn.
    pub conditions: Vec<Condition>,
    /// Whether the answer waits for a sync.
    pub wait: Wait,
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Author {
    /// A user: may not write what an index owns.
    #[default]
    User,
    /// The index with this number: may write its own output collection only.
    Index(u32),
}

/// When a commit is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wait {
    /// When it is durable.
    #[default]
    Durable,
    /// When it can be read; the committer syncs when idle, at the latest 2 ms later.
    Written,
}

/// What the present version of a document must be.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Expected {
    /// Anything.
    #[default]
    Any,
    /// There is no document.
    New,
    /// The document has this change vector.
    ChangeVector(String),
}

/// The id that a put asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutId {
    /// This id; an existing document is overwritten.
    Given(DocumentId),
    /// This id, finished from an identity: must be new, else the commit answers [`super::StoreError::Taken`].
    MustBeNew(DocumentId),
    /// This prefix (with its separator) and the etag of this very write.
    ServerSide(String),
}

/// One document write.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Writes a document.
    Put { id: PutId, document: Document, flags: DocumentFlags, expected: Expected },
    /// Deletes a document; a missing one is no error unless a version was expected.
    Delete { id: DocumentId, expected: Expected },
}

/// One change of an index row or a `meta` row.
#[derive(Clone, Debug)]
pub enum RowChange {
    /// Writes a row.
    Put { family: Family, key: Vec<u8>, value: Vec<u8> },
    /// Deletes a row.
    Delete { family: Family, key: Vec<u8> },
    /// Deletes a range of rows.
    DeleteRange { family: Family, range: KeyRange },
}

/// A collection begins or ceases to belong to an index.
#[derive(Clone, Debug)]
pub enum ClaimChange {
    /// Fails unless the collection is unclaimed (or this index's own) and holds no document.
    Take { collection: String, owner: u32, owner_name: String },
    /// Gives the collection up.
    Release { collection: String },
}

/// What must hold at a commit's turn, else it is refused with [`super::StoreError::Condition`].
#[derive(Clone, Debug)]
pub enum Condition {
    /// The `meta` row `name` has this value (`None`: does not exist).
    MetaIs { name: String, value: Option<Vec<u8>> },
}

/// What a commit did.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// One for each operation, in order.
    pub results: Vec<OperationResult>,
    /// The highest etag that the database has given out with or before this commit.
    pub last_etag: u64,
}

/// What one operation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationResult {
    /// The document was written.
    Put { id: String, etag: u64, change_vector: String, collection: String, modified_micros: i64 },
    /// The document was deleted, or there was none.
    Delete { id: String, existed: bool, etag: Option<u64>, change_vector: Option<String> },
}
