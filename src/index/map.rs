//! Maps one document: all map functions that take its collection, in declaration order; all of its entries or none.
//!
//! What it has loaded is remembered beside its entries, also where the map failed: when one of those documents changes, this one
//! is mapped again.
//!
//! Next on the walk: `entry`, or `keyed` for a map-only index.

use std::collections::BTreeSet;

use super::context::Context;
use super::counters::add;
use super::entry::{Entry, EntryChange, compare, number};
use super::faults::Subject;
use super::keyed::{KeyedEntry, compare_keyed, keyed};
use super::loads::{DocumentLoader, compare_loads};
use super::records::{MapDocument, WideDocument, encode};
use crate::id::DocumentId;
use crate::script::{Fault, MapInput, Runner};
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, Generation, map_document};

/// What a document contributes.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    /// Its entries in groups, perhaps none.
    pub entries: Vec<Entry>,
    /// Its entries in a map-only index.
    pub keyed: Vec<KeyedEntry>,
    /// The lower-cased ids that it has loaded or looked for in vain, in order.
    pub loads: Vec<String>,
    /// Why its map failed; there are no entries then.
    pub fault: Option<Fault>,
}

/// A document's contribution beside the one it made before.
#[derive(Debug)]
pub(crate) struct Contribution {
    /// The changes of its rows: `map_documents`, `loads`, and `map_keys` in a map-only index.
    pub rows: Vec<RowChange>,
    /// The fault to record, or to clear (`None`).
    pub fault: Option<(Subject, Option<Fault>)>,
    /// What changes in groups, in order of group and ordinal.
    pub changes: Vec<EntryChange>,
    /// How the number of entries of a map-only index changes.
    pub keyed: i64,
}

impl Contribution {
    /// Compares what was kept of a document with what came of mapping it.
    pub(crate) fn new(generation: Generation, id: &DocumentId, before: Option<MapDocument>, mapped: Mapped) -> Self {
        let subject = || Subject::Document(id.as_str().to_owned());
        let (family, key) = (Family::MapDocuments, map_document(generation, id.lower()));
        let record = mapped.record();
        let mut rows = Vec::new();
        if record != before {
            rows.push(match &record {
                Some(record) => RowChange::Put { family, key, value: encode(record) },
                None => RowChange::Delete { family, key },
            });
        }
        let before = before.map(MapDocument::widened).unwrap_or_default();
        let fault = match mapped.fault {
            Some(fault) => Some((subject(), Some(fault))),
            None => before.fault.is_some().then(|| (subject(), None)),
        };
        rows.extend(compare_loads(generation, id.lower(), &before.loads, &mapped.loads));
        let keyed = compare_keyed(generation, id.lower(), &before.keyed, mapped.keyed);
        rows.extend(keyed.rows);
        Self { rows, fault, changes: compare(&before.entries, mapped.entries), keyed: keyed.entries }
    }

    /// Whether the map failed.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self.fault, Some((_, Some(_))))
    }
}

impl Mapped {
    /// Takes the entries back: the document contributes nothing.
    pub(crate) fn failed(self, fault: Fault) -> Self {
        Self { loads: self.loads, fault: Some(fault), ..Self::default() }
    }

    /// The encoded bytes of its entries.
    pub(crate) fn bytes(&self) -> usize {
        let grouped = self.entries.iter().map(|entry| entry.key.len() + entry.value.len());
        let keyed = self.keyed.iter().map(|entry| entry.record.key.len() + entry.value.len());
        grouped.chain(keyed).sum()
    }

    /// The `map_documents` row to keep; `None` where nothing was emitted or loaded.
    fn record(&self) -> Option<MapDocument> {
        MapDocument::narrowed(WideDocument {
            entries: self.entries.iter().map(Entry::record).collect(),
            keyed: self.keyed.iter().map(|entry| entry.record.clone()).collect(),
            loads: self.loads.clone(),
            fault: self.fault.clone(),
        })
    }
}

/// Maps a document, if any source takes it. `attempts` counts the calls.
///
/// # Errors
/// A document that the script loads could not be read.
pub(crate) fn map(
    context: &Context,
    runner: &mut Runner,
    loader: &DocumentLoader,
    document: &StoredDocument,
    attempts: &mut u64,
) -> Result<Mapped, StoreError> {
    let (mut emitted, mut loads, mut failed) = (Vec::new(), BTreeSet::new(), None);
    for (source, collection) in context.sources_of(&document.collection) {
        *attempts += 1;
        add(&context.counters.map_calls, 1);
        let input = MapInput { id: &document.id, collection, metadata: &document.metadata, body: &document.body };
        let result = runner.map(source, &input);
        if !context.program.loads.is_empty() {
            loader.check()?;
            loads.extend(runner.loaded());
        }
        match result {
            Ok(entries) => emitted.extend(entries),
            Err(fault) => {
                failed = Some(fault);
                break;
            }
        }
    }
    let mut mapped = Mapped { loads: loads.into_iter().collect(), ..Mapped::default() };
    match failed {
        Some(fault) => mapped.fault = Some(fault),
        None if context.program.has_reduce => mapped.entries = number(emitted),
        None => mapped.keyed = keyed(emitted),
    }
    Ok(mapped)
}
