//! The committer: one thread through which every write of a database goes.
//!
//! Invariants: etags are given out in the order in which commits become readable; `written` is published after the write,
//! `durable` after the sync, and an answer comes after both; not more than [`UNSYNCED_ETAGS_MAX`] published etags await a
//! sync. A failed write or sync ends all writing, because nobody can know what the disk holds: reads go on.
//!
//! Next on the walk: `state` and `plan`.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

use super::bells::Bells;
use super::plan::{Plan, Planner};
use super::progress::Progression;
use super::queue::{Answer, Queue, Request, Work};
use super::rows::Rows;
use super::state::State;
use super::{Committed, RowChange, Wait};
use crate::id::IdRules;
use crate::store::codec;
use crate::store::collections::Names;
use crate::store::engine::Engine;
use crate::store::format::{self, UNSYNCED_ETAGS_MAX};
use crate::store::keyspace::Family;
use crate::store::meta;
use crate::store::previous::Keeper;
use crate::store::probe::{Probe, Step, Tally};
use crate::store::{Durability, Progress, StoreError};

/// How long what is written may wait for a sync.
const SYNC_DELAY: Duration = Duration::from_millis(2);
/// The same with relaxed durability.
const RELAXED_SYNC_DELAY: Duration = Duration::from_secs(1);

/// What the committer shares with those who write and read.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) queue: Queue,
    pub(crate) progression: Progression,
    pub(crate) bells: Bells,
    /// For whom overwritten versions are kept. The committer reads it from the plan of a group to its write, so a change of
    /// it falls between two groups.
    pub(crate) keepers: RwLock<Vec<Keeper>>,
    pub(crate) names: RwLock<Names>,
    pub(crate) tally: Tally,
    pub(crate) rules: parking_lot::RwLock<Arc<IdRules>>,
    pub(crate) incarnation: String,
    pub(crate) durability: Durability,
    pub(crate) probe: Option<Arc<dyn Probe>>,
}

impl Shared {
    /// Tells the probe, where there is one.
    pub(crate) fn reached(&self, step: Step) {
        if let Some(probe) = &self.probe {
            probe.reached(step);
        }
    }
}

/// The committer's thread.
#[derive(Debug)]
pub(crate) struct Committer {
    shared: Arc<Shared>,
    state: State,
    /// The last etag that a batch was written with.
    written: u64,
    /// The last etag that a sync covered.
    synced: u64,
    /// When the oldest write was made that no sync covers.
    unsynced_since: Option<Instant>,
    /// Whether a write or a sync has failed.
    failed: bool,
}

/// A commit that was accepted and awaits its answer.
struct Member {
    answer: Answer,
    committed: Committed,
    wait: Wait,
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>, totals: codec::TotalsRecord) -> Result<Self, StoreError> {
        let state = State::load(&shared.engine, totals)?;
        state.collections.publish(&shared.names);
        let last = totals.last_etag;
        Ok(Self { shared, state, written: last, synced: last, unsynced_since: None, failed: false })
    }

    /// Serves the queue until it is closed and empty, then marks the stop as clean.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        let _stop = ClearOnDrop(Arc::clone(&self.shared));
        loop {
            match self.shared.queue.take(self.sync_deadline()) {
                Work::Group(group) => self.run_group(group),
                Work::Idle => self.sync_or_fail(),
                Work::Closed => break,
            }
        }
        if self.failed {
            return Err(StoreError::Closed(self.shared.queue.closed().unwrap_or_default()));
        }
        self.sync()?;
        format::end(&self.shared.engine)
    }

    fn run_group(&mut self, group: Vec<Request>) {
        if self.failed {
            let reason = self.shared.queue.closed().unwrap_or_default();
            for request in group {
                request.answer.send(Err(StoreError::Closed(reason.clone())));
            }
            return;
        }
        let shared = Arc::clone(&self.shared);
        let keepers = shared.keepers.read();
        let mut members = Vec::with_capacity(group.len());
        let result = self.plan_group(&shared, &keepers, group, &mut members).and_then(|batch| {
            self.shared.tally.group(members.len() as u64);
            self.write_group(batch, &mut members)
        });
        self.state.end_group();
        match result {
            Ok(()) => {
                answer(members);
                self.reached(Step::AfterPublish);
            }
            Err(error) => {
                let reason = self.fail(&error);
                for member in members {
                    member.answer.send(Err(StoreError::Closed(reason.clone())));
                }
            }
        }
        if self.sync_deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            self.sync_or_fail();
        }
    }

    /// Plans each commit of a group, answers those that are refused, and lays the rows of the others into a batch.
    fn plan_group(
        &mut self,
        shared: &Shared,
        keepers: &[Keeper],
        group: Vec<Request>,
        members: &mut Vec<Member>,
    ) -> Result<rocksdb::WriteBatch, StoreError> {
        let mut rows = Rows::new(&shared.engine)?;
        // Where reading ahead fails, the commit that needs the damaged row fails by itself.
        let _ = self.state.prefetch(&shared.engine, &group);
        let rules = Arc::clone(&shared.rules.read());
        for Request { commit, answer, internal, .. } in group {
            let planner = Planner {
                engine: &shared.engine,
                rules: &rules,
                incarnation: &shared.incarnation,
                now_micros: now_micros(),
                keepers,
            };
            match planner.plan(&mut self.state, &commit, internal) {
                Err(error) => answer.send(Err(error)),
                Ok(plan) => {
                    let added = rows.add(&commit, &plan);
                    let Plan { results, .. } = plan;
                    let committed = Committed { results, last_etag: self.state.totals.last_etag };
                    let relaxed = shared.durability == Durability::Relaxed && !internal;
                    let wait = if relaxed { Wait::Written } else { commit.wait };
                    members.push(Member { answer, committed, wait });
                    added?;
                }
            }
        }
        rows.finish(&mut self.state)
    }

    /// Writes a group, publishes it and syncs it, where a member waits for that; answers those who do not.
    fn write_group(&mut self, batch: rocksdb::WriteBatch, members: &mut Vec<Member>) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.reached(Step::BeforeWrite);
        let last = self.state.totals.last_etag;
        self.bound_unsynced(last)?;
        self.state.collections.publish(&self.shared.names);
        self.shared.engine.write(batch)?;
        self.shared.tally.batch();
        self.written = last;
        self.unsynced_since.get_or_insert_with(Instant::now);
        self.reached(Step::AfterWrite);
        self.publish();
        if members.iter().all(|member| member.wait == Wait::Written) {
            return Ok(());
        }
        let (waiting, written) = std::mem::take(members).into_iter().partition(|member| member.wait == Wait::Durable);
        *members = waiting;
        answer(written);
        self.sync()
    }

    /// Syncs what is written, where `last` would leave too many etags without a sync; and reserves the etags of a group that
    /// is too large by itself, so that they are not given out again should the group be lost.
    fn bound_unsynced(&mut self, last: u64) -> Result<(), StoreError> {
        if last - self.synced <= UNSYNCED_ETAGS_MAX {
            return Ok(());
        }
        if last - self.written > UNSYNCED_ETAGS_MAX {
            let mut batch = rocksdb::WriteBatch::default();
            batch.put_cf(self.shared.engine.family(Family::Meta)?, meta::RESERVED, codec::encode(&last));
            self.shared.engine.write(batch)?;
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
        self.sync()
    }

    /// Syncs the log, where something awaits it, and publishes that.
    fn sync(&mut self) -> Result<(), StoreError> {
        if self.unsynced_since.is_none() {
            return Ok(());
        }
        self.reached(Step::BeforeSync);
        let begun = Instant::now();
        self.shared.engine.sync()?;
        self.shared.tally.sync(begun.elapsed());
        self.reached(Step::AfterSync);
        self.unsynced_since = None;
        self.synced = self.written;
        self.publish();
        Ok(())
    }

    fn sync_or_fail(&mut self) {
        if !self.failed
            && let Err(error) = self.sync()
        {
            self.fail(&error);
        }
    }

    /// Ends all writing; returns the reason that writers are told.
    fn fail(&mut self, error: &StoreError) -> String {
        self.failed = true;
        self.unsynced_since = None;
        let reason = format!(
            "a write to disk failed, and what the disk holds is not known ({error}); see that the disk is well and has \
             room, then open the database again"
        );
        tracing::error!(name: "store.failed", %error, "writing has ended; reads go on");
        self.shared.queue.close(&reason);
        reason
    }

    fn publish(&mut self) {
        let durable = match self.shared.durability {
            Durability::Strict => self.synced,
            Durability::Relaxed => self.written,
        };
        self.shared.progression.publish(Progress { written: self.written, durable });
        if durable == self.written {
            let touched = self.state.collections.take_touched();
            self.shared.bells.ring(touched.iter().map(|number| self.state.collections.lower_name(*number)));
        }
    }

    fn sync_deadline(&self) -> Option<Instant> {
        let delay = match self.shared.durability {
            Durability::Strict => SYNC_DELAY,
            Durability::Relaxed => RELAXED_SYNC_DELAY,
        };
        self.unsynced_since.map(|since| since + delay)
    }

    fn reached(&self, step: Step) {
        self.shared.reached(step);
    }
}

fn answer(members: Vec<Member>) {
    for member in members {
        member.answer.send(Ok(member.committed));
    }
}

/// Leaves nobody waiting, however the thread ends.
struct ClearOnDrop(Arc<Shared>);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.queue.close("the committer has stopped");
        self.0.queue.clear();
        self.0.progression.wake();
    }
}

/// Microseconds since 1970, by the system's clock.
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Makes a row of the store's own in `meta`.
pub(crate) fn own_row(name: &str, value: Vec<u8>) -> RowChange {
    RowChange::Put { family: Family::Meta, key: name.as_bytes().to_vec(), value }
}
