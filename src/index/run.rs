//! One run of a live index: changes after the watermark in, one commit out.
//!
//! A run reads from one snapshot, maps each changed document as it is now, compares with what it emitted before, takes the
//! differences into their groups, and hands back one commit: index rows, artificial documents and the new watermark. So a crash
//! never leaves outputs ahead of or behind their index.
//!
//! Next on the walk: `reduce`, then `worker`, which commits what this file plans.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::context::Context;
use super::entry::{EntryChange, EntryChangeKind};
use super::group::settled;
use super::loads::{Dependents, DocumentLoader, unfinished};
use super::map::{Contribution, Mapped, map};
use super::planned::{GivenUp, Interrupted, Run};
use super::publish::meta;
use super::records::{GroupRecord, MapDocument, RemapRecord, decode, remap_name};
use super::reduce::{DirtyGroup, reduce_groups};
use super::reference;
use super::tree::{self, Change, TreeError};
use crate::id::DocumentId;
use crate::script::{Fault, Phase, Runner};
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, entry, map_document, map_entry, reduce_group};
use crate::store::probe::Step;
use crate::store::scan::Direction;
use crate::store::snapshot::{SharedSnapshot, Snapshot};

/// When a batch closes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Documents of a batch.
    pub documents_max: usize,
    /// Encoded bytes of entries of a batch.
    pub entry_bytes_max: usize,
    /// Time that mapping may take before the batch closes with what it has.
    pub mapping_max: Duration,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { documents_max: 4_096, entry_bytes_max: 8 * 1024 * 1024, mapping_max: Duration::from_millis(100) }
    }
}

/// Plans one run after `watermarks`. What an earlier run has left open is done first.
pub(crate) fn plan(
    context: &Context,
    runner: &mut Runner,
    shared: &SharedSnapshot,
    watermarks: &[u64],
    limits: BatchLimits,
    given_up: &GivenUp,
) -> Result<Run, Interrupted> {
    let snapshot = shared.get();
    if let Some(run) =
        reference::plan_open(context, snapshot, watermarks).map_err(|error| store_error("the run", error))?
    {
        return Ok(run);
    }
    let mut planner = Planner::new(context, snapshot, given_up, limits);
    planner.run.watermarks = watermarks.to_vec();
    let loader = DocumentLoader::lend(shared, runner);
    let mapped = planner.map_changes(runner, &loader);
    runner.load_from(None);
    mapped?;
    context.store.reached(Step::RunMapped);
    let mut run = planner.run;
    reduce_groups(context, snapshot, given_up, runner, planner.groups, &mut run)?;
    reference::plan_changes(context, snapshot, &mut run).map_err(|error| store_error("the run", error))?;
    Ok(run)
}

/// Whether an earlier run has left something open that its watermarks cover already.
pub(crate) fn has_open_work(context: &Context, snapshot: &Snapshot<'_>) -> Result<bool, StoreError> {
    Ok(unfinished(context, snapshot)?.is_some() || reference::is_open(context, snapshot)?)
}

struct Planner<'a, 's> {
    context: &'a Context,
    snapshot: &'a Snapshot<'s>,
    given_up: &'a GivenUp,
    groups: BTreeMap<GroupHash, DirtyGroup>,
    run: Run,
    batch: Batch,
}

/// What a batch has taken on.
struct Batch {
    limits: BatchLimits,
    started: Instant,
    /// Lower-cased ids of the documents mapped.
    seen: HashSet<String>,
    entry_bytes: usize,
}

impl<'a, 's> Planner<'a, 's> {
    fn new(context: &'a Context, snapshot: &'a Snapshot<'s>, given_up: &'a GivenUp, limits: BatchLimits) -> Self {
        let batch = Batch { limits, started: Instant::now(), seen: HashSet::new(), entry_bytes: 0 };
        Self { context, snapshot, given_up, groups: BTreeMap::new(), run: Run::default(), batch }
    }

    fn is_full(&self) -> bool {
        let Batch { limits, started, entry_bytes, .. } = &self.batch;
        self.run.documents >= limits.documents_max
            || *entry_bytes >= limits.entry_bytes_max
            || (self.run.documents > 0 && started.elapsed() >= limits.mapping_max)
    }

    /// Maps what changed since the watermarks, and who has loaded what changed, until a limit closes the batch.
    fn map_changes(&mut self, runner: &mut Runner, loader: &DocumentLoader) -> Result<(), Interrupted> {
        self.run.is_complete = true;
        let left = unfinished(self.context, self.snapshot).map_err(|error| store_error("the run", error))?;
        if let Some(RemapRecord { loaded, after }) = left {
            let key = remap_name(self.context.generation).into_bytes();
            self.run.rows.push(RowChange::Delete { family: Family::Meta, key });
            self.remap(runner, loader, &loaded, Some(after))?;
        }
        for feed in 0..self.context.feeds.len() {
            if !self.run.is_open {
                self.follow(runner, loader, feed)?;
            }
        }
        Ok(())
    }

    /// Follows one feed.
    fn follow(&mut self, runner: &mut Runner, loader: &DocumentLoader, feed: usize) -> Result<(), Interrupted> {
        let context = self.context;
        let (Some(source), Some(watermark)) = (context.feeds.get(feed), self.run.watermarks.get(feed).copied()) else {
            return Ok(());
        };
        let through = self.snapshot.progress().written;
        let (mut reached, mut last) = (through, watermark);
        let mut changes = self.snapshot.changes(source, watermark, through, Direction::Forward);
        loop {
            let is_full = self.is_full();
            let Some(change) = changes.next() else { break };
            if is_full {
                (reached, self.run.is_complete) = (last, false);
                break;
            }
            let change = change.map_err(|error| store_error(&format!("{source:?}"), error))?;
            last = change.etag;
            self.run.documents += 1;
            if feed < context.source_feeds() {
                self.map_once(runner, loader, &change.id)?;
            } else {
                self.remap(runner, loader, &crate::id::lower(&change.id), None)?;
                if self.run.is_open {
                    reached = last;
                    break;
                }
            }
        }
        if let Some(watermark) = self.run.watermarks.get_mut(feed) {
            *watermark = reached;
        }
        Ok(())
    }

    /// Maps again who has loaded a document; where they are too many, the rest is noted and left to the next run.
    fn remap(
        &mut self,
        runner: &mut Runner,
        loader: &DocumentLoader,
        loaded: &str,
        mut after: Option<String>,
    ) -> Result<(), Interrupted> {
        let failed = |error| store_error(loaded, error);
        let mut dependents = Dependents::of(self.snapshot, self.context.generation, loaded, after.as_deref());
        while let Some(id) = dependents.next().map_err(failed)? {
            if self.is_full() {
                let record = RemapRecord { loaded: loaded.to_owned(), after: after.unwrap_or_default() };
                self.run.rows.push(meta(remap_name(self.context.generation), &record));
                (self.run.is_complete, self.run.is_open) = (false, true);
                return Ok(());
            }
            self.run.documents += 1;
            self.map_once(runner, loader, &id)?;
            after = Some(id);
        }
        Ok(())
    }

    /// Maps a document as it is now, unless this run has done so, and notes what differs from before.
    fn map_once(&mut self, runner: &mut Runner, loader: &DocumentLoader, written: &str) -> Result<(), Interrupted> {
        let mut id = DocumentId::stored(written);
        if !self.batch.seen.insert(id.lower().to_owned()) {
            return Ok(());
        }
        let failed = |error| store_error(written, error);
        let document = self.snapshot.get(&id).map_err(failed)?;
        let row = map_document(self.context.generation, id.lower());
        let before = self.snapshot.row(Family::MapDocuments, &row).map_err(failed)?;
        let before: Option<MapDocument> =
            before.map(|bytes| decode("map_documents", &bytes)).transpose().map_err(failed)?;
        let mapped = match &document {
            Some(document) => {
                id = DocumentId::stored(&document.id);
                self.map_document(runner, loader, document)?
            }
            None => Mapped::default(),
        };
        self.batch.entry_bytes += mapped.bytes();
        let contribution = Contribution::new(self.context.generation, &id, before, mapped);
        self.run.map_faults += u64::from(contribution.is_fault());
        self.run.rows.extend(contribution.rows);
        self.run.faults.extend(contribution.fault);
        self.run.entries += contribution.keyed;
        for change in contribution.changes {
            self.note_change(id.lower(), change).map_err(failed)?;
        }
        Ok(())
    }

    fn map_document(
        &mut self,
        runner: &mut Runner,
        loader: &DocumentLoader,
        document: &StoredDocument,
    ) -> Result<Mapped, Interrupted> {
        let failed = |error| store_error(&document.id, error);
        let mapped = map(self.context, runner, loader, document, &mut self.run.map_attempts).map_err(failed)?;
        match &mapped.fault {
            Some(fault) if fault.transient && !self.given_up.contains(&document.id) => {
                let (subject, fault) = (document.id.clone(), Box::new(fault.clone()));
                Err(Interrupted { subject, error: TreeError::Interrupted(fault) })
            }
            Some(fault) => {
                let fault = settled(fault.clone());
                Ok(mapped.failed(fault))
            }
            None => Ok(match self.collision(&mapped.entries).map_err(failed)? {
                Some(fault) => mapped.failed(fault),
                None => mapped,
            }),
        }
    }

    /// Finds an entry whose key has the hash of another key: two such groups are never merged.
    fn collision(&mut self, entries: &[super::entry::Entry]) -> Result<Option<Fault>, StoreError> {
        let mut own: HashMap<GroupHash, &[u8]> = HashMap::new();
        for entry in entries {
            let known = match self.group(entry.group)?.map(|group| group.key.clone()).filter(|key| !key.is_empty()) {
                Some(key) => key,
                None => own.entry(entry.group).or_insert(&entry.key).to_vec(),
            };
            if known != entry.key {
                return Ok(Some(colliding(entry.group)));
            }
        }
        Ok(None)
    }

    /// What is known of a group: its row, and what this run has noted. `None` where neither exists.
    fn group(&mut self, hash: GroupHash) -> Result<Option<&mut DirtyGroup>, StoreError> {
        if !self.groups.contains_key(&hash) {
            let row = self.snapshot.row(Family::ReduceGroups, &reduce_group(self.context.generation, &hash))?;
            let Some(row) = row else { return Ok(None) };
            let record: GroupRecord = decode("reduce_groups", &row)?;
            let key = record.key.clone();
            self.groups.insert(hash, DirtyGroup { record: Some(record), key, changes: tree::Changes::new() });
        }
        Ok(self.groups.get_mut(&hash))
    }

    fn note_change(&mut self, lower_id: &str, change: EntryChange) -> Result<(), StoreError> {
        let EntryChange { group: hash, ordinal, kind } = change;
        if self.group(hash)?.is_none() {
            self.groups.insert(hash, DirtyGroup { record: None, key: Vec::new(), changes: tree::Changes::new() });
        }
        let Some(group) = self.groups.get_mut(&hash) else { return Ok(()) };
        let row = map_entry(self.context.generation, &hash, lower_id, ordinal);
        let (was_present, value) = match kind {
            EntryChangeKind::Added { key, value } => {
                group.key = key;
                self.run.entries += 1;
                (false, Some(value))
            }
            EntryChangeKind::Replaced { value } => (true, Some(value)),
            EntryChangeKind::Removed => {
                self.run.entries -= 1;
                (true, None)
            }
        };
        self.run.rows.push(match &value {
            Some(value) => RowChange::Put { family: Family::MapEntries, key: row, value: value.clone() },
            None => RowChange::Delete { family: Family::MapEntries, key: row },
        });
        group.changes.insert(entry(lower_id, ordinal), Change { was_present, value });
        Ok(())
    }
}

fn store_error(subject: &str, error: StoreError) -> Interrupted {
    Interrupted { subject: subject.to_owned(), error: TreeError::Store(error) }
}

pub(crate) fn colliding(group: GroupHash) -> Fault {
    Fault {
        phase: Phase::Map,
        script: String::new(),
        line: None,
        column: None,
        function: Some("emit".to_owned()),
        message: format!("the reduce key has the hash {group:?} of another key"),
        hint: Some("change the key a little, by a constant field for example".to_owned()),
        transient: false,
    }
}
