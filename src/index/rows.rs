//! One group's rows in a snapshot, as the reduce tree reads them.
//!
//! Next on the walk: `group`.

use super::counters::Counters;
use super::tree::Tree;
use crate::store::StoreError;
use crate::store::keyspace::{Family, Generation, GroupHash, KeyRange, after_prefix, group_prefix, level_prefix};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// One group's entries and nodes.
pub(crate) struct GroupRows<'a, 's> {
    pub snapshot: &'a Snapshot<'s>,
    pub generation: Generation,
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
        let range = KeyRange { from: [prefix, from].concat(), before: after_prefix(prefix) };
        let mut scan = self.snapshot.rows(family, range, Direction::Forward);
        while let Some((key, value)) = scan.next_row()? {
            self.counters.read(family);
            if !visit(key.get(prefix.len()..).unwrap_or_default(), value) {
                break;
            }
        }
        Ok(())
    }
}

impl Tree for GroupRows<'_, '_> {
    fn entries(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.visit(Family::MapEntries, &group_prefix(self.generation, &self.group), from, visit)
    }

    fn nodes(&self, level: u8, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.visit(Family::ReduceNodes, &level_prefix(self.generation, &self.group, level), from, visit)
    }

    fn last_node(&self, level: u8, before: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let prefix = level_prefix(self.generation, &self.group, level);
        let range = KeyRange { before: Some([prefix.as_slice(), before].concat()), from: prefix.clone() };
        let mut scan = self.snapshot.rows(Family::ReduceNodes, range, Direction::Backward);
        let row = scan.next_row()?;
        Ok(row.map(|(key, _)| key.get(prefix.len()..).unwrap_or_default().to_vec()))
    }
}
