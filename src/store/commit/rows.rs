//! The rows of accepted commits, laid into one batch in the order in which the commits were accepted.
//!
//! Next on the walk: `store::changes`.

use rocksdb::{ColumnFamily, WriteBatch};

use super::plan::{Effect, Plan};
use super::state::State;
use super::{Author, Commit, Operation, RowChange};
use crate::store::StoreError;
use crate::store::codec::{
    self, ChangeRecord, CollectionChangeRecord, DocumentHeader, DocumentRecord, RunRecord, TombstoneRecord,
};
use crate::store::engine::Engine;
use crate::store::keyspace::{self, CollectionNumber, Family};
use crate::store::meta;
use crate::store::previous;

/// Above every key that can occur: no generation has the number `u32::MAX`, and no name in `meta` holds 0xFF.
const END: [u8; 8] = [0xFF; 8];

/// The batch of a group, and what it is built with.
pub(super) struct Rows<'e> {
    engine: &'e Engine,
    documents: &'e ColumnFamily,
    changes: &'e ColumnFamily,
    collections: &'e ColumnFamily,
    tombstones: &'e ColumnFamily,
    meta: &'e ColumnFamily,
    batch: WriteBatch,
    scratch: Vec<u8>,
    /// Whether counts and last etag have to be written.
    counts_changed: bool,
}

impl<'e> Rows<'e> {
    pub(super) fn new(engine: &'e Engine) -> Result<Self, StoreError> {
        Ok(Self {
            engine,
            documents: engine.family(Family::Documents)?,
            changes: engine.family(Family::Changes)?,
            collections: engine.family(Family::Collections)?,
            tombstones: engine.family(Family::Tombstones)?,
            meta: engine.family(Family::Meta)?,
            batch: WriteBatch::default(),
            scratch: Vec::new(),
            counts_changed: false,
        })
    }

    /// Adds an accepted commit.
    pub(super) fn add(&mut self, commit: &Commit, plan: &Plan) -> Result<(), StoreError> {
        let run = match commit.author {
            Author::User => None,
            Author::Index(_) => {
                let complete_through = commit.complete_through.unwrap_or(0);
                Some(RunRecord { number: plan.last_etag, complete_through })
            }
        };
        for effect in &plan.effects {
            match effect {
                Effect::PutDocument { operation, lower, version, modified_micros } => {
                    let Some(Operation::Put { document, flags, .. }) = commit.operations.get(*operation) else {
                        continue;
                    };
                    let header = DocumentHeader {
                        etag: version.etag,
                        collection: version.collection.0,
                        modified_micros: *modified_micros,
                        flags: flags.encode(),
                        change_vector: &version.change_vector,
                        collection_name: &document.collection,
                        id: &version.id,
                    };
                    self.scratch.clear();
                    let record = DocumentRecord { header, metadata: &document.metadata, body: &document.body };
                    codec::encode_into(&record, &mut self.scratch);
                    self.batch.put_cf(self.documents, lower, &self.scratch);
                    self.put_feed_rows(version.collection, version.etag, &version.id, false, run);
                }
                Effect::DeleteDocument { lower } => self.batch.delete_cf(self.documents, lower),
                Effect::RemoveFeedRows { collection, etag } => {
                    self.batch.delete_cf(self.changes, keyspace::change(*etag));
                    self.batch.delete_cf(self.collections, keyspace::collection_change(*collection, *etag));
                }
                Effect::PutTombstone { lower, former, etag } => {
                    let key = keyspace::tombstone(former.collection, lower);
                    self.batch.put_cf(self.tombstones, key, codec::encode(&TombstoneRecord { etag: *etag }));
                    self.put_feed_rows(former.collection, *etag, &former.id, true, run);
                }
                Effect::KeepPrevious { lower, reader, etag } => {
                    // A version that a reader has seen is durable, so it stands in the database and not in this batch.
                    if let Some(record) = self.engine.get(Family::Documents, lower.as_bytes())? {
                        self.batch.put_cf(self.meta, previous::key(*reader, lower, *etag), &*record);
                    }
                }
                Effect::RemoveTombstone { lower, collection } => {
                    self.batch.delete_cf(self.tombstones, keyspace::tombstone(*collection, lower));
                }
                Effect::Claim { lower_collection, claim } => match claim {
                    Some(claim) => self.batch.put_cf(self.meta, meta::claim(lower_collection), codec::encode(claim)),
                    None => self.batch.delete_cf(self.meta, meta::claim(lower_collection)),
                },
            }
            self.counts_changed |= !matches!(effect, Effect::Claim { .. } | Effect::KeepPrevious { .. });
        }
        if let (Author::Index(owner), Some(run)) = (commit.author, run) {
            match commit.complete_through {
                Some(through) => {
                    self.batch.put_cf(self.meta, meta::complete(owner), codec::encode(&(run.number, through)));
                }
                None if commit.operations.is_empty() => {}
                None => self.batch.delete_cf(self.meta, meta::complete(owner)),
            }
        }
        commit.rows.iter().try_for_each(|row| self.add_row(row))
    }

    /// Adds counts and the last etag, where documents changed, and returns the batch.
    pub(super) fn finish(mut self, state: &mut State) -> Result<WriteBatch, StoreError> {
        if self.counts_changed {
            state.collections.write_changed(self.engine, &mut self.batch)?;
            self.batch.put_cf(self.meta, meta::TOTALS, codec::encode(&state.totals));
        }
        Ok(self.batch)
    }

    fn put_feed_rows(
        &mut self,
        collection: CollectionNumber,
        etag: u64,
        id: &str,
        deleted: bool,
        run: Option<RunRecord>,
    ) {
        let change = CollectionChangeRecord { deleted, id };
        self.scratch.clear();
        codec::encode_into(&change, &mut self.scratch);
        if let Some(run) = &run {
            codec::encode_into(run, &mut self.scratch);
        }
        self.batch.put_cf(self.collections, keyspace::collection_change(collection, etag), &self.scratch);
        self.scratch.clear();
        codec::encode_into(&ChangeRecord { change, collection: collection.0 }, &mut self.scratch);
        if let Some(run) = &run {
            codec::encode_into(run, &mut self.scratch);
        }
        self.batch.put_cf(self.changes, keyspace::change(etag), &self.scratch);
    }

    fn add_row(&mut self, row: &RowChange) -> Result<(), StoreError> {
        match row {
            RowChange::Put { family, key, value } => self.batch.put_cf(self.engine.family(*family)?, key, value),
            RowChange::Delete { family, key } => self.batch.delete_cf(self.engine.family(*family)?, key),
            RowChange::DeleteRange { family, range } => {
                let before = range.before.as_deref().unwrap_or(&END);
                if range.from.as_slice() < before {
                    self.batch.delete_range_cf(self.engine.family(*family)?, range.from.as_slice(), before);
                }
            }
        }
        Ok(())
    }
}
