//! Removing tombstones that nobody needs any more, and knowing afterwards which are gone.
//!
//! Who still needs one is for others to say (`database::tombstones`): this file removes what it is told to, oldest first, in
//! bounded commits through the one pipeline. A commit notes the newest etag it removes, so that a reader that comes back
//! with an older position is told instead of missing a deletion.
//!
//! Invariant: in a collection, no tombstone has an etag at or below the one noted for it.
//!
//! Next on the walk: `snapshot`.

use super::changes::{ChangeKind, Feed};
use super::codec;
use super::commit::{Commit, Purge, own_row};
use super::keyspace::{CollectionNumber, Family};
use super::scan::Direction;
use super::snapshot::Snapshot;
use super::{Store, StoreError, meta};
use crate::id::lower;

/// Tombstones of one commit.
const TOMBSTONES_MAX: usize = 512;
/// Rows of the feed that one call looks at.
const LOOKED_AT_MAX: usize = 65_536;

/// What one call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Tombstones removed.
    pub removed: u64,
    /// The etag through which the collection was looked at; go on after it.
    pub through: u64,
}

impl Store {
    /// Removes tombstones of a collection, those with `after` < etag ≤ `through`, oldest first, and returns how far it came: at
    /// most 512 tombstones and 65,536 rows of the feed. Those that are not durable stay. Durable when it returns. Blocking.
    ///
    /// The caller answers for it that no index, subscription or node needs them any more.
    ///
    /// # Cost
    /// One step for each row of the collection's feed, one read for each tombstone, one commit.
    ///
    /// # Errors
    /// A read failed, or the store takes no writes.
    pub fn purge_tombstones(&self, collection: &str, after: u64, through: u64) -> Result<Purged, StoreError> {
        let snapshot = self.snapshot();
        let through = through.min(snapshot.progress().durable);
        let nothing = Purged { removed: 0, through: through.max(after) };
        let Some(number) = snapshot.collection_number(collection) else { return Ok(nothing) };
        // Nothing is left at or below what was purged before.
        let from = after.max(snapshot.purged_in(number)?);
        let (mut purges, mut looked_at, mut reached) = (Vec::new(), 0, through);
        let feed = Feed::Collection(collection.to_owned());
        for change in snapshot.changes(&feed, from, through, Direction::Forward) {
            let change = change?;
            looked_at += 1;
            if change.kind == ChangeKind::Delete {
                purges.push(Purge { collection: number, lower: lower(&change.id), etag: change.etag });
            }
            if purges.len() >= TOMBSTONES_MAX || looked_at >= LOOKED_AT_MAX {
                reached = change.etag;
                break;
            }
        }
        let Some(newest) = purges.last().map(|purge| purge.etag) else {
            return Ok(Purged { removed: 0, through: reached.max(after) });
        };
        let of_all = newest.max(snapshot.purged_through(&Feed::All)?);
        drop(snapshot);
        let removed = purges.len() as u64;
        let rows = vec![
            own_row(&meta::purged(&lower(collection)), codec::encode(&newest)),
            own_row(meta::PURGED, codec::encode(&of_all)),
        ];
        self.commit_synced(Commit { rows, purges, ..Commit::default() })?;
        Ok(Purged { removed, through: reached.max(after) })
    }
}

impl Snapshot<'_> {
    /// The etag of the newest tombstone of a feed that was removed, 0 where none was: deletions are complete after it.
    ///
    /// # Cost
    /// One read.
    ///
    /// # Errors
    /// The read failed or the row is damaged.
    pub fn purged_through(&self, feed: &Feed) -> Result<u64, StoreError> {
        let name = match feed {
            Feed::All => meta::PURGED.to_owned(),
            Feed::Collection(name) => meta::purged(&lower(name)),
        };
        match self.row(Family::Meta, name.as_bytes())? {
            None => Ok(0),
            Some(bytes) => {
                codec::decode(&bytes).map_err(|error| StoreError::corrupt(Family::Meta, name.as_bytes(), error))
            }
        }
    }

    /// Checks that a reader which has read a feed through `after` can go on there without missing a deletion, and returns what
    /// [`Snapshot::purged_through`] does. `begun`: the etag that was durable when the reader began with nothing, 0 where it did
    /// not: of what was deleted by then it has seen nothing.
    ///
    /// # Errors
    /// [`StoreError::Purged`]; the read failed.
    pub fn check_reader(&self, feed: &Feed, after: u64, begun: u64) -> Result<u64, StoreError> {
        let through = self.purged_through(feed)?;
        if through <= after.max(begun) { Ok(through) } else { Err(StoreError::Purged { since: after, through }) }
    }

    /// The same as [`Snapshot::purged_through`], by number.
    pub(super) fn purged_in(&self, number: CollectionNumber) -> Result<u64, StoreError> {
        match self.collection_name(number) {
            None => Ok(0),
            Some(name) => self.purged_through(&Feed::Collection(name)),
        }
    }
}
