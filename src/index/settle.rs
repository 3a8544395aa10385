//! Computes one group's result again from what its rows hold, and plans what differs: the artificial document and the group's row.
//!
//! At a swap every group goes this way; later, groups whose id was taken. The result follows from the rows alone, so that a document
//! which is equal already is not written.
//!
//! Next on the walk: `publish`.

use super::context::Context;
use super::faults::Subject;
use super::group::{GroupReduce, is_foreign, plan_output, subject};
use super::planned::{GivenUp, Interrupted};
use super::records::{GroupRecord, GroupResult, decode, encode};
use super::reference::Listing;
use super::rows::{GenerationRows, GroupRows};
use super::tree::{Partial, Reduce, Tree, TreeError};
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::script::{Fault, Runner};
use crate::store::commit::{Operation, RowChange};
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, reduce_group};
use crate::store::snapshot::Snapshot;

/// What settling a group changes.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// The write of its document.
    pub operation: Option<Operation>,
    /// Its rows, where the result is another one than they say, and the reference documents to be written then.
    pub rows: Vec<RowChange>,
    /// The fault to record, or to clear (`None`).
    pub fault: Option<(Subject, Option<Fault>)>,
    /// Whether a foreign document has its id.
    pub is_blocked: bool,
    /// Calls, and those that failed.
    pub attempts: u64,
    pub faults: u64,
}

/// Settles a group. `present` is the document under its id now.
///
/// # Cost
/// The root of its tree, or its entries (at most 32) and a call of `reduce`; a call of `finish`.
pub(crate) fn settle(
    context: &Context,
    snapshot: &Snapshot<'_>,
    runner: &mut Runner,
    rows: &GroupRows<'_, '_>,
    record: &GroupRecord,
    present: Option<&StoredDocument>,
    gives_up: bool,
) -> Result<Settled, TreeError> {
    let mut settled = Settled::default();
    let mut reduce = GroupReduce::new(runner, &record.key, context, gives_up);
    let (mut result, body) = match root(rows, record, &mut reduce)? {
        Some(partial) => reduce.finish(partial)?,
        None => (record.result.clone(), None),
    };
    (settled.attempts, settled.faults) = (reduce.attempts, reduce.faults);
    let mut listing = Listing::of(context, snapshot, &rows.group, body.as_deref())?;
    match plan_output(context, &rows.group, present, body) {
        Ok(operation) => settled.operation = operation,
        Err(fault) => {
            settled.faults += 1;
            settled.is_blocked = true;
            result = GroupResult::Fault(fault);
            listing.withdraw();
        }
    }
    if result != record.result {
        let now = GroupRecord { result, ..record.clone() };
        settled.fault = match (&now.result, listing.fault(), &record.result) {
            (GroupResult::Fault(fault), ..) | (_, Some(fault), _) => Some((subject(&now), Some(fault.clone()))),
            (_, _, GroupResult::Fault(_)) => Some((subject(&now), None)),
            _ => None,
        };
        let key = reduce_group(context.generation, &rows.group);
        settled.rows.push(RowChange::Put { family: Family::ReduceGroups, key, value: encode(&now) });
        settled.rows.extend(listing.rows(context.generation, &rows.group));
        settled.rows.extend(listing.moved(rows.group).into_iter().flat_map(|moved| moved.open(context.generation)));
    }
    Ok(settled)
}

/// Settles those of some blocked groups whose id has become free. Returns them beside what it changes; a group that is gone, or has no
/// fault, is free too.
pub(crate) fn free_groups(
    context: &Context,
    runner: &mut Runner,
    snapshot: &Snapshot<'_>,
    groups: &[GroupHash],
    given_up: &GivenUp,
) -> Result<(Vec<Settled>, Vec<GroupHash>), Interrupted> {
    let failed = |error| Interrupted { subject: context.name.to_string(), error: TreeError::Store(error) };
    let Some(output) = &context.output else { return Ok((Vec::new(), groups.to_vec())) };
    let ids: Vec<DocumentId> = groups.iter().map(|group| DocumentId::stored(&artificial_id(output, group))).collect();
    let present = snapshot.get_many(&ids).map_err(failed)?;
    let rows = GenerationRows::open(snapshot, context.generation).map_err(failed)?;
    let (mut settled, mut free) = (Vec::new(), Vec::new());
    for (&group, present) in groups.iter().zip(&present) {
        if present.as_ref().is_some_and(|present| is_foreign(output, present)) {
            continue;
        }
        free.push(group);
        let row = snapshot.row(Family::ReduceGroups, &reduce_group(context.generation, &group)).map_err(failed)?;
        let record: Option<GroupRecord> = row.map(|row| decode("reduce_groups", &row)).transpose().map_err(failed)?;
        if let Some(record) = record.filter(|record| matches!(record.result, GroupResult::Fault(_))) {
            let (subject, rows) = (format!("{group:?}"), GroupRows { rows: &rows, group, counters: &context.counters });
            let gives_up = given_up.contains(&subject);
            let group = settle(context, snapshot, runner, &rows, &record, present.as_ref(), gives_up)
                .map_err(|error| Interrupted { subject, error })?;
            settled.push(group);
        }
    }
    Ok((settled, free))
}

/// The partial result of the whole group; `None` where its rows hold none.
fn root(
    rows: &GroupRows<'_, '_>,
    record: &GroupRecord,
    reduce: &mut GroupReduce<'_>,
) -> Result<Option<Partial>, TreeError> {
    let mut values: Vec<Vec<u8>> = Vec::new();
    if record.height > 0 {
        rows.nodes(record.height, &[], &mut |_, stored| {
            values.push(stored.to_vec());
            false
        })?;
        return Ok(values.pop().map(|stored| Partial::decode(&stored)).transpose()?);
    }
    rows.entries(&[], &mut |_, value| {
        values.push(value.to_vec());
        true
    })?;
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    if values.is_empty() { Ok(None) } else { reduce.reduce(&values).map(Some) }
}
