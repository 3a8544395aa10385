//! Follows the changes of a database as they become durable.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::{Database, DatabaseError};
use crate::store::changes::{Change, Feed};
use crate::store::scan::Direction;
use crate::store::{Progress, Store, StoreError};

/// Changes read at once.
const CHANGES_MAX: usize = 256;

/// Follows one feed. Never misses a change and never goes past the last durable one; several changes of one document may be seen as one.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    feed: Feed,
    after: u64,
    /// The etag that was durable when it began with nothing.
    begun: u64,
    read: VecDeque<Change>,
    progress: tokio::sync::watch::Receiver<Progress>,
    timer: Runtime,
}

impl Database {
    /// Follows a feed from after the etag `since` (0: from the beginning).
    ///
    /// # Errors
    /// Where no timer can be had from the system.
    pub fn watch(&self, feed: Feed, since: u64) -> Result<Watch, DatabaseError> {
        let timer = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let timer = timer.map_err(|error| StoreError::Closed(format!("no timer could be started: {error}")))?;
        let (store, progress) = (self.store.clone(), self.store.watch_progress());
        let begun = if since == 0 { store.progress().durable } else { 0 };
        Ok(Watch { store, feed, after: since, begun, read: VecDeque::new(), progress, timer })
    }
}

impl Watch {
    /// Blocks until there is a change; `None` after `timeout`. Not from async code.
    ///
    /// # Errors
    /// Where the storage fails, or the database was closed; [`StoreError::Purged`] where deletions after `since` are no longer known.
    pub fn next_change(&mut self, timeout: Duration) -> Result<Option<Change>, DatabaseError> {
        let deadline = std::time::Instant::now() + timeout;
        loop {
            if let Some(change) = self.read.pop_front() {
                return Ok(Some(change));
            }
            let durable = self.progress.borrow_and_update().durable;
            self.read_through(durable)?;
            if self.read.is_empty() {
                let left = deadline.saturating_duration_since(std::time::Instant::now());
                let progress = &mut self.progress;
                match self.timer.block_on(async { tokio::time::timeout(left, progress.changed()).await }) {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Err(StoreError::Closed("it was closed while being watched".to_owned()).into()),
                    Err(_) => return Ok(None),
                }
            }
        }
    }

    fn read_through(&mut self, durable: u64) -> Result<(), StoreError> {
        let snapshot = self.store.snapshot();
        snapshot.check_reader(&self.feed, self.after, self.begun)?;
        for change in snapshot.changes(&self.feed, self.after, durable, Direction::Forward).take(CHANGES_MAX) {
            self.read.push_back(change?);
        }
        self.after = self.read.back().map_or(durable.max(self.after), |change| change.etag);
        Ok(())
    }
}
