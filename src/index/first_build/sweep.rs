//! The second phase of a build: threads reduce the groups, a slice of the hash space at a time; the index's thread commits.
//!
//! A slice is all hashes with one first byte, which is also all artificial ids with the same two hex digits: both are read in
//! the same order and compared. Nothing maps meanwhile, so a slice done twice, after a crash, comes out the same. A hidden
//! generation leaves the documents alone; `merge` compares them later.
//!
//! Next on the walk: `merge`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::super::context::{Context, same_name};
use super::super::counters::add;
use super::super::faults::Subject;
use super::super::group::{GroupReduce, plan_output, subject};
use super::super::ordered_key::keyed_group;
use super::super::planned::GivenUp;
use super::super::records::{GroupRecord, GroupResult, decode, encode};
use super::super::reference::Listing;
use super::super::tree::{TreeBuilder, TreeError};
use super::{BuildError, helpers};
use crate::script::{Fault, Runner, STACK_BYTES};
use crate::store::commit::{Operation, RowChange};
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, KeyRange, decode_group, level_prefix};
use crate::store::scan::{Direction, Scan};
use crate::store::snapshot::{IdRange, Snapshot};

/// The hash space is swept in this many slices.
pub(crate) const SLICES: u32 = 256;

/// Rows and documents after which a part of a slice is committed.
const PART_CHANGES_MAX: usize = 8_192;

/// Time after which a part of a slice is committed, however small: faults are judged when it is.
const PART_MAX: Duration = Duration::from_millis(100);

/// A part of a slice, to be committed.
#[derive(Debug)]
pub(crate) struct SweptPart {
    started: Instant,
    /// Which slice.
    pub slice: u32,
    /// Whether the slice is done with this part.
    pub is_last: bool,
    /// Rows to write.
    pub rows: Vec<RowChange>,
    /// Artificial documents.
    pub operations: Vec<Operation>,
    /// Groups with entries.
    pub groups: i64,
    /// Calls, and those that failed.
    pub reduce_attempts: u64,
    pub reduce_faults: u64,
    /// Faults by group; `None` clears.
    pub faults: Vec<(Subject, Option<Fault>)>,
    /// Groups whose id a foreign document has taken.
    pub blocked: Vec<GroupHash>,
}

/// What is done with each slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The groups are reduced.
    Reduce,
    /// They are reduced already, and the documents are made equal to them.
    Merge,
}

impl SweptPart {
    fn new(slice: u32) -> Self {
        Self {
            started: Instant::now(),
            slice,
            is_last: false,
            rows: Vec::new(),
            operations: Vec::new(),
            groups: 0,
            reduce_attempts: 0,
            reduce_faults: 0,
            faults: Vec::new(),
            blocked: Vec::new(),
        }
    }
}

/// The threads that sweep.
pub(crate) struct SweepPool {
    parts: Receiver<Result<SweptPart, BuildError>>,
    threads: Vec<JoinHandle<()>>,
}

impl SweepPool {
    /// Starts the threads on all slices from `first` on.
    pub(crate) fn start(context: &Context, work: Work, first: u32, given_up: &GivenUp) -> Result<Self, BuildError> {
        let (slices, slice_queue) = unbounded();
        for slice in first..SLICES {
            slices.send(slice).map_err(|_| BuildError::Thread)?;
        }
        let (part_queue, parts) = bounded(helpers() * 2);
        let given_up = Arc::new(given_up.clone());
        let mut threads = Vec::new();
        for n in 0..helpers() {
            let (context, slice_queue, part_queue) = (context.clone(), slice_queue.clone(), part_queue.clone());
            let given_up = Arc::clone(&given_up);
            let thread =
                std::thread::Builder::new().name(format!("reduce-{}-{n}", context.number)).stack_size(STACK_BYTES);
            let run = move || sweep_slices(&context, work, &given_up, &slice_queue, &part_queue);
            threads.push(thread.spawn(run).map_err(|_| BuildError::Thread)?);
        }
        Ok(Self { parts, threads })
    }

    /// The next part, in no particular order of slices; `None` when all are done.
    pub(crate) fn next_part(&mut self) -> Result<Option<SweptPart>, BuildError> {
        self.parts.recv().ok().transpose()
    }
}

impl Drop for SweepPool {
    fn drop(&mut self) {
        let (_, closed) = bounded(0);
        self.parts = closed;
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// The life of a sweeping thread.
fn sweep_slices(
    context: &Context,
    work: Work,
    given_up: &GivenUp,
    slices: &Receiver<u32>,
    parts: &Sender<Result<SweptPart, BuildError>>,
) {
    let mut runner = match context.runner() {
        Ok(runner) => runner,
        Err(fault) => {
            drop(
                parts.send(Err(BuildError::Interrupted { subject: context.name.to_string(), fault: Box::new(fault) })),
            );
            return;
        }
    };
    while let Ok(slice) = slices.try_recv() {
        let part = SweptPart::new(slice);
        let mut sweep = Sweep { context, given_up, runner: &mut runner, parts, part };
        let result = match work {
            Work::Reduce => sweep.slice(slice),
            Work::Merge => sweep.merge(slice),
        };
        let is_over = result.is_err();
        if parts.send(result.map(|()| sweep.part)).is_err() || is_over {
            return;
        }
    }
}

/// One slice being swept.
pub(super) struct Sweep<'a> {
    pub(super) context: &'a Context,
    pub(super) given_up: &'a GivenUp,
    pub(super) runner: &'a mut Runner,
    parts: &'a Sender<Result<SweptPart, BuildError>>,
    pub(super) part: SweptPart,
}

impl Sweep<'_> {
    fn slice(&mut self, slice: u32) -> Result<(), BuildError> {
        let store = self.context.store.clone();
        let snapshot = store.snapshot();
        let mut present = self.present_outputs(&snapshot, slice)?;
        let prefix = [self.context.generation.0.to_be_bytes().as_slice(), &slice.to_be_bytes()[3..]].concat();
        let mut groups = snapshot.rows(Family::ReduceGroups, KeyRange::prefix(&prefix), Direction::Forward);
        let mut entries =
            Entries::new(snapshot.rows(Family::MapEntries, KeyRange::prefix(&prefix), Direction::Forward))?;
        while let Some((key, value)) = groups.next_row()? {
            let Some(hash) = decode_group(key) else { continue };
            let record: GroupRecord = decode("reduce_groups", value)?;
            self.group(hash, record, &mut entries, present.remove(&hash).as_ref())?;
            self.send_when_full()?;
        }
        for (hash, document) in present {
            if let Ok(operation) = plan_output(self.context, &hash, Some(&document), None) {
                self.part.operations.extend(operation);
            }
            self.send_when_full()?;
        }
        self.part.is_last = true;
        Ok(())
    }

    /// The documents that stand under ids of this slice: artificial ones of the generation before, or foreign ones.
    fn present_outputs(
        &self,
        snapshot: &Snapshot<'_>,
        slice: u32,
    ) -> Result<BTreeMap<GroupHash, StoredDocument>, BuildError> {
        let mut present = BTreeMap::new();
        if let Some(output) = self.context.output.as_ref().filter(|_| !self.context.is_hidden()) {
            let lower = crate::id::lower(output);
            let range = IdRange { prefix: format!("{lower}/{slice:02x}"), ..IdRange::default() };
            for document in snapshot.documents(&range) {
                let document = document?;
                let is_output = document.flags.artificial && same_name(&document.collection, output);
                let hash = group_of(&crate::id::lower(&document.id), &lower);
                if let Some(hash) = hash.filter(|_| is_output || !document.flags.artificial) {
                    present.insert(hash, document);
                }
            }
        }
        Ok(present)
    }

    fn group(
        &mut self,
        hash: GroupHash,
        record: GroupRecord,
        entries: &mut Entries<'_>,
        present: Option<&StoredDocument>,
    ) -> Result<(), BuildError> {
        let row = crate::store::keyspace::reduce_group(self.context.generation, &hash);
        entries.skip_before(&hash)?;
        if !entries.is_at(&hash) {
            self.part.rows.push(RowChange::Delete { family: Family::ReduceGroups, key: row });
            if let Ok(operation) = plan_output(self.context, &hash, present, None) {
                self.part.operations.extend(operation);
            }
            return Ok(());
        }
        let gives_up = self.given_up.contains(&format!("{hash:?}"));
        let mut reduce = GroupReduce::new(self.runner, &record.key, self.context, gives_up);
        let (context, part, parts) = (self.context, &mut self.part, self.parts);
        let mut builder = TreeBuilder::default();
        let mut is_cut_off = false;
        let sink = &mut |level: u8, start: &[u8], stored: &[u8]| {
            let key = [level_prefix(context.generation, &hash, level).as_slice(), start].concat();
            part.rows.push(RowChange::Put { family: Family::ReduceNodes, key, value: stored.to_vec() });
            add(&context.counters.nodes_written, 1);
            is_cut_off |= send_full(part, parts).is_err();
        };
        let interrupted = |error| interruption(&hash, error);
        while entries.is_at(&hash) {
            builder.push(entries.entry(), &entries.value, &mut reduce, sink).map_err(interrupted)?;
            entries.advance()?;
        }
        let built = builder.finish(&mut reduce, sink).map_err(interrupted)?;
        if is_cut_off {
            return Err(BuildError::Thread);
        }
        let (mut result, body) = reduce.finish(built.result).map_err(interrupted)?;
        let mut listing = Listing::new(self.context, body.as_deref());
        self.part.reduce_attempts += reduce.attempts;
        self.part.reduce_faults += reduce.faults;
        match plan_output(self.context, &hash, present, body) {
            Ok(operation) => self.part.operations.extend(operation),
            Err(fault) => {
                self.part.reduce_faults += 1;
                self.part.blocked.push(hash);
                result = GroupResult::Fault(fault);
                listing.withdraw();
            }
        }
        let record = GroupRecord { count: built.count, height: built.height, result, ..record };
        self.part.reduce_faults += u64::from(listing.fault().is_some());
        let fault = if let GroupResult::Fault(fault) = &record.result { Some(fault) } else { listing.fault() };
        self.part.faults.extend(fault.map(|fault| (subject(&record), Some(fault.clone()))));
        self.part.groups += 1;
        let key = keyed_group(self.context.generation, &record.key, &hash);
        self.part.rows.push(RowChange::Put { family: Family::ReduceKeys, key, value: Vec::new() });
        self.part.rows.extend(listing.rows(self.context.generation, &hash));
        self.part.rows.push(RowChange::Put { family: Family::ReduceGroups, key: row, value: encode(&record) });
        Ok(())
    }

    pub(super) fn send_when_full(&mut self) -> Result<(), BuildError> {
        send_full(&mut self.part, self.parts)
    }
}

/// Sends what a slice has so far, when it is enough for a commit.
fn send_full(part: &mut SweptPart, parts: &Sender<Result<SweptPart, BuildError>>) -> Result<(), BuildError> {
    if part.rows.len() + part.operations.len() < PART_CHANGES_MAX && part.started.elapsed() < PART_MAX {
        return Ok(());
    }
    let next = SweptPart::new(part.slice);
    parts.send(Ok(std::mem::replace(part, next))).map_err(|_| BuildError::Thread)
}

pub(super) fn interruption(hash: &GroupHash, error: TreeError) -> BuildError {
    match error {
        TreeError::Store(error) => BuildError::Store(error),
        TreeError::Interrupted(fault) => BuildError::Interrupted { subject: format!("{hash:?}"), fault },
        TreeError::Order => BuildError::Thread,
    }
}

/// Reads the group hash out of a lower-cased artificial id.
pub(super) fn group_of(lower_id: &str, lower_output: &str) -> Option<GroupHash> {
    let hex = lower_id.strip_prefix(lower_output)?.strip_prefix('/')?;
    let is_hash = hex.len() == 32 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hash.then(|| u128::from_str_radix(hex, 16).ok()).flatten().map(|hash| GroupHash(hash.to_be_bytes()))
}

/// A scan of entries that can be looked at before it moves on.
struct Entries<'s> {
    scan: Scan<'s>,
    key: Vec<u8>,
    value: Vec<u8>,
    is_over: bool,
}

impl<'s> Entries<'s> {
    fn new(scan: Scan<'s>) -> Result<Self, BuildError> {
        let mut entries = Self { scan, key: Vec::new(), value: Vec::new(), is_over: false };
        entries.advance()?;
        Ok(entries)
    }

    fn advance(&mut self) -> Result<(), BuildError> {
        match self.scan.next_row()? {
            Some((key, value)) => {
                self.key.clear();
                self.key.extend_from_slice(key);
                self.value.clear();
                self.value.extend_from_slice(value);
            }
            None => self.is_over = true,
        }
        Ok(())
    }

    fn skip_before(&mut self, hash: &GroupHash) -> Result<(), BuildError> {
        while !self.is_over && decode_group(&self.key).is_some_and(|at| at < *hash) {
            self.advance()?;
        }
        Ok(())
    }

    fn is_at(&self, hash: &GroupHash) -> bool {
        !self.is_over && decode_group(&self.key).is_some_and(|at| at == *hash)
    }

    /// The entry's source id and ordinal, as the tree knows it.
    fn entry(&self) -> &[u8] {
        self.key.get(20..).unwrap_or_default()
    }
}
