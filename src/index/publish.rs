//! Turns what a run found into one commit: index rows, artificial documents, faults and progress become visible together.

use std::sync::atomic::Ordering;

use super::counters::add;
use super::faults::Subject;
use super::first_build::{MappedChunk, SweptPart};
use super::live::Index;
use super::planned::Run;
use super::records::{PhaseRecord, ProgressRecord, definition_name, encode, progress_name};
use crate::script::Fault;
use crate::store::StoreError;
use crate::store::commit::{Author, Commit, Operation, RowChange, Wait, now_micros};
use crate::store::keyspace::Family;

/// What one commit of an index changes.
#[derive(Debug, Default)]
pub(crate) struct Publish {
    rows: Vec<RowChange>,
    operations: Vec<Operation>,
    watermarks: Option<Vec<u64>>,
    phase: Option<PhaseRecord>,
    /// The etag of the sources through which the results are complete with this commit.
    complete_through: Option<u64>,
    entries: i64,
    groups: i64,
    map: (u64, u64),
    reduce: (u64, u64),
    faults: Vec<(Subject, Option<Fault>)>,
}

impl Publish {
    /// A batch of a live index.
    pub(crate) fn from_run(run: Run) -> Self {
        Self {
            rows: run.rows,
            operations: run.operations,
            complete_through: run.watermarks.iter().min().copied(),
            watermarks: Some(run.watermarks),
            phase: None,
            entries: run.entries,
            groups: run.groups,
            map: (run.map_attempts, run.map_faults),
            reduce: (run.reduce_attempts, run.reduce_faults),
            faults: run.faults,
        }
    }

    /// A mapped chunk of a build; its rows are taken out of it.
    pub(crate) fn from_chunk(chunk: &mut MappedChunk, watermarks: &[u64]) -> Self {
        let mut watermarks = watermarks.to_vec();
        if let Some(watermark) = watermarks.get_mut(chunk.feed) {
            *watermark = chunk.through;
        }
        Self {
            rows: std::mem::take(&mut chunk.rows),
            watermarks: Some(watermarks),
            entries: chunk.entries,
            map: (chunk.map_attempts, chunk.map_faults),
            faults: std::mem::take(&mut chunk.faults),
            ..Self::default()
        }
    }

    /// A part of a sweep. `cursor` is the first slice that is not done, `groups` those of the slices that just came before it.
    pub(crate) fn from_part(part: SweptPart, cursor: u32, groups: i64) -> Self {
        Self {
            rows: part.rows,
            operations: part.operations,
            phase: Some(PhaseRecord::Sweeping { slice: cursor }),
            groups,
            reduce: (part.reduce_attempts, part.reduce_faults),
            faults: part.faults,
            ..Self::default()
        }
    }

    /// A step to another phase.
    pub(crate) fn phase(phase: PhaseRecord) -> Self {
        Self { phase: Some(phase), ..Self::default() }
    }

    /// Whether only the watermarks moved.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.rows.is_empty() && self.operations.is_empty() && self.faults.is_empty() && self.phase.is_none()
    }

    /// Calls and failures, of map and of reduce.
    pub(crate) fn attempts(&self) -> ((u64, u64), (u64, u64)) {
        (self.map, self.reduce)
    }

    /// Moves the watermarks in memory only: after a crash the same documents are looked at again, without effect.
    pub(crate) fn remember(self, index: &Index) {
        let mut progress = index.progress.lock();
        *progress = self.progress(&progress);
    }

    /// Commits, and moves what the index remembers. `is_failing` stops the index for its faults, in the same commit.
    pub(crate) fn commit(mut self, index: &Index, is_failing: bool) -> Result<(), StoreError> {
        let progress = self.progress(&index.progress.lock());
        let mut rows = std::mem::take(&mut self.rows);
        let mut faults = index.faults.lock();
        faults.take(index.context.number, &self.faults, now_micros(), &mut rows);
        rows.push(meta(progress_name(index.context.number), &progress));
        let mut record = index.record.lock().clone();
        if is_failing {
            record.errored = true;
            rows.push(meta(definition_name(record.number), &record));
        }
        let outputs = self.operations.len();
        let is_build_done = self.phase == Some(PhaseRecord::Live);
        let build_through = progress.watermarks.iter().min().filter(|_| is_build_done).copied();
        index.context.store.commit(Commit {
            author: Author::Index(index.context.number),
            operations: std::mem::take(&mut self.operations),
            rows,
            wait: Wait::Written,
            complete_through: self.complete_through.or(build_through),
            ..Commit::default()
        })?;
        drop(faults);
        *index.progress.lock() = progress;
        *index.record.lock() = record;
        add(&index.context.counters.outputs_written, outputs);
        add(&index.context.counters.runs, 1);
        index.last_run_micros.store(now_micros(), Ordering::Relaxed);
        Ok(())
    }

    fn progress(&self, before: &ProgressRecord) -> ProgressRecord {
        ProgressRecord {
            generation: before.generation,
            fresh_through: before.fresh_through,
            phase: self.phase.unwrap_or(before.phase),
            watermarks: self.watermarks.clone().unwrap_or_else(|| before.watermarks.clone()),
            entries: before.entries.saturating_add_signed(self.entries),
            groups: before.groups.saturating_add_signed(self.groups),
            map_attempts: before.map_attempts + self.map.0,
            map_faults: before.map_faults + self.map.1,
            reduce_attempts: before.reduce_attempts + self.reduce.0,
            reduce_faults: before.reduce_faults + self.reduce.1,
        }
    }
}

/// A `meta` row.
pub(crate) fn meta(name: String, record: &impl bincode::Encode) -> RowChange {
    RowChange::Put { family: Family::Meta, key: name.into_bytes(), value: encode(record) }
}
