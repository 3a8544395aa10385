//! Turns what a run found into one commit: index rows, artificial documents, faults and progress become visible together.

use std::sync::atomic::Ordering;

use super::blocked;
use super::counters::add;
use super::faults::Subject;
use super::first_build::{MappedChunk, SweptPart};
use super::live::Index;
use super::planned::Run;
use super::records::{DefinitionRecord, PhaseRecord, ProgressRecord, encode, progress_name};
use super::reference::MergeStep;
use super::settle::Settled;
use crate::script::Fault;
use crate::store::StoreError;
use crate::store::commit::{Author, Commit, Operation, RowChange, Wait, now_micros};
use crate::store::keyspace::{Family, GroupHash};

/// What one commit of an index changes.
#[derive(Debug, Default)]
pub(crate) struct Publish {
    rows: Vec<RowChange>,
    operations: Vec<Operation>,
    watermarks: Option<Vec<u64>>,
    phase: Option<PhaseRecord>,
    entries: i64,
    groups: i64,
    map: (u64, u64),
    reduce: (u64, u64),
    faults: Vec<(Subject, Option<Fault>)>,
    blocked: Vec<GroupHash>,
    unblocked: Vec<GroupHash>,
}

impl Publish {
    /// A batch of a live index.
    pub(crate) fn from_run(run: Run) -> Self {
        Self {
            rows: run.rows,
            operations: run.operations,
            watermarks: Some(run.watermarks),
            phase: None,
            entries: run.entries,
            groups: run.groups,
            map: (run.map_attempts, run.map_faults),
            reduce: (run.reduce_attempts, run.reduce_faults),
            faults: run.faults,
            blocked: run.blocked,
            unblocked: Vec::new(),
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

    /// A part of a sweep or a swap, after which the index stands in `phase`; `groups` are those of the slices that were just swept.
    pub(crate) fn from_part(part: SweptPart, phase: PhaseRecord, groups: i64) -> Self {
        Self {
            rows: part.rows,
            operations: part.operations,
            phase: Some(phase),
            groups,
            reduce: (part.reduce_attempts, part.reduce_faults),
            faults: part.faults,
            blocked: part.blocked,
            ..Self::default()
        }
    }

    /// A step of making reference documents equal to the rows.
    pub(crate) fn from_references(step: MergeStep) -> Self {
        let faults = step.faults.iter().filter(|(_, fault)| fault.is_some()).count() as u64;
        let MergeStep { rows, operations, faults: found, .. } = step;
        Self { rows, operations, reduce: (0, faults), faults: found, ..Self::default() }
    }

    /// Groups that were blocked, as they are now; those in `free` no longer are.
    pub(crate) fn from_settled(settled: Vec<Settled>, free: Vec<GroupHash>) -> Self {
        let mut publish = Self { unblocked: free, ..Self::default() };
        for group in settled {
            publish.rows.extend(group.rows);
            publish.operations.extend(group.operation);
            publish.faults.extend(group.fault);
            publish.reduce.0 += group.attempts;
            publish.reduce.1 += group.faults;
        }
        publish
    }

    /// A step to another phase.
    pub(crate) fn phase(phase: PhaseRecord) -> Self {
        Self { phase: Some(phase), ..Self::default() }
    }

    /// Whether only the watermarks moved.
    pub(crate) fn changes_nothing(&self) -> bool {
        let is_quiet = self.rows.is_empty() && self.operations.is_empty() && self.faults.is_empty();
        is_quiet && self.unblocked.is_empty() && self.phase.is_none()
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
        let generation = index.context.generation;
        let progress = self.progress(&index.progress.lock());
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend(self.blocked.iter().map(|group| blocked::mark(generation, group)));
        rows.extend(self.unblocked.iter().map(|group| blocked::unmark(generation, group)));
        let mut faults = index.faults.lock();
        faults.take(generation, &self.faults, now_micros(), &mut rows);
        rows.push(meta(progress_name(generation), &progress));
        let mut record = index.record.lock();
        if is_failing {
            rows.push(index.definition_row(&DefinitionRecord { errored: true, ..record.clone() }));
        }
        if !self.blocked.is_empty() {
            index.has_blocked.store(true, Ordering::Relaxed);
        }
        let outputs = self.operations.len();
        index.context.store.commit(Commit {
            author: Author::Index(index.context.number),
            operations: std::mem::take(&mut self.operations),
            rows,
            wait: Wait::Written,
            complete_through: progress.watermarks.iter().min().filter(|_| progress.phase == PhaseRecord::Live).copied(),
            ..Commit::default()
        })?;
        record.errored |= is_failing;
        drop((record, faults));
        *index.progress.lock() = progress;
        add(&index.context.counters.outputs_written, outputs);
        add(&index.context.counters.runs, 1);
        index.context.counters.pulse.beat();
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
