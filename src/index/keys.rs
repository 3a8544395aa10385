//! The groups of an index in the order of their reduce keys, within a range of keys.
//!
//! Rows are stored by hash, so the keys are gathered and put in order, a bounded part of them at a time: the first part of the
//! order, then what comes behind it, and so on. Memory is bounded whatever there is; time is one pass over all groups for each part.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use super::ordered_key::ordered_key;
use super::records::{GroupRecord, decode};
use crate::id::artificial::GroupHash;
use crate::store::StoreError;
use crate::store::keyspace::{Family, Generation, decode_group, generation_range, reduce_group};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Bytes of keys that are held at once.
const PART_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a key costs beside its bytes.
const KEY_BYTES: usize = 96;

/// A range of ordered keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyBounds {
    pub from: Bound<Vec<u8>>,
    pub to: Bound<Vec<u8>>,
}

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub hash: GroupHash,
    pub record: GroupRecord,
}

/// Groups in the order of their keys.
pub(crate) struct InKeyOrder<'s> {
    snapshot: Snapshot<'s>,
    generation: Generation,
    bounds: KeyBounds,
    direction: Direction,
    part: VecDeque<(Vec<u8>, GroupHash)>,
    is_last: bool,
}

impl KeyBounds {
    fn contains(&self, ordered: &[u8]) -> bool {
        let (from, to) = (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice));
        <(Bound<&[u8]>, Bound<&[u8]>) as RangeBounds<[u8]>>::contains(&(from, to), ordered)
    }
}

impl<'s> InKeyOrder<'s> {
    /// Begins to read a generation's groups.
    pub(crate) fn new(
        snapshot: &Snapshot<'s>,
        generation: Generation,
        bounds: KeyBounds,
        direction: Direction,
    ) -> Self {
        Self { snapshot: snapshot.clone(), generation, bounds, direction, part: VecDeque::new(), is_last: false }
    }

    /// The next group; `None` at the end.
    ///
    /// # Errors
    /// A read failed, or a row is damaged.
    pub(crate) fn next_group(&mut self) -> Result<Option<Group>, StoreError> {
        loop {
            while let Some((ordered, hash)) = self.part.pop_front() {
                if self.part.is_empty() {
                    match self.direction {
                        Direction::Forward => self.bounds.from = Bound::Excluded(ordered),
                        Direction::Backward => self.bounds.to = Bound::Excluded(ordered),
                    }
                }
                if let Some(row) = self.snapshot.row(Family::ReduceGroups, &reduce_group(self.generation, &hash))? {
                    return Ok(Some(Group { hash, record: decode("reduce_groups", &row)? }));
                }
            }
            if self.is_last {
                return Ok(None);
            }
            self.read_part()?;
        }
    }

    /// Gathers the keys that come next.
    fn read_part(&mut self) -> Result<(), StoreError> {
        let is_forward = self.direction == Direction::Forward;
        let (mut first, mut bytes) = (BTreeMap::new(), 0);
        self.is_last = true;
        let mut rows = self.snapshot.rows(Family::ReduceGroups, generation_range(self.generation), Direction::Forward);
        while let Some((key, value)) = rows.next_row()? {
            let record: GroupRecord = decode("reduce_groups", value)?;
            let ordered = ordered_key(&record.key);
            let Some(hash) = decode_group(key).filter(|_| self.bounds.contains(&ordered)) else { continue };
            bytes += ordered.len() + KEY_BYTES;
            first.insert(ordered, hash);
            while bytes > PART_BYTES_MAX && first.len() > 1 {
                let last = if is_forward { first.pop_last() } else { first.pop_first() };
                bytes -= last.map_or(0, |(ordered, _)| ordered.len() + KEY_BYTES);
                self.is_last = false;
            }
        }
        self.part = if is_forward { first.into_iter().collect() } else { first.into_iter().rev().collect() };
        Ok(())
    }
}
