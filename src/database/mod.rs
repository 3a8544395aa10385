//! A database and its indexes: the way in for programs and for the server.
//!
//! `requests` reads the ids that a write asks for, `hilo` hands out ranges of them; `indexes` is what can be done with indexes;
//! `documents` and `watch` are for programs that embed a database.
//!
//! Next on the walk: `id`, where a document gets its name, then `store::commit`.

mod documents;
mod hilo;
mod indexes;
mod requests;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::index::registry::Registry;
use crate::script::{Fault, Limits};
use crate::store::commit::{Committed, Expected};
use crate::store::document::Document;
use crate::store::{ErrorKind, Store, StoreError, StoreSettings};

use hilo::HiloLines;
use requests::Requests;

pub use documents::Written;
pub use watch::Watch;

/// The settings of a database.
#[derive(Clone, Debug, Default)]
pub struct DatabaseSettings {
    /// The store's.
    pub store: StoreSettings,
    /// Bounds of index scripts.
    pub script_limits: Limits,
}

/// A database with its running indexes. Cheap to clone; call [`Database::close`] before the last clone goes.
#[derive(Clone, Debug)]
pub struct Database {
    store: Store,
    registry: Arc<Registry>,
    hilo: Arc<HiloLines>,
}

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
            Self::Script { .. } | Self::Definition { .. } | Self::Write { .. } => ErrorKind::Caller,
            Self::NoIndex { .. } => ErrorKind::Missing,
            Self::StillStale { .. } => ErrorKind::Busy,
        }
    }
}

/// Numbers are asked for again at most this often when they turn out to be taken.
const IDENTITY_TRIES_MAX: usize = 64;

impl Database {
    /// Opens the database in `path`, creating it where there is none, and starts its indexes.
    ///
    /// # Errors
    /// Where another process has it open, its format is newer, or its storage fails.
    pub fn open(path: &Path, settings: DatabaseSettings) -> Result<Self, DatabaseError> {
        let store = Store::open(path, &settings.store)?;
        let registry = Registry::open(store.clone(), settings.script_limits)?;
        Ok(Self { store, registry: Arc::new(registry), hilo: Arc::default() })
    }

    /// Stops the indexes (the run in hand is finished), syncs and closes.
    ///
    /// # Errors
    /// Where the last sync fails.
    pub fn close(&self) -> Result<(), DatabaseError> {
        self.registry.close();
        Ok(self.store.close()?)
    }

    /// The documents: snapshots, progress, ids.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes all of `writes` or nothing; blocks until durable. Identities skip taken numbers.
    ///
    /// # Errors
    /// Where an id or document breaks a rule, an expected version is not there, or an index owns what would be written.
    pub fn write(&self, writes: Vec<Write>) -> Result<Committed, DatabaseError> {
        let requests = Requests::read(&self.store, writes)?;
        if requests.identities.is_empty() {
            return Ok(self.store.commit(requests.into_commit(&[])?)?);
        }
        self.write_with_identities(&requests)
    }

    /// The same for async callers; once polled, the write happens even if the future is dropped.
    ///
    /// # Errors
    /// As [`Database::write`].
    ///
    /// # Cancel safety
    /// A dropped future loses the answer, never part of the write.
    pub async fn write_async(&self, writes: Vec<Write>) -> Result<Committed, DatabaseError> {
        let requests = Requests::read(&self.store, writes)?;
        if requests.identities.is_empty() {
            return Ok(self.store.submit(requests.into_commit(&[])?).await?);
        }
        let database = self.clone();
        let written = tokio::task::spawn_blocking(move || database.write_with_identities(&requests)).await;
        written.map_err(|error| StoreError::Closed(format!("the write was interrupted: {error}")))?
    }

    /// Takes numbers for the identities and commits, until no finished id is taken.
    fn write_with_identities(&self, requests: &Requests) -> Result<Committed, DatabaseError> {
        let mut floors = vec![0; requests.identities.len()];
        for _ in 0..IDENTITY_TRIES_MAX {
            let mut numbers = Vec::with_capacity(floors.len());
            for ((_, name), floor) in requests.identities.iter().zip(&floors) {
                numbers.extend(self.store.next_identities(name, *floor, 1)?);
            }
            match self.store.commit(requests.clone().into_commit(&numbers)?) {
                Err(StoreError::Taken { operation, .. }) => {
                    self.raise_floor(requests, operation, &numbers, &mut floors)?;
                }
                result => return Ok(result?),
            }
        }
        Err(StoreError::Closed("identity numbers were taken as fast as they were given".to_owned()).into())
    }

    /// Finds the number above which an identity whose number was taken goes on.
    fn raise_floor(
        &self,
        requests: &Requests,
        operation: usize,
        numbers: &[u64],
        floors: &mut [u64],
    ) -> Result<(), DatabaseError> {
        let snapshot = self.store.snapshot();
        let taken = requests.identities.iter().zip(numbers).position(|((at, _), _)| *at == operation);
        let Some(taken) = taken else { return Ok(()) };
        let (Some((_, name)), Some(number)) = (requests.identities.get(taken), numbers.get(taken)) else {
            return Ok(());
        };
        let rules = &requests.rules;
        let is_taken = |n: u64| name.finish(n, rules).map_err(StoreError::from).and_then(|id| snapshot.exists(&id));
        match (crate::id::identity::free_number(*number, is_taken)?, floors.get_mut(taken)) {
            (Some(free), Some(floor)) => *floor = free.saturating_sub(1),
            _ => {
                let reason = format!("identity '{}' has no free number left; use another name", name.key());
                return Err(DatabaseError::Write { operation, reason });
            }
        }
        Ok(())
    }
}
