//! What subscriptions still need of the feed: the tombstones that clean-up must leave.
//!
//! Only a subscription that delivers deletions needs any, and only those above the place through which it has acknowledged
//! everything. One that was passed by the clean-up all the same is told so when it is opened next (`state`).

use super::query::Query;
use super::record::{self, CursorRecord};
use crate::store::StoreError;
use crate::store::changes::Feed;
use crate::store::snapshot::Snapshot;

/// The tombstones that one subscription needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Floor {
    /// Of which collection; `None`: of all.
    pub(crate) collection: Option<String>,
    /// Tombstones through this etag are not needed any more.
    pub(crate) through: u64,
    /// When it was last created, moved, opened or acknowledged: microseconds since 1970. Long ago means abandoned.
    pub(crate) touched_micros: i64,
}

/// Tells what every subscription needs that delivers deletions.
///
/// # Cost
/// Two small reads for each subscription of the database.
///
/// # Errors
/// A read failed or a row is damaged.
pub(crate) fn floors(snapshot: &Snapshot<'_>) -> Result<Vec<Floor>, StoreError> {
    let mut floors = Vec::new();
    for definition in record::read_definitions(snapshot)? {
        if !definition.include_deletes {
            continue;
        }
        let cursor: CursorRecord = record::read(snapshot, &record::cursor(definition.number))?.unwrap_or_default();
        // A stored query was checked when it was put; where this version does not know it, everything is kept for it.
        let collection = match Query::parse(&definition.query).map(|query| query.feed) {
            Ok(Feed::Collection(name)) => Some(name),
            Ok(Feed::All) | Err(_) => None,
        };
        let through = needs_above(&cursor);
        floors.push(Floor { collection, through, touched_micros: cursor.touched_micros });
    }
    Ok(floors)
}

/// The etag through which a subscription needs no tombstones any more.
pub(super) fn needs_above(cursor: &CursorRecord) -> u64 {
    cursor.through.max(cursor.seen_from)
}
