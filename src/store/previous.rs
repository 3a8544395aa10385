//! Versions that a reader has seen and that a later write took away: kept beside that write, until the reader lets go.
//!
//! A reader that wants the former version beside the new one wants the one that *it* has seen, not one between two writes
//! that it never met. So the committer keeps a version when it is overwritten or deleted, if its etag is at most what a
//! reader has been handed; the reader removes the rows with its acknowledgement. At most two for each document and reader:
//! the one acknowledged and the one handed out.

use super::StoreError;
use super::document::StoredDocument;
use super::keyspace::{Family, KeyRange};
use super::scan::Direction;
use super::snapshot::Snapshot;

/// Before the names of all kept versions in `meta`.
const KEPT: &str = "subscription/previous/";

/// A reader for whom versions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keeper {
    /// Its number.
    pub(crate) reader: u64,
    /// The lower-cased name of the collection that it reads.
    pub(crate) collection: String,
    /// Versions through this etag may have been handed to it.
    pub(crate) seen_through: u64,
}

/// A kept version.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Its row in `meta`.
    pub(crate) key: Vec<u8>,
    /// The version.
    pub(crate) document: StoredDocument,
}

/// The row of a version. The etag is written in digits: no name in `meta` may hold 0xFF.
pub(super) fn key(reader: u64, lower_id: &str, etag: u64) -> Vec<u8> {
    format!("{KEPT}{reader:010}/{lower_id}\0{etag:020}").into_bytes()
}

/// All that is kept for a reader.
pub(crate) fn range(reader: u64) -> KeyRange {
    KeyRange::prefix(format!("{KEPT}{reader:010}/").as_bytes())
}

impl Snapshot<'_> {
    /// Reads the versions of a document that are kept for a reader, the oldest first.
    ///
    /// # Cost
    /// One seek, and a step for each version.
    ///
    /// # Errors
    /// The read failed or a row is damaged.
    pub(crate) fn kept(&self, reader: u64, lower_id: &str) -> Result<Vec<Kept>, StoreError> {
        let prefix = format!("{KEPT}{reader:010}/{lower_id}\0");
        let mut scan = self.rows(Family::Meta, KeyRange::prefix(prefix.as_bytes()), Direction::Forward);
        let mut kept = Vec::new();
        while let Some((key, value)) = scan.next_row()? {
            kept.push(Kept { key: key.to_vec(), document: StoredDocument::decode(lower_id.as_bytes(), value)? });
        }
        Ok(kept)
    }
}
