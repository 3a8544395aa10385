//! What a commit asks for and what it answers; the one pipeline behind it.
//!
//! Every write of a database is a [`Commit`], a user's and an index's alike. It waits in the `queue`; the committer's thread
//! (`pipeline`) takes what is waiting, plans each commit against the database and what the group has accepted so far
//! (`state`, `plan`), lays all rows into one batch (`rows`), writes, syncs, publishes (`progress`) and answers.
//! So etag order is commit order, and a commit is all or nothing.
//!
//! Next on the walk: `queue`, `pipeline`, `plan`, `rows`; then `store::changes`.

mod bells;
mod pipeline;
mod plan;
mod progress;
mod queue;
mod rows;
mod state;

pub(super) use bells::Bells;
pub(crate) use pipeline::now_micros;
pub(super) use pipeline::{Committer, Shared, own_row};
pub(super) use progress::Progression;
pub(super) use queue::{Queue, Request};

use super::document::{Document, DocumentFlags};
use super::keyspace::{CollectionNumber, Family, KeyRange};
use crate::id::DocumentId;

/// One atomic change of a database: all of it, or nothing and no trace.
///
/// Within it the order is: conditions are checked, claims taken, operations and then rows applied, claims released.
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
    /// Tombstones that nobody needs any more; only the store itself removes any.
    pub purges: Vec<Purge>,
    /// Whether the answer waits for a sync.
    pub wait: Wait,
    /// Of an index: the etag of its sources through which its results are complete with this commit; `None` in the middle of
    /// a build. Told to those who read the results.
    pub complete_through: Option<u64>,
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
    Put {
        /// The id it asks for.
        id: PutId,
        /// What is written.
        document: Document,
        /// What is special about it.
        flags: DocumentFlags,
        /// What the present version must be.
        expected: Expected,
    },
    /// Deletes a document; a missing one is no error unless a version was expected.
    Delete {
        /// The document.
        id: DocumentId,
        /// What the present version must be.
        expected: Expected,
    },
    /// Writes nothing: the commit is refused unless the document is in the expected version.
    Check {
        /// The document.
        id: DocumentId,
        /// What the present version must be.
        expected: Expected,
    },
}

/// One change of an index row or a `meta` row.
#[derive(Clone, Debug)]
pub enum RowChange {
    /// Writes a row.
    Put {
        /// One of [`Family::OF_GENERATIONS`], or `Meta`.
        family: Family,
        /// The row.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// Deletes a row.
    Delete {
        /// One of [`Family::OF_GENERATIONS`], or `Meta`.
        family: Family,
        /// The row.
        key: Vec<u8>,
    },
    /// Deletes a range of rows.
    DeleteRange {
        /// One of [`Family::OF_GENERATIONS`], or `Meta`.
        family: Family,
        /// The rows.
        range: KeyRange,
    },
}

impl RowChange {
    /// Where the change is made, or begins.
    pub(crate) fn place(&self) -> (Family, &[u8]) {
        match self {
            RowChange::Put { family, key, .. } | RowChange::Delete { family, key } => (*family, key),
            RowChange::DeleteRange { family, range } => (*family, &range.from),
        }
    }

    /// The bytes of its key and value.
    pub(crate) fn bytes(&self) -> usize {
        let value = if let RowChange::Put { value, .. } = self { value.len() } else { 0 };
        self.place().1.len() + value
    }
}

/// A collection begins or ceases to belong to an index.
#[derive(Clone, Debug)]
pub enum ClaimChange {
    /// Fails unless the collection is unclaimed (or this index's own) and holds no document.
    Take {
        /// The collection, as it is to be spelled.
        collection: String,
        /// The number of the index.
        owner: u32,
        /// The name of the index, for messages.
        owner_name: String,
    },
    /// Gives the collection up, after everything else in this commit.
    Release {
        /// The collection, by name without regard to case.
        collection: String,
    },
}

/// What must hold at a commit's turn, else it is refused with [`super::StoreError::Condition`].
#[derive(Clone, Debug)]
pub enum Condition {
    /// The `meta` row `name` has this value (`None`: does not exist).
    MetaIs {
        /// The row.
        name: String,
        /// Its value.
        value: Option<Vec<u8>>,
    },
}

/// A tombstone to remove. Where a later write has superseded it meanwhile, nothing is done.
#[derive(Clone, Debug)]
pub struct Purge {
    /// The collection it stands in.
    pub(super) collection: CollectionNumber,
    /// The lower-cased id.
    pub(super) lower: String,
    /// The etag of the deletion.
    pub(super) etag: u64,
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
    Put {
        /// The finished id.
        id: String,
        /// The etag of this write.
        etag: u64,
        /// The change vector of this write.
        change_vector: String,
        /// The collection, as spelled in this document.
        collection: String,
        /// The time of this write, microseconds since 1970 (UTC).
        modified_micros: i64,
    },
    /// The document was deleted, or there was none.
    Delete {
        /// The id as asked for.
        id: String,
        /// Whether there was a document.
        existed: bool,
        /// The etag of the tombstone, where there was a document.
        etag: Option<u64>,
        /// The change vector of the tombstone, where there was a document.
        change_vector: Option<String>,
    },
    /// The document was in the expected version, and was left as it is.
    Checked {
        /// The id as asked for.
        id: String,
    },
}
