//! Takes away what an index leaves behind: the documents of an output collection, the rows of a generation, all of a deleted index.
//!
//! Documents go in bounded commits that begin again where a crash stopped them.

use super::change::written;
use super::live::Index;
use super::records::{
    DefinitionRecord, blocked_prefix, definition_name, disabled_name, faults_prefix, former_name, keep_name,
    progress_name, references_name, remap_name, settings_name,
};
use crate::id::DocumentId;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::commit::{Author, ClaimChange, Commit, Expected, Operation, PutId, RowChange, Wait};
use crate::store::document::{Document, DocumentFlags, StoredDocument};
use crate::store::keyspace::{Family, Generation, KeyRange, generation_range};
use crate::store::probe::Step;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// Documents deleted in one commit, and those that become a user's.
const DELETES_MAX: usize = 1_024;
const FREED_MAX: usize = 128;

/// Deletes an index that is marked as being deleted, with its artificial documents, or, where they are to stay, makes ordinary
/// documents of them.
pub(crate) fn delete_index(store: &Store, record: &DefinitionRecord) -> Result<(), StoreError> {
    let keeps = store.snapshot().row(Family::Meta, keep_name(record.number).as_bytes())?.is_some();
    for output in &record.former_outputs {
        empty_collection(store, record.number, output)?;
    }
    for output in written(record) {
        match keeps {
            true => free_collection(store, record.number, output)?,
            false => empty_collection(store, record.number, output)?,
        }
    }
    let mut rows = generation_rows(Generation(record.generation));
    let names = [definition_name, former_name, disabled_name, settings_name, keep_name];
    rows.extend(names.into_iter().map(|name| delete_meta(name(record.number))));
    let outputs = record.former_outputs.iter().chain(written(record)).cloned();
    let claims = outputs.map(|collection| ClaimChange::Release { collection }).collect();
    store.commit(Commit { author: Author::Index(record.number), rows, claims, ..Commit::default() })?;
    Ok(())
}

/// Empties the output collections that an index no longer writes, and gives them up.
pub(crate) fn empty_former_outputs(index: &Index) -> Result<(), StoreError> {
    let mut record = index.record.lock().clone();
    let former = std::mem::take(&mut record.former_outputs);
    for output in &former {
        empty_collection(&index.context.store, record.number, output)?;
    }
    index.context.store.reached(Step::OutputEmptied);
    let claims = former.into_iter().map(|collection| ClaimChange::Release { collection }).collect();
    let rows = vec![index.definition_row(&record)];
    index.context.store.commit(Commit { author: Author::Index(record.number), rows, claims, ..Commit::default() })?;
    index.record.lock().former_outputs.clear();
    Ok(())
}

/// The changes that delete everything of a generation.
pub(crate) fn generation_rows(generation: Generation) -> Vec<RowChange> {
    let delete = |family| RowChange::DeleteRange { family, range: generation_range(generation) };
    let mut rows: Vec<RowChange> = Family::OF_GENERATIONS.into_iter().map(delete).collect();
    rows.extend([progress_name, remap_name, references_name].map(|name| delete_meta(name(generation))));
    for prefix in [faults_prefix(generation), blocked_prefix(generation)] {
        rows.push(RowChange::DeleteRange { family: Family::Meta, range: KeyRange::prefix(prefix.as_bytes()) });
    }
    rows
}

/// The change that deletes a `meta` row.
pub(crate) fn delete_meta(name: String) -> RowChange {
    RowChange::Delete { family: Family::Meta, key: name.into_bytes() }
}

/// Deletes all documents of a collection that an index owns.
fn empty_collection(store: &Store, index: u32, collection: &str) -> Result<(), StoreError> {
    let delete = |_: &Snapshot<'_>, id: DocumentId| Ok(Some(Operation::Delete { id, expected: Expected::Any }));
    rewrite(store, index, collection, DELETES_MAX, delete)
}

/// Makes ordinary documents of all artificial ones of a collection that an index owns.
fn free_collection(store: &Store, index: u32, collection: &str) -> Result<(), StoreError> {
    rewrite(store, index, collection, FREED_MAX, |snapshot, id| {
        let artificial = snapshot.get(&id)?.filter(|document| document.flags.artificial);
        Ok(artificial.map(|StoredDocument { collection, metadata, body, .. }| Operation::Put {
            id: PutId::Given(id),
            document: Document { collection, metadata, body },
            flags: DocumentFlags::default(),
            expected: Expected::Any,
        }))
    })
}

/// Writes what `plan` says for each document that a collection has now, at most `operations_max` in one commit.
fn rewrite(
    store: &Store,
    index: u32,
    collection: &str,
    operations_max: usize,
    plan: impl Fn(&Snapshot<'_>, DocumentId) -> Result<Option<Operation>, StoreError>,
) -> Result<(), StoreError> {
    let feed = Feed::Collection(collection.to_owned());
    let through = store.progress().written;
    let mut after = 0;
    loop {
        let snapshot = store.snapshot();
        let mut operations = Vec::new();
        for change in snapshot.changes(&feed, after, through, Direction::Forward) {
            let change = change?;
            after = change.etag;
            if change.kind == ChangeKind::Put {
                operations.extend(plan(&snapshot, DocumentId::stored(&change.id))?);
            }
            if operations.len() >= operations_max {
                break;
            }
        }
        if operations.is_empty() {
            return Ok(());
        }
        store.commit(Commit { author: Author::Index(index), operations, wait: Wait::Written, ..Commit::default() })?;
    }
}
