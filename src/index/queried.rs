//! Indexes as queries find them: what they hold, which fields their keys have, and how far they have come.

use super::context::same_name;
use super::live::Index;
use super::records::{DefinitionRecord, PhaseRecord, decode, definition_name};
use super::registry::Registry;
use crate::script::{PlainKey, SourceCollection};
use crate::store::StoreError;
use crate::store::keyspace::{Family, Generation};
use crate::store::snapshot::Snapshot;

/// An index that a query may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueriedIndex {
    /// As its author spelled it.
    pub name: String,
    number: u32,
    pub generation: Generation,
    pub output: Option<String>,
    pub has_reduce: bool,
    /// The names of the fields of every key, in code-point order, where that is known.
    pub key_names: Option<Vec<String>>,
    /// Of an index that emits once for each document of one collection: the fields of its keys, which are the document's own.
    pub plain_key: Option<PlainKey>,
    /// The etag through which it has taken in that collection.
    pub watermark: u64,
}

impl QueriedIndex {
    fn of(index: &Index) -> Self {
        let (context, program) = (&index.context, &index.context.program);
        let progress = index.progress.lock();
        let is_whole = progress.phase == PhaseRecord::Live && progress.map_faults == 0 && program.loads.is_empty();
        let plain_key = program.plain_key.clone().filter(|_| is_whole && !program.has_reduce);
        Self {
            name: context.name.to_string(),
            number: context.number,
            generation: context.generation,
            output: context.output.clone(),
            has_reduce: program.has_reduce,
            key_names: program.key_names.clone(),
            plain_key,
            watermark: progress.watermarks.first().copied().unwrap_or(0),
        }
    }

    /// Whether a snapshot, taken after this was learnt, still holds the rows of this generation.
    ///
    /// # Errors
    /// The read failed.
    pub(crate) fn is_in(&self, snapshot: &Snapshot<'_>) -> Result<bool, StoreError> {
        let row = snapshot.row(Family::Meta, definition_name(self.number).as_bytes())?;
        let record: Option<DefinitionRecord> = row.map(|row| decode("meta", &row)).transpose()?;
        Ok(record.is_some_and(|record| Generation(record.generation) == self.generation && !record.deleting))
    }
}

impl Registry {
    /// One index, by name without regard to case.
    pub(crate) fn queried(&self, name: &str) -> Option<QueriedIndex> {
        self.get(name).map(|index| QueriedIndex::of(&index))
    }

    /// The map-only indexes that hold every document of a collection under fields of its own.
    pub(crate) fn secondary(&self, collection: &str) -> Vec<QueriedIndex> {
        let maps_only = |index: &Index| match index.context.program.sources.as_slice() {
            [source] => matches!(&source.collection, SourceCollection::Named(name) if same_name(name, collection)),
            _ => false,
        };
        let all = self.all();
        let found = all.iter().filter(|index| maps_only(index)).map(|index| QueriedIndex::of(index));
        found.filter(|index| index.plain_key.is_some()).collect()
    }
}
