//! Makes all reference documents equal to what the rows say: first those that have members, in order of their ids; then the
//! documents of the collection that have none go, in order of their etags.
//!
//! Bounded commits, the cursor in each of them, and only what differs is written; so it can be cut off and begun again anywhere.
//! Nothing else may change the generation's rows meanwhile.

use bincode::{Decode, Encode};

use super::super::context::{Context, same_name};
use super::super::faults::Subject;
use super::super::publish::meta;
use super::super::records::{decode, references_name};
use super::Reference;
use super::document::{Budget, Members, delete, plan};
use crate::id::DocumentId;
use crate::script::Fault;
use crate::store::StoreError;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::commit::{Operation, RowChange};
use crate::store::keyspace::{
    Family, KeyRange, REFERENCE_MEMBER, decode_reference_member, reference_members, references_of_kind,
};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Reference documents, or documents of the collection, that one step looks at.
const LOOKS_MAX: usize = 4_096;

/// How far a merge has come.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
enum Cursor {
    /// Ids with members through this one are done.
    Members(String),
    /// So are all of them, and the documents through this etag.
    Documents(u64),
}

/// One step, to be committed whole.
#[derive(Debug, Default)]
pub(crate) struct MergeStep {
    /// The cursor's row.
    pub rows: Vec<RowChange>,
    /// Writes and deletes of reference documents.
    pub operations: Vec<Operation>,
    /// Faults to record, by subject; `None` clears.
    pub faults: Vec<(Subject, Option<Fault>)>,
    /// Whether nothing is left.
    pub is_last: bool,
}

/// Plans the next step, from where the snapshot says that the last one came. Call it, and commit what it gives, until one is the last.
///
/// # Cost
/// Reads at most 4,096 reference documents and their members, and gives at most 2 MiB of bodies and one more.
pub(crate) fn merge_step(context: &Context, snapshot: &Snapshot<'_>) -> Result<MergeStep, StoreError> {
    let name = references_name(context.generation);
    let Some(reference) = &context.reference else {
        return Ok(MergeStep { is_last: true, ..MergeStep::default() });
    };
    let row = snapshot.row(Family::Meta, name.as_bytes())?;
    let cursor = row.map(|bytes| decode("meta", &bytes)).transpose()?.unwrap_or(Cursor::Members(String::new()));
    let mut step = MergeStep::default();
    let next = match cursor {
        Cursor::Members(after) => Some(with_members(context, reference, snapshot, &after, &mut step)?),
        Cursor::Documents(after) => without_members(context, reference, snapshot, after, &mut step)?,
    };
    step.is_last = next.is_none();
    step.rows.push(match next {
        Some(cursor) => meta(name, &cursor),
        None => RowChange::Delete { family: Family::Meta, key: name.into_bytes() },
    });
    Ok(step)
}

/// Gives out, a part at a time, all that would make the reference documents equal to what the rows say. Nothing is committed.
pub(crate) fn differences<E: From<StoreError>>(
    context: &Context,
    snapshot: &Snapshot<'_>,
    take: &mut dyn FnMut(Vec<Operation>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(reference) = &context.reference else { return Ok(()) };
    let mut cursor = Some(Cursor::Members(String::new()));
    while let Some(from) = cursor {
        let mut step = MergeStep::default();
        cursor = match from {
            Cursor::Members(after) => Some(with_members(context, reference, snapshot, &after, &mut step)?),
            Cursor::Documents(after) => without_members(context, reference, snapshot, after, &mut step)?,
        };
        take(step.operations)?;
    }
    Ok(())
}

fn with_members(
    context: &Context,
    reference: &Reference,
    snapshot: &Snapshot<'_>,
    after: &str,
    step: &mut MergeStep,
) -> Result<Cursor, StoreError> {
    let mut range = references_of_kind(context.generation, REFERENCE_MEMBER);
    if let Some(before) = KeyRange::prefix(&reference_members(context.generation, after)).before
        && !after.is_empty()
    {
        range.from = before;
    }
    let mut cursor = snapshot.cursor(Family::References, range.clone())?;
    let (mut budget, mut looks, mut done) = (Budget::default(), 0, after.to_owned());
    let mut row = cursor.seek(&range.from)?.map(|(key, _)| key.to_vec());
    while let Some(lower_id) = row.as_deref().and_then(decode_reference_member).map(|(id, _)| id.to_owned()) {
        if budget.is_spent() || looks >= LOOKS_MAX {
            return Ok(Cursor::Members(done));
        }
        looks += 1;
        let members = Members::read(context, snapshot, &lower_id, &std::collections::BTreeMap::new())?;
        let planned = plan(context, reference, snapshot, &lower_id, &members, &mut budget)?;
        step.operations.extend(planned.operation);
        step.faults.push(planned.fault);
        let next = KeyRange::prefix(&reference_members(context.generation, &lower_id)).before;
        row = match next {
            Some(next) => cursor.seek(&next)?.map(|(key, _)| key.to_vec()),
            None => None,
        };
        done = lower_id;
    }
    Ok(Cursor::Documents(0))
}

fn without_members(
    context: &Context,
    reference: &Reference,
    snapshot: &Snapshot<'_>,
    after: u64,
    step: &mut MergeStep,
) -> Result<Option<Cursor>, StoreError> {
    let feed = Feed::Collection(reference.collection.clone());
    let through = snapshot.progress().written;
    let mut done = after;
    for (looks, change) in snapshot.changes(&feed, after, through, Direction::Forward).enumerate() {
        if looks >= LOOKS_MAX {
            return Ok(Some(Cursor::Documents(done)));
        }
        let change = change?;
        done = change.etag;
        if change.kind == ChangeKind::Put && same_name(&change.collection, &reference.collection) {
            let id = DocumentId::stored(&change.id);
            let range = KeyRange::prefix(&reference_members(context.generation, id.lower()));
            if snapshot.rows(Family::References, range, Direction::Forward).next_row()?.is_none() {
                step.operations.push(delete(id));
            }
        }
    }
    Ok(None)
}
