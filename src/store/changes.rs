//! The change feed: documents and tombstones in etag order, newest version of each only.

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
