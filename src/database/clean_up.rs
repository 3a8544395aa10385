//! The clean-up of tombstones: a thread of the database that sleeps between rounds, and a round when somebody asks for one.
//!
//! A round goes through the collections that have tombstones and removes those that nobody needs, oldest first, in small
//! commits; between two of them it looks whether the database closes.
//!
//! Next on the walk: `store::purge`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{RecvTimeoutError, Sender};
use parking_lot::Mutex;

use super::tombstones::{Holds, TombstoneSettings, TombstoneStatus, status};
use super::{Database, DatabaseError};
use crate::id::lower;
use crate::index::registry::Registry;
use crate::store::changes::Feed;
use crate::store::{Store, StoreError};

/// The clean-up of one database; ends its thread when dropped.
#[derive(Debug)]
pub(super) struct CleanUp {
    rounds: Arc<Rounds>,
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

#[derive(Debug)]
struct Rounds {
    store: Store,
    registry: Arc<Registry>,
    settings: TombstoneSettings,
    is_stopping: AtomicBool,
    /// By lower-cased collection: the etag through which its feed was looked at. Held for a whole round.
    looked_through: Mutex<BTreeMap<String, u64>>,
}

impl CleanUp {
    /// Starts the thread.
    pub(super) fn start(
        store: Store,
        registry: Arc<Registry>,
        settings: TombstoneSettings,
    ) -> Result<Self, StoreError> {
        let (is_stopping, looked_through) = (AtomicBool::new(false), Mutex::default());
        let rounds = Arc::new(Rounds { store, registry, settings, is_stopping, looked_through });
        let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
        let worker = Arc::clone(&rounds);
        let run = move || {
            while stopped.recv_timeout(worker.settings.every) == Err(RecvTimeoutError::Timeout) {
                match worker.run() {
                    Ok(0) => {}
                    Ok(removed) => tracing::debug!(name: "tombstones.removed", removed, "tombstones were cleaned up"),
                    Err(error) => {
                        tracing::warn!(name: "tombstones.failed", %error, "tombstones can't be cleaned up; they are tried again");
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("treepie-clean-up".to_owned()).spawn(run);
        let thread = thread
            .map_err(|source| StoreError::System { action: "starting the thread that cleans up".to_owned(), source })?;
        Ok(Self { rounds, thread: Mutex::new(Some((stop, thread))) })
    }

    /// Ends the thread after the commit in hand.
    pub(super) fn stop(&self) {
        self.rounds.is_stopping.store(true, Ordering::Relaxed);
        if let Some((stop, thread)) = self.thread.lock().take() {
            drop(stop);
            if thread.join().is_err() {
                tracing::error!(name: "tombstones.thread_failed", "the thread that cleans up has panicked; this is a fault of Treepie");
            }
        }
    }
}

impl Drop for CleanUp {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Rounds {
    fn holds(&self) -> Result<Holds, StoreError> {
        Holds::read(&self.store, &self.registry, &self.settings)
    }

    /// Removes what nobody needs; returns how many tombstones that were.
    fn run(&self) -> Result<u64, StoreError> {
        let mut looked_through = self.looked_through.lock();
        let holds = self.holds()?;
        let counts = self.store.snapshot().all_collections()?;
        let mut removed = 0;
        for count in counts.into_iter().filter(|count| count.tombstones > 0) {
            let (through, _) = holds.of(&count.name);
            let after = looked_through.entry(lower(&count.name)).or_default();
            while *after < through && !self.is_stopping.load(Ordering::Relaxed) {
                let purged = self.store.purge_tombstones(&count.name, *after, through)?;
                removed += purged.removed;
                *after = purged.through;
            }
        }
        Ok(removed)
    }
}

impl Database {
    /// Removes the tombstones that nobody needs any more, now instead of within [`TombstoneSettings::every`]. Blocking. Returns
    /// how many there were.
    ///
    /// # Cost
    /// One step for each change since the last round, one commit for each 512 tombstones.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn clean_up_tombstones(&self) -> Result<u64, DatabaseError> {
        Ok(self.clean_up.rounds.run()?)
    }

    /// How the tombstones of each collection stand, and who needs them, in name order.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn tombstones(&self) -> Result<Vec<TombstoneStatus>, DatabaseError> {
        let holds = self.clean_up.rounds.holds()?;
        let snapshot = self.store.snapshot();
        let mut statuses = Vec::new();
        for count in snapshot.all_collections()? {
            let purged = snapshot.purged_through(&Feed::Collection(count.name.clone()))?;
            if count.tombstones > 0 || purged > 0 {
                statuses.push(status(count, purged, &holds));
            }
        }
        Ok(statuses)
    }
}
