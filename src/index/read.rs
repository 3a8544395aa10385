//! Reads an index's results in key order: the groups of a map-reduce index, the entries of a map-only one.
//!
//! Everything is read from one snapshot, a row at a time. Keys longer than 1 KiB are cut in the rows' keys; where several agree so
//! far, the whole keys are compared, a bounded part of them at a time, so that any number of them takes no more memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use super::ordered_key::{CUT_BYTES, canonical_key, cut, ordered_key};
use super::records::{GroupRecord, KeyedValue, decode};
use crate::store::StoreError;
use crate::store::keyspace::{
    Family, Generation, GroupHash, KeyRange, after_prefix, decode_entry, decode_reduce_key, reduce_group,
};
use crate::store::scan::{Direction, Scan};
use crate::store::snapshot::Snapshot;

/// Bytes of keys and values that are held at once while long keys are compared.
const TIE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A range of keys, as ordered keys; also a part of one can be a bound, for all keys that begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    pub from: Bound<Vec<u8>>,
    pub to: Bound<Vec<u8>>,
}

/// A group of a map-reduce index.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub hash: GroupHash,
    pub record: GroupRecord,
}

/// An entry of a map-only index.
#[derive(Clone, Debug)]
pub(crate) struct KeyedEntry {
    /// The canonical key.
    pub key: Vec<u8>,
    /// The value, canonically encoded.
    pub value: Vec<u8>,
    /// The lower-cased id of the document that emitted it.
    pub source: String,
}

impl KeyBounds {
    fn contains(&self, ordered: &[u8]) -> bool {
        let (from, to) = (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice));
        <(Bound<&[u8]>, Bound<&[u8]>) as RangeBounds<[u8]>>::contains(&(from, to), ordered)
    }

    /// The rows whose keys may lie in the range; those of cut keys must be looked at.
    fn rows(&self, generation: Generation) -> KeyRange {
        let row = |ordered: &[u8]| [generation.0.to_be_bytes().as_slice(), cut(ordered)].concat();
        let from = match &self.from {
            Bound::Included(from) | Bound::Excluded(from) => row(from),
            Bound::Unbounded => row(&[]),
        };
        let before = match &self.to {
            Bound::Excluded(to) if to.len() <= CUT_BYTES => Some(row(to)),
            Bound::Included(to) | Bound::Excluded(to) => after_prefix(&row(to)),
            Bound::Unbounded => after_prefix(&row(&[])),
        };
        KeyRange { from, before }
    }
}

/// What stands in key order.
pub(crate) trait Keyed: Sized {
    /// The family of the rows.
    const FAMILY: Family;

    /// Reads what a row stands for; `None` where it is damaged.
    fn read(
        snapshot: &Snapshot<'_>,
        generation: Generation,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Self>, StoreError>;

    /// The canonical key.
    fn key(&self) -> &[u8];

    /// The bytes that it takes.
    fn bytes(&self) -> usize;
}

impl Keyed for Group {
    const FAMILY: Family = Family::ReduceKeys;

    fn read(snapshot: &Snapshot<'_>, generation: Generation, key: &[u8], _: &[u8]) -> Result<Option<Self>, StoreError> {
        let Some((_, hash)) = decode_reduce_key(key) else { return Ok(None) };
        let row = snapshot.row(Family::ReduceGroups, &reduce_group(generation, &hash))?;
        let record = row.map(|bytes| decode("reduce_groups", &bytes)).transpose()?;
        Ok(record.map(|record| Self { hash, record }))
    }

    fn key(&self) -> &[u8] {
        &self.record.key
    }

    fn bytes(&self) -> usize {
        let body = if let super::records::GroupResult::Body(body) = &self.record.result { body.len() } else { 0 };
        self.record.key.len() + body
    }
}

impl Keyed for KeyedEntry {
    const FAMILY: Family = Family::MapKeys;

    fn read(_: &Snapshot<'_>, _: Generation, key: &[u8], value: &[u8]) -> Result<Option<Self>, StoreError> {
        let KeyedValue { key: whole, value } = decode("map_keys", value)?;
        let rest = key.get(4..).unwrap_or_default();
        let (key, rest) = match whole {
            Some(whole) => (whole, rest.get(CUT_BYTES..).unwrap_or_default()),
            None => match canonical_key(rest) {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let entry = decode_entry(rest);
        Ok(entry.map(|(source, _)| Self { key, value, source: source.to_owned() }))
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn bytes(&self) -> usize {
        self.key.len() + self.value.len() + self.source.len()
    }
}

/// Groups or entries in key order; entries with one key in order of their documents' lower-cased ids, then as emitted.
pub(crate) struct InKeyOrder<'s, T> {
    snapshot: Snapshot<'s>,
    generation: Generation,
    bounds: KeyBounds,
    direction: Direction,
    /// What is still to be read, and its rows.
    range: KeyRange,
    rows: Scan<'s>,
    ties: Option<Ties<T>>,
}

/// Where a row stands: its whole ordered key, and what follows the cut one in the row's key.
type Place = (Vec<u8>, Vec<u8>);

/// Rows whose cut keys are the same: those read and not yet given, and where the next part begins.
struct Ties<T> {
    prefix: Vec<u8>,
    page: VecDeque<(Place, T)>,
    after: Option<Place>,
    is_last: bool,
}

impl<'s, T: Keyed> InKeyOrder<'s, T> {
    /// Begins to read a generation's results.
    ///
    /// # Cost
    /// One seek, then one step for each result, and for groups one read. Long keys that agree in their first 1 KiB are read
    /// once for every 4 MiB of them.
    pub(crate) fn new(
        snapshot: &Snapshot<'s>,
        generation: Generation,
        bounds: KeyBounds,
        direction: Direction,
    ) -> Self {
        let range = bounds.rows(generation);
        let rows = snapshot.rows(T::FAMILY, range.clone(), direction);
        Self { snapshot: snapshot.clone(), generation, bounds, direction, range, rows, ties: None }
    }

    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// A read failed, or a row is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<T>, StoreError> {
        loop {
            if let Some(ties) = &mut self.ties {
                if let Some((place, item)) = ties.page.pop_front() {
                    ties.after = Some(place);
                    return Ok(Some(item));
                }
                match ties.is_last {
                    true => self.leave_ties(),
                    false => self.read_ties()?,
                }
                continue;
            }
            let Some((key, value)) = self.rows.next_row()? else { return Ok(None) };
            let item = read_row::<T>(&self.snapshot, self.generation, key, value)?;
            let ordered = ordered_key(item.key());
            if ordered.len() > CUT_BYTES {
                let prefix = key.get(..4 + CUT_BYTES).unwrap_or(key).to_vec();
                self.ties = Some(Ties { prefix, page: VecDeque::new(), after: None, is_last: false });
                continue;
            }
            if self.bounds.contains(&ordered) {
                return Ok(Some(item));
            }
        }
    }

    /// Goes on behind the rows whose cut keys are the same.
    fn leave_ties(&mut self) {
        let Some(ties) = self.ties.take() else { return };
        match (self.direction, after_prefix(&ties.prefix)) {
            (Direction::Forward, Some(from)) => self.range.from = from,
            (Direction::Forward, None) => self.range.before = Some(self.range.from.clone()),
            (Direction::Backward, _) => self.range.before = Some(ties.prefix),
        }
        self.rows = self.snapshot.rows(T::FAMILY, self.range.clone(), self.direction);
    }

    /// Reads the next part of the rows whose cut keys are the same: the first in the order of their whole keys.
    fn read_ties(&mut self) -> Result<(), StoreError> {
        let Some(ties) = &mut self.ties else { return Ok(()) };
        let is_forward = self.direction == Direction::Forward;
        let mut first: BTreeMap<Place, T> = BTreeMap::new();
        let mut bytes = 0;
        ties.is_last = true;
        let mut rows = self.snapshot.rows(T::FAMILY, KeyRange::prefix(&ties.prefix), Direction::Forward);
        while let Some((key, value)) = rows.next_row()? {
            let item = read_row::<T>(&self.snapshot, self.generation, key, value)?;
            let place = (ordered_key(item.key()), key.get(ties.prefix.len()..).unwrap_or_default().to_vec());
            let is_given =
                ties.after.as_ref().is_some_and(|after| if is_forward { place <= *after } else { place >= *after });
            if is_given || !self.bounds.contains(&place.0) {
                continue;
            }
            bytes += 2 * item.bytes();
            first.insert(place, item);
            while bytes > TIE_BYTES_MAX && first.len() > 1 {
                let last = if is_forward { first.pop_last() } else { first.pop_first() };
                bytes -= last.map_or(0, |(_, item)| 2 * item.bytes());
                ties.is_last = false;
            }
        }
        ties.page = if is_forward { first.into_iter().collect() } else { first.into_iter().rev().collect() };
        Ok(())
    }
}

fn read_row<T: Keyed>(
    snapshot: &Snapshot<'_>,
    generation: Generation,
    key: &[u8],
    value: &[u8],
) -> Result<T, StoreError> {
    T::read(snapshot, generation, key, value)?
        .ok_or_else(|| StoreError::corrupt(T::FAMILY, key, "the row is damaged, or what it stands for is missing"))
}
