//! Documents on RocksDB: the one place that knows its bytes.
//!
//! `keyspace` lays out keys and `codec` values; `commit` is the single pipeline every write goes through;
//! `changes` is the feed that it leaves behind; `snapshot` reads. The store knows nothing of indexes: a commit carries
//! document operations, opaque index rows and claims (collection → owner).
//!
//! Next on the walk: `keyspace`.

pub mod changes;
pub mod codec;
pub mod commit;
pub mod document;
mod error;
pub mod keyspace;
pub mod scan;
mod settings;
pub mod snapshot;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use error::{ErrorKind, StoreError};
pub use settings::{Durability, StoreSettings};

use crate::id::{IdRequest, IdRules, IdentityName};
use commit::{Commit, Committed};
use snapshot::Snapshot;

/// How far the database's writes have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// The etag through which writes can be read.
    pub written: u64,
    /// The etag through which writes survive a crash; feeds that leave the process stop here.
    pub durable: u64,
}

/// One database: documents, feed, index rows. Cheap to clone; the last clone to drop closes it cleanly.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<()>,
}

impl Store {
    /// Opens the database in `path`, creating it where there is none. One process at a time.
    pub fn open(path: &Path, settings: &StoreSettings) -> Result<Self, StoreError> {
        todo!()
    }

    /// Syncs, marks the stop as clean, gives unused identity numbers back and refuses later commits.
    pub fn close(&self) -> Result<(), StoreError> {
        todo!()
    }

    /// Puts a commit through the pipeline and blocks until it is as durable as it asked to be.
    pub fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        todo!()
    }

    /// The same for async callers. Once this has been called the commit happens even if the future is dropped.
    pub fn submit(&self, commit: Commit) -> impl Future<Output = Result<Committed, StoreError>> + Send + use<> {
        async { todo!() }
    }

    /// Takes a consistent view of everything written so far.
    pub fn snapshot(&self) -> Snapshot<'_> {
        todo!()
    }

    /// The present progress.
    pub fn progress(&self) -> Progress {
        todo!()
    }

    /// Follows progress from async code.
    pub fn watch_progress(&self) -> tokio::sync::watch::Receiver<Progress> {
        todo!()
    }

    /// Blocks a thread until `written` is above `etag`, the time is over, or [`Store::wake`] is called. Returns the progress.
    pub fn wait_written_above(&self, etag: u64, timeout: Duration) -> Progress {
        todo!()
    }

    /// Wakes every thread in [`Store::wait_written_above`] (an index was added, stopped or deleted).
    pub fn wake(&self) {
        todo!()
    }

    /// Takes the next `count` numbers of an identity, each above `above`; durable when it returns. Rising, never reused, gaps allowed.
    pub fn next_identities(&self, name: &IdentityName, above: u64, count: u64) -> Result<Vec<u64>, StoreError> {
        todo!()
    }

    /// Sets an identity's last value; without `force` never downwards. Returns the value it now has.
    pub fn seed_identity(&self, name: &IdentityName, value: u64, force: bool) -> Result<u64, StoreError> {
        todo!()
    }

    /// The rules by which this database reads ids: separator, node tag, trailing slash, GUID version.
    pub fn id_rules(&self) -> &IdRules {
        todo!()
    }

    /// The incarnation of the data directory, 22 characters.
    pub fn incarnation(&self) -> &str {
        todo!()
    }

    /// Bytes on disk, as RocksDB counts its live files and the WAL.
    pub fn size_on_disk(&self) -> Result<u64, StoreError> {
        todo!()
    }
}
