//! One generation of an index: what its thread and those who ask about it share.
//!
//! Next on the walk: `worker`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::context::Context;
use super::definition::Checked;
use super::faults::FaultLog;
use super::publish::meta;
use super::records::{
    DefinitionRecord, FaultRow, PhaseRecord, ProgressRecord, SettingsRecord, definition_name, replacement_name,
};
use super::roster::replacement_of;
use super::run::has_open_work;
use super::status::{FaultRecord, IndexPhase, IndexState, IndexStatus, ReferenceStatus, SourceStatus};
use crate::store::StoreError;
use crate::store::changes::Feed;
use crate::store::commit::RowChange;
use crate::store::keyspace::Generation;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// How far an index has come, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Everything through this etag is taken in; `None` while the first build has not ended.
    pub through: Option<u64>,
    /// Whether the index was stopped for its faults; nobody waits for one that does not go on.
    pub is_errored: bool,
    /// Whether another definition took its place, or it was deleted.
    pub is_gone: bool,
}

/// One generation of an index and its thread.
#[derive(Debug)]
pub(crate) struct Index {
    pub checked: Checked,
    pub context: Context,
    pub record: Mutex<DefinitionRecord>,
    pub progress: Mutex<ProgressRecord>,
    pub faults: Mutex<FaultLog>,
    pub switches: Arc<Switches>,
    /// Whether it is to take the place of another generation.
    pub is_replacement: AtomicBool,
    /// Whether it is to do so as soon as it can, and take in the rest afterwards.
    pub swaps_now: AtomicBool,
    /// Whether groups may be marked as blocked.
    pub has_blocked: AtomicBool,
    pub reached: watch::Sender<Reached>,
    pub rate: Mutex<Rate>,
    pub last_run_micros: AtomicI64,
    pub thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is set of an index, whichever of its generations runs.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// Stopped until it is resumed or the database is opened again.
    pub is_paused: AtomicBool,
    /// Turned off for good, restarts included.
    pub is_disabled: AtomicBool,
    pub settings: Mutex<SettingsRecord>,
}

/// How far a generation has come, with its definition; as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub record: DefinitionRecord,
    pub progress: ProgressRecord,
}

impl Stored {
    /// The number of the generation.
    pub(crate) fn generation(&self) -> Generation {
        Generation(self.record.generation)
    }
}

/// Feed rows that are counted exactly when somebody asks how far an index lags.
const LAG_COUNTED_MAX: u64 = 2_000;

impl Index {
    /// Puts together an index that has not started.
    pub(crate) fn new(
        checked: Checked,
        context: Context,
        stored: Stored,
        faults: FaultLog,
        switches: Arc<Switches>,
        is_replacement: bool,
    ) -> Arc<Self> {
        let reached = Reached { through: None, is_errored: stored.record.errored, is_gone: false };
        Arc::new(Self {
            checked,
            context,
            record: Mutex::new(stored.record),
            progress: Mutex::new(stored.progress),
            faults: Mutex::new(faults),
            switches,
            is_replacement: AtomicBool::new(is_replacement),
            swaps_now: AtomicBool::new(false),
            has_blocked: AtomicBool::new(true),
            reached: watch::channel(reached).0,
            rate: Mutex::new(Rate::default()),
            last_run_micros: AtomicI64::new(0),
            thread: Mutex::new(None),
        })
    }

    /// Whether it runs.
    pub(crate) fn state(&self) -> IndexState {
        if self.record.lock().errored {
            IndexState::Error
        } else if self.switches.is_disabled.load(Ordering::Relaxed) {
            IndexState::Disabled
        } else if self.switches.is_paused.load(Ordering::Relaxed) {
            IndexState::Paused
        } else {
            IndexState::Normal
        }
    }

    /// The step of its life.
    pub(crate) fn phase(&self) -> PhaseRecord {
        self.progress.lock().phase
    }

    /// What is stored of it.
    pub(crate) fn stored(&self) -> Stored {
        Stored { record: self.record.lock().clone(), progress: self.progress.lock().clone() }
    }

    /// Goes on, while its thread is stopped, with what a change of definition has stored.
    pub(crate) fn restore(&self, stored: Stored) {
        *self.record.lock() = stored.record;
        *self.progress.lock() = stored.progress;
    }

    /// Whether it is to take the place of another generation.
    pub(crate) fn is_replacement(&self) -> bool {
        self.is_replacement.load(Ordering::Relaxed)
    }

    /// The change that stores its definition.
    pub(crate) fn definition_row(&self, record: &DefinitionRecord) -> RowChange {
        match self.is_replacement() {
            true => meta(replacement_name(record.number), record),
            false => meta(definition_name(record.number), record),
        }
    }

    /// Its name as others see it.
    pub(crate) fn shown_name(&self) -> String {
        if self.is_replacement() { replacement_of(&self.context.name) } else { self.context.name.to_string() }
    }

    /// Tells those who wait.
    pub(crate) fn reach(&self, through: Option<u64>) {
        let is_errored = self.state() == IndexState::Error;
        self.reached.send_if_modified(|reached| {
            let now = Reached { through: through.max(reached.through), is_errored, ..*reached };
            std::mem::replace(reached, now) != now
        });
    }

    /// Tells those who wait that another definition has taken its place, or that it was deleted.
    pub(crate) fn leave(&self) {
        self.reached.send_modify(|reached| reached.is_gone = true);
    }

    /// Stops its thread after the run in hand and waits for it. Whoever else stops it meanwhile waits too.
    pub(crate) fn stop(&self) {
        let mut thread = self.thread.lock();
        self.context.stop.store(true, Ordering::Relaxed);
        self.context.store.wake();
        if let Some(thread) = thread.take()
            && thread.join().is_err()
        {
            tracing::error!(name: "index.thread.broken", index = %self.context.name, "the thread of an index broke; this is a fault of Treepie");
        }
    }

    /// How it is doing.
    pub(crate) fn status(&self, snapshot: &Snapshot<'_>) -> Result<IndexStatus, StoreError> {
        let progress = self.progress.lock().clone();
        let mut sources = Vec::new();
        for (feed, watermark) in self.context.feeds.iter().zip(progress.watermarks.iter().copied()) {
            sources.push(source_status(snapshot, feed, watermark, progress.map_attempts)?);
        }
        let rate = self.rate.lock().per_second();
        let is_replacement = self.is_replacement();
        let is_first_build = matches!(progress.phase, PhaseRecord::Mapping | PhaseRecord::Sweeping { .. });
        let building = is_replacement || is_first_build;
        let settings = *self.switches.settings.lock();
        let lag: u64 = sources.iter().map(|source| source.lag).sum();
        #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
        let seconds_left = (rate > 0.0 && lag > 0).then(|| lag as f64 / rate);
        let last_run = self.last_run_micros.load(Ordering::Relaxed);
        Ok(IndexStatus {
            name: self.shown_name(),
            number: self.context.number,
            replaces: is_replacement.then(|| self.context.name.to_string()),
            state: self.state(),
            phase: progress.phase.into(),
            lock: settings.lock,
            priority: settings.priority,
            building,
            stale: building
                || lag > 0
                || progress.phase != PhaseRecord::Live
                || has_open_work(&self.context, snapshot)?,
            output: self.context.output.clone(),
            is_map_reduce: self.context.program.has_reduce,
            loads: self.context.program.loads.clone(),
            reference: self.context.reference.as_ref().map(|reference| ReferenceStatus {
                pattern: reference.pattern.text().to_owned(),
                collection: reference.collection.clone(),
            }),
            sources,
            entries: progress.entries,
            groups: progress.groups,
            map_attempts: progress.map_attempts,
            map_faults: progress.map_faults,
            reduce_attempts: progress.reduce_attempts,
            reduce_faults: progress.reduce_faults,
            documents_per_second: rate,
            seconds_left,
            last_run_micros: (last_run > 0).then_some(last_run),
        })
    }

    /// The kept faults, oldest first.
    pub(crate) fn fault_records(&self) -> Vec<FaultRecord> {
        let record = |row: &FaultRow| FaultRecord {
            at_micros: row.at_micros,
            subject: row.subject.clone(),
            fault: row.fault.clone(),
        };
        self.faults.lock().rows().map(record).collect()
    }
}

impl From<PhaseRecord> for IndexPhase {
    fn from(phase: PhaseRecord) -> Self {
        match phase {
            PhaseRecord::Mapping => Self::Mapping,
            PhaseRecord::Sweeping { .. } => Self::Reducing,
            PhaseRecord::Swapping { .. } => Self::Swapping,
            PhaseRecord::Live => Self::Live,
        }
    }
}

/// Counts what is left of a feed: exactly while it is little, else by what was mapped so far.
fn source_status(
    snapshot: &Snapshot<'_>,
    feed: &Feed,
    watermark: u64,
    mapped: u64,
) -> Result<SourceStatus, StoreError> {
    let written = snapshot.progress().written;
    let mut lag = 0;
    for change in snapshot.changes(feed, watermark, written, Direction::Forward) {
        change?;
        lag += 1;
        if lag >= LAG_COUNTED_MAX {
            break;
        }
    }
    let collection = match feed {
        Feed::Collection(name) => Some(name.clone()),
        Feed::All => None,
    };
    if lag >= LAG_COUNTED_MAX
        && let Some(count) = collection.as_deref().map(|name| snapshot.collection(name)).transpose()?.flatten()
    {
        lag = lag.max((count.documents + count.tombstones).saturating_sub(mapped));
    }
    Ok(SourceStatus { collection, watermark, lag })
}

/// Documents a second, over the last spell of work.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    spell: Option<(Instant, Instant, u64)>,
}

impl Rate {
    /// A pause that ends a spell, and the age at which a spell is halved, in seconds.
    const PAUSE: f64 = 2.0;
    const SPELL: f64 = 10.0;

    /// Takes in work that began at `started` and ends now.
    pub(crate) fn add(&mut self, started: Instant, documents: usize) {
        let now = Instant::now();
        let documents = documents as u64;
        self.spell = Some(match self.spell {
            Some((from, until, done)) if started.duration_since(until).as_secs_f64() < Self::PAUSE => {
                let age = now.duration_since(from);
                match age.as_secs_f64() > Self::SPELL {
                    true => (from + age / 2, now, u64::midpoint(done, documents)),
                    false => (from, now, done + documents),
                }
            }
            _ => (started, now, documents),
        });
    }

    /// The rate, 0 when idle.
    pub(crate) fn per_second(&self) -> f64 {
        match self.spell {
            Some((from, until, documents)) if until.elapsed().as_secs_f64() < Self::PAUSE => {
                #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
                let documents = documents as f64;
                documents / until.duration_since(from).as_secs_f64().max(0.001)
            }
            _ => 0.0,
        }
    }
}
