//! A database and its indexes: the way in for programs and for the server.
//!
//! `requests` reads the ids that a write asks for, `hilo` hands out ranges of them; `documents` and `watch` are for programs
//! that embed a database.
//!
//! Next on the walk: `id`, where a document gets its name, then `store::commit`.

mod documents;
mod hilo;
mod requests;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::index::definition::{IndexDefinition, Refused};
use crate::index::registry::{Registry, RegistryError};
use crate::index::status::{FaultRecord, IndexStatus};
use crate::index::{IndexCounters, wait};
use crate::script::{Fault, Limits};
use crate::store::commit::{Committed, Expected};
use crate::store::document::Document;
use crate::store::{ErrorKind, Store, StoreError, StoreSettings};
use crate::subscription::Subscriptions;

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
    subscriptions: Arc<Subscriptions>,
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
        // Before anything writes: versions that subscriptions have seen are kept from the first write on.
        let subscriptions = Arc::new(Subscriptions::open(store.clone(), settings.script_limits.clone())?);
        let registry = Arc::new(Registry::open(store.clone(), settings.script_limits)?);
        Ok(Self { store, registry, hilo: Arc::default(), subscriptions })
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

    /// The subscriptions.
    pub(crate) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
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

    /// Puts an index. Blocking. `false`: the same definition is there already and nothing was done.
    ///
    /// # Errors
    /// Where the script, a name or a rule between indexes refuses it; nothing has changed then.
    pub fn put_index(&self, definition: IndexDefinition) -> Result<bool, DatabaseError> {
        let name = definition.name.clone();
        self.registry.put(definition).map_err(|error| refused_index(name, error))
    }

    /// Whether putting a definition would change nothing.
    ///
    /// # Errors
    /// Where the script, a name or a setting refuses it.
    pub fn has_index(&self, definition: IndexDefinition) -> Result<bool, DatabaseError> {
        let name = definition.name.clone();
        self.registry.is_same(definition).map_err(|error| refused_index(name, error))
    }

    /// Builds an index anew, behind its present results; a result that comes out the same is not written. Blocking until the
    /// build has begun.
    ///
    /// # Errors
    /// [`DatabaseError::NoIndex`]; its stored script is refused by this version; the storage fails.
    pub fn reset_index(&self, name: &str) -> Result<(), DatabaseError> {
        match self.registry.reset(name).map_err(|error| refused_index(name.to_owned(), error))? {
            true => Ok(()),
            false => Err(DatabaseError::NoIndex { name: name.to_owned() }),
        }
    }

    /// Deletes an index and its artificial documents. Blocking. `false`: there was none.
    ///
    /// # Errors
    /// Where the storage fails; what is left is deleted when the database is opened again.
    pub fn delete_index(&self, name: &str) -> Result<bool, DatabaseError> {
        Ok(self.registry.delete(name)?)
    }

    /// All definitions, in name order.
    #[must_use]
    pub fn indexes(&self) -> Vec<IndexDefinition> {
        self.registry.all().iter().map(|index| index.checked.definition.clone()).collect()
    }

    /// One definition, by name without regard to case.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<IndexDefinition> {
        self.registry.get(name).map(|index| index.checked.definition.clone())
    }

    /// How the indexes are doing, in name order.
    ///
    /// # Errors
    /// Where the storage fails.
    ///
    /// # Cost
    /// Reads at most 2,000 feed rows for each source of an index that lags.
    pub fn index_status(&self) -> Result<Vec<IndexStatus>, DatabaseError> {
        let snapshot = self.store.snapshot();
        let all = self.registry.all();
        Ok(all.iter().map(|index| index.status(&snapshot)).collect::<Result<_, _>>()?)
    }

    /// The last faults (at most 500) of an index, oldest first.
    ///
    /// # Errors
    /// Where there is no such index.
    pub fn index_faults(&self, name: &str) -> Result<Vec<FaultRecord>, DatabaseError> {
        let index = self.registry.get(name).ok_or_else(|| DatabaseError::NoIndex { name: name.to_owned() })?;
        Ok(index.fault_records())
    }

    /// What an index has done since the database was opened.
    #[must_use]
    pub fn index_counters(&self, name: &str) -> Option<IndexCounters> {
        self.registry.get(name).map(|index| index.context.counters.get())
    }

    /// Pauses one index, or all, until [`Database::resume_indexes`] or a restart.
    ///
    /// # Errors
    /// Where there is no such index.
    pub fn pause_indexes(&self, name: Option<&str>) -> Result<(), DatabaseError> {
        self.set_paused(name, true)
    }

    /// Lets one index, or all, go on.
    ///
    /// # Errors
    /// Where there is no such index.
    pub fn resume_indexes(&self, name: Option<&str>) -> Result<(), DatabaseError> {
        self.set_paused(name, false)
    }

    /// Turns an index off, or on again; for good, restarts included. Its results stay as they are while it is off. Blocking.
    ///
    /// # Errors
    /// Where there is no such index, or the storage fails.
    pub fn set_index_disabled(&self, name: &str, is_disabled: bool) -> Result<(), DatabaseError> {
        match self.registry.set_disabled(name, is_disabled)? {
            true => Ok(()),
            false => Err(DatabaseError::NoIndex { name: name.to_owned() }),
        }
    }

    fn set_paused(&self, name: Option<&str>, is_paused: bool) -> Result<(), DatabaseError> {
        let chosen = match name {
            None => self.registry.all(),
            Some(name) => {
                vec![self.registry.get(name).ok_or_else(|| DatabaseError::NoIndex { name: name.to_owned() })?]
            }
        };
        for index in chosen {
            index.is_paused.store(is_paused, Ordering::Relaxed);
            index.reach(None);
        }
        self.store.wake();
        Ok(())
    }

    /// Blocks until every index (or those named, with all they feed on and that feed on them) has taken in everything
    /// written before the call. Not from async code.
    ///
    /// # Errors
    /// [`DatabaseError::StillStale`] after `timeout`, at once where only indexes in state `Error` are left;
    /// [`DatabaseError::NoIndex`].
    pub fn wait_for_indexes(&self, names: Option<&[String]>, timeout: Duration) -> Result<(), DatabaseError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| StoreError::Closed(format!("no timer could be started: {error}")))?;
        runtime.block_on(self.wait_for_indexes_async(names.map(<[String]>::to_vec), timeout))
    }

    /// The same for async callers.
    ///
    /// # Errors
    /// As [`Database::wait_for_indexes`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait_for_indexes_async(
        &self,
        names: Option<Vec<String>>,
        timeout: Duration,
    ) -> Result<(), DatabaseError> {
        let missing = names.iter().flatten().find(|name| self.registry.get(name).is_none());
        if let Some(name) = missing {
            return Err(DatabaseError::NoIndex { name: name.clone() });
        }
        let stale = wait::wait(&self.registry, names, timeout).await;
        if stale.is_empty() { Ok(()) } else { Err(DatabaseError::StillStale { waited: timeout, indexes: stale }) }
    }
}

fn refused_index(name: String, error: RegistryError) -> DatabaseError {
    match error {
        RegistryError::Refused(Refused::Script(fault)) => DatabaseError::Script { name, fault: Box::new(fault) },
        RegistryError::Refused(Refused::Rule(reason)) | RegistryError::Store(StoreError::Condition(reason)) => {
            DatabaseError::Definition { name, reason }
        }
        RegistryError::Store(error) => DatabaseError::Store(error),
    }
}
