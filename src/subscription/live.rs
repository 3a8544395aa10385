//! One subscription: its books, its workers, and how what they acknowledge is written down.
//!
//! Rows are handed to the committer while the state is locked, so that they are written in the order of what they say; the
//! wait for the disk comes after. Every etag that a row says is acknowledged was acknowledged, or wanted by nobody.
//!
//! Next on the walk: `opening`, `worker`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::definition::Checked;
use super::error::{End, SubscriptionError};
use super::floor::needs_above;
use super::ledger::{Ledger, WorkerNumber};
use super::opening::Strategy;
use super::record::{self, CursorRecord, DefinitionRecord, FaultRow};
use crate::id::{cut, lower};
use crate::store::Store;
use crate::store::changes::Feed;
use crate::store::commit::{Commit, RowChange, now_micros};
use crate::store::keyspace::Family;
use crate::store::previous::Keeper;

/// Faults that are kept of one subscription.
const FAULTS_MAX: usize = 100;

/// Etags that may be passed without a row that says so: after a restart they are looked at again.
pub(super) const UNWRITTEN_MAX: u64 = 4_096;

/// One subscription.
#[derive(Debug)]
pub(crate) struct Live {
    pub(super) number: u64,
    pub(super) store: Store,
    pub(super) state: Mutex<State>,
    /// Changes when a worker left, or something was acknowledged or given back.
    pub(super) changed: watch::Sender<()>,
}

/// What its workers share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) checked: Checked,
    pub(super) ledger: Ledger,
    pub(super) cursor: CursorRecord,
    pub(super) workers: Vec<Entry>,
    pub(super) workers_ever: WorkerNumber,
    faults: VecDeque<FaultRow>,
    faults_changed: bool,
    /// Rows of former versions that go when the item with this etag is acknowledged.
    kept: BTreeMap<u64, Vec<Vec<u8>>>,
    /// The etag that the row of the cursor says.
    written_through: u64,
    pub(super) is_deleted: bool,
}

/// A worker, as others see it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) number: WorkerNumber,
    pub(super) id: String,
    pub(super) strategy: Strategy,
    pub(super) opened_micros: i64,
    pub(super) end: watch::Sender<Option<End>>,
}

/// How a subscription is doing.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) definition: DefinitionRecord,
    pub(crate) cursor: CursorRecord,
    /// Who has it open: id, strategy, since when (microseconds since 1970).
    pub(crate) workers: Vec<(String, Strategy, i64)>,
}

impl Live {
    pub(super) fn new(store: Store, checked: Checked, cursor: CursorRecord, faults: Vec<FaultRow>) -> Arc<Self> {
        let through = cursor.through;
        let live = Self {
            number: checked.record.number,
            store,
            state: Mutex::new(State {
                ledger: Ledger::new(cursor.through, &cursor.above),
                written_through: cursor.through,
                checked,
                cursor,
                workers: Vec::new(),
                workers_ever: 0,
                faults: faults.into(),
                faults_changed: false,
                kept: BTreeMap::new(),
                is_deleted: false,
            }),
            changed: watch::Sender::new(()),
        };
        live.keep(through);
        Arc::new(live)
    }

    /// How it is doing.
    pub(crate) fn status(&self) -> Status {
        let mut state = self.state.lock();
        state.sync_cursor();
        let worker = |entry: &Entry| (entry.id.clone(), entry.strategy, entry.opened_micros);
        let workers = state.workers.iter().map(worker).collect();
        Status { definition: state.checked.record.clone(), cursor: state.cursor.clone(), workers }
    }

    /// The kept faults, oldest first.
    pub(crate) fn faults(&self) -> Vec<FaultRow> {
        self.state.lock().faults.iter().cloned().collect()
    }

    /// Follows what workers of this subscription do.
    pub(crate) fn follow(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Acknowledges everything through `etag`, seen or not, whoever has it in hand. Answers when that is durable.
    ///
    /// # Errors
    /// Several workers share the subscription, or the storage fails.
    pub(crate) fn acknowledge_through(
        &self,
        etag: u64,
    ) -> Result<impl Future<Output = Result<(), SubscriptionError>> + Send + use<>, SubscriptionError> {
        let mut state = self.state.lock();
        if state.workers.iter().any(|entry| entry.strategy == Strategy::Concurrent) {
            return Err(SubscriptionError::InUse(format!(
                "subscription '{}' is shared by concurrent workers; say which one acknowledges: &worker=…",
                state.checked.record.name
            )));
        }
        let etags = state.ledger.acknowledge_all(etag);
        Ok(self.write_acknowledgement(&mut state, &etags))
    }

    /// Acknowledges what the workers that call themselves `worker` hold, through `until` at most. Answers when that is durable.
    ///
    /// # Errors
    /// There is no such worker, or the storage fails.
    pub(crate) fn acknowledge_of(
        &self,
        worker: &str,
        until: Option<u64>,
    ) -> Result<impl Future<Output = Result<(), SubscriptionError>> + Send + use<>, SubscriptionError> {
        let mut state = self.state.lock();
        let named = state.workers.iter().filter(|entry| entry.id == worker);
        let numbers: Vec<WorkerNumber> = named.map(|entry| entry.number).collect();
        if numbers.is_empty() {
            return Err(SubscriptionError::NoWorker { name: state.checked.record.name.clone(), worker: cut(worker) });
        }
        let mut etags = Vec::new();
        for number in numbers {
            etags.extend(state.ledger.acknowledge(number, until.unwrap_or(u64::MAX)));
        }
        Ok(self.write_acknowledgement(&mut state, &etags))
    }

    /// Writes down what was acknowledged; tells those who wait.
    pub(super) fn write_acknowledgement(
        &self,
        state: &mut State,
        etags: &[u64],
    ) -> impl Future<Output = Result<(), SubscriptionError>> + Send + use<> {
        let now = now_micros();
        state.cursor.delivered += etags.len() as u64;
        state.cursor.acknowledged_micros = Some(now);
        state.cursor.touched_micros = now;
        let mut rows = state.rows(self.number);
        for key in etags.iter().filter_map(|etag| state.kept.remove(etag)).flatten() {
            rows.push(RowChange::Delete { family: Family::Meta, key });
        }
        let written = self.store.submit(Commit { rows, ..Commit::default() });
        self.changed.send_replace(());
        async move { written.await.map(|_| ()).map_err(SubscriptionError::from) }
    }

    /// Writes the cursor down without waiting for the disk, where it has moved by `least` etags since it was written.
    pub(super) fn write_progress(&self, state: &mut State, least: u64) {
        if state.is_deleted || state.ledger.through() < state.written_through.saturating_add(least) {
            return;
        }
        let rows = state.rows(self.number);
        // Where it fails the next acknowledgement says the same.
        drop(self.store.submit(Commit { rows, ..Commit::default() }));
    }

    /// Keeps versions for it from now on that it may have been handed.
    pub(super) fn keep(&self, seen_through: u64) {
        let state = self.state.lock();
        let (Feed::Collection(name), true) = (&state.checked.feed, state.checked.record.include_previous) else {
            return;
        };
        let keeper = Keeper { reader: self.number, collection: lower(name), seen_through };
        drop(state);
        self.store.keep_previous(keeper);
    }

    /// Tells whether deletions that it needed were cleaned up.
    ///
    /// # Errors
    /// [`SubscriptionError::Abandoned`], or the storage fails.
    pub(super) fn check_not_abandoned(&self) -> Result<(), SubscriptionError> {
        let mut state = self.state.lock();
        if !state.checked.record.include_deletes {
            return Ok(());
        }
        state.sync_cursor();
        let (through, name) = (needs_above(&state.cursor), state.checked.record.name.clone());
        let purged = self.store.snapshot().purged_through(&state.checked.feed)?;
        if purged > through {
            return Err(SubscriptionError::Abandoned { name, purged, through });
        }
        Ok(())
    }
}

impl State {
    /// Moves the cursor to what the books say.
    pub(super) fn sync_cursor(&mut self) {
        self.cursor.through = self.ledger.through();
        self.cursor.above = self.ledger.above();
    }

    /// The rows that say where it stands.
    pub(super) fn rows(&mut self, number: u64) -> Vec<RowChange> {
        self.sync_cursor();
        self.written_through = self.cursor.through;
        let mut rows = vec![record::put(record::cursor(number), &self.cursor)];
        if std::mem::take(&mut self.faults_changed) {
            rows.push(record::put(record::faults(number), &Vec::from(self.faults.clone())));
        }
        rows
    }

    /// Remembers that the rows of former versions go with an item.
    pub(super) fn let_go_with(&mut self, etag: u64, keys: Vec<Vec<u8>>) {
        if !keys.is_empty() {
            self.kept.insert(etag, keys);
        }
    }

    /// Records a fault.
    pub(super) fn add_fault(&mut self, fault: FaultRow) {
        self.cursor.faults += 1;
        self.faults_changed = true;
        if self.faults.len() >= FAULTS_MAX {
            self.faults.pop_front();
        }
        self.faults.push_back(fault);
    }

    /// Puts another definition and cursor in place; nobody may have it open.
    pub(super) fn replace(&mut self, checked: Checked, cursor: CursorRecord) {
        self.checked = checked;
        self.ledger = Ledger::new(cursor.through, &cursor.above);
        self.cursor = cursor;
    }

    /// Takes a worker out; what it holds is given to others, or read again.
    pub(super) fn remove_worker(&mut self, number: WorkerNumber) -> bool {
        let before = self.workers.len();
        self.workers.retain(|entry| entry.number != number);
        if self.workers.len() == before {
            return false;
        }
        if self.workers.is_empty() {
            self.ledger.rewind();
            self.kept.clear();
        } else {
            self.ledger.give_back(number);
        }
        true
    }

    /// Ends all workers.
    pub(super) fn end_workers(&mut self, end: End) {
        for entry in self.workers.drain(..) {
            entry.end.send_replace(Some(end));
        }
        self.ledger.rewind();
        self.kept.clear();
    }
}
