//! A database and its indexes: the way in for programs and for the server.

use std::path::Path;
use std::time::Duration;

use crate::index::definition::IndexDefinition;
use crate::index::status::{FaultRecord, IndexStatus};
use crate::script::{Fault, Limits};
use crate::store::commit::{Committed, Expected};
use crate::store::document::Document;
use crate::store::{ErrorKind, Store, StoreError, StoreSettings};

/// The settings of a database.
#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    /// The store's.
    pub store: StoreSettings,
    /// Bounds of index scripts.
    pub script_limits: Limits,
}

/// A database with its running indexes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Database {
    store: Store,
}

/// What a user's write asks for: ids may be any form.
#[derive(Clone, Debug)]
pub enum Write {
    /// Put a document; `id` in any form, `None` gives a GUID.
    Put { id: Option<String>, document: Document, expected: Expected },
    /// Delete a document.
    Delete { id: String, expected: Expected },
}

/// An error of a database operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// From the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A definition was refused: its script.
    #[error("index '{name}' is refused: {fault}")]
    Script { name: String, fault: Fault },
    /// A definition was refused: a rule of the graph of indexes, a setting, its name.
    #[error("index '{name}' is refused: {reason}")]
    Definition { name: String, reason: String },
    /// There is no such index.
    #[error("there is no index '{name}'")]
    NoIndex { name: String },
    /// Indexes did not catch up in time.
    #[error("after {waited:?} these indexes are still stale: {}", .indexes.join(", "))]
    StillStale { waited: Duration, indexes: Vec<String> },
}

impl DatabaseError {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        todo!()
    }
}

impl Database {
    /// Opens the database in `path`, creating it where there is none, and starts its indexes.
    pub fn open(path: &Path, settings: DatabaseSettings) -> Result<Self, DatabaseError> {
        todo!()
    }

    /// Stops the indexes (the run in hand is finished), syncs and closes.
    pub fn close(&self) -> Result<(), DatabaseError> {
        todo!()
    }

    /// The documents: snapshots, progress, ids.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes all of `writes` or nothing; blocks until durable. Identities skip taken numbers.
    pub fn write(&self, writes: Vec<Write>) -> Result<Committed, DatabaseError> {
        todo!()
    }

    /// The same for async callers; once polled, the write happens even if the future is dropped.
    pub fn write_async(
        &self,
        writes: Vec<Write>,
    ) -> impl Future<Output = Result<Committed, DatabaseError>> + Send + use<> {
        async { todo!() }
    }

    /// Puts an index. Blocking. `false`: the same definition is there already and nothing was done.
    pub fn put_index(&self, definition: IndexDefinition) -> Result<bool, DatabaseError> {
        todo!()
    }

    /// Deletes an index and its artificial documents. Blocking. `false`: there was none.
    pub fn delete_index(&self, name: &str) -> Result<bool, DatabaseError> {
        todo!()
    }

    /// All definitions, in name order.
    pub fn indexes(&self) -> Vec<IndexDefinition> {
        todo!()
    }

    /// One definition, by name without regard to case.
    pub fn index(&self, name: &str) -> Option<IndexDefinition> {
        todo!()
    }

    /// How the indexes are doing, in name order.
    pub fn index_status(&self) -> Result<Vec<IndexStatus>, DatabaseError> {
        todo!()
    }

    /// The last faults (at most 500) of an index, oldest first.
    pub fn index_faults(&self, name: &str) -> Result<Vec<FaultRecord>, DatabaseError> {
        todo!()
    }

    /// Pauses one index, or all, until [`Database::resume_indexes`] or a restart.
    pub fn pause_indexes(&self, name: Option<&str>) -> Result<(), DatabaseError> {
        todo!()
    }

    /// Lets one index, or all, go on.
    pub fn resume_indexes(&self, name: Option<&str>) -> Result<(), DatabaseError> {
        todo!()
    }

    /// Blocks until every running index (or those named), and those that feed on their outputs, have taken in everything
    /// written before the call.
    pub fn wait_for_indexes(&self, names: Option<&[String]>, timeout: Duration) -> Result<(), DatabaseError> {
        todo!()
    }

    /// The same for async callers.
    pub fn wait_for_indexes_async(
        &self,
        names: Option<Vec<String>>,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), DatabaseError>> + Send + use<> {
        async { todo!() }
    }
}
