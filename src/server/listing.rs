//! Lists of documents: by prefix in id order, newest first, or from an etag on.
//!
//! Each list is read from one snapshot and written as it is read.

use super::error::ApiError;
use super::patterns::Patterns;
use super::registry::Lease;
use super::stream::{Ended, Sink};
use crate::id::{self, DocumentId};
use crate::store::StoreError;
use crate::store::changes::{Change, ChangeKind, Feed};
use crate::store::document::StoredDocument;
use crate::store::scan::Direction;
use crate::store::snapshot::{IdRange, Snapshot};

/// Documents that are read at once by id.
const READ_AT_ONCE: usize = 64;

/// Which documents, and in which order.
#[derive(Debug)]
pub(crate) enum Selection {
    /// In id order.
    Ids { prefix: String, after: Option<String>, matches: Option<Patterns>, exclude: Option<Patterns> },
    /// Newest first.
    Newest(Feed),
    /// In etag order, this etag included.
    FromEtag(u64),
}

/// Which part of a selection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Documents to skip.
    pub(crate) start: u64,
    /// Documents to list.
    pub(crate) size: u64,
    /// Whether only their metadata is wanted.
    pub(crate) metadata_only: bool,
}

/// What stands around the documents of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    begin: &'static str,
    between: &'static str,
    /// After the last document, where there is one.
    last: &'static str,
    end: &'static str,
}

impl Framing {
    /// One JSON object.
    pub(crate) const RESULTS: Self = Self { begin: "{\"Results\":[", between: ",", last: "", end: "]}" };
    /// One JSON object, with the includes that lists never have.
    pub(crate) const RESULTS_AND_INCLUDES: Self = Self { end: "],\"Includes\":{}}", ..Self::RESULTS };
    /// One document a line.
    pub(crate) const LINES: Self = Self { begin: "", between: "\n", last: "\n", end: "" };
}

/// Writes a list of documents.
pub(crate) fn write(
    lease: &Lease,
    selection: &Selection,
    page: Page,
    framing: Framing,
    sink: &mut Sink,
) -> Result<(), Ended> {
    let snapshot = lease.store().snapshot();
    sink.buffer.extend_from_slice(framing.begin.as_bytes());
    let mut list = List { page, between: framing.between, skipped: 0, written: 0, sink };
    if page.size > 0 {
        match selection {
            Selection::Ids { prefix, after, matches, exclude } => {
                let range = IdRange { prefix: prefix.clone(), after: after.clone(), direction: Direction::Forward };
                let filter =
                    IdFilter { prefix: id::lower(prefix), matches: matches.as_ref(), exclude: exclude.as_ref() };
                list.by_id(&snapshot, &range, &filter)?;
            }
            Selection::Newest(feed) => {
                let through = snapshot.progress().written;
                list.by_etag(&snapshot, snapshot.changes(feed, 0, through, Direction::Backward))?;
            }
            Selection::FromEtag(etag) => {
                let (after, through) = (etag.saturating_sub(1), snapshot.progress().written);
                list.by_etag(&snapshot, snapshot.changes(&Feed::All, after, through, Direction::Forward))?;
            }
        }
    }
    if list.written > 0 {
        list.sink.buffer.extend_from_slice(framing.last.as_bytes());
    }
    sink.buffer.extend_from_slice(framing.end.as_bytes());
    Ok(())
}

/// Writes one document, or its metadata.
pub(crate) fn write_document(document: &StoredDocument, metadata_only: bool, into: &mut Vec<u8>) {
    if metadata_only {
        document.write_metadata_json(into);
    } else {
        document.write_json(into);
    }
}

/// Reads the documents of changes, in the same order; a change that deleted has none.
pub(crate) fn documents_of(
    snapshot: &Snapshot<'_>,
    changes: &[Change],
) -> Result<Vec<Option<StoredDocument>>, StoreError> {
    let puts = changes.iter().filter(|change| change.kind == ChangeKind::Put);
    let ids: Vec<_> = puts.map(|change| DocumentId::stored(&change.id)).collect();
    let mut found = snapshot.get_many(&ids)?.into_iter();
    let documents = changes.iter().map(|change| match change.kind {
        ChangeKind::Put => found.next().flatten(),
        ChangeKind::Delete => None,
    });
    Ok(documents.collect())
}

struct IdFilter<'a> {
    prefix: String,
    matches: Option<&'a Patterns>,
    exclude: Option<&'a Patterns>,
}

impl IdFilter<'_> {
    fn lets_pass(&self, id: &str) -> bool {
        if self.matches.is_none() && self.exclude.is_none() {
            return true;
        }
        let lower = id::lower(id);
        let rest = lower.strip_prefix(&self.prefix).unwrap_or(&lower);
        self.matches.is_none_or(|patterns| patterns.matches(rest))
            && !self.exclude.is_some_and(|patterns| patterns.matches(rest))
    }
}

struct List<'a> {
    page: Page,
    between: &'static str,
    skipped: u64,
    written: u64,
    sink: &'a mut Sink,
}

impl List<'_> {
    fn by_id(&mut self, snapshot: &Snapshot<'_>, range: &IdRange, filter: &IdFilter<'_>) -> Result<(), Ended> {
        for document in snapshot.documents(range) {
            let document = document?;
            if !filter.lets_pass(&document.id) || self.skip() {
                continue;
            }
            if !self.add(&document)? {
                break;
            }
        }
        Ok(())
    }

    fn by_etag(
        &mut self,
        snapshot: &Snapshot<'_>,
        changes: impl Iterator<Item = Result<Change, StoreError>>,
    ) -> Result<(), Ended> {
        let mut waiting = Vec::new();
        for change in changes {
            let change = change?;
            if change.kind == ChangeKind::Delete || self.skip() {
                continue;
            }
            waiting.push(change);
            if waiting.len() as u64 >= (self.page.size - self.written).min(READ_AT_ONCE as u64) {
                if !self.add_all(snapshot, &waiting)? {
                    return Ok(());
                }
                waiting.clear();
            }
        }
        self.add_all(snapshot, &waiting).map(|_| ())
    }

    fn add_all(&mut self, snapshot: &Snapshot<'_>, changes: &[Change]) -> Result<bool, Ended> {
        for (change, document) in changes.iter().zip(documents_of(snapshot, changes)?) {
            let Some(document) = document else {
                let (etag, id) = (change.etag, &change.id);
                return Err(ApiError::internal(format!(
                    "Change {etag} of '{id}' has no document in the same snapshot."
                ))
                .into());
            };
            if !self.add(&document)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn skip(&mut self) -> bool {
        let skip = self.skipped < self.page.start;
        self.skipped += u64::from(skip);
        skip
    }

    /// Writes a document; `false` when the page is full.
    fn add(&mut self, document: &StoredDocument) -> Result<bool, Ended> {
        if self.written > 0 {
            self.sink.buffer.extend_from_slice(self.between.as_bytes());
        }
        write_document(document, self.page.metadata_only, &mut self.sink.buffer);
        self.written += 1;
        self.sink.send_if_full()?;
        Ok(self.written < self.page.size)
    }
}
