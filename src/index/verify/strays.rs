//! Rows that nothing accounts for: entries that no document names, and generations that no index knows.

use std::collections::BTreeSet;

use super::super::records::{DEFINITIONS, DefinitionRecord, MapDocument, REPLACEMENTS, decode};
use super::super::retire::generation_rows;
use super::{DifferenceKind, Verification, VerifyError};
use crate::store::commit::{Author, Commit};
use crate::store::keyspace::{
    Family, Generation, KeyRange, decode_group, decode_map_entry, generation_range, map_document,
};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

impl Verification<'_, '_> {
    /// Finds the entries that no document names.
    ///
    /// # Cost
    /// A look-up for each entry; only where there are more than the documents account for.
    pub(super) fn stray_entries(&mut self) -> Result<(), VerifyError> {
        let generation = self.context.generation;
        let mut scan = self.snapshot.rows(Family::MapEntries, generation_range(generation), Direction::Forward);
        while let Some((key, _)) = scan.next_row()? {
            let (place, is_named) = match (decode_map_entry(key), decode_group(key)) {
                (Some((id, ordinal)), Some(group)) => {
                    let row = self.snapshot.row(Family::MapDocuments, &map_document(generation, id))?;
                    let record = row.and_then(|row| decode::<MapDocument>("map_documents", &row).ok());
                    let names = |record: &MapDocument| match record {
                        MapDocument::Entries(entries) => {
                            entries.iter().any(|entry| entry.group() == group && entry.ordinal == ordinal)
                        }
                        MapDocument::Fault(_) => false,
                    };
                    (format!("{id} in group {group:?}, entry {ordinal}"), record.as_ref().is_some_and(names))
                }
                _ => ("a key that can't be read".to_owned(), false),
            };
            if !is_named {
                let detail = "no document that is kept names it".to_owned();
                self.report.row(DifferenceKind::Foreign, Family::MapEntries, place, detail)?;
            }
            self.report.beat()?;
        }
        Ok(())
    }
}

/// The generations that have rows, and of which no definition speaks; each with the families.
pub(crate) fn stray_generations(snapshot: &Snapshot<'_>) -> Result<Vec<(Generation, Vec<Family>)>, StoreError> {
    let known = known_generations(snapshot)?;
    let mut strays: Vec<(Generation, Vec<Family>)> = Vec::new();
    for family in Family::OF_GENERATIONS {
        let mut cursor = snapshot.cursor(family, KeyRange::all())?;
        let mut from = Some(0_u32);
        while let Some(at) = from {
            let Some((key, _)) = cursor.seek(&at.to_be_bytes())? else { break };
            let Some(generation) = key.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) else { break };
            if !known.contains(&generation) {
                match strays.iter_mut().find(|(stray, _)| stray.0 == generation) {
                    Some((_, families)) => families.push(family),
                    None => strays.push((Generation(generation), vec![family])),
                }
            }
            from = generation.checked_add(1);
        }
    }
    Ok(strays)
}

fn known_generations(snapshot: &Snapshot<'_>) -> Result<BTreeSet<u32>, StoreError> {
    let mut known = BTreeSet::new();
    for prefix in [DEFINITIONS, REPLACEMENTS] {
        let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(prefix.as_bytes()), Direction::Forward);
        while let Some((_, value)) = scan.next_row()? {
            known.insert(decode::<DefinitionRecord>("meta", value)?.generation);
        }
    }
    Ok(known)
}

/// Deletes all rows of a generation that no definition speaks of.
pub(crate) fn drop_generation(store: &Store, generation: Generation) -> Result<(), StoreError> {
    let rows = generation_rows(generation);
    store.commit(Commit { author: Author::User, rows, ..Commit::default() })?;
    Ok(())
}
