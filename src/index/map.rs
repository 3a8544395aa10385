//! Maps one document: all map functions that take its collection, in declaration order; all of its entries or none.
//!
//! Next on the walk: `entry`.

use super::context::Context;
use super::counters::add;
use super::entry::{Entry, number};
use super::records::MapDocument;
use crate::script::{Fault, MapInput, Runner};
use crate::store::document::StoredDocument;

/// What a document contributes.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// Its entries, perhaps none.
    Entries(Vec<Entry>),
    /// Its map failed.
    Fault(Fault),
}

impl Mapped {
    /// The `map_documents` row to keep; `None` where nothing was emitted.
    pub(crate) fn record(&self) -> Option<MapDocument> {
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
