//! A database and its indexes: the way in for programs and for the server.
//!
//! `requests` reads what a write asks for, `attempts` commits where that takes more than one try, `patch` changes documents
//! by JSON Patch, `hilo` hands out ranges of ids; `indexes` is what can be done with indexes, `questions` what can be asked
//! about them, `index_news` what happens to them; `documents` and `watch` are for programs that embed a database; `clean_up`
//! removes the `tombstones` that nobody needs any more.
//!
//! Next on the walk: `id`, where a document gets its name, then `store::commit`.

mod attempts;
mod clean_up;
mod clock;
mod documents;
mod hilo;
pub(crate) mod index_news;
mod indexes;
mod patch;
mod query;
mod questions;
mod requests;
mod results;
mod tombstones;
mod watch;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::index::registry::Registry;
use crate::script::{Fault, Limits};
use crate::store::commit::{Committed, Expected};
use crate::store::document::Document;
use crate::store::{ErrorKind, Store, StoreError, StoreSettings};
use crate::subscription::Subscriptions;

pub(crate) use attempts::Done;
use attempts::Lines;
use clean_up::CleanUp;
use hilo::HiloLines;
use index_news::Teller;
use requests::Requests;

pub use documents::Written;
pub use patch::{JsonPatch, PatchError, PatchStep};
pub use questions::{Chosen, VerifyOptions};
pub use results::{IndexResult, ResultRange};
pub use tombstones::{TombstoneSettings, TombstoneStatus};
pub use watch::Watch;

/// The settings of a database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSettings {
    /// The store's.
    pub store: StoreSettings,
    /// Bounds of index scripts.
    pub script_limits: Limits,
    /// How long tombstones are kept.
    pub tombstones: TombstoneSettings,
}

/// A database with its running indexes. Cheap to clone; call [`Database::close`] before the last clone goes.
#[derive(Clone, Debug)]
pub struct Database {
    store: Store,
    registry: Arc<Registry>,
    hilo: Arc<HiloLines>,
    clean_up: Arc<CleanUp>,
    teller: Arc<Teller>,
    subscriptions: Arc<Subscriptions>,
    lines: Arc<Lines>,
    /// Bounds the threads that async callers' identities and patches take.
    attempts: Arc<Semaphore>,
}

/// Writes with identities or patches that have a thread at one moment.
const ATTEMPTS_MAX: usize = 64;

/// What a user's write asks for: ids may be any form.
#[derive(Clone, Debug)]
pub enum Write {
    /// Put a document; `id` in any form, `None` gives a GUID.
    Put {
        /// The id asked for.
        id: Option<String>,
        /// The document.
        document: Document,
        /// The version it must have now.
        expected: Expected,
    },
    /// Delete a document.
    Delete {
        /// The document's id.
        id: String,
        /// The version it must have now.
        expected: Expected,
    },
    /// Change parts of a document that is there. It sees what the writes before it made.
    Patch {
        /// The document's id.
        id: String,
        /// What changes.
        patch: JsonPatch,
        /// The version it must have now.
        expected: Expected,
    },
    /// Write nothing, but refuse all writes unless a document is in a version.
    Check {
        /// The document's id.
        id: String,
        /// The version it must have now.
        expected: Expected,
    },
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
    Script {
        /// The index.
        name: String,
        /// What is wrong, with its position.
        fault: Box<Fault>,
    },
    /// A definition was refused: a rule of the graph of indexes, a setting, its name.
    #[error("index '{name}' is refused: {reason}")]
    Definition {
        /// The index.
        name: String,
        /// The rule and the way out.
        reason: String,
    },
    /// There is no such index.
    #[error("there is no index '{name}'")]
    NoIndex {
        /// The name asked for.
        name: String,
    },
    /// A write can't be done as asked.
    #[error("operation {operation}: {reason}")]
    Write {
        /// Its position, from 0.
        operation: usize,
        /// The rule and the way out.
        reason: String,
    },
    /// A patch does not fit its document.
    #[error("document '{id}' can't be patched: {reason}")]
    Patch {
        /// Its position among the writes, from 0.
        operation: usize,
        /// The document, cut to 80 characters.
        id: String,
        /// The rule and the way out.
        reason: String,
    },
    /// Indexes did not catch up in time.
    #[error("after {waited:?} these indexes are still stale: {}", .indexes.join(", "))]
    StillStale {
        /// The time-out.
        waited: Duration,
        /// Their names.
        indexes: Vec<String>,
    },
}

impl DatabaseError {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Script { .. } | Self::Definition { .. } | Self::Write { .. } | Self::Patch { .. } => {
                ErrorKind::Caller
            }
            Self::NoIndex { .. } => ErrorKind::Missing,
            Self::StillStale { .. } => ErrorKind::Busy,
        }
    }
}

impl Database {
    /// Opens the database in `path`, creating it where there is none, and starts its indexes.
    ///
    /// # Errors
    /// Where another process has it open, its format is newer, or its storage fails.
    pub fn open(path: &Path, settings: DatabaseSettings) -> Result<Self, DatabaseError> {
        let store = Store::open(path, &settings.store)?;
        // Before anything writes: versions that subscriptions have seen are kept from the first write on.
        let subscriptions = Arc::new(Subscriptions::open(store.clone(), settings.script_limits.clone())?);
        let registry = Arc::new(Registry::open(store.clone(), settings.script_limits)?);
        let clean_up = match CleanUp::start(store.clone(), Arc::clone(&registry), settings.tombstones) {
            Ok(clean_up) => Arc::new(clean_up),
            Err(error) => {
                registry.close();
                return Err(error.into());
            }
        };
        let attempts = Arc::new(Semaphore::new(ATTEMPTS_MAX));
        let (hilo, lines, teller) = (Arc::default(), Arc::default(), Arc::default());
        Ok(Self { store, registry, hilo, clean_up, teller, subscriptions, lines, attempts })
    }

    /// Stops the indexes (the run in hand is finished), syncs and closes.
    ///
    /// # Errors
    /// Where the last sync fails.
    pub fn close(&self) -> Result<(), DatabaseError> {
        self.clean_up.stop();
        self.registry.close();
        Ok(self.store.close()?)
    }

    /// Bounds of index scripts.
    pub(crate) fn script_limits(&self) -> &Limits {
        self.registry.limits()
    }

    /// The documents: snapshots, progress, ids.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The subscriptions.
    pub(crate) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Writes all of `writes` or nothing; blocks until durable. Identities skip taken numbers.
    ///
    /// # Errors
    /// Where an id or document breaks a rule, an expected version is not there, a patch does not fit its document, or an index
    /// owns what would be written.
    pub fn write(&self, writes: Vec<Write>) -> Result<Committed, DatabaseError> {
        let requests = Requests::read(&self.store, writes)?;
        if requests.are_plain() {
            return Ok(self.store.commit(requests.into_commit(&[], HashMap::new())?)?);
        }
        Ok(self.attempt(&requests)?.committed)
    }

    /// The same for async callers; once polled, the write happens even if the future is dropped.
    ///
    /// # Errors
    /// As [`Database::write`].
    ///
    /// # Cancel safety
    /// A dropped future loses the answer, never part of the write.
    pub async fn write_async(&self, writes: Vec<Write>) -> Result<Committed, DatabaseError> {
        Ok(self.done_async(writes).await?.committed)
    }

    /// The same, with what patches made of their documents.
    pub(crate) async fn done_async(&self, writes: Vec<Write>) -> Result<Done, DatabaseError> {
        let requests = Requests::read(&self.store, writes)?;
        if requests.are_plain() {
            let committed = self.store.submit(requests.into_commit(&[], HashMap::new())?).await?;
            return Ok(Done { committed, patched: HashMap::new() });
        }
        // A task of its own waits for its turn, so that the write happens also where nobody waits for it any more.
        let database = self.clone();
        let written = tokio::spawn(async move {
            let _turn = Arc::clone(&database.attempts).acquire_owned().await;
            tokio::task::spawn_blocking(move || database.attempt(&requests)).await
        });
        let interrupted = |error| StoreError::Closed(format!("the write was interrupted: {error}"));
        written.await.map_err(interrupted)?.map_err(interrupted)?
    }
}
