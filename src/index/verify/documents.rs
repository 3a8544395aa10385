//! The first pass: every document is mapped again, and all rows that are kept of it compared.
//!
//! Documents and `map_documents` rows are gone through side by side, in the order of ids. A document whose newest version, or one
//! that it loads, the index has not taken in yet can't be judged: there, what is kept of it must only fit together.
//!
//! Next on the walk: `groups`.

use super::super::context::same_name;
use super::super::entry::EntryChangeKind;
use super::super::group::settled;
use super::super::loads::DocumentLoader;
use super::super::map::{Contribution, map};
use super::super::records::{MapDocument, decode};
use super::lookup::{Accounted, Batch, Wanted};
use super::rows::Rows;
use super::{DifferenceKind, Verification, VerifyError};
use crate::id::DocumentId;
use crate::store::StoreError;
use crate::store::changes::Feed;
use crate::store::commit::RowChange;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, decode_map_document, generation_range, load, map_entry, map_key};
use crate::store::scan::Direction;
use crate::store::snapshot::IdRange;

impl Verification<'_, '_> {
    /// Compares what is kept of every document. Returns how many rows are accounted for.
    pub(super) fn documents(&mut self) -> Result<Accounted, VerifyError> {
        let loader = DocumentLoader::lend(self.shared, &self.runner);
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
                self.document(&document, is_kept.then_some(&rows), &loader, &mut batch)?;
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
        Ok(batch.accounted)
    }

    /// A document that a source takes, with the row that is kept of it.
    fn document(
        &mut self,
        document: &StoredDocument,
        kept: Option<&Rows<'_>>,
        loader: &DocumentLoader,
        batch: &mut Batch,
    ) -> Result<(), VerifyError> {
        let kept = kept.and_then(Rows::row).map(|(_, value)| value);
        if document.etag > self.watermark(&document.collection) {
            self.report.found.waiting += 1;
            return self.fits_together(&document.id, kept, batch);
        }
        let mut mapped = map(&self.context, &mut self.runner, loader, document, &mut 0)?;
        if mapped.fault.as_ref().is_some_and(|fault| fault.transient) {
            self.report.found.interrupted += 1;
            return self.fits_together(&document.id, kept, batch);
        }
        if self.loads_later(&mapped.loads, kept)? {
            self.report.found.waiting += 1;
            return self.fits_together(&document.id, kept, batch);
        }
        mapped.fault = mapped.fault.map(settled);
        self.report.found.documents += 1;
        let id = DocumentId::stored(&document.id);
        let contribution = Contribution::new(self.context.generation, &id, None, mapped);
        let mut wanted = None;
        for row in contribution.rows {
            match row {
                RowChange::Put { family: Family::MapDocuments, value, .. } => wanted = Some(value),
                RowChange::Put { family, key, value } => {
                    self.want(batch, family, key, Wanted::Value(value), document.id.clone())?;
                }
                RowChange::Delete { .. } | RowChange::DeleteRange { .. } => {}
            }
        }
        self.compare_kept(&document.id, wanted.as_deref(), kept)?;
        for change in contribution.changes {
            let EntryChangeKind::Added { value, .. } = change.kind else { continue };
            let key = map_entry(self.context.generation, &change.group, id.lower(), change.ordinal);
            let place = format!("{} in group {:?}, entry {}", document.id, change.group, change.ordinal);
            self.want(batch, Family::MapEntries, key, Wanted::Value(value), place)?;
        }
        Ok(())
    }

    fn compare_kept(&mut self, id: &str, wanted: Option<&[u8]>, kept: Option<&[u8]>) -> Result<(), VerifyError> {
        if wanted == kept {
            return Ok(());
        }
        let kind = match (wanted, kept) {
            (Some(_), None) => DifferenceKind::Missing,
            (None, _) => DifferenceKind::Foreign,
            _ => DifferenceKind::Changed,
        };
        let detail = format!("should be {}, is {}", shown(wanted), shown(kept));
        self.report.row(kind, Family::MapDocuments, id.to_owned(), detail)
    }

    /// Whether a document depends on one that has changed later than the index has come.
    fn loads_later(&self, loads: &[String], kept: Option<&[u8]>) -> Result<bool, StoreError> {
        let context = &self.context;
        if context.program.loads.is_empty() {
            return Ok(false);
        }
        let kept = kept.and_then(|kept| decode::<MapDocument>("map_documents", kept).ok());
        let kept = kept.map(|kept| kept.widened().loads).unwrap_or_default();
        let feeds = context.feeds.iter().zip(&self.watermarks).skip(context.source_feeds());
        for id in loads.iter().chain(&kept) {
            if self.remapping.as_ref().is_some_and(|loaded| loaded == id) {
                return Ok(true);
            }
            let document = self.snapshot.get(&DocumentId::stored(id))?;
            for (feed, watermark) in feeds.clone() {
                let Feed::Collection(name) = feed else { continue };
                let present = document.as_ref().filter(|it| same_name(name, &it.collection)).map(|it| it.etag);
                if present.max(self.snapshot.tombstone(name, id)?).is_some_and(|etag| etag > *watermark) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
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
        for (feed, watermark) in self.source_watermarks() {
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

    /// What is kept of a document must name rows that are there, with those values.
    fn fits_together(&mut self, id: &str, kept: Option<&[u8]>, batch: &mut Batch) -> Result<(), VerifyError> {
        let Some(kept) = kept else { return Ok(()) };
        let record = match decode::<MapDocument>("map_documents", kept) {
            Ok(record) => record.widened(),
            Err(error) => {
                let detail = error.to_string();
                return self.report.row(DifferenceKind::Unreadable, Family::MapDocuments, id.to_owned(), detail);
            }
        };
        let (generation, lower) = (self.context.generation, crate::id::lower(id));
        for entry in record.entries {
            let key = map_entry(generation, &entry.group(), &lower, entry.ordinal);
            let place = format!("{id} in group {:?}, entry {}", entry.group(), entry.ordinal);
            self.want(batch, Family::MapEntries, key, Wanted::Hash(entry.value_hash), place)?;
        }
        for entry in record.keyed {
            let key = map_key(generation, &entry.key, &lower, entry.ordinal);
            self.want(batch, Family::MapKeys, key, Wanted::Hash(entry.value_hash), id.to_owned())?;
        }
        for loaded in record.loads {
            let key = load(generation, &loaded, &lower);
            self.want(batch, Family::Loads, key, Wanted::Value(Vec::new()), id.to_owned())?;
        }
        Ok(())
    }

    /// The etag through which documents of a collection were taken in as sources.
    fn watermark(&self, collection: &str) -> u64 {
        let of_collection = self.source_watermarks().find(|(feed, _)| match feed {
            Feed::All => true,
            Feed::Collection(name) => same_name(name, collection),
        });
        of_collection.map_or(0, |(_, watermark)| *watermark)
    }

    fn source_watermarks(&self) -> impl Iterator<Item = (&Feed, &u64)> {
        self.context.feeds.iter().zip(&self.watermarks).take(self.context.source_feeds())
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
    let record = match row.map(|row| decode::<MapDocument>("map_documents", row)) {
        None => return "no row".to_owned(),
        Some(Err(_)) => return "unreadable".to_owned(),
        Some(Ok(record)) => record.widened(),
    };
    if let Some(fault) = record.fault {
        return format!("a fault: {fault}");
    }
    let hashes: Vec<String> = record.entries.iter().take(4).map(|entry| format!("{:?}", entry.group())).collect();
    let (entries, loads) = (record.entries.len() + record.keyed.len(), record.loads.len());
    format!("{entries} entries, of groups {}, and {loads} loaded documents", hashes.join(", "))
}

/// A text that is short enough to be shown.
pub(super) fn cut(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
