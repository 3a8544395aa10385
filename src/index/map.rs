//! Maps one document: all map functions that take its collection, in declaration order; all of its entries or none.
//!
//! Next on the walk: `entry`.

use super::context::Context;
use super::counters::add;
use super::entry::{Entry, number};
use super::faults::Subject;
use super::records::{EntryRecord, MapDocument, encode};
use crate::id::DocumentId;
use crate::script::{Fault, MapInput, Runner};
use crate::store::commit::RowChange;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, Generation, map_document};

/// What a document contributes.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// Its entries, perhaps none.
    Entries(Vec<Entry>),
    /// Its map failed.
    Fault(Fault),
}

/// A document's contribution beside the one it made before.
#[derive(Debug)]
pub(crate) struct Contribution {
    /// The change of its `map_documents` row, where there is one.
    pub row: Option<RowChange>,
    /// The fault to record, or to clear (`None`).
    pub fault: Option<(Subject, Option<Fault>)>,
    /// What it emitted before.
    pub before: Vec<EntryRecord>,
    /// What it emits now.
    pub now: Vec<Entry>,
}

impl Contribution {
    /// Compares what was kept of a document with what came of mapping it.
    pub(crate) fn new(generation: Generation, id: &DocumentId, before: Option<MapDocument>, mapped: Mapped) -> Self {
        let subject = || Subject::Document(id.as_str().to_owned());
        let (family, key) = (Family::MapDocuments, map_document(generation, id.lower()));
        let record = mapped.record();
        let row = (record != before).then(|| match &record {
            Some(record) => RowChange::Put { family, key, value: encode(record) },
            None => RowChange::Delete { family, key },
        });
        let (before, had_fault) = match before {
            Some(MapDocument::Entries(entries)) => (entries, false),
            Some(MapDocument::Fault(_)) => (Vec::new(), true),
            None => (Vec::new(), false),
        };
        let (now, fault) = match mapped {
            Mapped::Entries(entries) => (entries, had_fault.then(|| (subject(), None))),
            Mapped::Fault(fault) => (Vec::new(), Some((subject(), Some(fault)))),
        };
        Self { row, fault, before, now }
    }

    /// Whether the map failed.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self.fault, Some((_, Some(_))))
    }
}

impl Mapped {
    /// The `map_documents` row to keep; `None` where nothing was emitted.
    fn record(&self) -> Option<MapDocument> {
        match self {
            Mapped::Entries(entries) if entries.is_empty() => None,
            Mapped::Entries(entries) => Some(MapDocument::Entries(entries.iter().map(Entry::record).collect())),
            Mapped::Fault(fault) => Some(MapDocument::Fault(fault.clone())),
        }
    }
}

/// Maps a document, if any source takes it. `attempts` counts the calls.
pub(crate) fn map(context: &Context, runner: &mut Runner, document: &StoredDocument, attempts: &mut u64) -> Mapped {
    let mut emitted = Vec::new();
    for (source, collection) in context.sources_of(&document.collection) {
        *attempts += 1;
        add(&context.counters.map_calls, 1);
        let input = MapInput { id: &document.id, collection, metadata: &document.metadata, body: &document.body };
        match runner.map(source, &input) {
            Ok(entries) => emitted.extend(entries),
            Err(fault) => return Mapped::Fault(fault),
        }
    }
    Mapped::Entries(number(emitted))
}
