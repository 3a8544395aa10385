//! The change feed: documents and tombstones in etag order, newest version of each only.
//!
//! Next on the walk: the rooms that follow it, `index::worker` and `subscription`.

use super::StoreError;
use super::codec::{self, ChangeRecord, CollectionChangeRecord, RunRecord};
use super::keyspace::{self, CollectionNumber, Family};
use super::scan::Scan;
use super::snapshot::NamesRef;

/// One row of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The etag of the write.
    pub etag: u64,
    /// Written or deleted.
    pub kind: ChangeKind,
    /// The id as last written.
    pub id: String,
    /// The collection, spelled as when it was first used.
    pub collection: String,
    /// The run that wrote it, where an index did.
    pub run: Option<Run>,
}

/// One commit of an index: what it wrote became visible together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The last etag of the commit: rises from run to run.
    pub number: u64,
    /// The etag of the sources through which the results are complete; `None` in the middle of a build.
    pub complete_through: Option<u64>,
}

/// What happened to the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was written.
    Put,
    /// It was deleted, or moved out of this collection.
    Delete,
}

/// Which changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feed {
    /// The whole database.
    All,
    /// One collection, by name, without regard to case.
    Collection(String),
}

/// Rows of a feed, read as they are asked for.
pub(super) struct Changes<'a> {
    /// `None`: the collection was never used.
    pub(super) scan: Option<Scan<'a>>,
    /// The one collection of the feed.
    pub(super) collection: Option<String>,
    pub(super) names: NamesRef<'a>,
}

impl Changes<'_> {
    fn next_change(&mut self) -> Result<Option<Change>, StoreError> {
        let Some((key, value)) = self.scan.as_mut().map(Scan::next_row).transpose()?.flatten() else {
            return Ok(None);
        };
        match &self.collection {
            Some(collection) => decode_collection_row(key, value, collection).map(Some),
            None => decode_row(key, value, self.names).map(Some),
        }
    }
}

impl Iterator for Changes<'_> {
    type Item = Result<Change, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_change().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.scan = None;
        }
        next
    }
}

fn decode_collection_row(key: &[u8], value: &[u8], collection: &str) -> Result<Change, StoreError> {
    let corrupt = |detail: &dyn std::fmt::Display| StoreError::corrupt(Family::Collections, key, detail);
    let (_, etag) = keyspace::decode_collection_change(key).ok_or_else(|| corrupt(&"the key has no etag"))?;
    let (record, run) =
        codec::decode_pair::<CollectionChangeRecord<'_>, RunRecord>(value).map_err(|error| corrupt(&error))?;
    Ok(change(etag, &record, collection, run))
}

fn decode_row(key: &[u8], value: &[u8], names: NamesRef<'_>) -> Result<Change, StoreError> {
    let corrupt = |detail: &dyn std::fmt::Display| StoreError::corrupt(Family::Changes, key, detail);
    let etag = keyspace::decode_change(key).ok_or_else(|| corrupt(&"the key is no etag"))?;
    let (record, run) = codec::decode_pair::<ChangeRecord<'_>, RunRecord>(value).map_err(|error| corrupt(&error))?;
    let names = names.read();
    let collection = names
        .name(CollectionNumber(record.collection))
        .ok_or_else(|| corrupt(&format!("there is no collection {}", record.collection)))?;
    Ok(change(etag, &record.change, collection, run))
}

fn change(etag: u64, record: &CollectionChangeRecord<'_>, collection: &str, run: Option<RunRecord>) -> Change {
    let kind = if record.deleted { ChangeKind::Delete } else { ChangeKind::Put };
    let run = run.map(|RunRecord { number, complete_through }| Run {
        number,
        complete_through: (complete_through > 0).then_some(complete_through),
    });
    Change { etag, kind, id: record.id.to_owned(), collection: collection.to_owned(), run }
}
