//! Rows that nothing accounts for: of documents and groups that don't name them, and of generations that no index knows.
//!
//! Rows are counted first; only where there are more than are accounted for is each looked at.

use std::collections::BTreeSet;

use super::super::ordered_key::keyed_group;
use super::super::read::{Keyed, KeyedEntry};
use super::super::records::{
    DEFINITIONS, DefinitionRecord, GroupRecord, MapDocument, REPLACEMENTS, ReferenceRecord, WideDocument, decode,
};
use super::super::retire::generation_rows;
use super::documents::cut;
use super::{DifferenceKind, Verification, VerifyError};
use crate::store::commit::{Author, Commit};
use crate::store::keyspace::{
    Family, Generation, GroupHash, KeyRange, REFERENCE_OPEN, decode_group, decode_map_entry, decode_reduce_key,
    decode_reference_member, generation_range, load, map_document, map_key, reduce_group, reference,
};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

impl Verification<'_, '_> {
    /// Counts the rows of a family, those aside that only note what is still to be done.
    pub(super) fn count_rows(&mut self, family: Family) -> Result<u64, VerifyError> {
        let mut scan = self.snapshot.rows(family, generation_range(self.context.generation), Direction::Forward);
        let mut count = 0;
        while let Some((key, _)) = scan.next_row()? {
            count += u64::from(!is_note(family, key));
            self.report.beat()?;
        }
        Ok(count)
    }

    /// Finds the rows of a family that nothing accounts for.
    ///
    /// # Cost
    /// A look-up for each row.
    pub(super) fn strays(&mut self, family: Family) -> Result<(), VerifyError> {
        let mut scan = self.snapshot.rows(family, generation_range(self.context.generation), Direction::Forward);
        while let Some((key, value)) = scan.next_row()? {
            if is_note(family, key) {
                continue;
            }
            let owner = self.owner(family, key, value)?;
            if !owner.as_ref().is_some_and(|(_, names_it)| *names_it) {
                let place = owner.map_or_else(|| "a key that can't be read".to_owned(), |(place, _)| place);
                let detail = "nothing accounts for it".to_owned();
                self.report.row(DifferenceKind::Foreign, family, cut(&place), detail)?;
            }
            self.report.beat()?;
        }
        Ok(())
    }

    /// To whom a row belongs, and whether that names it; `None` where its key can't be read.
    fn owner(&self, family: Family, key: &[u8], value: &[u8]) -> Result<Option<(String, bool)>, StoreError> {
        let generation = self.context.generation;
        Ok(match family {
            Family::MapEntries => match (decode_map_entry(key), decode_group(key)) {
                (Some((id, ordinal)), Some(group)) => {
                    let kept = self.kept(id)?;
                    let names = kept.entries.iter().any(|entry| entry.group() == group && entry.ordinal == ordinal);
                    Some((format!("{id} in group {group:?}, entry {ordinal}"), names))
                }
                _ => None,
            },
            Family::MapKeys => match KeyedEntry::read(self.snapshot, generation, key, value).ok().flatten() {
                Some(entry) => {
                    let kept = self.kept(&entry.source)?;
                    let row = |record: &_| self.keyed_row(record, &entry.source) == key;
                    Some((entry.source.clone(), kept.keyed.iter().any(row)))
                }
                None => None,
            },
            Family::Loads => match load_ids(key) {
                Some((loaded, id)) => {
                    let kept = self.kept(id)?;
                    let names = kept.loads.iter().any(|it| load(generation, it, id) == key);
                    Some((format!("{id}, which has loaded {loaded}"), names))
                }
                None => None,
            },
            Family::ReduceKeys => match decode_reduce_key(key) {
                Some((_, group)) => {
                    let names = self.record(&group)?.is_some_and(|it| keyed_group(generation, &it.key, &group) == key);
                    Some((format!("group {group:?}"), names))
                }
                None => None,
            },
            Family::References => self.owner_of_reference(key)?,
            _ => None,
        })
    }

    fn owner_of_reference(&self, key: &[u8]) -> Result<Option<(String, bool)>, StoreError> {
        let generation = self.context.generation;
        if let Some(group) = key.get(5..).and_then(|hash| hash.try_into().ok()).map(GroupHash)
            && reference(generation, &group) == key
        {
            return Ok(Some((format!("group {group:?}"), self.record(&group)?.is_some())));
        }
        let Some((id, group)) = decode_reference_member(key) else { return Ok(None) };
        let row = self.snapshot.row(Family::References, &reference(generation, &group))?;
        let names = match row.and_then(|row| decode::<ReferenceRecord>("references", &row).ok()) {
            Some(ReferenceRecord::Id(listed)) => crate::id::lower(&listed) == id,
            _ => false,
        };
        Ok(Some((format!("{id} lists group {group:?}"), names)))
    }

    /// What is kept of a document; nothing, where that can't be read.
    fn kept(&self, lower_id: &str) -> Result<WideDocument, StoreError> {
        let row = self.snapshot.row(Family::MapDocuments, &map_document(self.context.generation, lower_id))?;
        let record = row.and_then(|row| decode::<MapDocument>("map_documents", &row).ok());
        Ok(record.map(MapDocument::widened).unwrap_or_default())
    }

    fn keyed_row(&self, record: &super::super::records::KeyedRecord, lower_id: &str) -> Vec<u8> {
        map_key(self.context.generation, &record.key, lower_id, record.ordinal)
    }

    fn record(&self, group: &GroupHash) -> Result<Option<GroupRecord>, StoreError> {
        let row = self.snapshot.row(Family::ReduceGroups, &reduce_group(self.context.generation, group))?;
        Ok(row.and_then(|row| decode("reduce_groups", &row).ok()))
    }
}

/// Whether a row only notes that a reference document is still to be written.
fn is_note(family: Family, key: &[u8]) -> bool {
    family == Family::References && key.get(4) == Some(&REFERENCE_OPEN)
}

/// The loaded id and the source id of a `loads` key, both lower-cased.
fn load_ids(key: &[u8]) -> Option<(&str, &str)> {
    let mut ids = key.get(4..)?.split(|byte| *byte == 0);
    let loaded = std::str::from_utf8(ids.next()?).ok()?;
    let id = std::str::from_utf8(ids.next()?).ok()?;
    Some((loaded, id))
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
