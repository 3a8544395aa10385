//! Takes the changed entries of a run into their groups: tree, result, artificial document.
//!
//! Groups have nothing to do with each other, so many of them are shared out among threads; what comes out is the same.
//!
//! Next on the walk: `tree`, `group`, then `publish`.

use std::collections::BTreeMap;

use super::context::Context;
use super::counters::add;
use super::first_build::helpers;
use super::group::{GroupReduce, plan_output, subject};
use super::ordered_key::keyed_group;
use super::planned::{GivenUp, Interrupted, Run};
use super::records::{GroupRecord, GroupResult, encode};
use super::reference::Listing;
use super::rows::{GenerationRows, GroupRows};
use super::tree::{Changes, TreeError, Updated, update};
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::script::{Runner, STACK_BYTES};
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::keyspace::{self, Family, GroupHash, KeyRange, group_prefix, reduce_group};
use crate::store::snapshot::Snapshot;

/// Groups from which on more threads help: starting one takes about as long as a few dozen groups.
const SHARED_GROUPS_MIN: usize = 512;

/// The entries of one group that a run changes, and what is known of the group.
pub(crate) struct DirtyGroup {
    pub record: Option<GroupRecord>,
    pub key: Vec<u8>,
    pub changes: Changes,
}

/// Reduces the groups whose entries change, and adds what that changes to `run`.
pub(crate) fn reduce_groups(
    context: &Context,
    snapshot: &Snapshot<'_>,
    given_up: &GivenUp,
    runner: &mut Runner,
    groups: BTreeMap<GroupHash, DirtyGroup>,
    run: &mut Run,
) -> Result<(), Interrupted> {
    let groups: Vec<_> = groups.into_iter().filter(|(_, group)| !group.changes.is_empty()).collect();
    let threads = if groups.len() < SHARED_GROUPS_MIN { 1 } else { helpers() };
    let mut shares = groups.chunks(groups.len().div_ceil(threads).max(1));
    let own_share = shares.next().unwrap_or_default();
    let reduce = |runner: &mut Runner, share: &[(GroupHash, DirtyGroup)]| {
        Reducer::open(context, snapshot, given_up).map_err(interrupted)?.share(runner, share)
    };
    let parts = std::thread::scope(|scope| {
        let helper = |share| {
            let thread = std::thread::Builder::new().name(format!("reduce-{}", context.number)).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, move || match context.runner() {
                Ok(mut runner) => reduce(&mut runner, share),
                Err(fault) => Err(interrupted(TreeError::Interrupted(Box::new(fault)))),
            })
        };
        let others: Vec<_> = shares.map(helper).collect();
        let mut parts = vec![reduce(runner, own_share)];
        parts.extend(others.into_iter().map(|other| match other.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(part)) => part,
            Ok(Err(_)) => Err(interrupted(TreeError::Order)),
            Err(error) => Err(interrupted(TreeError::Store(StoreError::System {
                action: "starting a thread".to_owned(),
                source: error,
            }))),
        }));
        parts
    });
    for part in parts {
        run.absorb(part?);
    }
    Ok(())
}

fn interrupted(error: TreeError) -> Interrupted {
    Interrupted { subject: "the run".to_owned(), error }
}

/// One thread's share of the groups.
struct Reducer<'a, 's> {
    context: &'a Context,
    snapshot: &'a Snapshot<'s>,
    given_up: &'a GivenUp,
    rows: GenerationRows<'s>,
    part: Run,
}

impl<'a, 's> Reducer<'a, 's> {
    fn open(context: &'a Context, snapshot: &'a Snapshot<'s>, given_up: &'a GivenUp) -> Result<Self, TreeError> {
        let rows = GenerationRows::open(snapshot, context.generation)?;
        Ok(Self { context, snapshot, given_up, rows, part: Run::default() })
    }

    fn share(mut self, runner: &mut Runner, share: &[(GroupHash, DirtyGroup)]) -> Result<Run, Interrupted> {
        for (hash, group) in share {
            let interrupted = |error| Interrupted { subject: format!("{hash:?}"), error };
            self.group(runner, *hash, group).map_err(interrupted)?;
        }
        Ok(self.part)
    }

    fn group(&mut self, runner: &mut Runner, hash: GroupHash, group: &DirtyGroup) -> Result<(), TreeError> {
        let (count, height) = group.record.as_ref().map_or((0, 0), |record| (record.count, record.height));
        let gives_up = self.given_up.contains(&format!("{hash:?}"));
        let mut reduce = GroupReduce::new(runner, &group.key, self.context, gives_up);
        let rows = GroupRows { rows: &self.rows, group: hash, counters: &self.context.counters };
        let updated = update(&rows, count, height, &group.changes, &mut reduce)?;
        let (mut result, body) = match updated.result.clone() {
            Some(partial) => reduce.finish(partial)?,
            None => (GroupResult::Nothing, None),
        };
        let mut listing = Listing::of(self.context, self.snapshot, &hash, body.as_deref())?;
        self.part.reduce_attempts += reduce.attempts;
        self.part.reduce_faults += reduce.faults;
        let present = match self.context.output.as_ref().filter(|_| !self.context.is_hidden()) {
            Some(output) => self.snapshot.get(&DocumentId::stored(&artificial_id(output, &hash)))?,
            None => None,
        };
        match plan_output(self.context, &hash, present.as_ref(), body) {
            Ok(operation) => self.part.operations.extend(operation),
            Err(fault) => {
                self.part.reduce_faults += 1;
                self.part.blocked.push(hash);
                result = GroupResult::Fault(fault);
                listing.withdraw();
            }
        }
        self.write_nodes(hash, &updated);
        self.write_group(hash, group, &updated, result, &listing);
        self.part.rows.extend(listing.rows(self.context.generation, &hash));
        self.part.references.extend(listing.moved(hash));
        Ok(())
    }

    fn write_nodes(&mut self, hash: GroupHash, updated: &Updated) {
        let generation = self.context.generation;
        if updated.clear_nodes {
            let range = KeyRange::prefix(&group_prefix(generation, &hash));
            self.part.rows.push(RowChange::DeleteRange { family: Family::ReduceNodes, range });
        }
        add(&self.context.counters.nodes_written, updated.nodes.len());
        for ((level, start), stored) in &updated.nodes {
            let key = [keyspace::level_prefix(generation, &hash, *level).as_slice(), start].concat();
            self.part.rows.push(match stored {
                Some(stored) => RowChange::Put { family: Family::ReduceNodes, key, value: stored.clone() },
                None => RowChange::Delete { family: Family::ReduceNodes, key },
            });
        }
    }

    fn write_group(
        &mut self,
        hash: GroupHash,
        group: &DirtyGroup,
        updated: &Updated,
        result: GroupResult,
        listing: &Listing,
    ) {
        let key = reduce_group(self.context.generation, &hash);
        let key_row = || keyed_group(self.context.generation, &group.key, &hash);
        let record = GroupRecord { key: group.key.clone(), count: updated.count, height: updated.height, result };
        self.note_group_fault(group.record.as_ref(), &record, listing);
        if updated.count == 0 {
            self.part.groups -= i64::from(group.record.is_some());
            self.part.rows.push(RowChange::Delete { family: Family::ReduceKeys, key: key_row() });
            self.part.rows.push(RowChange::Delete { family: Family::ReduceGroups, key });
            return;
        }
        if group.record.is_none() {
            self.part.groups += 1;
            let (family, value) = (Family::ReduceKeys, Vec::new());
            self.part.rows.push(RowChange::Put { family, key: key_row(), value });
        }
        if group.record.as_ref() != Some(&record) {
            self.part.rows.push(RowChange::Put { family: Family::ReduceGroups, key, value: encode(&record) });
        }
    }

    fn note_group_fault(&mut self, before: Option<&GroupRecord>, now: &GroupRecord, listing: &Listing) {
        let had_fault = before.is_some_and(|before| matches!(before.result, GroupResult::Fault(_)));
        match (&now.result, listing.fault()) {
            (GroupResult::Fault(fault), _) => self.part.faults.push((subject(now), Some(fault.clone()))),
            (_, Some(fault)) => {
                self.part.reduce_faults += 1;
                self.part.faults.push((subject(now), Some(fault.clone())));
            }
            _ if had_fault || listing.had_fault() => self.part.faults.push((subject(now), None)),
            _ => {}
        }
    }
}
