//! Groups that can't have their document because a foreign one stands under its id. Each has a row in `meta`, so that the index
//! can look at them again when something was written: the group comes back by itself when the foreign document goes.
//!
//! A row may outlive its reason (the group is gone, or came back another way); whoever looks at it takes it away.

use super::records::blocked_prefix;
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, Generation, GroupHash, KeyRange};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Groups looked at in one step.
pub(crate) const LOOKED_AT_MAX: usize = 256;

/// The row that marks a group as blocked.
pub(crate) fn mark(generation: Generation, group: &GroupHash) -> RowChange {
    RowChange::Put { family: Family::Meta, key: key(generation, group), value: Vec::new() }
}

/// The change that takes a group's mark away.
pub(crate) fn unmark(generation: Generation, group: &GroupHash) -> RowChange {
    RowChange::Delete { family: Family::Meta, key: key(generation, group) }
}

/// Whether a group is marked.
pub(crate) fn is_marked(
    snapshot: &Snapshot<'_>,
    generation: Generation,
    group: &GroupHash,
) -> Result<bool, StoreError> {
    Ok(snapshot.row(Family::Meta, &key(generation, group))?.is_some())
}

/// The marked groups after `after` in hash order, at most [`LOOKED_AT_MAX`].
pub(crate) fn marked(
    snapshot: &Snapshot<'_>,
    generation: Generation,
    after: Option<&GroupHash>,
) -> Result<Vec<GroupHash>, StoreError> {
    let prefix = blocked_prefix(generation).into_bytes();
    let mut range = KeyRange::prefix(&prefix);
    if let Some(after) = after {
        range.from = [key(generation, after).as_slice(), &[0]].concat();
    }
    let mut scan = snapshot.rows(Family::Meta, range, Direction::Forward);
    let mut groups = Vec::new();
    while groups.len() < LOOKED_AT_MAX
        && let Some((key, _)) = scan.next_row()?
    {
        let hex = key.strip_prefix(prefix.as_slice()).and_then(|hex| std::str::from_utf8(hex).ok());
        groups.extend(hex.and_then(|hex| u128::from_str_radix(hex, 16).ok()).map(|hash| GroupHash(hash.to_be_bytes())));
    }
    Ok(groups)
}

fn key(generation: Generation, group: &GroupHash) -> Vec<u8> {
    format!("{}{:032x}", blocked_prefix(generation), u128::from_be_bytes(group.0)).into_bytes()
}
