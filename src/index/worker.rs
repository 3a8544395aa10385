//! The thread of one index: loops over steps, each of which commits at most one run.
//!
//! Indexes have a thread each, so the operating system shares the cores among them fairly, whatever a script does. Two runs of
//! one index are never in flight: a step commits before the next one reads.
//!
//! Next on the walk: `store::commit`, where the artificial documents take the same way as a user's.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::faults::FaultRate;
use super::first_build::{BuildError, MapPool, MappedChunk, SLICES, SweepPool};
use super::live::Index;
use super::pace::Pace;
use super::planned::{GivenUp, Interrupted};
use super::publish::Publish;
use super::records::PhaseRecord;
use super::reference::merge_step;
use super::retire;
use super::run::{BatchLimits, has_open_work, plan};
use super::tree::TreeError;
use crate::script::Runner;
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

/// Runs an index until it is told to stop.
pub(crate) fn run(index: &Arc<Index>) {
    let mut worker = Worker {
        index: Arc::clone(index),
        runner: None,
        fault_rate: (FaultRate::default(), FaultRate::default()),
        tries: HashMap::new(),
        given_up: GivenUp::new(),
        quiet_documents: 0,
        failures: 0,
        pace: Pace::new(BatchLimits::default().documents_max),
    };
    while !worker.is_stopped() {
        let wakes = worker.index.context.store.wakes();
        match worker.step() {
            Ok(Next::Again) => worker.failures = 0,
            Ok(Next::Idle { through }) => {
                worker.failures = 0;
                if !worker.is_stopped() {
                    worker.index.context.store.wait_written_or_woken(through, wakes, IDLE);
                }
            }
            Err(error) => worker.back_off(&error, wakes),
        }
    }
    worker.keep_watermarks();
}

/// What a thread does after a step.
enum Next {
    /// There may be more to do.
    Again,
    /// Nothing to do until something is written after this etag.
    Idle { through: u64 },
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("{}: {}", .0.subject, .0.error)]
    Run(Interrupted),
    #[error("the script no longer compiles: {0}")]
    Script(Box<crate::script::Fault>),
}

struct Worker {
    index: Arc<Index>,
    runner: Option<Runner>,
    fault_rate: (FaultRate, FaultRate),
    tries: HashMap<String, u32>,
    given_up: GivenUp,
    quiet_documents: usize,
    failures: u32,
    pace: Pace,
}

impl Worker {
    fn is_stopped(&self) -> bool {
        self.index.context.stop.load(Ordering::Relaxed)
    }

    fn step(&mut self) -> Result<Next, StepError> {
        if self.index.state() != super::status::IndexState::Normal {
            self.index.reach(None);
            return Ok(Next::Idle { through: u64::MAX });
        }
        let phase = self.index.progress.lock().phase;
        match phase {
            PhaseRecord::Mapping => self.map_all(),
            PhaseRecord::Sweeping { slice } => self.sweep(slice),
            PhaseRecord::Live => self.run_batch(),
        }
    }

    /// One batch of a live index.
    fn run_batch(&mut self) -> Result<Next, StepError> {
        let started = Instant::now();
        let index = Arc::clone(&self.index);
        let context = &index.context;
        let snapshot = context.store.shared_snapshot();
        let written = snapshot.get().progress().written;
        let watermarks = index.progress.lock().watermarks.clone();
        let is_current = is_current(snapshot.get(), &context.feeds, &watermarks)?;
        if is_current && !has_open_work(context, snapshot.get())? {
            index.reach(Some(written));
            return Ok(Next::Idle { through: written });
        }
        context.store.reached(Step::RunRead);
        let runner = match self.runner.take() {
            Some(runner) => self.runner.insert(runner),
            None => self.runner.insert(context.runner().map_err(|fault| StepError::Script(Box::new(fault)))?),
        };
        let limits = BatchLimits { documents_max: self.pace.documents(), ..BatchLimits::default() };
        let run = plan(context, runner, &snapshot, &watermarks, limits, &self.given_up).map_err(StepError::Run)?;
        drop(snapshot);
        context.store.reached(Step::RunReduced);
        let (documents, is_complete, is_open) = (run.documents, run.is_complete, run.is_open);
        self.pace.learn(documents, started.elapsed());
        let reached = match is_complete {
            true => Some(written),
            false => run.watermarks.iter().copied().min().filter(|_| !is_open),
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
        index.reach(reached);
        Ok(Next::Again)
    }

    /// The first phase of a build, until the lag is small.
    fn map_all(&mut self) -> Result<Next, StepError> {
        let index = Arc::clone(&self.index);
        let (watermarks, fresh_through) = {
            let progress = index.progress.lock();
            (progress.watermarks.clone(), progress.fresh_through)
        };
        let mut pool = MapPool::start(&index.context, &watermarks, fresh_through, &self.given_up)?;
        while !self.is_interrupted() {
            let started = Instant::now();
            let Some(chunk) = pool.next_chunk()? else { break };
            let documents = chunk.documents;
            self.publish_chunk(&mut pool, chunk)?;
            index.rate.lock().add(started, documents);
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
        let index = Arc::clone(&self.index);
        let mut pool = SweepPool::start(&index.context, first, &self.given_up)?;
        let mut slices = SliceCursor::new(first);
        while !self.is_interrupted() {
            let Some(part) = pool.next_part()? else { break };
            let (is_last, slice, groups) = (part.is_last, part.slice, part.groups);
            let (cursor, counted) = slices.take(slice, is_last, groups);
            self.publish(Publish::from_part(part, cursor, counted))?;
            index.context.store.reached(Step::SweepCommitted);
        }
        drop(pool);
        if slices.next == SLICES {
            if !self.merge_references()? {
                return Ok(Next::Again);
            }
            retire::empty_former_outputs(&index)?;
            self.publish(Publish::phase(PhaseRecord::Live))?;
        }
        Ok(Next::Again)
    }

    /// Makes the reference documents equal to what the rows say, in bounded commits. `false`: it was told to stop.
    fn merge_references(&mut self) -> Result<bool, StepError> {
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

    /// Commits one run.
    fn publish(&mut self, publish: Publish) -> Result<(), StepError> {
        let (map, reduce) = publish.attempts();
        self.fault_rate.0.add(map.0, map.1);
        self.fault_rate.1.add(reduce.0, reduce.1);
        let is_failing = self.fault_rate.0.is_too_high() || self.fault_rate.1.is_too_high();
        publish.commit(&self.index, is_failing)?;
        self.tries.clear();
        self.index.context.store.reached(Step::RunCommitted);
        if is_failing {
            tracing::warn!(index = %self.index.context.name, "index.stopped_for_faults");
            self.index.reach(None);
        }
        Ok(())
    }

    /// Whether a build should let go of its threads.
    fn is_interrupted(&self) -> bool {
        self.is_stopped() || self.index.state() != super::status::IndexState::Normal
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
        tracing::warn!(index = %self.index.context.name, failures = self.failures, %error, "index.step_failed");
        let wait = BACK_OFF.0.saturating_mul(1 << self.failures.min(10)).min(BACK_OFF.1);
        self.index.context.store.wait_written_or_woken(u64::MAX, wakes, wait);
    }

    /// Writes watermarks that moved without a run.
    fn keep_watermarks(&mut self) {
        let is_live = self.index.progress.lock().phase == PhaseRecord::Live;
        if is_live
            && self.quiet_documents > 0
            && let Err(error) = Publish::default().commit(&self.index, false)
        {
            tracing::warn!(index = %self.index.context.name, %error, "index.watermark_not_kept");
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
