//! Takes away what an index leaves behind: the documents of an output collection, and all of a deleted index.
//!
//! Both work in bounded commits and begin again where a crash stopped them.

use super::live::Index;
use super::publish::meta;
use super::records::{
    DefinitionRecord, definition_name, disabled_name, faults_prefix, progress_name, references_name, remap_name,
};
use crate::id::DocumentId;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::commit::{Author, ClaimChange, Commit, Expected, Operation, RowChange, Wait};
use crate::store::keyspace::{Family, Generation, KeyRange, generation_range};
use crate::store::scan::Direction;
use crate::store::{Store, StoreError};

/// Documents deleted in one commit.
const DELETES_MAX: usize = 1_024;

/// Deletes the artificial documents of an index and then the index.
pub(crate) fn delete_index(store: &Store, record: &DefinitionRecord) -> Result<(), StoreError> {
    let own = record.output_collection.iter().chain(&record.reference_collection);
    let outputs: Vec<String> = record.former_outputs.iter().chain(own).cloned().collect();
    for output in &outputs {
        empty_collection(store, record.number, output)?;
    }
    let mut rows = generation_rows(Generation(record.generation));
    for name in [definition_name(record.number), progress_name(record.number), disabled_name(record.number)] {
        rows.push(RowChange::Delete { family: Family::Meta, key: name.into_bytes() });
    }
    let range = KeyRange::prefix(faults_prefix(record.number).as_bytes());
    rows.push(RowChange::DeleteRange { family: Family::Meta, range });
    let claims = outputs.into_iter().map(|collection| ClaimChange::Release { collection }).collect();
    store.commit(Commit { author: Author::Index(record.number), rows, claims, ..Commit::default() })?;
    Ok(())
}

/// Empties the output collections of earlier generations and gives them up.
pub(crate) fn empty_former_outputs(index: &Index) -> Result<(), StoreError> {
    let mut record = index.record.lock().clone();
    if record.former_outputs.is_empty() {
        return Ok(());
    }
    let former = std::mem::take(&mut record.former_outputs);
    for output in &former {
        empty_collection(&index.context.store, record.number, output)?;
    }
    let claims = former.into_iter().map(|collection| ClaimChange::Release { collection }).collect();
    let rows = vec![meta(definition_name(record.number), &record)];
    index.context.store.commit(Commit { author: Author::Index(record.number), rows, claims, ..Commit::default() })?;
    *index.record.lock() = record;
    Ok(())
}

/// The changes that delete all rows of a generation.
pub(crate) fn generation_rows(generation: Generation) -> Vec<RowChange> {
    let delete = |family| RowChange::DeleteRange { family, range: generation_range(generation) };
    let notes = [remap_name(generation), references_name(generation)];
    let forget = |name: String| RowChange::Delete { family: Family::Meta, key: name.into_bytes() };
    Family::OF_GENERATIONS.into_iter().map(delete).chain(notes.into_iter().map(forget)).collect()
}

/// Deletes all documents of a collection that an index owns.
fn empty_collection(store: &Store, index: u32, collection: &str) -> Result<(), StoreError> {
    let feed = Feed::Collection(collection.to_owned());
    let mut after = 0;
    loop {
        let snapshot = store.snapshot();
        let mut operations = Vec::new();
        for change in snapshot.changes(&feed, after, snapshot.progress().written, Direction::Forward) {
            let change = change?;
            after = change.etag;
            if change.kind == ChangeKind::Put {
                operations.push(Operation::Delete { id: DocumentId::stored(&change.id), expected: Expected::Any });
            }
            if operations.len() >= DELETES_MAX {
                break;
            }
        }
        if operations.is_empty() {
            return Ok(());
        }
        store.commit(Commit { author: Author::Index(index), operations, wait: Wait::Written, ..Commit::default() })?;
    }
}
