//! Steps of the committer and of index runs that a test can watch or stop at, and counters that show how much was done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::distribution::{Distribution, Spread};

/// Commits in one group; a group has at most 1,024.
const GROUP_STEPS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Microseconds of one sync.
const SYNC_STEPS: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// A step of the committer or of an index, in the order in which a group of commits, or a run, reaches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The group is planned; nothing is written yet.
    BeforeWrite,
    /// The group's batch is in the write-ahead log and can be read, but may not survive a power cut.
    AfterWrite,
    /// Commits that do not wait for a sync are answered; the sync comes next.
    BeforeSync,
    /// The sync is done; nobody knows yet.
    AfterSync,
    /// The new durable etag is published and everybody is answered.
    AfterPublish,
    /// An index has found changes and is about to map them.
    RunRead,
    /// A run has mapped its documents and is about to reduce their groups.
    RunMapped,
    /// A run is planned, all its scripts have run; nothing is committed yet.
    RunReduced,
    /// A run was committed.
    RunCommitted,
    /// A part of the second phase of a build was committed.
    SweepCommitted,
    /// A replacement has caught up, and the generation that serves is frozen; nothing of the swap is committed yet.
    SwapFrozen,
    /// A part of a swap was committed.
    MergeCommitted,
    /// A replacement has taken its place.
    SwapFlipped,
    /// An output collection that is no longer written is empty; it is not given up yet.
    OutputEmptied,
}

impl Step {
    /// The steps of a group of commits.
    pub const OF_COMMIT: [Step; 5] =
        [Step::BeforeWrite, Step::AfterWrite, Step::BeforeSync, Step::AfterSync, Step::AfterPublish];
    /// The steps of an index.
    pub const OF_INDEX: [Step; 5] =
        [Step::RunRead, Step::RunMapped, Step::RunReduced, Step::RunCommitted, Step::SweepCommitted];
    /// The steps of a changed definition.
    pub const OF_SWAP: [Step; 4] = [Step::SwapFrozen, Step::MergeCommitted, Step::SwapFlipped, Step::OutputEmptied];
}

/// Is told of every step, on the thread that takes it, which waits for its return.
pub trait Probe: std::fmt::Debug + Send + Sync {
    /// The committer, or an index, has reached `step`.
    fn reached(&self, step: Step);
}

/// How much a store has done since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Syncs of the write-ahead log, as RocksDB counts them.
    pub wal_syncs: u64,
    /// Groups of commits that were planned together.
    pub groups: u64,
    /// Batches written, one for each group with something to write.
    pub batches: u64,
    /// Commits accepted.
    pub commits: u64,
}

/// How the work of a store's committer is spread, since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitSpreads {
    /// Accepted commits of one group.
    pub group_commits: Spread,
    /// Microseconds that one sync of the log took.
    pub sync_micros: Spread,
}

/// The running counters.
#[derive(Debug)]
pub(super) struct Tally {
    groups: AtomicU64,
    batches: AtomicU64,
    commits: AtomicU64,
    group_commits: Distribution,
    sync_micros: Distribution,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            groups: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            group_commits: Distribution::new(GROUP_STEPS),
            sync_micros: Distribution::new(SYNC_STEPS),
        }
    }
}

impl Tally {
    pub(super) fn group(&self, commits: u64) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits, Ordering::Relaxed);
        self.group_commits.add(commits);
    }

    pub(super) fn sync(&self, took: Duration) {
        self.sync_micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn spreads(&self) -> CommitSpreads {
        CommitSpreads { group_commits: self.group_commits.read(), sync_micros: self.sync_micros.read() }
    }

    pub(super) fn batch(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self, wal_syncs: u64) -> Counters {
        Counters {
            wal_syncs,
            groups: self.groups.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
        }
    }
}
