//! The invariants of documents, feed and counts, checked row by row: for tests and for operators.

use std::collections::HashMap;

use super::StoreError;
use super::changes::{ChangeKind, Feed};
use super::codec::{self, DocumentHeader, TombstoneRecord};
use super::keyspace::{self, CollectionNumber, Family, KeyRange};
use super::scan::Direction;
use super::snapshot::Snapshot;
use crate::id::lower;

/// Findings that are reported; more are counted only.
const FINDINGS_MAX: usize = 100;

/// Rows looked at between two questions whether to go on.
const ROWS_AT_ONCE: u64 = 4_096;

/// What was found, and whether to look on.
struct Findings<'a> {
    texts: Vec<String>,
    more: usize,
    rows: u64,
    goes_on: &'a mut dyn FnMut(u64) -> bool,
    is_over: bool,
}

impl Findings<'_> {
    /// Counts a row that was looked at; `false` where nobody wants to know more.
    fn step(&mut self) -> bool {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_AT_ONCE) && !self.is_over {
            self.is_over = !(self.goes_on)(self.rows);
        }
        !self.is_over
    }

    fn add(&mut self, text: String) {
        if self.texts.len() < FINDINGS_MAX {
            self.texts.push(text);
        } else {
            self.more += 1;
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Count {
    documents: u64,
    tombstones: u64,
    last_etag: u64,
}

impl Snapshot<'_> {
    /// Checks that every live document and every tombstone has exactly its two feed rows, that every feed row has its document
    /// or tombstone, and that the counts are right. Returns what is wrong, at most 100 findings; empty: all is well.
    ///
    /// # Cost
    /// Reads everything but the index rows, with about two look-ups for each document.
    ///
    /// # Errors
    /// A read failed or a record can't be decoded.
    pub fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.verify_while(&mut |_| true)
    }

    /// The same as [`Snapshot::verify`], which is long on a large database: `goes_on` is asked every 4,096 rows, with their number so
    /// far, and ends it with `false`. What was found until then is returned.
    ///
    /// # Errors
    /// Those of [`Snapshot::verify`].
    pub fn verify_while(&self, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<Vec<String>, StoreError> {
        let mut findings = Findings { texts: Vec::new(), more: 0, rows: 0, goes_on, is_over: false };
        let mut counts = HashMap::new();
        self.verify_documents(&mut counts, &mut findings)?;
        self.verify_tombstones(&mut counts, &mut findings)?;
        let changes = self.verify_changes(&mut findings)?;
        self.verify_collections(changes, &mut findings)?;
        if !findings.is_over {
            self.verify_counts(&counts, &mut findings)?;
        }
        let Findings { mut texts, more, .. } = findings;
        if more > 0 {
            texts.push(format!("and {more} more findings"));
        }
        Ok(texts)
    }

    fn verify_documents(
        &self,
        counts: &mut HashMap<u32, Count>,
        findings: &mut Findings<'_>,
    ) -> Result<(), StoreError> {
        let mut scan = self.rows(Family::Documents, KeyRange::all(), Direction::Forward);
        while let Some((key, value)) = scan.next_row()? {
            if !findings.step() {
                break;
            }
            let header = codec::decode_beginning::<DocumentHeader<'_>>(value)
                .map_err(|error| StoreError::corrupt(Family::Documents, key, error))?;
            if lower(header.id).as_bytes() != key {
                findings.add(format!("document '{}' stands under another key", header.id));
            }
            let count = counts.entry(header.collection).or_default();
            count.documents += 1;
            count.last_etag = count.last_etag.max(header.etag);
            self.verify_feed_rows(header.collection, header.etag, &format!("document '{}'", header.id), findings)?;
        }
        Ok(())
    }

    fn verify_tombstones(
        &self,
        counts: &mut HashMap<u32, Count>,
        findings: &mut Findings<'_>,
    ) -> Result<(), StoreError> {
        let mut scan = self.rows(Family::Tombstones, KeyRange::all(), Direction::Forward);
        while let Some((key, value)) = scan.next_row()? {
            if !findings.step() {
                break;
            }
            let corrupt = |detail: &dyn std::fmt::Display| StoreError::corrupt(Family::Tombstones, key, detail);
            let TombstoneRecord { etag } = codec::decode(value).map_err(|error| corrupt(&error))?;
            let (collection, id) = keyspace::decode_tombstone(key).ok_or_else(|| corrupt(&"the key is cut short"))?;
            let count = counts.entry(collection.0).or_default();
            count.tombstones += 1;
            count.last_etag = count.last_etag.max(etag);
            let subject = format!("the tombstone of '{id}' in collection {}", collection.0);
            self.verify_feed_rows(collection.0, etag, &subject, findings)?;
            let purged = self.purged_in(collection)?;
            if etag <= purged {
                findings.add(format!("{subject} has etag {etag}, and all through {purged} were removed"));
            }
            if let Some(document) = self.row(Family::Documents, id.as_bytes())? {
                let header = codec::decode_beginning::<DocumentHeader<'_>>(&document)
                    .map_err(|error| StoreError::corrupt(Family::Documents, id.as_bytes(), error))?;
                if header.collection == collection.0 {
                    findings.add(format!("{subject} stands beside a live document of that collection"));
                }
            }
        }
        Ok(())
    }

    fn verify_feed_rows(
        &self,
        collection: u32,
        etag: u64,
        subject: &str,
        findings: &mut Findings<'_>,
    ) -> Result<(), StoreError> {
        if self.row(Family::Changes, &keyspace::change(etag))?.is_none() {
            findings.add(format!("{subject} with etag {etag} has no row in the feed of the database"));
        }
        let key = keyspace::collection_change(CollectionNumber(collection), etag);
        if self.row(Family::Collections, &key)?.is_none() {
            findings.add(format!("{subject} with etag {etag} has no row in the feed of its collection"));
        }
        Ok(())
    }

    /// Checks that every change is the newest of its document and collection; returns how many there are.
    fn verify_changes(&self, findings: &mut Findings<'_>) -> Result<u64, StoreError> {
        let last = self.count()?.last_etag;
        let mut changes = 0;
        for change in self.changes(&Feed::All, 0, u64::MAX, Direction::Forward) {
            let change = change?;
            if !findings.step() {
                break;
            }
            changes += 1;
            if change.etag > last {
                findings.add(format!("etag {} of '{}' is above the last etag {last}", change.etag, change.id));
            }
            let present = match change.kind {
                ChangeKind::Put => match self.row(Family::Documents, lower(&change.id).as_bytes())? {
                    None => None,
                    Some(value) => codec::decode_beginning::<DocumentHeader<'_>>(&value).ok().map(|header| header.etag),
                },
                ChangeKind::Delete => self.tombstone(&change.collection, &lower(&change.id))?,
            };
            if present != Some(change.etag) {
                findings.add(format!(
                    "the feed has {:?} of '{}' with etag {}, but what is stored has etag {present:?}",
                    change.kind, change.id, change.etag
                ));
            }
        }
        Ok(changes)
    }

    /// Reads the etag of the tombstone that a document has left in a collection.
    ///
    /// # Errors
    /// The read failed or the row is damaged.
    pub fn tombstone(&self, collection: &str, lower_id: &str) -> Result<Option<u64>, StoreError> {
        let Some(number) = self.collection_number(collection) else { return Ok(None) };
        let key = keyspace::tombstone(number, lower_id);
        match self.row(Family::Tombstones, &key)? {
            None => Ok(None),
            Some(value) => codec::decode::<TombstoneRecord>(&value)
                .map(|record| Some(record.etag))
                .map_err(|error| StoreError::corrupt(Family::Tombstones, &key, error)),
        }
    }

    /// Reads the etag of the last tombstone that a document has left, in whatever collection.
    ///
    /// # Cost
    /// A look-up for each collection that was ever used.
    ///
    /// # Errors
    /// A read failed or a row is damaged.
    pub fn last_tombstone(&self, lower_id: &str) -> Result<Option<u64>, StoreError> {
        let mut last = None;
        for count in self.all_collections()? {
            last = last.max(self.tombstone(&count.name, lower_id)?);
        }
        Ok(last)
    }

    /// Checks that the feeds of the collections together are the feed of the database.
    fn verify_collections(&self, changes: u64, findings: &mut Findings<'_>) -> Result<(), StoreError> {
        let mut rows = 0;
        for count in self.all_collections()? {
            for change in self.changes(&Feed::Collection(count.name.clone()), 0, u64::MAX, Direction::Forward) {
                let change = change?;
                if !findings.step() {
                    return Ok(());
                }
                rows += 1;
                let after = change.etag.saturating_sub(1);
                let same = self.changes(&Feed::All, after, change.etag, Direction::Forward).next().transpose()?;
                if same.as_ref() != Some(&change) {
                    findings.add(format!("collection '{}' has {change:?}, the database {same:?}", count.name));
                }
            }
        }
        if rows != changes && !findings.is_over {
            findings.add(format!("the feeds of the collections have {rows} rows, that of the database {changes}"));
        }
        Ok(())
    }

    fn verify_counts(&self, counts: &HashMap<u32, Count>, findings: &mut Findings<'_>) -> Result<(), StoreError> {
        let mut totals = Count::default();
        for count in self.all_collections()? {
            let number = self.collection_number(&count.name).map_or(0, |number| number.0);
            let found = counts.get(&number).copied().unwrap_or_default();
            let written =
                Count { documents: count.documents, tombstones: count.tombstones, last_etag: found.last_etag };
            // No row may be newer than the count says; a superseded one may have been.
            if written != found || count.last_etag < found.last_etag {
                findings.add(format!("collection '{}' counts {count:?}, and has {found:?}", count.name));
            }
            totals.documents += found.documents;
            totals.tombstones += found.tombstones;
        }
        let count = self.count()?;
        if (count.documents, count.tombstones) != (totals.documents, totals.tombstones) {
            findings.add(format!("the database counts {count:?}, and has {totals:?}"));
        }
        Ok(())
    }
}
