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
use super::entry::{EntryChange, EntryChangeKind, compare};
use super::group::settled;
use super::map::{Contribution, Mapped, map};
use super::planned::{GivenUp, Interrupted, Run};
use super::records::{GroupRecord, MapDocument, decode};
use super::reduce::{DirtyGroup, reduce_groups};
use super::tree::{self, Change, TreeError};
use crate::id::DocumentId;
use crate::script::{Fault, Phase, Runner};
use crate::store::changes::Change as FeedChange;
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, GroupHash, entry, map_document, map_entry, reduce_group};
use crate::store::probe::Step;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

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

/// Plans one run after `watermarks`.
pub(crate) fn plan(
    context: &Context,
    runner: &mut Runner,
    snapshot: &Snapshot<'_>,
    watermarks: &[u64],
    limits: BatchLimits,
    given_up: &GivenUp,
) -> Result<Run, Interrupted> {
    let mut planner = Planner::new(context, snapshot, given_up);
    planner.map_changes(runner, watermarks, limits)?;
    context.store.reached(Step::RunMapped);
    let mut run = planner.run;
    reduce_groups(context, snapshot, given_up, runner, planner.groups, &mut run)?;
    Ok(run)
}

struct Planner<'a, 's> {
    context: &'a Context,
    snapshot: &'a Snapshot<'s>,
    given_up: &'a GivenUp,
    groups: BTreeMap<GroupHash, DirtyGroup>,
    run: Run,
}

impl<'a, 's> Planner<'a, 's> {
    fn new(context: &'a Context, snapshot: &'a Snapshot<'s>, given_up: &'a GivenUp) -> Self {
        Self { context, snapshot, given_up, groups: BTreeMap::new(), run: Run::default() }
    }

    /// Maps what changed since the watermarks, until a limit closes the batch.
    fn map_changes(&mut self, runner: &mut Runner, watermarks: &[u64], limits: BatchLimits) -> Result<(), Interrupted> {
        let started = Instant::now();
        let through = self.snapshot.progress().written;
        self.run.is_complete = true;
        let (mut seen, mut entry_bytes) = (HashSet::new(), 0);
        for (feed, &watermark) in self.context.feeds.iter().zip(watermarks) {
            let mut reached = through;
            let mut last = watermark;
            let mut changes = self.snapshot.changes(feed, watermark, through, Direction::Forward);
            loop {
                let is_full = self.run.documents >= limits.documents_max
                    || entry_bytes >= limits.entry_bytes_max
                    || (self.run.documents > 0 && started.elapsed() >= limits.mapping_max);
                let Some(change) = changes.next() else { break };
                if is_full {
                    (reached, self.run.is_complete) = (last, false);
                    break;
                }
                let change = change.map_err(|error| store_error(&error_subject(feed), error))?;
                last = change.etag;
                if seen.insert(crate::id::lower(&change.id)) {
                    entry_bytes += self.map_document(runner, &change)?;
                    self.run.documents += 1;
                }
            }
            self.run.watermarks.push(reached);
        }
        Ok(())
    }

    /// Maps one changed document as it is now, and notes what differs from before. Returns the bytes of its new values.
    fn map_document(&mut self, runner: &mut Runner, change: &FeedChange) -> Result<usize, Interrupted> {
        let id = DocumentId::stored(&change.id);
        let failed = |error| store_error(&change.id, error);
        let document = self.snapshot.get(&id).map_err(failed)?;
        let row = map_document(self.context.generation, id.lower());
        let before = self.snapshot.row(Family::MapDocuments, &row).map_err(failed)?;
        let before: Option<MapDocument> =
            before.map(|bytes| decode("map_documents", &bytes)).transpose().map_err(failed)?;
        let mapped = match &document {
            Some(document) => map(self.context, runner, document, &mut self.run.map_attempts),
            None => Mapped::Entries(Vec::new()),
        };
        let mapped = match mapped {
            Mapped::Fault(fault) if fault.transient && !self.given_up.contains(&change.id) => {
                return Err(Interrupted { subject: change.id.clone(), error: TreeError::Interrupted(Box::new(fault)) });
            }
            Mapped::Fault(fault) => Mapped::Fault(settled(fault)),
            Mapped::Entries(entries) => match self.collision(&entries).map_err(failed)? {
                Some(fault) => Mapped::Fault(fault),
                None => Mapped::Entries(entries),
            },
        };
        let contribution = Contribution::new(self.context.generation, &id, before, mapped);
        self.run.map_faults += u64::from(contribution.is_fault());
        self.run.rows.extend(contribution.row);
        self.run.faults.extend(contribution.fault);
        let bytes = contribution.now.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        for change in compare(&contribution.before, contribution.now) {
            self.note_change(id.lower(), change).map_err(|error| store_error(id.as_str(), error))?;
        }
        Ok(bytes)
    }

    /// Finds an entry whose key has the hash of another key: two such groups are never merged.
    fn collision(&mut self, entries: &[super::entry::Entry]) -> Result<Option<Fault>, crate::store::StoreError> {
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
    fn group(&mut self, hash: GroupHash) -> Result<Option<&mut DirtyGroup>, crate::store::StoreError> {
        if !self.groups.contains_key(&hash) {
            let row = self.snapshot.row(Family::ReduceGroups, &reduce_group(self.context.generation, &hash))?;
            let Some(row) = row else { return Ok(None) };
            let record: GroupRecord = decode("reduce_groups", &row)?;
            let key = record.key.clone();
            self.groups.insert(hash, DirtyGroup { record: Some(record), key, changes: tree::Changes::new() });
        }
        Ok(self.groups.get_mut(&hash))
    }

    fn note_change(&mut self, lower_id: &str, change: EntryChange) -> Result<(), crate::store::StoreError> {
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

fn store_error(subject: &str, error: crate::store::StoreError) -> Interrupted {
    Interrupted { subject: subject.to_owned(), error: TreeError::Store(error) }
}

fn error_subject(feed: &crate::store::changes::Feed) -> String {
    format!("{feed:?}")
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
