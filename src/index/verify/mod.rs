//! Verifying an index: everything it keeps is computed again from the documents and compared byte for byte, while it serves.
//!
//! All is read from one snapshot, which must show a finished build. `documents` maps each document that the index has taken in
//! and compares its rows; `groups` builds each group's tree again from its entries and compares nodes, results and artificial
//! documents; `strays` finds rows that nothing accounts for. It is the code of the index itself that computes, so what is
//! verified is that these rows are those of a fresh build.
//!
//! Memory: one batch of entries, one open node for each level of a tree, and one document.
//!
//! Next on the walk: `documents`.

mod documents;
mod groups;
mod lookup;
mod nodes;
mod outputs;
mod rows;
mod strays;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::context::Context;
use super::counters::Counters;
use super::live::Index;
use super::loads::unfinished;
use super::records::{
    DefinitionRecord, PhaseRecord, ProgressRecord, decode, definition_name, progress_name, replacement_name,
};
use crate::script::{Fault, Runner};
use crate::store::StoreError;
use crate::store::commit::Operation;
use crate::store::keyspace::{Family, Generation};
use crate::store::snapshot::{SharedSnapshot, Snapshot};

pub(crate) use strays::{drop_generation, stray_generations};

/// The time between two reports of progress.
pub(crate) const REPORT_EVERY: Duration = Duration::from_millis(500);

/// What a verification tells while it runs.
#[derive(Clone, Debug)]
pub enum VerifyEvent {
    /// How far it has come with one index.
    Progress(Verified),
    /// Something is not what it should be.
    Difference(Difference),
    /// One index is done.
    Verified(Verified),
    /// Something was mended, or could not be.
    Mended {
        /// The index; `None` for what belongs to none.
        index: Option<String>,
        /// Whether it was.
        done: bool,
        /// What was done, or why not and the way out.
        what: String,
    },
}

/// Who is told, and may end the verification.
pub type Listener<'a> = &'a mut (dyn FnMut(VerifyEvent) -> ControlFlow<()> + Send);

/// How something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It should be there.
    Missing,
    /// It has another value.
    Changed,
    /// It should not be there.
    Foreign,
    /// It can't be decoded.
    Unreadable,
}

/// Something that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The index; `None` for what belongs to none.
    pub index: Option<String>,
    /// How it differs.
    pub kind: DifferenceKind,
    /// Where: a family of rows, or `documents`.
    pub family: &'static str,
    /// Which: a document's id, a reduce key as JSON, a group's hash; at most some hundred characters.
    pub place: String,
    /// What was expected and what is there.
    pub detail: String,
}

/// What was verified of one index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// The index.
    pub index: String,
    /// The etag through which it has taken in its sources.
    pub through: u64,
    /// Documents mapped again and compared.
    pub documents: u64,
    /// Documents with a newer version that the index has yet to take in: their rows were only compared with each other.
    pub waiting: u64,
    /// Map entries compared.
    pub entries: u64,
    /// Groups compared.
    pub groups: u64,
    /// Artificial documents compared.
    pub outputs: u64,
    /// Documents and groups whose script was interrupted, which says nothing about their rows.
    pub interrupted: u64,
    /// Rows that differ.
    pub rows_differ: u64,
    /// Artificial documents that differ.
    pub outputs_differ: u64,
    /// The time it took.
    pub took: Duration,
}

impl Verified {
    /// All differences.
    #[must_use]
    pub fn differences(&self) -> u64 {
        self.rows_differ + self.outputs_differ
    }
}

/// Why an index could not be verified.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The listener has heard enough.
    #[error("nobody listens any more")]
    Ended,
    /// Its rows are not complete now: to be tried again.
    #[error("index '{0}' is being built")]
    Building(String),
    #[error("the script no longer runs: {0}")]
    Script(Box<Fault>),
}

/// One verification under way.
struct Verification<'a, 's> {
    context: Context,
    shared: &'a SharedSnapshot,
    snapshot: &'a Snapshot<'s>,
    /// Through which etag each feed was taken in: what is newer waits.
    watermarks: Vec<u64>,
    progress: ProgressRecord,
    /// The document whose dependents are being mapped again, a part in each run.
    remapping: Option<String>,
    runner: Runner,
    report: Report<'a>,
    /// Called with each write that would mend an artificial document, while all rows that it follows from are right.
    mend: Option<Mend<'a>>,
}

/// Applies a write that mends an artificial document; says whether it went through.
pub(crate) type Mend<'a> = &'a mut (dyn FnMut(Operation) -> Result<bool, StoreError> + Send);

/// What was found so far, and who is told.
struct Report<'a> {
    listener: Listener<'a>,
    begun: Instant,
    last: Instant,
    found: Verified,
}

/// Verifies one index in a snapshot. `watermarks` are the index's, read before the snapshot was taken. Tells the listener of each
/// difference, and of its progress twice a second.
pub(crate) fn verify<'a>(
    index: &Arc<Index>,
    watermarks: Vec<u64>,
    shared: &'a SharedSnapshot,
    mend: Option<Mend<'a>>,
    listener: Listener<'a>,
) -> Result<Verified, VerifyError> {
    let snapshot = shared.get();
    let progress = finished_build(index, snapshot)?;
    // Its calls are no work of the index, and it must not end where the index is told to stop.
    let context = Context {
        counters: Arc::new(Counters::default()),
        stop: Arc::new(AtomicBool::new(false)),
        ..index.context.clone()
    };
    let runner = context.runner().map_err(|fault| VerifyError::Script(Box::new(fault)))?;
    let through = watermarks.iter().copied().min().unwrap_or(0);
    let found = Verified { index: context.name.to_string(), through, ..Verified::default() };
    let report = Report { listener, begun: Instant::now(), last: Instant::now(), found };
    let remapping = unfinished(&context, snapshot)?.map(|record| record.loaded);
    let mut verification =
        Verification { context, shared, snapshot, watermarks, progress, remapping, runner, report, mend };
    let accounted = verification.documents()?;
    if verification.report.found.rows_differ > 0 {
        // What follows from damaged entries is no pattern to mend by.
        verification.mend = None;
    }
    let counted = verification.groups()?;
    let mut entries = counted.entries;
    for (family, known) in
        accounted.each().chain([(Family::ReduceKeys, counted.keys), (Family::References, counted.references)])
    {
        let count = if family == Family::MapEntries { counted.entries } else { verification.count_rows(family)? };
        if count > known {
            verification.strays(family)?;
        }
        entries += if family == Family::MapKeys { count } else { 0 };
    }
    verification.compare_counts(entries, counted.groups)?;
    let mut found = verification.report.found;
    found.took = verification.report.begun.elapsed();
    Ok(found)
}

/// The progress that a snapshot shows of an index, which must be past its build, and not changing over to another generation: then
/// its documents are neither the one's nor the other's.
fn finished_build(index: &Index, snapshot: &Snapshot<'_>) -> Result<ProgressRecord, VerifyError> {
    let building = || VerifyError::Building(index.context.name.to_string());
    let (number, generation) = (index.context.number, index.context.generation);
    let definition = |name: String| -> Result<Option<DefinitionRecord>, StoreError> {
        snapshot.row(Family::Meta, name.as_bytes())?.map(|row| decode("meta", &row)).transpose()
    };
    let progress = |generation| -> Result<Option<ProgressRecord>, StoreError> {
        let row = snapshot.row(Family::Meta, progress_name(generation).as_bytes())?;
        row.map(|row| decode("meta", &row)).transpose()
    };
    let serves = definition(definition_name(number))?.is_some_and(|record| record.generation == generation.0);
    if let Some(replacement) = definition(replacement_name(number))?
        && let Some(PhaseRecord::Swapping { .. }) = progress(Generation(replacement.generation))?.map(|it| it.phase)
    {
        return Err(building());
    }
    progress(generation)?.filter(|progress| serves && progress.phase == PhaseRecord::Live).ok_or_else(building)
}

impl Report<'_> {
    /// Tells of a row that differs.
    fn row(&mut self, kind: DifferenceKind, family: Family, place: String, detail: String) -> Result<(), VerifyError> {
        self.found.rows_differ += 1;
        self.tell(kind, family.name(), place, detail)
    }

    /// Tells of an artificial document that differs.
    fn output(&mut self, kind: DifferenceKind, place: String, detail: String) -> Result<(), VerifyError> {
        self.found.outputs_differ += 1;
        self.tell(kind, Family::Documents.name(), place, detail)
    }

    fn tell(
        &mut self,
        kind: DifferenceKind,
        family: &'static str,
        place: String,
        detail: String,
    ) -> Result<(), VerifyError> {
        let index = Some(self.found.index.clone());
        self.send(VerifyEvent::Difference(Difference { index, kind, family, place, detail }))
    }

    /// Tells how far it has come, now and then.
    fn beat(&mut self) -> Result<(), VerifyError> {
        if self.last.elapsed() < REPORT_EVERY {
            return Ok(());
        }
        self.last = Instant::now();
        let found = Verified { took: self.begun.elapsed(), ..self.found.clone() };
        self.send(VerifyEvent::Progress(found))
    }

    fn send(&mut self, event: VerifyEvent) -> Result<(), VerifyError> {
        match (self.listener)(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(VerifyError::Ended),
        }
    }
}
