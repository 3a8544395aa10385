//! One group's rows in a snapshot, as the reduce tree reads them.
//!
//! Next on the walk: `group`.

use std::cell::RefCell;

use super::counters::Counters;
use super::tree::Tree;
use crate::store::StoreError;
use crate::store::keyspace::{Family, Generation, GroupHash, generation_range, group_prefix, level_prefix};
use crate::store::scan::Cursor;
use crate::store::snapshot::Snapshot;

/// The entries and nodes of a generation: one iterator each, for all groups of a run.
pub(crate) struct GenerationRows<'s> {
    generation: Generation,
    entries: RefCell<Cursor<'s>>,
    nodes: RefCell<Cursor<'s>>,
}

impl<'s> GenerationRows<'s> {
    /// Opens both.
    pub(crate) fn open(snapshot: &Snapshot<'s>, generation: Generation) -> Result<Self, StoreError> {
        let cursor = |family| snapshot.cursor(family, generation_range(generation)).map(RefCell::new);
        Ok(Self { generation, entries: cursor(Family::MapEntries)?, nodes: cursor(Family::ReduceNodes)? })
    }
}

/// One group's entries and nodes.
pub(crate) struct GroupRows<'a, 's> {
    pub rows: &'a GenerationRows<'s>,
    pub group: GroupHash,
    pub counters: &'a Counters,
}

impl GroupRows<'_, '_> {
    fn visit(
        &self,
        family: Family,
        prefix: &[u8],
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let cursor = if family == Family::MapEntries { &self.rows.entries } else { &self.rows.nodes };
        let mut cursor = cursor.borrow_mut();
        let mut row = cursor.seek(&[prefix, from].concat())?;
        while let Some((key, value)) = row
            && let Some(rest) = key.strip_prefix(prefix)
        {
            self.counters.read(family);
            if !visit(rest, value) {
                break;
            }
            row = cursor.next_row()?;
        }
        Ok(())
    }
}

impl Tree for GroupRows<'_, '_> {
    fn entries(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.visit(Family::MapEntries, &group_prefix(self.rows.generation, &self.group), from, visit)
    }

    fn nodes(&self, level: u8, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.visit(Family::ReduceNodes, &level_prefix(self.rows.generation, &self.group, level), from, visit)
    }

    fn last_node(&self, level: u8, before: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let prefix = level_prefix(self.rows.generation, &self.group, level);
        let mut cursor = self.rows.nodes.borrow_mut();
        let row = cursor.seek_before(&[prefix.as_slice(), before].concat())?;
        Ok(row.and_then(|(key, _)| key.strip_prefix(prefix.as_slice())).map(<[u8]>::to_vec))
    }
}
