//! Reference documents: readable ids, made of results by a pattern, each of which lists artificial documents.
//!
//! `pattern` makes the id, `listing` keeps the rows that say which group is listed where, `document` makes a document of them.
//! A run writes the documents that it changes in its own commit; where they are too much for one, the others are noted in rows
//! and written by the next ones. `merge` makes all documents equal to the rows: at the end of a first build, and wherever one
//! generation takes over from another.
//!
//! Next on the walk: `publish`.

mod document;
mod format;
mod listing;
mod merge;
mod pattern;

use std::collections::BTreeMap;

use super::context::Context;
use super::planned::Run;
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::keyspace::{
    Family, GroupHash, REFERENCE_OPEN, decode_reference_open, reference_open, references_of_kind,
};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

use document::{Budget, Members};

pub(crate) use listing::{Listing, Moved};
pub(crate) use merge::{MergeStep, differences, merge_step};
pub(crate) use pattern::Pattern;

/// Which reference documents an index writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Makes their ids.
    pub pattern: Pattern,
    /// Their collection.
    pub collection: String,
}

/// The reference documents that a generation writes: a hidden one writes none.
fn writes(context: &Context) -> Option<&Reference> {
    context.reference.as_deref().filter(|_| !context.is_hidden())
}

/// Whether reference documents are still to be written.
pub(crate) fn is_open(context: &Context, snapshot: &Snapshot<'_>) -> Result<bool, StoreError> {
    if writes(context).is_none() {
        return Ok(false);
    }
    let range = references_of_kind(context.generation, REFERENCE_OPEN);
    Ok(snapshot.rows(Family::References, range, Direction::Forward).next_row()?.is_some())
}

/// Plans the documents that earlier runs have left open, as many as fit into one commit. `None`: there are none.
pub(crate) fn plan_open(
    context: &Context,
    snapshot: &Snapshot<'_>,
    watermarks: &[u64],
) -> Result<Option<Run>, StoreError> {
    let Some(reference) = writes(context) else { return Ok(None) };
    let mut run = Run { watermarks: watermarks.to_vec(), is_open: true, ..Run::default() };
    let range = references_of_kind(context.generation, REFERENCE_OPEN);
    let mut open = snapshot.rows(Family::References, range, Direction::Forward);
    let mut budget = Budget::default();
    while let Some((key, _)) = open.next_row()? {
        if budget.is_spent() {
            break;
        }
        if let Some(lower_id) = decode_reference_open(key) {
            let members = Members::read(context, snapshot, lower_id, &BTreeMap::new())?;
            document::plan(context, reference, snapshot, lower_id, &members, &mut budget)?.add_to(&mut run);
        }
        run.rows.push(RowChange::Delete { family: Family::References, key: key.to_vec() });
    }
    Ok((!run.rows.is_empty()).then_some(run))
}

/// Plans the documents whose members a run changes (none, where the generation is hidden); those that are too much for one commit are noted and left to the next runs.
pub(crate) fn plan_changes(context: &Context, snapshot: &Snapshot<'_>, run: &mut Run) -> Result<(), StoreError> {
    let Some(reference) = writes(context) else { return Ok(()) };
    let mut changes: BTreeMap<String, BTreeMap<GroupHash, Option<String>>> = BTreeMap::new();
    for Moved { group, before, now } in std::mem::take(&mut run.references) {
        if let Some(before) = before {
            changes.entry(crate::id::lower(&before)).or_default().entry(group).or_insert(None);
        }
        if let Some(now) = now {
            changes.entry(crate::id::lower(&now)).or_default().insert(group, Some(now));
        }
    }
    let mut budget = Budget::default();
    for (lower_id, changed) in changes {
        if budget.is_spent() {
            let key = reference_open(context.generation, &lower_id);
            run.rows.push(RowChange::Put { family: Family::References, key, value: Vec::new() });
            (run.is_complete, run.is_open) = (false, true);
            continue;
        }
        let members = Members::read(context, snapshot, &lower_id, &changed)?;
        document::plan(context, reference, snapshot, &lower_id, &members, &mut budget)?.add_to(run);
    }
    Ok(())
}
