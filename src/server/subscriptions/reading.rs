//! Reading a worker's batches part by part, on threads that may block.

use crate::server::error::ApiError;
use crate::server::host::Host;
use crate::server::stream::PIECE_BYTES;
use crate::subscription::{Live, Opened, Part, Room, Strategy, SubscriptionError, Worker};

/// Documents of one batch, where the caller names no number; RavenDB's default.
pub(super) const BATCH_DOCUMENTS: usize = 4_096;

/// The most documents of one batch.
const BATCH_DOCUMENTS_MAX: usize = 16_384;

/// Bytes of one batch: it ends with the document that reaches this.
const BATCH_BYTES_MAX: usize = 32 << 20;

/// What a batch may grow to, to hold a run of an index whole.
const WHOLE_RUN_DOCUMENTS_MAX: usize = 32_768;
const WHOLE_RUN_BYTES_MAX: usize = 2 * BATCH_BYTES_MAX;

/// Documents and bytes of one part, which is what a connection holds in memory.
const PART_DOCUMENTS: usize = 2_048;
const PART_BYTES: usize = 8 * PIECE_BYTES;

/// A batch under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    documents_max: usize,
    pub(super) documents: usize,
    bytes: usize,
    /// The etag of its last document.
    last: u64,
    /// Whether a run of an index is kept in one batch.
    whole_runs: bool,
    /// The last etag of the run that was begun.
    run_until: u64,
}

/// What one look at the feed gave.
pub(super) struct Read {
    pub(super) worker: Box<Worker>,
    pub(super) part: Part,
}

impl Batch {
    /// Begins a batch of up to so many documents; with `whole_runs` it grows until it holds the run whole with which it would
    /// end.
    pub(super) fn new(documents_max: Option<u64>, whole_runs: bool) -> Self {
        let asked = documents_max.and_then(|max| usize::try_from(max).ok()).unwrap_or(BATCH_DOCUMENTS);
        let documents_max = asked.clamp(1, BATCH_DOCUMENTS_MAX);
        Self { documents_max, documents: 0, bytes: 0, last: 0, whole_runs, run_until: 0 }
    }

    /// Begins the next one.
    pub(super) fn next(&mut self) {
        (self.documents, self.bytes, self.last, self.run_until) = (0, 0, 0, 0);
    }

    /// Counts what was delivered.
    pub(super) fn add(&mut self, part: &Part, bytes: usize) {
        self.documents += part.deliveries.len();
        self.bytes += bytes;
        if let Some(last) = part.deliveries.last() {
            self.last = last.etag;
            self.run_until = last.run.map_or(0, |run| if run.number > last.etag { run.number } else { 0 });
        }
        if part.is_end {
            self.run_until = 0;
        }
    }

    /// Whether the batch has what it may have.
    pub(super) fn is_full(&self) -> bool {
        let is_full = self.documents >= self.documents_max || self.bytes >= BATCH_BYTES_MAX;
        is_full && !self.completes_a_run()
    }

    /// Whether it goes on only to hold a run whole.
    fn completes_a_run(&self) -> bool {
        self.whole_runs
            && self.run_until > 0
            && self.documents < WHOLE_RUN_DOCUMENTS_MAX
            && self.bytes < WHOLE_RUN_BYTES_MAX
    }

    fn room(&self) -> Room {
        let left = self.documents_max.saturating_sub(self.documents);
        let bytes = BATCH_BYTES_MAX.saturating_sub(self.bytes).clamp(1, PART_BYTES);
        if left == 0 || self.bytes >= BATCH_BYTES_MAX {
            return Room { documents: PART_DOCUMENTS, bytes: PART_BYTES, after: self.last, until: self.run_until };
        }
        Room { documents: left.min(PART_DOCUMENTS), bytes, after: self.last, until: u64::MAX }
    }
}

/// Opens a subscription.
///
/// # Errors
/// The outer one where the server is stopping.
pub(super) async fn open(
    host: &Host,
    live: &std::sync::Arc<Live>,
    strategy: Strategy,
    worker_id: &str,
) -> Result<Result<Opened, SubscriptionError>, ApiError> {
    let (live, worker_id) = (std::sync::Arc::clone(live), worker_id.to_owned());
    host.blocking(move || Ok(live.open(strategy, &worker_id))).await
}

/// Reads the next part of a batch. Where it fails, or its caller goes away, the worker is given up.
///
/// # Errors
/// The outer one where the server is stopping.
pub(super) async fn read(
    host: &Host,
    mut worker: Box<Worker>,
    batch: &Batch,
) -> Result<Result<Read, SubscriptionError>, ApiError> {
    let room = batch.room();
    host.blocking(move || Ok(worker.read(room).map(|part| Read { worker, part }))).await
}
