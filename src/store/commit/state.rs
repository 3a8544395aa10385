//! What the committer knows: counters, collections, claims, and the overlay of what the present group has accepted.
//!
//! Every change goes into a journal, so that a refused commit is undone and leaves no trace. The overlay lasts for one group;
//! what it does not hold is read from the database, which changes only between groups.
//!
//! Next on the walk: `plan`.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Operation, PutId, Request, RowChange};
use crate::store::StoreError;
use crate::store::claims::Claims;
use crate::store::codec::{self, ClaimRecord, DocumentHeader, TombstoneRecord, TotalsRecord};
use crate::store::collections::{Collections, Counts};
use crate::store::engine::Engine;
use crate::store::keyspace::{self, CollectionNumber, Family, KeyRange};

/// Keys of one batched read.
const GETS_MAX: usize = 1024;

/// The present version of a document, as far as the committer needs it.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) etag: u64,
    pub(super) collection: CollectionNumber,
    /// As written.
    pub(super) id: String,
    pub(super) change_vector: String,
}

/// What the committer knows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) totals: TotalsRecord,
    pub(super) collections: Collections,
    pub(super) claims: Claims,
    documents: HashMap<String, Option<Arc<Version>>>,
    tombstones: HashMap<(CollectionNumber, String), Option<u64>>,
    meta: HashMap<Vec<u8>, Option<Vec<u8>>>,
    meta_deleted: Vec<KeyRange>,
    journal: Vec<Undo>,
    /// The totals when the present commit began.
    before: TotalsRecord,
}

#[derive(Debug)]
enum Undo {
    Document(String, Option<Arc<Version>>),
    Tombstone((CollectionNumber, String), Option<u64>),
    Counts(CollectionNumber, Counts),
    NewCollection,
    Claim(String, Option<ClaimRecord>),
}

impl State {
    pub(super) fn load(engine: &Engine, totals: TotalsRecord) -> Result<Self, StoreError> {
        Ok(Self {
            totals,
            collections: Collections::load(engine)?,
            claims: Claims::load(engine)?,
            documents: HashMap::new(),
            tombstones: HashMap::new(),
            meta: HashMap::new(),
            meta_deleted: Vec::new(),
            journal: Vec::new(),
            before: totals,
        })
    }

    /// Forgets the overlay: the group is in the database now.
    pub(super) fn end_group(&mut self) {
        self.documents.clear();
        self.tombstones.clear();
        self.meta.clear();
        self.meta_deleted.clear();
    }

    /// Begins a commit: from here on [`State::undo`] takes everything back.
    pub(super) fn begin(&mut self) {
        self.journal.clear();
        self.before = self.totals;
    }

    /// Takes back what was done since [`State::begin`].
    pub(super) fn undo(&mut self) {
        for undo in std::mem::take(&mut self.journal).into_iter().rev() {
            match undo {
                Undo::Document(lower, version) => {
                    self.documents.insert(lower, version);
                }
                Undo::Tombstone(key, etag) => {
                    self.tombstones.insert(key, etag);
                }
                Undo::Counts(number, counts) => self.collections.set_counts(number, counts),
                Undo::NewCollection => self.collections.remove_last(),
                Undo::Claim(collection, claim) => {
                    self.claims.set(&collection, claim);
                }
            }
        }
        self.totals = self.before;
    }

    /// Takes the next etag.
    pub(super) fn next_etag(&mut self) -> u64 {
        self.totals.last_etag += 1;
        self.totals.last_etag
    }

    /// Reads the documents that a group will look at, all at once.
    pub(super) fn prefetch(&mut self, engine: &Engine, group: &[Request]) -> Result<(), StoreError> {
        let mut lowers = Vec::new();
        for operation in group.iter().flat_map(|request| &request.commit.operations) {
            match operation {
                Operation::Put { id: PutId::Given(id) | PutId::MustBeNew(id), .. }
                | Operation::Delete { id, .. }
                | Operation::Check { id, .. } => lowers.push(id.lower()),
                Operation::Put { id: PutId::ServerSide(_), .. } => {}
            }
        }
        if lowers.len() < 2 {
            return Ok(());
        }
        let family = engine.family(Family::Documents)?;
        for chunk in lowers.chunks(GETS_MAX) {
            let values = engine.db().batched_multi_get_cf(family, chunk.iter().copied(), false);
            for (lower, value) in chunk.iter().zip(values) {
                let value = value.map_err(StoreError::Storage)?;
                let version = value.map(|value| decode_version(lower, &value)).transpose()?;
                self.documents.insert((*lower).to_owned(), version);
            }
        }
        Ok(())
    }

    /// The present version of a document.
    pub(super) fn version(&mut self, engine: &Engine, lower: &str) -> Result<Option<Arc<Version>>, StoreError> {
        if let Some(version) = self.documents.get(lower) {
            return Ok(version.clone());
        }
        let value = engine.get(Family::Documents, lower.as_bytes())?;
        let version = value.map(|value| decode_version(lower, &value)).transpose()?;
        self.documents.insert(lower.to_owned(), version.clone());
        Ok(version)
    }

    /// Sets the version of a document that [`State::version`] was asked about.
    pub(super) fn set_version(&mut self, lower: &str, version: Option<Arc<Version>>) {
        let former = self.documents.insert(lower.to_owned(), version).flatten();
        self.journal.push(Undo::Document(lower.to_owned(), former));
    }

    /// The etag of the tombstone of a document in a collection. Reads nothing where the collection has no tombstones.
    pub(super) fn tombstone(
        &mut self,
        engine: &Engine,
        collection: CollectionNumber,
        lower: &str,
    ) -> Result<Option<u64>, StoreError> {
        if self.collections.counts(collection).tombstones == 0 {
            return Ok(None);
        }
        let overlaid = (collection, lower.to_owned());
        if let Some(etag) = self.tombstones.get(&overlaid) {
            return Ok(*etag);
        }
        let key = keyspace::tombstone(collection, lower);
        let etag = match engine.get(Family::Tombstones, &key)? {
            None => None,
            Some(value) => {
                let record = codec::decode::<TombstoneRecord>(&value);
                Some(record.map_err(|error| StoreError::corrupt(Family::Tombstones, &key, error))?.etag)
            }
        };
        self.tombstones.insert(overlaid, etag);
        Ok(etag)
    }

    /// Sets the tombstone of a document that has none in this collection, or removes one that [`State::tombstone`] found.
    pub(super) fn set_tombstone(&mut self, collection: CollectionNumber, lower: &str, etag: Option<u64>) {
        let key = (collection, lower.to_owned());
        let former = self.tombstones.insert(key.clone(), etag).flatten();
        self.journal.push(Undo::Tombstone(key, former));
    }

    /// Finds a collection, or gives it a number.
    pub(super) fn collection(&mut self, name: &str) -> Result<CollectionNumber, StoreError> {
        if let Some(number) = self.collections.find_written(name) {
            return Ok(number);
        }
        let number = self.collections.add(name)?;
        self.journal.push(Undo::NewCollection);
        Ok(number)
    }

    /// Changes the counts of a collection and of the database, by one at most, and notes its newest etag.
    pub(super) fn count(&mut self, number: CollectionNumber, documents: i64, tombstones: i64, etag: Option<u64>) {
        let former = self.collections.counts(number);
        self.journal.push(Undo::Counts(number, former));
        let counts = Counts {
            documents: former.documents.saturating_add_signed(documents),
            tombstones: former.tombstones.saturating_add_signed(tombstones),
            last_etag: etag.unwrap_or(former.last_etag),
        };
        self.collections.set_counts(number, counts);
        self.totals.documents = self.totals.documents.saturating_add_signed(documents);
        self.totals.tombstones = self.totals.tombstones.saturating_add_signed(tombstones);
    }

    pub(super) fn set_claim(&mut self, lower_collection: &str, claim: Option<ClaimRecord>) {
        let former = self.claims.set(lower_collection, claim);
        self.journal.push(Undo::Claim(lower_collection.to_owned(), former));
    }

    /// The present value of a row of `meta`.
    pub(super) fn meta(&self, engine: &Engine, name: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(value) = self.meta.get(name) {
            return Ok(value.clone());
        }
        if self.meta_deleted.iter().any(|range| range.contains(name)) {
            return Ok(None);
        }
        Ok(engine.get(Family::Meta, name)?.map(|value| value.to_vec()))
    }

    /// Notes a change of a `meta` row of an accepted commit; those of other families are nobody's condition.
    pub(super) fn note_row(&mut self, row: &RowChange) {
        match row {
            RowChange::Put { family: Family::Meta, key, value } => {
                self.meta.insert(key.clone(), Some(value.clone()));
            }
            RowChange::Delete { family: Family::Meta, key } => {
                self.meta.insert(key.clone(), None);
            }
            RowChange::DeleteRange { family: Family::Meta, range } => {
                self.meta.retain(|name, _| !range.contains(name));
                self.meta_deleted.push(range.clone());
            }
            _ => {}
        }
    }
}

fn decode_version(lower: &str, value: &[u8]) -> Result<Arc<Version>, StoreError> {
    let header = codec::decode_beginning::<DocumentHeader<'_>>(value)
        .map_err(|error| StoreError::corrupt(Family::Documents, lower.as_bytes(), error))?;
    Ok(Arc::new(Version {
        etag: header.etag,
        collection: CollectionNumber(header.collection),
        id: header.id.to_owned(),
        change_vector: header.change_vector.to_owned(),
    }))
}
