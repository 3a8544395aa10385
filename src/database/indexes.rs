//! What can be done with the indexes of a database, and waiting for them.

use std::time::Duration;

use super::{Database, DatabaseError};
use crate::index::definition::{IndexDefinition, Refused};
use crate::index::registry::RegistryError;
use crate::index::status::{FaultRecord, IndexStatus, LockMode, Priority};
use crate::index::wait::{self, Scope};
use crate::index::{IndexCounters, replacement_of};
use crate::store::StoreError;
use crate::store::commit::Committed;

impl Database {
    /// Puts an index. Blocking. `false`: the same definition is there already (or being built) and nothing was done.
    ///
    /// A changed definition is built beside the one that serves, and takes over when it has caught up; the documents are then changed
    /// by difference only. Putting the present one again gives the change up.
    ///
    /// # Errors
    /// Where the script, a name or a rule between indexes refuses it; nothing has changed then.
    pub fn put_index(&self, definition: IndexDefinition) -> Result<bool, DatabaseError> {
        let name = definition.name.clone();
        let is_new = self.registry.put(definition).map_err(|error| refused_index(&name, error))?;
        if is_new {
            let replacement = replacement_of(&name);
            let told = if self.registry.get(&replacement).is_some() { &replacement } else { &name };
            self.teller.tell(told, "IndexAdded");
        }
        Ok(is_new)
    }

    /// Whether putting a definition would change nothing.
    ///
    /// # Errors
    /// Where the script, a name or a setting refuses it.
    pub fn has_index(&self, definition: IndexDefinition) -> Result<bool, DatabaseError> {
        let name = definition.name.clone();
        self.registry.is_same(definition).map_err(|error| refused_index(&name, error))
    }

    /// Builds an index anew beside its present results; a result that comes out the same is not written. Where its definition
    /// is changing, the new one is built anew. Blocking until the build has begun.
    ///
    /// # Errors
    /// [`DatabaseError::NoIndex`]; its stored script is refused by this version; the storage fails.
    pub fn reset_index(&self, name: &str) -> Result<(), DatabaseError> {
        self.registry.reset(name).map_err(|error| refused_index(name, error))
    }

    /// Has the changed definition of an index take over as soon as it can, though it may not have taken in all documents yet.
    /// Returns at once.
    ///
    /// # Errors
    /// [`DatabaseError::NoIndex`]; its definition is not changing, or does not run.
    pub fn swap_index(&self, name: &str) -> Result<(), DatabaseError> {
        self.registry.swap_now(name).map_err(|error| refused_index(name, error))
    }

    /// Gives up the change of an index's definition: what serves goes on. Blocking. `false`: it was not changing.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn cancel_index_change(&self, name: &str) -> Result<bool, DatabaseError> {
        self.registry.cancel(name).map_err(|error| refused_index(name, error))
    }

    /// Puts the definition that an index had before its present one. `false`: that is the same.
    ///
    /// # Errors
    /// [`DatabaseError::NoIndex`]; it had no other one, is changing already, or is locked; as [`Database::put_index`].
    pub fn roll_back_index(&self, name: &str) -> Result<bool, DatabaseError> {
        self.registry.roll_back(name).map_err(|error| refused_index(name, error))
    }

    /// Deletes an index and its artificial documents. Blocking. `false`: there was none. Of `ReplacementOf/` and a name it
    /// gives up the change of that index's definition.
    ///
    /// # Errors
    /// Where the storage fails; what is left is deleted when the database is opened again.
    pub fn delete_index(&self, name: &str) -> Result<bool, DatabaseError> {
        self.remove_index(name, false)
    }

    /// Deletes an index and makes ordinary documents of its artificial ones. Blocking. `false`: there was none.
    ///
    /// # Errors
    /// As [`Database::delete_index`]; the documents are changing over to another definition just now.
    pub fn delete_index_keeping_outputs(&self, name: &str) -> Result<bool, DatabaseError> {
        self.remove_index(name, true)
    }

    fn remove_index(&self, name: &str, keeps_outputs: bool) -> Result<bool, DatabaseError> {
        let was_there = self.registry.delete(name, keeps_outputs).map_err(|error| refused_index(name, error))?;
        if was_there {
            self.teller.tell(name, "IndexRemoved");
        }
        Ok(was_there)
    }

    /// What is set of an index: whether its definition may change, and how much it gives way to others.
    #[must_use]
    pub fn index_settings(&self, name: &str) -> Option<(LockMode, Priority)> {
        self.registry.settings(name)
    }

    /// All definitions that serve, in name order.
    #[must_use]
    pub fn indexes(&self) -> Vec<IndexDefinition> {
        self.registry.definitions()
    }

    /// One definition, by name without regard to case; of `ReplacementOf/` and a name the one that is to take its place.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<IndexDefinition> {
        self.registry.definition(name)
    }

    /// The definition of an index that was put last: the one that is to take the place of the present one, where there is one.
    #[must_use]
    pub fn newest_index(&self, name: &str) -> Option<IndexDefinition> {
        self.index(&replacement_of(name)).or_else(|| self.index(name))
    }

    /// How the indexes are doing, in name order; each replacement after the index whose place it is to take, as `ReplacementOf/…`.
    ///
    /// # Errors
    /// Where the storage fails.
    ///
    /// # Cost
    /// Reads at most 2,000 feed rows for each source of an index that lags.
    pub fn index_status(&self) -> Result<Vec<IndexStatus>, DatabaseError> {
        Ok(self.registry.overview()?.into_iter().map(|(_, status)| status).collect())
    }

    /// The same with the definition of each.
    ///
    /// # Errors
    /// As [`Database::index_status`].
    pub fn index_overview(&self) -> Result<Vec<(IndexDefinition, IndexStatus)>, DatabaseError> {
        Ok(self.registry.overview()?)
    }

    /// The last faults (at most 500) of an index, oldest first; of one whose stored script is refused, why.
    ///
    /// # Errors
    /// Where there is no such index.
    pub fn index_faults(&self, name: &str) -> Result<Vec<FaultRecord>, DatabaseError> {
        self.registry.faults(name).map_err(|error| refused_index(name, error))
    }

    /// Forgets the recorded faults of an index. What fails still stays without a result.
    ///
    /// # Errors
    /// Where there is no such index, or the storage fails.
    pub fn clear_index_faults(&self, name: &str) -> Result<(), DatabaseError> {
        self.registry.clear_faults(name).map_err(|error| refused_index(name, error))
    }

    /// What an index has done since the database was opened.
    #[must_use]
    pub fn index_counters(&self, name: &str) -> Option<IndexCounters> {
        self.registry.get(name).map(|index| index.context.counters.get())
    }

    /// Pauses one index, or all, until [`Database::resume_indexes`] or a restart. A changed definition that is being built waits too.
    ///
    /// # Errors
    /// Where there is no such index.
    pub fn pause_indexes(&self, name: Option<&str>) -> Result<(), DatabaseError> {
        self.set_paused(name, true)
    }

    /// Lets one index, or all, go on; also one that was stopped for its faults.
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
        self.registry.set_disabled(name, is_disabled).map_err(|error| refused_index(name, error))?;
        if is_disabled {
            self.teller.tell(name, "IndexDemotedToDisabled");
        }
        Ok(())
    }

    /// Sets whether an index's definition may change. Blocking.
    ///
    /// # Errors
    /// Where there is no such index, or the storage fails.
    pub fn set_index_lock(&self, name: &str, lock: LockMode) -> Result<(), DatabaseError> {
        self.registry.set_lock(name, lock).map_err(|error| refused_index(name, error))?;
        self.teller.tell(name, "LockModeChanged");
        Ok(())
    }

    /// Sets how much an index gives way to others. Blocking.
    ///
    /// # Errors
    /// Where there is no such index, or the storage fails.
    pub fn set_index_priority(&self, name: &str, priority: Priority) -> Result<(), DatabaseError> {
        self.registry.set_priority(name, priority).map_err(|error| refused_index(name, error))?;
        self.teller.tell(name, "PriorityChanged");
        Ok(())
    }

    fn set_paused(&self, name: Option<&str>, is_paused: bool) -> Result<(), DatabaseError> {
        let wants_all = name.is_none();
        let names = match name {
            None => self.registry.all().iter().map(|index| index.context.name.to_string()).collect(),
            Some(name) => vec![name.to_owned()],
        };
        for name in names {
            match self.registry.set_paused(&name, is_paused) {
                Err(RegistryError::Missing) if wants_all => {} // it was deleted meanwhile
                result => result.map_err(|error| refused_index(&name, error))?,
            }
            if is_paused {
                self.teller.tell(&name, "IndexPaused");
            }
        }
        Ok(())
    }

    /// Blocks until every index (or those named, with all they feed on and that feed on them) has taken in everything
    /// written before the call; one whose definition is changing must have taken over. Not from async code.
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
        self.wait_in(names.map_or(Scope::All, Scope::Connected), true, timeout).await
    }

    /// Waits until the indexes named, with all they feed on and that feed on them, have taken in everything written before the
    /// call. Of one whose definition is changing, the generation that serves counts.
    ///
    /// # Errors
    /// As [`Database::wait_for_indexes`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait_for_results_of(&self, names: Vec<String>, timeout: Duration) -> Result<(), DatabaseError> {
        self.wait_in(Scope::Connected(names), false, timeout).await
    }

    /// The indexes that a commit may concern: those that read a collection with a change since it began, and all that feed on their
    /// outputs. Blocking.
    ///
    /// # Cost
    /// A read for each source of each index.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn indexes_touched_by(&self, committed: &Committed) -> Result<Vec<String>, DatabaseError> {
        Ok(wait::touched(&self.registry, committed)?)
    }

    /// Waits as [`Database::wait_for_results_of`], for those named and no other, as far as they are not turned off.
    ///
    /// # Errors
    /// As [`Database::wait_for_indexes`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait_for_results_of_only(&self, names: Vec<String>, timeout: Duration) -> Result<(), DatabaseError> {
        self.wait_in(Scope::Exactly(names), false, timeout).await
    }

    async fn wait_in(&self, scope: Scope, settles: bool, timeout: Duration) -> Result<(), DatabaseError> {
        if let Scope::Connected(names) = &scope
            && let Some(name) = names.iter().find(|name| self.registry.get(name).is_none())
        {
            return Err(DatabaseError::NoIndex { name: name.clone() });
        }
        let stale = wait::wait(&self.registry, scope, settles, timeout).await;
        if stale.is_empty() { Ok(()) } else { Err(DatabaseError::StillStale { waited: timeout, indexes: stale }) }
    }
}

fn refused_index(name: &str, error: RegistryError) -> DatabaseError {
    let name = name.to_owned();
    match error {
        RegistryError::Refused(Refused::Script(fault)) => DatabaseError::Script { name, fault: Box::new(fault) },
        RegistryError::Refused(Refused::Rule(reason)) | RegistryError::Store(StoreError::Condition(reason)) => {
            DatabaseError::Definition { name, reason }
        }
        RegistryError::Store(error) => DatabaseError::Store(error),
        RegistryError::Missing => DatabaseError::NoIndex { name },
    }
}
