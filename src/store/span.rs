//! Documents between two ids, whole or only their heads.
//!
//! Next on the walk: `changes`.

use std::ops::Bound;

use super::StoreError;
use super::codec::{self, DocumentHeader};
use super::document::StoredDocument;
use super::keyspace::{Family, KeyRange};
use super::scan::{Direction, Scan};
use super::snapshot::Snapshot;
use crate::id::lower;

/// A range of ids, compared by their lower-cased bytes, and the order in which it is read.
#[derive(Clone, Debug)]
pub struct IdSpan {
    /// The lower end, also where it is read backwards.
    pub from: Bound<String>,
    /// The upper end.
    pub to: Bound<String>,
    /// Only ids that begin with this; `""` is all.
    pub prefix: String,
    /// The order.
    pub direction: Direction,
}

/// A document without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentHead {
    /// The id as last written.
    pub id: String,
    /// The etag of the last write.
    pub etag: u64,
    /// The version.
    pub change_vector: String,
}

impl IdSpan {
    /// What of the range comes behind an id, in its direction.
    #[must_use]
    pub fn behind(self, id: &str) -> Self {
        let bound = Bound::Excluded(id.to_owned());
        match self.direction {
            Direction::Forward => Self { from: bound, ..self },
            Direction::Backward => Self { to: bound, ..self },
        }
    }

    /// An id of a range is followed by its own bytes and 0x00 at the earliest: no id holds that byte.
    fn keys(&self) -> KeyRange {
        let after = |id: &str| [lower(id).as_bytes(), &[0]].concat();
        let mut range = KeyRange::prefix(lower(&self.prefix).as_bytes());
        let from = match &self.from {
            Bound::Unbounded => Vec::new(),
            Bound::Included(id) => lower(id).into_bytes(),
            Bound::Excluded(id) => after(id),
        };
        let before = match &self.to {
            Bound::Unbounded => None,
            Bound::Included(id) => Some(after(id)),
            Bound::Excluded(id) => Some(lower(id).into_bytes()),
        };
        range.from = range.from.max(from);
        range.before = match (range.before, before) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        range
    }
}

impl<'a> Snapshot<'a> {
    /// Reads the documents of a range, lazily.
    ///
    /// # Cost
    /// One seek, then one step for each document.
    pub fn documents_between(
        &self,
        span: &IdSpan,
    ) -> impl Iterator<Item = Result<StoredDocument, StoreError>> + use<'a> {
        Rows { scan: Some(self.rows(Family::Documents, span.keys(), span.direction)), decode: StoredDocument::decode }
    }

    /// Reads the heads of the documents of a range, lazily.
    ///
    /// # Cost
    /// One seek, then one step for each document; their content is not copied.
    pub fn heads_between(&self, span: &IdSpan) -> impl Iterator<Item = Result<DocumentHead, StoreError>> + use<'a> {
        Rows { scan: Some(self.rows(Family::Documents, span.keys(), span.direction)), decode: DocumentHead::decode }
    }
}

impl DocumentHead {
    fn decode(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let header = codec::decode_beginning::<DocumentHeader<'_>>(value)
            .map_err(|error| StoreError::corrupt(Family::Documents, key, error))?;
        let DocumentHeader { etag, change_vector, id, .. } = header;
        Ok(Self { id: id.to_owned(), etag, change_vector: change_vector.to_owned() })
    }
}

struct Rows<'a, T> {
    /// `None` after the end or an error.
    scan: Option<Scan<'a>>,
    decode: fn(&[u8], &[u8]) -> Result<T, StoreError>,
}

impl<T> Iterator for Rows<'_, T> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.scan.as_mut()?.next_row();
        let item = row.and_then(|row| row.map(|(key, value)| (self.decode)(key, value)).transpose()).transpose();
        if !matches!(item, Some(Ok(_))) {
            self.scan = None;
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(from: Bound<&str>, to: Bound<&str>, prefix: &str) -> KeyRange {
        let owned = |bound: Bound<&str>| bound.map(str::to_owned);
        let (from, to) = (owned(from), owned(to));
        IdSpan { from, to, prefix: prefix.to_owned(), direction: Direction::Forward }.keys()
    }

    #[test]
    fn an_end_is_in_the_range_or_just_outside() {
        let range = keys(Bound::Included("B"), Bound::Included("d"), "");
        for (id, is_in) in [("a", false), ("b", true), ("c", true), ("d", true), ("d/1", false)] {
            assert_eq!(range.contains(id.as_bytes()), is_in, "{id}");
        }
        let range = keys(Bound::Excluded("b"), Bound::Excluded("d"), "");
        for (id, is_in) in [("b", false), ("b ", true), ("c/1", true), ("d", false)] {
            assert_eq!(range.contains(id.as_bytes()), is_in, "{id}");
        }
    }

    #[test]
    fn a_prefix_narrows_the_range() {
        let range = keys(Bound::Included("m/5"), Bound::Unbounded, "M/");
        for (id, is_in) in [("m/4", false), ("m/5", true), ("m/\u{10ffff}", true), ("m0", false), ("n", false)] {
            assert_eq!(range.contains(id.as_bytes()), is_in, "{id}");
        }
        let range = keys(Bound::Unbounded, Bound::Excluded("a"), "m/");
        assert!(!range.contains(b"m/1") && !range.contains(b"a"));
    }
}
