//! How a replacement takes the place of the generation that serves, in steps each of which may be the last before a crash.
//!
//! It catches up, hidden. Then the one that serves is frozen (its thread is stopped after the run in hand) and the replacement takes in
//! what that one had taken in: nobody who waited for the index sees it fall back. It enters `Swapping`, makes the documents equal
//! to its results slice by slice, and one last commit flips: its definition is the index's, the rows of the other one go.
//! Readers of index rows are served the old ones until then. Collections that are no longer written are emptied after it.
//!
//! Next on the walk: `store::commit`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::change::left_outputs;
use super::first_build::Work;
use super::live::Stored;
use super::publish::{Publish, meta};
use super::records::{PhaseRecord, definition_name, former_name, progress_name, replacement_name};
use super::retire::{delete_meta, generation_rows};
use super::worker::{self, Next, Ran, StepError, Worker};
use crate::store::commit::{Author, Commit};
use crate::store::probe::Step;

impl Worker {
    /// A step of a hidden generation that is built and not yet swapped.
    pub(super) fn catch_up(&mut self) -> Result<Next, StepError> {
        if self.index.swaps_now.load(Ordering::Relaxed) {
            self.freeze();
            return self.begin_swap();
        }
        let (reached, is_complete) = match self.run_batch()? {
            Ran::Nothing { through } => (through, true),
            Ran::Batch { through, is_complete } => (through, is_complete),
        };
        match self.frozen_through {
            Some(through) if reached >= through => return self.begin_swap(),
            None if is_complete => self.freeze(),
            _ => {}
        }
        Ok(Next::Again)
    }

    /// Makes the documents equal to the results. At the end a replacement takes its place; a generation that already serves goes on.
    pub(super) fn merge(&mut self, first: u32) -> Result<Next, StepError> {
        if self.index.context.output.is_some() && !self.work_slices(Work::Merge, first)? {
            return Ok(Next::Again);
        }
        if !self.merge_references()? {
            return Ok(Next::Again);
        }
        match self.index.is_replacement() {
            true => self.flip()?,
            false => self.publish(Publish::phase(PhaseRecord::Live))?,
        }
        Ok(Next::Again)
    }

    /// Stops the generation that serves. What it has taken in by then must be taken in before the swap.
    fn freeze(&mut self) {
        if let Some(serving) = self.roster.serving(&self.index.context.name) {
            serving.stop();
        }
        self.frozen_through = Some(self.index.context.store.progress().written);
    }

    /// Lets the generation that serves go on: this one does not.
    pub(super) fn unfreeze(&mut self) {
        if self.frozen_through.take().is_some()
            && let Some(serving) = self.roster.serving(&self.index.context.name)
            && let Err(error) = worker::start(&serving, &self.roster)
        {
            tracing::error!(name: "index.resume.failed", index = %self.index.context.name, %error, "an index can't go on after a change of its definition was given up");
        }
    }

    fn begin_swap(&mut self) -> Result<Next, StepError> {
        let context = &self.index.context;
        context.store.reached(Step::SwapFrozen);
        // Documents are written from here on.
        context.hidden.store(false, Ordering::Relaxed);
        if let Err(error) = self.publish(Publish::phase(PhaseRecord::Swapping { slice: 0 })) {
            self.index.context.hidden.store(true, Ordering::Relaxed);
            return Err(error);
        }
        Ok(Next::Again)
    }

    /// The commit after which this generation is the index.
    fn flip(&mut self) -> Result<(), StepError> {
        let index = Arc::clone(&self.index);
        let (store, name) = (&index.context.store, &index.context.name);
        let Some(serving) = self.roster.serving(name) else { return Ok(()) };
        serving.stop();
        let (former, mut now) = (serving.stored(), index.stored());
        now.record.former_outputs = left_outputs(&former.record, &now.record);
        now.progress.phase = PhaseRecord::Live;
        let Stored { record, progress } = &now;
        let mut rows = generation_rows(former.generation());
        rows.push(delete_meta(replacement_name(record.number)));
        rows.push(meta(definition_name(record.number), record));
        rows.push(meta(progress_name(now.generation()), progress));
        if !serving.checked.is_same(&index.checked) {
            rows.push(meta(former_name(record.number), &former.record));
        }
        store.commit(Commit { author: Author::Index(record.number), rows, ..Commit::default() })?;
        *index.record.lock() = now.record;
        *index.progress.lock() = now.progress;
        index.is_replacement.store(false, Ordering::Relaxed);
        index.swaps_now.store(false, Ordering::Relaxed);
        self.frozen_through = None;
        self.roster.set(&index);
        serving.leave();
        store.reached(Step::SwapFlipped);
        tracing::info!(name: "index.swapped", index = %name, "a changed definition of an index has taken over");
        Ok(())
    }
}
