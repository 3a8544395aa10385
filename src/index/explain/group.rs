//! A group and one page of what it was made of.
//!
//! Next on the walk: `feeds`.

use super::super::live::Index;
use super::super::records::{GroupRecord, GroupResult, decode};
use super::{BYTES_MAX, CONTRIBUTIONS_MAX, Contributed, ExplainError, ExplainedGroup, Outcome, Page, json};
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::store::StoreError;
use crate::store::keyspace::{self, Family, GroupHash, KeyRange, decode_map_entry, group_prefix, reduce_group};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Explains one group of an index; `None` where it has none with this hash.
pub(super) fn explain(
    snapshot: &Snapshot<'_>,
    index: &Index,
    hash: GroupHash,
    page: &Page,
) -> Result<Option<ExplainedGroup>, ExplainError> {
    let context = &index.context;
    let row = snapshot.row(Family::ReduceGroups, &reduce_group(context.generation, &hash))?;
    let Some(row) = row else { return Ok(None) };
    let record: GroupRecord = decode("reduce_groups", &row)?;
    let outcome = match record.result {
        GroupResult::Body(body) => Outcome::Body(body),
        GroupResult::Document => body(snapshot, context.output.as_deref(), &hash)?,
        GroupResult::Nothing => Outcome::Nothing,
        GroupResult::Pending => Outcome::Pending,
        GroupResult::Fault(fault) => Outcome::Fault(fault),
    };
    let (contributions, next) = contributions(snapshot, index, &hash, page)?;
    Ok(Some(ExplainedGroup {
        index: context.name.to_string(),
        key: json(&record.key),
        entries: record.count,
        outcome,
        contributions,
        next,
    }))
}

fn body(snapshot: &Snapshot<'_>, output: Option<&str>, hash: &GroupHash) -> Result<Outcome, StoreError> {
    let Some(output) = output else { return Ok(Outcome::Pending) };
    let document = snapshot.get(&DocumentId::stored(&artificial_id(output, hash)))?;
    Ok(document.map_or(Outcome::Pending, |document| Outcome::Body(document.body)))
}

/// Reads a page of entries, and where the next one begins.
fn contributions(
    snapshot: &Snapshot<'_>,
    index: &Index,
    hash: &GroupHash,
    page: &Page,
) -> Result<(Vec<Contributed>, Option<String>), ExplainError> {
    let prefix = group_prefix(index.context.generation, hash);
    let mut range = KeyRange::prefix(&prefix);
    if let Some(after) = &page.after {
        let (ordinal, id) = cursor(after)?;
        range.from = [prefix.as_slice(), &keyspace::entry(id, ordinal), &[0]].concat();
    }
    let mut scan = snapshot.rows(Family::MapEntries, range, Direction::Forward);
    let (mut page_rows, mut bytes): (Vec<Contributed>, usize) = (Vec::new(), 0);
    let mut last: Option<(String, u32)> = None;
    while let Some((key, value)) = scan.next_row()? {
        if page_rows.len() >= page.size.min(CONTRIBUTIONS_MAX) || bytes >= BYTES_MAX {
            return Ok((page_rows, last.map(|(id, ordinal)| format!("{ordinal}:{id}"))));
        }
        let Some((id, ordinal)) = decode_map_entry(key) else { continue };
        bytes += value.len();
        let value = json(value);
        let entry = match page_rows.last() {
            Some(before) if last.as_ref().is_some_and(|(last, _)| last == id) => {
                Contributed { ordinal, value, ..before.clone() }
            }
            _ => contributed(snapshot, id, ordinal, value)?,
        };
        last = Some((id.to_owned(), ordinal));
        page_rows.push(entry);
    }
    Ok((page_rows, None))
}

fn contributed(
    snapshot: &Snapshot<'_>,
    lower_id: &str,
    ordinal: u32,
    value: String,
) -> Result<Contributed, StoreError> {
    let document = snapshot.get(&DocumentId::stored(lower_id))?;
    let (id, collection, is_artificial) = match document {
        Some(document) => (document.id, Some(document.collection), document.flags.artificial),
        None => (lower_id.to_owned(), None, false),
    };
    Ok(Contributed { id, collection, ordinal, value, is_artificial })
}

/// Reads where a page begins: what an earlier page gave as its end.
fn cursor(after: &str) -> Result<(u32, &str), ExplainError> {
    let parts = after.split_once(':').and_then(|(ordinal, id)| Some((ordinal.parse().ok()?, id)));
    parts.filter(|(_, id)| !id.is_empty()).ok_or_else(|| {
        let shown: String = after.chars().take(80).collect();
        ExplainError::Refused(format!(
            "'{shown}' is no place in a group; give back what the page before named as its next"
        ))
    })
}
