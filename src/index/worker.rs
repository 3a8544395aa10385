//! The thread of one generation of an index: loops over steps, each of which commits at most one run.
//!
//! Indexes have a thread each, so the operating system shares the cores among them fairly, whatever a script does. Two runs of
//! one generation are never in flight: a step commits before the next one reads. Of two generations of an index, one
//! serves and the other is hidden; `swap` makes the one take the other's place.
//!
//! Next on the walk: `swap`, then `store::commit`, where the artificial documents take the same way as a user's.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::blocked;
use super::faults::FaultRate;
use super::first_build::{BuildError, MapPool, MappedChunk, SLICES, SweepPool, Work};
use super::live::Index;
use super::pace::Pace;
use super::planned::{GivenUp, Interrupted};
use super::publish::Publish;
use super::records::PhaseRecord;
use super::reference::merge_step;
use super::retire;
use super::roster::Roster;
use super::run::{BatchLimits, has_open_work, plan};
use super::settle::free_groups;
use super::status::{IndexState, Priority};
use super::tree::TreeError;
use crate::script::{Runner, STACK_BYTES};
use crate::store::StoreError;
use crate::store::changes::Feed;
use crate::store::probe::Step;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Interruptions of one subject after which its fault is recorded.
const TRIES_MAX: u32 = 3;

/// The wait before a failed step is tried again; doubled each time, up to the second figure.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The lag, in documents, under which a first build stops mapping and reduces.
const SWEEP_LAG: usize = 4_096;

/// Documents looked at without effect after which the watermark is written all the same.
const QUIET_DOCUMENTS_MAX: usize = 4_096;

/// The longest sleep of an idle thread; it is woken before when there is work.
const IDLE: Duration = Duration::from_secs(60);

/// The longest that an index of low priority rests after a step.
const REST_MAX: Duration = Duration::from_secs(1);

/// Starts an index's thread, unless it runs.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(index: &Arc<Index>, roster: &Arc<Roster>) -> Result<(), StoreError> {
    let mut thread = index.thread.lock();
    if thread.is_some() {
        return Ok(());
    }
    index.context.stop.store(false, Ordering::Relaxed);
    let (running, roster) = (Arc::clone(index), Arc::clone(roster));
    let name = format!("index-{}-{}", index.context.number, index.context.generation.0);
    let builder = std::thread::Builder::new().name(name).stack_size(STACK_BYTES);
    let started = builder
        .spawn(move || run(&running, &roster))
        .map_err(|source| StoreError::System { action: "starting a thread".to_owned(), source })?;
    *thread = Some(started);
    Ok(())
}

/// Runs an index until it is told to stop.
fn run(index: &Arc<Index>, roster: &Arc<Roster>) {
    let mut worker = Worker {
        index: Arc::clone(index),
        roster: Arc::clone(roster),
        runner: None,
        fault_rate: (FaultRate::default(), FaultRate::default()),
        tries: HashMap::new(),
        given_up: GivenUp::new(),
        quiet_documents: 0,
        failures: 0,
        pace: Pace::new(BatchLimits::default().documents_max),
        frozen_through: None,
        looked_through: 0,
    };
    while !worker.is_stopped() {
        let (wakes, started) = (worker.index.context.store.wakes(), Instant::now());
        match worker.step() {
            Ok(Next::Again) => {
                worker.failures = 0;
                worker.rest(started);
            }
            Ok(Next::Idle { through }) => {
                worker.failures = 0;
                if !worker.is_stopped() {
                    worker.index.context.counters.pulse.rest();
                    worker.index.context.store.wait_written_or_woken(through, wakes, IDLE);
                }
                worker.index.context.counters.pulse.beat();
            }
            Err(error) => worker.back_off(&error, wakes),
        }
    }
    worker.keep_watermarks();
}

/// What a thread does after a step.
pub(super) enum Next {
    /// There may be more to do.
    Again,
    /// Nothing to do until something is written after this etag.
    Idle { through: u64 },
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("{}: {}", .0.subject, .0.error)]
    Run(Interrupted),
    #[error("the script no longer compiles: {0}")]
    Script(Box<crate::script::Fault>),
}

pub(super) struct Worker {
    pub(super) index: Arc<Index>,
    pub(super) roster: Arc<Roster>,
    runner: Option<Runner>,
    fault_rate: (FaultRate, FaultRate),
    tries: HashMap<String, u32>,
    pub(super) given_up: GivenUp,
    quiet_documents: usize,
    failures: u32,
    pace: Pace,
    /// Of a replacement that has stopped the generation that serves: what must be taken in before the swap.
    pub(super) frozen_through: Option<u64>,
    /// The etag through which blocked groups were looked at.
    pub(super) looked_through: u64,
}

/// What a batch did.
pub(super) enum Ran {
    /// There was nothing to take in.
    Nothing { through: u64 },
    /// Everything through `through` is taken in, and, where the batch is complete, all there was.
    Batch { through: u64, is_complete: bool },
}

impl Worker {
    fn is_stopped(&self) -> bool {
        self.index.context.stop.load(Ordering::Relaxed)
    }

    fn step(&mut self) -> Result<Next, StepError> {
        match self.index.state() {
            IndexState::Normal => {}
            state => {
                if state == IndexState::Error {
                    // Should it go on, it is judged anew.
                    self.fault_rate = (FaultRate::default(), FaultRate::default());
                    self.unfreeze();
                }
                self.index.reach(None);
                return Ok(Next::Idle { through: u64::MAX });
            }
        }
        match self.index.phase() {
            PhaseRecord::Mapping => self.map_all(),
            PhaseRecord::Sweeping { slice } => self.sweep(slice),
            PhaseRecord::Swapping { slice } => self.merge(slice),
            PhaseRecord::Live if self.index.context.is_hidden() => self.catch_up(),
            PhaseRecord::Live => self.follow(),
        }
    }

    /// A step of a live index that serves.
    fn follow(&mut self) -> Result<Next, StepError> {
        if !self.index.record.lock().former_outputs.is_empty() {
            retire::empty_former_outputs(&self.index)?;
        }
        if self.index.has_blocked.load(Ordering::Relaxed) {
            self.look_at_blocked()?;
        }
        let (through, is_idle) = match self.run_batch()? {
            Ran::Nothing { through } => (through, true),
            Ran::Batch { through, .. } => (through, false),
        };
        // What was written since the blocked groups were looked at may have freed one.
        let looked_through =
            if self.index.has_blocked.load(Ordering::Relaxed) { self.looked_through } else { u64::MAX };
        let through = through.min(looked_through);
        self.index.reach(Some(through));
        Ok(if is_idle { Next::Idle { through } } else { Next::Again })
    }

    /// One batch of a live index.
    pub(super) fn run_batch(&mut self) -> Result<Ran, StepError> {
        let started = Instant::now();
        let index = Arc::clone(&self.index);
        let context = &index.context;
        let snapshot = context.store.shared_snapshot();
        let written = snapshot.get().progress().written;
        let watermarks = index.progress.lock().watermarks.clone();
        let is_current = is_current(snapshot.get(), &context.feeds, &watermarks)?;
        if is_current && !has_open_work(context, snapshot.get())? {
            return Ok(Ran::Nothing { through: written });
        }
        context.store.reached(Step::RunRead);
        let limits = BatchLimits { documents_max: self.pace.documents(), ..BatchLimits::default() };
        let mut runner = self.take_runner()?;
        let planned = plan(context, &mut runner, &snapshot, &watermarks, limits, &self.given_up);
        let run = planned.map_err(StepError::Run)?;
        self.runner = Some(runner);
        drop(snapshot);
        context.store.reached(Step::RunReduced);
        let (documents, is_complete, is_open) = (run.documents, run.is_complete, run.is_open);
        self.pace.learn(documents, started.elapsed());
        let through = match is_complete {
            true => written,
            // What is still open may have been written at any time.
            false if is_open => 0,
            false => run.watermarks.iter().copied().min().unwrap_or(0),
        };
        self.quiet_documents += documents;
        let publish = Publish::from_run(run);
        if publish.changes_nothing() && self.quiet_documents < QUIET_DOCUMENTS_MAX {
            publish.remember(&index);
        } else {
            self.publish(publish)?;
            self.quiet_documents = 0;
        }
        index.rate.lock().add(started, documents);
        Ok(Ran::Batch { through, is_complete })
    }

    /// The thread's own engine; to be put back, unless a script was interrupted in it.
    pub(super) fn take_runner(&mut self) -> Result<Runner, StepError> {
        match self.runner.take() {
            Some(runner) => Ok(runner),
            None => self.index.context.runner().map_err(|fault| StepError::Script(Box::new(fault))),
        }
    }

    /// Groups whose id was taken get their document when it has become free.
    fn look_at_blocked(&mut self) -> Result<(), StepError> {
        let index = Arc::clone(&self.index);
        let context = &index.context;
        let snapshot = context.store.snapshot();
        let written = snapshot.progress().written;
        if written <= self.looked_through && written > 0 {
            return Ok(());
        }
        let (mut after, mut has_any) = (None, false);
        loop {
            let groups = blocked::marked(&snapshot, context.generation, after.as_ref())?;
            let Some(last) = groups.last().copied() else { break };
            after = Some(last);
            let mut runner = self.take_runner()?;
            let freed =
                free_groups(context, &mut runner, &snapshot, &groups, &self.given_up).map_err(StepError::Run)?;
            self.runner = Some(runner);
            has_any |= freed.1.len() < groups.len();
            if !freed.1.is_empty() {
                self.publish(Publish::from_settled(freed.0, freed.1))?;
            }
        }
        self.looked_through = written;
        index.has_blocked.store(has_any, Ordering::Relaxed);
        Ok(())
    }

    /// The first phase of a build, until the lag is small.
    fn map_all(&mut self) -> Result<Next, StepError> {
        let index = Arc::clone(&self.index);
        let (watermarks, fresh_through) = {
            let progress = index.progress.lock();
            (progress.watermarks.clone(), progress.fresh_through)
        };
        let mut pool = MapPool::start(&index.context, &watermarks, fresh_through, &self.given_up)?;
        while !self.is_interrupted() && !index.swaps_now.load(Ordering::Relaxed) {
            let started = Instant::now();
            let Some(chunk) = pool.next_chunk()? else { break };
            let documents = chunk.documents;
            self.publish_chunk(&mut pool, chunk)?;
            index.rate.lock().add(started, documents);
            self.rest(started);
            let watermarks = index.progress.lock().watermarks.clone();
            if watermarks.iter().all(|watermark| *watermark >= fresh_through) && self.lag_is_small(&watermarks)? {
                break;
            }
        }
        drop(pool);
        if !self.is_interrupted() {
            self.publish(Publish::phase(PhaseRecord::Sweeping { slice: 0 }))?;
        }
        Ok(Next::Again)
    }

    fn publish_chunk(&mut self, pool: &mut MapPool, mut chunk: MappedChunk) -> Result<(), StepError> {
        let publish = Publish::from_chunk(&mut chunk, &self.index.progress.lock().watermarks);
        self.publish(publish)?;
        Ok(pool.committed(chunk)?)
    }

    fn lag_is_small(&self, watermarks: &[u64]) -> Result<bool, StoreError> {
        let context = &self.index.context;
        let snapshot = context.store.snapshot();
        let written = snapshot.progress().written;
        let mut lag = 0;
        for (feed, watermark) in context.feeds.iter().zip(watermarks).take(context.source_feeds()) {
            for change in snapshot.changes(feed, *watermark, written, Direction::Forward) {
                change?;
                lag += 1;
                if lag >= SWEEP_LAG {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The second phase of a build; then the index is live.
    fn sweep(&mut self, first: u32) -> Result<Next, StepError> {
        let is_done = self.work_slices(Work::Reduce, first)?;
        if is_done && (self.index.context.is_hidden() || self.merge_references()?) {
            self.publish(Publish::phase(PhaseRecord::Live))?;
            tracing::info!(name: "index.built", index = %self.index.context.name, "an index is built and follows its sources");
        }
        Ok(Next::Again)
    }

    /// Makes the reference documents equal to what the rows say, in bounded commits. `false`: it was told to stop.
    pub(super) fn merge_references(&mut self) -> Result<bool, StepError> {
        let index = Arc::clone(&self.index);
        loop {
            let snapshot = index.context.store.snapshot();
            let step = merge_step(&index.context, &snapshot)?;
            drop(snapshot);
            let is_last = step.is_last;
            self.publish(Publish::from_references(step))?;
            if is_last || self.is_interrupted() {
                return Ok(is_last);
            }
        }
    }

    /// Works on all slices from `first` on; whether all are done.
    pub(super) fn work_slices(&mut self, work: Work, first: u32) -> Result<bool, StepError> {
        let index = Arc::clone(&self.index);
        let mut pool = SweepPool::start(&index.context, work, first, &self.given_up)?;
        let mut slices = SliceCursor::new(first);
        while !self.is_interrupted() {
            let started = Instant::now();
            let Some(part) = pool.next_part()? else { break };
            let (is_last, slice, groups) = (part.is_last, part.slice, part.groups);
            let (slice, counted) = slices.take(slice, is_last, groups);
            let (phase, step) = match work {
                Work::Reduce => (PhaseRecord::Sweeping { slice }, Step::SweepCommitted),
                Work::Merge => (PhaseRecord::Swapping { slice }, Step::MergeCommitted),
            };
            self.publish(Publish::from_part(part, phase, counted))?;
            index.context.store.reached(step);
            self.rest(started);
        }
        drop(pool);
        Ok(slices.next == SLICES)
    }

    /// Commits one run.
    pub(super) fn publish(&mut self, publish: Publish) -> Result<(), StepError> {
        let (map, reduce) = publish.attempts();
        self.fault_rate.0.add(map.0, map.1);
        self.fault_rate.1.add(reduce.0, reduce.1);
        // A swap goes to its end: what fails in it has failed before.
        let is_swapping = matches!(self.index.phase(), PhaseRecord::Swapping { .. });
        let is_failing = !is_swapping && (self.fault_rate.0.is_too_high() || self.fault_rate.1.is_too_high());
        publish.commit(&self.index, is_failing)?;
        self.tries.clear();
        self.index.context.store.reached(Step::RunCommitted);
        if is_failing {
            tracing::warn!(
                name: "index.stopped",
                index = %self.index.context.name,
                "too many calls of an index failed; it stops, and its results stay readable"
            );
            self.index.reach(None);
        }
        Ok(())
    }

    /// Of low priority: gives way to others for as long as it has worked.
    fn rest(&self, started: Instant) {
        if self.index.switches.settings.lock().priority == Priority::Low && !self.is_stopped() {
            let store = &self.index.context.store;
            store.wait_written_or_woken(u64::MAX, store.wakes(), started.elapsed().min(REST_MAX));
        }
    }

    /// Whether a build should let go of its threads.
    pub(super) fn is_interrupted(&self) -> bool {
        self.is_stopped() || self.index.state() != IndexState::Normal
    }

    /// Notes why a step failed and waits before it is tried again.
    fn back_off(&mut self, error: &StepError, wakes: u64) {
        if self.is_stopped() {
            return;
        }
        self.failures += 1;
        if let StepError::Run(Interrupted { subject, error: TreeError::Interrupted(_) })
        | StepError::Build(BuildError::Interrupted { subject, .. }) = error
        {
            let tries = self.tries.entry(subject.clone()).or_default();
            *tries += 1;
            if *tries >= TRIES_MAX {
                self.given_up.insert(subject.clone());
            }
        }
        self.runner = None;
        self.index.context.counters.pulse.fail(error, self.failures);
        tracing::warn!(
            name: "index.step.failed",
            index = %self.index.context.name, failures = self.failures, %error,
            "a step of an index failed and will be tried again"
        );
        let wait = BACK_OFF.0.saturating_mul(1 << self.failures.min(10)).min(BACK_OFF.1);
        self.index.context.store.wait_written_or_woken(u64::MAX, wakes, wait);
    }

    /// Writes watermarks that moved without a run.
    fn keep_watermarks(&mut self) {
        let is_live = self.index.phase() == PhaseRecord::Live;
        if is_live
            && self.quiet_documents > 0
            && let Err(error) = Publish::default().commit(&self.index, false)
        {
            tracing::warn!(
                name: "index.watermark.not_kept",
                index = %self.index.context.name, %error,
                "an index could not write how far it had come; it will look at some documents again"
            );
        }
    }
}

/// Whether nothing in the feeds is newer than the watermarks. Two reads a feed.
fn is_current(snapshot: &Snapshot<'_>, feeds: &[Feed], watermarks: &[u64]) -> Result<bool, StoreError> {
    for (feed, watermark) in feeds.iter().zip(watermarks) {
        let last = match feed {
            Feed::All => snapshot.progress().written,
            Feed::Collection(name) => snapshot.collection(name)?.map_or(0, |count| count.last_etag),
        };
        if last > *watermark {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Which slices of a sweep are done, in whatever order they end.
struct SliceCursor {
    next: u32,
    done: HashMap<u32, i64>,
    groups: HashMap<u32, i64>,
}

impl SliceCursor {
    fn new(first: u32) -> Self {
        Self { next: first, done: HashMap::new(), groups: HashMap::new() }
    }

    /// Takes in a part; returns the first slice that is not done and the groups of the slices that just came before it.
    fn take(&mut self, slice: u32, is_last: bool, groups: i64) -> (u32, i64) {
        let total = self.groups.entry(slice).or_default();
        *total += groups;
        if is_last {
            self.done.insert(slice, *total);
        }
        let mut counted = 0;
        while let Some(groups) = self.done.remove(&self.next) {
            counted += groups;
            self.next += 1;
        }
        (self.next, counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_waits_for_the_first_open_slice() {
        let mut cursor = SliceCursor::new(0);
        assert_eq!(cursor.take(1, true, 5), (0, 0));
        assert_eq!(cursor.take(0, false, 2), (0, 0));
        assert_eq!(cursor.take(0, true, 1), (2, 8));
    }
}
