//! A consistent view of a database.
//!
//! Next on the walk: `changes`.

mod shared;

use std::sync::Arc;

use parking_lot::RwLock;
use rocksdb::ReadOptions;

use super::changes::{Change, Changes, Feed, Run};
use super::codec::{self, ClaimRecord, CollectionRecord, TotalsRecord};
use super::collections::{self, Names};
use super::document::StoredDocument;
use super::engine::{Engine, View};
use super::keyspace::{self, CollectionNumber, Family, KeyRange};
use super::meta;
use super::scan::{Cursor, Direction, OwnedRow, Scan};
use super::{Progress, StoreError};
use crate::id::{DocumentId, lower};

pub use shared::SharedSnapshot;

/// Where readers look up the names of collections.
pub(super) type NamesRef<'a> = &'a RwLock<Names>;

/// Keys of one batched read: bounds the blocks that are pinned at once.
const GETS_MAX: usize = 1024;

/// A consistent view of a database at one moment. Cheap to take; a long-held one keeps deleted data on disk.
#[derive(Clone)]
pub struct Snapshot<'a> {
    engine: &'a Engine,
    names: NamesRef<'a>,
    view: Arc<View<'a>>,
    /// As published before the view was taken.
    published: Progress,
}

/// A range of ids, compared by their lower-cased bytes.
#[derive(Clone, Debug, Default)]
pub struct IdRange {
    /// Only ids that begin with this.
    pub prefix: String,
    /// Only ids after this one (exclusive), in the order of `direction`.
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

/// How many documents a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DatabaseCount {
    /// Live documents.
    pub documents: u64,
    /// Tombstones still kept.
    pub tombstones: u64,
    /// The last etag given out.
    pub last_etag: u64,
}

/// Who owns a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The collection as spelled in the claim.
    pub collection: String,
    /// The number of the index.
    pub owner: u32,
    /// The name of the index.
    pub owner_name: String,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(engine: &'a Engine, names: NamesRef<'a>, published: Progress) -> Self {
        Self { engine, names, view: Arc::new(engine.db().snapshot()), published }
    }

    /// What this snapshot holds, and how much of that was durable when it was taken.
    ///
    /// # Cost
    /// One read.
    pub fn progress(&self) -> Progress {
        // Where the row can't be read, what was published before is a lower bound.
        let written = self.count().map_or(0, |count| count.last_etag).max(self.published.written);
        Progress { written, durable: self.published.durable }
    }

    /// Reads one document.
    ///
    /// # Errors
    /// The read failed or the record is damaged.
    pub fn get(&self, id: &DocumentId) -> Result<Option<StoredDocument>, StoreError> {
        let key = id.lower().as_bytes();
        let family = self.engine.family(Family::Documents)?;
        match self.engine.db().get_pinned_cf_opt(family, key, &self.options()).map_err(StoreError::Storage)? {
            None => Ok(None),
            Some(value) => StoredDocument::decode(key, &value).map(Some),
        }
    }

    /// Tells whether there is a document, without decoding it.
    ///
    /// # Errors
    /// The read failed.
    pub fn exists(&self, id: &DocumentId) -> Result<bool, StoreError> {
        let family = self.engine.family(Family::Documents)?;
        let found = self.engine.db().get_pinned_cf_opt(family, id.lower(), &self.options());
        Ok(found.map_err(StoreError::Storage)?.is_some())
    }

    /// Reads many documents at once, in the order of `ids`.
    ///
    /// # Errors
    /// A read failed or a record is damaged.
    pub fn get_many(&self, ids: &[DocumentId]) -> Result<Vec<Option<StoredDocument>>, StoreError> {
        let mut documents = Vec::with_capacity(ids.len());
        self.get_each(Family::Documents, ids.iter().map(|id| id.lower().as_bytes()), |key, value| {
            documents.push(value.map(|value| StoredDocument::decode(key, value)).transpose()?);
            Ok(())
        })?;
        Ok(documents)
    }

    /// Lists documents in id order, lazily.
    ///
    /// # Cost
    /// One seek, then one step for each document.
    pub fn documents(&self, range: &IdRange) -> impl Iterator<Item = Result<StoredDocument, StoreError>> + use<'a, '_> {
        let mut keys = KeyRange::prefix(lower(&range.prefix).as_bytes());
        if let Some(after) = &range.after {
            let mut after = lower(after).into_bytes();
            match range.direction {
                Direction::Forward => {
                    // No id holds 0x00: nothing stands between `after` and this.
                    after.push(0);
                    keys.from = keys.from.max(after);
                }
                Direction::Backward => {
                    keys.before = Some(keys.before.map_or(after.clone(), |before| before.min(after)));
                }
            }
        }
        self.documents_in(keys, range.direction)
    }

    /// Lists the documents whose lower-cased ids are in a range of keys, lazily.
    ///
    /// # Cost
    /// One seek, then one step for each document.
    pub fn documents_in(
        &self,
        keys: KeyRange,
        direction: Direction,
    ) -> impl Iterator<Item = Result<StoredDocument, StoreError>> + use<'a> {
        let mut scan = Some(self.rows(Family::Documents, keys, direction));
        std::iter::from_fn(move || {
            let next = scan.as_mut().map(Scan::next_row)?;
            let document = match next {
                Ok(Some((key, value))) => Some(StoredDocument::decode(key, value)),
                Ok(None) => None,
                Err(error) => Some(Err(error)),
            };
            if !matches!(document, Some(Ok(_))) {
                scan = None;
            }
            document
        })
    }

    /// Reads changes with `after` < etag ≤ `through`, rising (or falling with `Direction::Backward`), lazily.
    ///
    /// # Cost
    /// One seek, then one step for each change.
    pub fn changes(
        &self,
        feed: &Feed,
        after: u64,
        through: u64,
        direction: Direction,
    ) -> impl Iterator<Item = Result<Change, StoreError>> + use<'a, '_> {
        let (family, prefix, collection) = match feed {
            Feed::All => (Family::Changes, Some(Vec::new()), None),
            Feed::Collection(name) => {
                let names = self.names.read();
                let number = names.number(&lower(name));
                let name = number.and_then(|number| names.name(number)).map(str::to_owned);
                (Family::Collections, number.map(|number| number.0.to_be_bytes().to_vec()), name)
            }
        };
        let scan = prefix.filter(|_| after < through).map(|prefix| {
            let key = |etag: u64| [prefix.as_slice(), &keyspace::change(etag)].concat();
            let before = match through.checked_add(1) {
                Some(before) => Some(key(before)),
                None => keyspace::after_prefix(&prefix),
            };
            self.rows(family, KeyRange { from: key(after + 1), before }, direction)
        });
        Changes { scan, collection, names: self.names }
    }

    /// Counts one collection, by name without regard to case. `None`: it was never used. O(1).
    ///
    /// # Errors
    /// The read failed or the row is damaged.
    pub fn collection(&self, name: &str) -> Result<Option<CollectionCount>, StoreError> {
        let row = meta::collection(&lower(name));
        Ok(self.decode_meta::<CollectionRecord>(&row)?.map(CollectionCount::from))
    }

    /// Counts every collection that holds documents, in name order.
    ///
    /// # Cost
    /// One step for each collection that was ever used.
    ///
    /// # Errors
    /// A read failed or a row is damaged.
    pub fn collections(&self) -> Result<Vec<CollectionCount>, StoreError> {
        let mut counts = self.all_collections()?;
        counts.retain(|count| count.documents > 0);
        Ok(counts)
    }

    /// Counts every collection that was ever used, in name order.
    pub(crate) fn all_collections(&self) -> Result<Vec<CollectionCount>, StoreError> {
        let mut counts = Vec::new();
        let mut scan = self.rows(Family::Meta, KeyRange::prefix(meta::COLLECTION.as_bytes()), Direction::Forward);
        while let Some((key, value)) = scan.next_row()? {
            counts.push(CollectionCount::from(collections::decode_row(key, value)?.1));
        }
        Ok(counts)
    }

    /// Counts the whole database. O(1).
    ///
    /// # Errors
    /// The read failed or the row is damaged.
    pub fn count(&self) -> Result<DatabaseCount, StoreError> {
        let totals = self.decode_meta::<TotalsRecord>(meta::TOTALS)?.unwrap_or_default();
        let TotalsRecord { last_etag, documents, tombstones } = totals;
        Ok(DatabaseCount { documents, tombstones, last_etag })
    }

    /// Tells who owns a collection, by name without regard to case.
    ///
    /// # Errors
    /// The read failed or the row is damaged.
    pub fn claim(&self, collection: &str) -> Result<Option<Claim>, StoreError> {
        let claim = self.decode_meta::<ClaimRecord>(&meta::claim(&lower(collection)))?;
        Ok(claim.map(|ClaimRecord { owner, owner_name, collection }| Claim { collection, owner, owner_name }))
    }

    /// Tells through which etag of its sources the index that owns a collection has made its results complete, and with which
    /// run; `None` where the collection has no owner, or its first build has not ended.
    ///
    /// # Errors
    /// A read failed or a row is damaged.
    pub(crate) fn complete(&self, collection: &str) -> Result<Option<Run>, StoreError> {
        let Some(claim) = self.claim(collection)? else { return Ok(None) };
        let complete = self.decode_meta::<(u64, u64)>(&meta::complete(claim.owner))?;
        Ok(complete.map(|(number, through)| Run { number, complete_through: Some(through) }))
    }

    /// Reads one index or `meta` row.
    ///
    /// # Errors
    /// The read failed.
    pub fn row(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let handle = self.engine.family(family)?;
        self.engine.db().get_cf_opt(handle, key, &self.options()).map_err(StoreError::Storage)
    }

    /// Reads many index rows of one family at once, in the order of `keys`.
    ///
    /// # Errors
    /// A read failed.
    pub fn rows_many<K: AsRef<[u8]>>(&self, family: Family, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut rows = Vec::with_capacity(keys.len());
        self.get_each(family, keys.iter().map(AsRef::as_ref), |_, value| {
            rows.push(value.map(<[u8]>::to_vec));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Scans index or `meta` rows.
    pub fn rows(&self, family: Family, range: KeyRange, direction: Direction) -> Scan<'a> {
        Scan::new(self.engine, Some(Arc::clone(&self.view)), family, range, direction)
    }

    /// Opens a cursor over index or `meta` rows, for many small reads.
    ///
    /// # Errors
    /// The family is missing.
    pub fn cursor(&self, family: Family, range: KeyRange) -> Result<Cursor<'a>, StoreError> {
        Cursor::new(self.engine, Arc::clone(&self.view), family, range)
    }

    /// Seeks the last row at or before `key` and not before `from`.
    ///
    /// # Errors
    /// The read failed.
    pub fn row_at_or_before(&self, family: Family, from: &[u8], key: &[u8]) -> Result<Option<OwnedRow>, StoreError> {
        let range = KeyRange { from: from.to_vec(), before: Some([key, &[0]].concat()) };
        let mut scan = self.rows(family, range, Direction::Backward);
        Ok(scan.next_row()?.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    pub(super) fn collection_number(&self, name: &str) -> Option<CollectionNumber> {
        self.names.read().number(&lower(name))
    }

    pub(super) fn collection_name(&self, number: CollectionNumber) -> Option<String> {
        self.names.read().name(number).map(str::to_owned)
    }

    fn get_each<'k>(
        &self,
        family: Family,
        keys: impl Iterator<Item = &'k [u8]>,
        mut each: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let handle = self.engine.family(family)?;
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let chunk = keys.by_ref().take(GETS_MAX).collect::<Vec<_>>();
            let values =
                self.engine.db().batched_multi_get_cf_opt(handle, chunk.iter().copied(), false, &self.options());
            for (key, value) in chunk.into_iter().zip(values) {
                each(key, value.map_err(StoreError::Storage)?.as_deref())?;
            }
        }
        Ok(())
    }

    fn decode_meta<T: codec::Decode<()>>(&self, name: &str) -> Result<Option<T>, StoreError> {
        match self.row(Family::Meta, name.as_bytes())? {
            None => Ok(None),
            Some(bytes) => codec::decode(&bytes)
                .map(Some)
                .map_err(|error| StoreError::corrupt(Family::Meta, name.as_bytes(), error)),
        }
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.view);
        options
    }
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("published", &self.published).finish_non_exhaustive()
    }
}

impl From<CollectionRecord> for CollectionCount {
    fn from(record: CollectionRecord) -> Self {
        let CollectionRecord { name, documents, tombstones, last_etag, .. } = record;
        Self { name, documents, tombstones, last_etag }
    }
}
