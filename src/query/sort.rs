//! Rows in the order that a query asks for, within a number of bytes: of a query with a limit only the first are kept.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::error::QueryError;
use super::row::Row;
use super::syntax::Order;
use super::value::Value;

/// What a row costs beside its values: the vectors around them.
const ROW_BYTES: usize = 128;

/// A bound on what one query may hold at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    max: usize,
    used: usize,
}

/// The place of a row in the order of a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) key: Vec<Part>,
    /// Decides between equal keys.
    pub(crate) tie: Vec<u8>,
}

/// One value of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Rising(Value<'static>),
    Falling(Value<'static>),
}

/// Rows being put in order.
#[derive(Debug)]
pub(crate) struct Sorter {
    kept_max: usize,
    memory: Memory,
    heap: BinaryHeap<Entry>,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    row: Kept,
    bytes: usize,
}

/// What is kept of a row until it is shown.
#[derive(Debug)]
pub(crate) enum Kept {
    /// A document is read again, from the same snapshot.
    Id(String),
    Row(Row<'static>),
}

impl Memory {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, used: 0 }
    }

    /// Takes some bytes.
    ///
    /// # Errors
    /// They are more than are left.
    pub(crate) fn take(&mut self, bytes: usize, what: &str) -> Result<(), QueryError> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.max {
            return Ok(());
        }
        Err(QueryError::TooLarge(format!(
            "{what} needs more than {} bytes of memory (query_memory_max); ask for fewer rows with 'limit' or 'where', or \
             put an index that holds them in this order",
            self.max
        )))
    }

    fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }
}

impl Place {
    /// The place of a row.
    pub(crate) fn of(row: &Row<'_>, order: &[Order]) -> Self {
        let key = order.iter().map(|order| {
            let value = row.order_value(&order.by, order.reading);
            if order.descending { Part::Falling(value) } else { Part::Rising(value) }
        });
        Self { key: key.collect(), tie: row.tie() }
    }

    fn bytes(&self) -> usize {
        let parts = self.key.iter().map(|part| size_of::<Part>() + part.value().heap_bytes());
        self.tie.len() + parts.sum::<usize>()
    }
}

impl Part {
    pub(crate) fn value(&self) -> &Value<'static> {
        match self {
            Self::Rising(value) | Self::Falling(value) => value,
        }
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Falling(a), Self::Falling(b)) => b.cmp(a),
            (a, b) => a.value().cmp(b.value()),
        }
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Sorter {
    /// Keeps the first `kept_max` rows, or all.
    pub(crate) fn new(kept_max: Option<u64>, memory: Memory) -> Self {
        let kept_max = kept_max.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        Self { kept_max, memory, heap: BinaryHeap::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// There is no memory left for it.
    ///
    /// # Cost
    /// O(log of the rows that are kept).
    pub(crate) fn add(&mut self, place: Place, row: Row<'_>) -> Result<(), QueryError> {
        if self.heap.len() >= self.kept_max && self.heap.peek().is_none_or(|last| place >= last.place) {
            return Ok(());
        }
        let row = match row {
            Row::Document(document) => Kept::Id(match document {
                Cow::Owned(document) => document.id,
                Cow::Borrowed(document) => document.id.clone(),
            }),
            Row::Result(result) => Kept::Row(Row::Result(result)),
            Row::Entry(entry) => Kept::Row(Row::Entry(entry)),
            Row::Group(group) => Kept::Row(Row::Group(group)),
        };
        let bytes = ROW_BYTES + place.bytes() + row.bytes();
        self.memory.take(bytes, "Putting the rows in order")?;
        self.heap.push(Entry { place, row, bytes });
        if self.heap.len() > self.kept_max
            && let Some(last) = self.heap.pop()
        {
            self.memory.give_back(last.bytes);
        }
        Ok(())
    }

    /// The rows in order, with their places.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = (Place, Kept)> {
        let mut entries = self.heap.into_vec();
        // The heap's memory is used again; a sorted copy would need it twice.
        entries.sort_unstable_by(|a, b| a.place.cmp(&b.place));
        entries.into_iter().map(|entry| (entry.place, entry.row))
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Id(id) => id.len(),
            Self::Row(Row::Result(result)) => result.body.len(),
            Self::Row(Row::Group(group)) => group.bytes(),
            Self::Row(Row::Entry(entry)) => {
                entry.document.body.len() + entry.document.metadata.len() + entry.fields.len() + entry.key.len()
            }
            Self::Row(Row::Document(document)) => document.body.len() + document.metadata.len(),
        }
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Entry {}
