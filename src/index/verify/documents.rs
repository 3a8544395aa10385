//! The first pass: every document is mapped again, and what is kept of it compared.
//!
//! Documents and `map_documents` rows are gone through side by side, in the order of ids. A document whose newest version the
//! index has not taken in yet can't be judged: there, what is kept of it must only fit together.
//!
//! Next on the walk: `groups`.

use super::super::context::same_name;
use super::super::entry::value_hash;
use super::super::explain::json;
use super::super::group::settled;
use super::super::map::{Contribution, Mapped, map};
use super::super::records::{MapDocument, decode};
use super::rows::Rows;
use super::{DifferenceKind, Verification, VerifyError};
use crate::id::DocumentId;
use crate::store::StoreError;
use crate::store::changes::Feed;
use crate::store::commit::RowChange;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, decode_map_document, generation_range, map_entry};
use crate::store::scan::Direction;
use crate::store::snapshot::IdRange;

/// Entries that are compared with one batched read, and the bytes of their values.
const ENTRIES_AT_ONCE: usize = 1_024;
const ENTRY_BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// What the value of an entry must be.
enum Wanted {
    Value(Vec<u8>),
    Hash([u8; 16]),
}

/// Entries to be looked up.
#[derive(Default)]
struct Batch {
    keys: Vec<Vec<u8>>,
    wanted: Vec<(Wanted, String)>,
    bytes: usize,
    /// Entries that were found, right or changed.
    found: u64,
}

impl Verification<'_, '_> {
    /// Compares what is kept of every document. Returns how many entries are accounted for.
    pub(super) fn documents(&mut self) -> Result<u64, VerifyError> {
        let range = generation_range(self.context.generation);
        let mut rows = Rows::new(self.snapshot.rows(Family::MapDocuments, range, Direction::Forward))?;
        let mut batch = Batch::default();
        let snapshot = self.snapshot;
        for document in snapshot.documents(&IdRange::default()) {
            let document = document?;
            let lower = crate::id::lower(&document.id);
            while let Some(before) = stands_before(&rows, &lower) {
                self.without_source(&before, &rows, None, &mut batch)?;
                rows.advance()?;
            }
            let is_kept = row_id(&rows) == Some(lower.as_str());
            if self.context.sources_of(&document.collection).next().is_some() {
                self.document(&document, is_kept.then_some(&rows), &mut batch)?;
            } else if is_kept {
                self.without_source(&lower, &rows, Some(&document), &mut batch)?;
            }
            if is_kept {
                rows.advance()?;
            }
            self.report.beat()?;
        }
        while let Some(id) = row_id(&rows).map(str::to_owned) {
            self.without_source(&id, &rows, None, &mut batch)?;
            rows.advance()?;
        }
        self.look_up(&mut batch)?;
        Ok(batch.found)
    }

    /// A document that a source takes, with the row that is kept of it.
    fn document(
        &mut self,
        document: &StoredDocument,
        kept: Option<&Rows<'_>>,
        batch: &mut Batch,
    ) -> Result<(), VerifyError> {
        let kept = kept.and_then(Rows::row).map(|(_, value)| value);
        if document.etag > self.watermark(&document.collection) {
            self.report.found.waiting += 1;
            return self.fits_together(&document.id, kept, batch);
        }
        let mapped = match map(&self.context, &mut self.runner, document, &mut 0) {
            Mapped::Fault(fault) if fault.transient => {
                self.report.found.interrupted += 1;
                return self.fits_together(&document.id, kept, batch);
            }
            Mapped::Fault(fault) => Mapped::Fault(settled(fault)),
            entries @ Mapped::Entries(_) => entries,
        };
        self.report.found.documents += 1;
        let id = DocumentId::stored(&document.id);
        let contribution = Contribution::new(self.context.generation, &id, None, mapped);
        let wanted = match &contribution.row {
            Some(RowChange::Put { value, .. }) => Some(value.as_slice()),
            _ => None,
        };
        if wanted != kept {
            let kind = match (wanted, kept) {
                (Some(_), None) => DifferenceKind::Missing,
                (None, _) => DifferenceKind::Foreign,
                _ => DifferenceKind::Changed,
            };
            let detail = format!("should be {}, is {}", shown(wanted), shown(kept));
            self.report.row(kind, Family::MapDocuments, document.id.clone(), detail)?;
        }
        for entry in contribution.now {
            let key = map_entry(self.context.generation, &entry.group, id.lower(), entry.ordinal);
            batch.bytes += entry.value.len();
            let place = format!("{} in group {:?}, entry {}", document.id, entry.group, entry.ordinal);
            batch.keys.push(key);
            batch.wanted.push((Wanted::Value(entry.value), place));
            if batch.keys.len() >= ENTRIES_AT_ONCE || batch.bytes >= ENTRY_BYTES_AT_ONCE {
                self.look_up(batch)?;
            }
        }
        Ok(())
    }

    /// A row whose document no source takes, or that is not there: right only while the index has yet to take that in.
    fn without_source(
        &mut self,
        lower_id: &str,
        rows: &Rows<'_>,
        document: Option<&StoredDocument>,
        batch: &mut Batch,
    ) -> Result<(), VerifyError> {
        let kept = rows.row().map(|(_, value)| value);
        if self.is_departure_to_come(lower_id)? {
            self.report.found.waiting += 1;
            return self.fits_together(lower_id, kept, batch);
        }
        let why = match document {
            Some(document) => format!("the document is in collection '{}', which is no source", document.collection),
            None => "there is no such document".to_owned(),
        };
        self.report.row(DifferenceKind::Foreign, Family::MapDocuments, lower_id.to_owned(), why)
    }

    /// Whether a document has left one of the sources later than the index has come.
    fn is_departure_to_come(&self, lower_id: &str) -> Result<bool, StoreError> {
        for (feed, watermark) in self.context.feeds.iter().zip(&self.watermarks) {
            let left = match feed {
                Feed::Collection(name) => self.snapshot.tombstone(name, lower_id)?,
                Feed::All => self.snapshot.last_tombstone(lower_id)?,
            };
            if left.is_some_and(|etag| etag > *watermark) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is kept of a document must name entries that are there, with those values.
    fn fits_together(&mut self, id: &str, kept: Option<&[u8]>, batch: &mut Batch) -> Result<(), VerifyError> {
        let Some(kept) = kept else { return Ok(()) };
        let record = match decode::<MapDocument>("map_documents", kept) {
            Ok(record) => record,
            Err(error) => {
                let detail = error.to_string();
                return self.report.row(DifferenceKind::Unreadable, Family::MapDocuments, id.to_owned(), detail);
            }
        };
        let MapDocument::Entries(entries) = record else { return Ok(()) };
        for entry in entries {
            let key = map_entry(self.context.generation, &entry.group(), &crate::id::lower(id), entry.ordinal);
            let place = format!("{id} in group {:?}, entry {}", entry.group(), entry.ordinal);
            batch.keys.push(key);
            batch.wanted.push((Wanted::Hash(entry.value_hash), place));
            if batch.keys.len() >= ENTRIES_AT_ONCE {
                self.look_up(batch)?;
            }
        }
        Ok(())
    }

    /// Reads the entries of a batch and compares them.
    fn look_up(&mut self, batch: &mut Batch) -> Result<(), VerifyError> {
        let keys = std::mem::take(&mut batch.keys);
        let wanted = std::mem::take(&mut batch.wanted);
        batch.bytes = 0;
        for (row, (wanted, place)) in self.snapshot.rows_many(Family::MapEntries, &keys)?.into_iter().zip(wanted) {
            self.report.found.entries += 1;
            let Some(row) = row else {
                let detail = "the document emits it, and it is not there".to_owned();
                self.report.row(DifferenceKind::Missing, Family::MapEntries, place, detail)?;
                continue;
            };
            batch.found += 1;
            let is_right = match &wanted {
                Wanted::Value(value) => *value == row,
                Wanted::Hash(hash) => *hash == value_hash(&row),
            };
            if !is_right {
                let should = match &wanted {
                    Wanted::Value(value) => json(value),
                    Wanted::Hash(_) => "another value".to_owned(),
                };
                let detail = format!("should be {}, is {}", cut(&should), cut(&json(&row)));
                self.report.row(DifferenceKind::Changed, Family::MapEntries, place, detail)?;
            }
        }
        self.report.beat()
    }

    /// The etag through which documents of a collection were taken in.
    fn watermark(&self, collection: &str) -> u64 {
        let mut feeds = self.context.feeds.iter().zip(&self.watermarks);
        let of_collection = feeds.find(|(feed, _)| match feed {
            Feed::All => true,
            Feed::Collection(name) => same_name(name, collection),
        });
        of_collection.map_or(0, |(_, watermark)| *watermark)
    }
}

fn row_id<'r>(rows: &'r Rows<'_>) -> Option<&'r str> {
    rows.row().map(|(key, _)| decode_map_document(key).unwrap_or_default())
}

/// The id of the present row, where it comes before this one.
fn stands_before(rows: &Rows<'_>, lower_id: &str) -> Option<String> {
    row_id(rows).filter(|id| *id < lower_id).map(str::to_owned)
}

/// What a row says, shortly.
fn shown(row: Option<&[u8]>) -> String {
    match row.map(|row| decode::<MapDocument>("map_documents", row)) {
        None => "no row".to_owned(),
        Some(Ok(MapDocument::Entries(entries))) => {
            let hashes: Vec<String> = entries.iter().take(4).map(|entry| format!("{:?}", entry.group())).collect();
            format!("{} entries, of groups {}", entries.len(), hashes.join(", "))
        }
        Some(Ok(MapDocument::Fault(fault))) => format!("a fault: {fault}"),
        Some(Err(_)) => "unreadable".to_owned(),
    }
}

/// A text that is short enough to be shown.
pub(super) fn cut(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
