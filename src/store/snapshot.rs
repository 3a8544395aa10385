//! A consistent view of a database.

use super::changes::{Change, Feed};
use super::document::StoredDocument;
use super::keyspace::{Family, KeyRange};
use super::scan::{Direction, Scan};
use super::{Progress, StoreError};
use crate::id::DocumentId;

/// A consistent view of a database at one moment.
pub struct Snapshot<'a> {
    marker: std::marker::PhantomData<&'a ()>,
}

/// A range of ids, compared by their lower-cased bytes.
#[derive(Clone, Debug, Default)]
pub struct IdRange {
    /// Only ids that begin with this.
    pub prefix: String,
    /// Only ids after this one (exclusive).
    pub after: Option<String>,
    /// The order.
    pub direction: Direction,
}

/// How many documents a collection has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionCount {
    /// The name as first used.
    pub name: String,
    /// Live documents.
    pub documents: u64,
    /// Tombstones still kept.
    pub tombstones: u64,
    /// The etag of its newest change, 0 where it never had one.
    pub last_etag: u64,
}

impl<'a> Snapshot<'a> {
    /// What this snapshot holds, and how much of that was durable when it was taken.
    pub fn progress(&self) -> Progress {
        todo!()
    }

    /// Reads one document.
    pub fn get(&self, id: &DocumentId) -> Result<Option<StoredDocument>, StoreError> {
        todo!()
    }

    /// Reads many documents at once, in the order of `ids`.
    pub fn get_many(&self, ids: &[DocumentId]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        todo!()
    }

    /// Lists documents in id order, lazily.
    pub fn documents(&self, range: &IdRange) -> impl Iterator<Item = Result<StoredDocument, StoreError>> + use<'a, '_> {
        std::iter::empty()
    }

    /// Reads changes with `after` < etag ≤ `through`, rising (or falling with `Direction::Backward`), lazily.
    pub fn changes(
        &self,
        feed: &Feed,
        after: u64,
        through: u64,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Change, StoreError>> + use<'a, '_> {
        std::iter::empty()
    }

    /// Counts one collection, by name without regard to case. O(1).
    pub fn collection(&self, name: &str) -> Result<Option<CollectionCount>, StoreError> {
        todo!()
    }

    /// Counts every collection that holds documents, in name order.
    pub fn collections(&self) -> Result<Vec<CollectionCount>, StoreError> {
        todo!()
    }

    /// Reads one index or `meta` row.
    pub fn row(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        todo!()
    }

    /// Scans index or `meta` rows.
    pub fn rows(&self, family: Family, range: KeyRange, direction: Direction) -> Scan<'a> {
        todo!()
    }

    /// Seeks the last row at or before `key` and not before `from`.
    pub fn row_at_or_before(
        &self,
        family: Family,
        from: &[u8],
        key: &[u8],
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>, StoreError> {
        todo!()
    }
}
