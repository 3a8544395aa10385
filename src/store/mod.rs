//! Documents on RocksDB: the one place that knows its bytes.
//!
//! `keyspace` lays out keys and `codec` values; `commit` is the single pipeline every write goes through;
//! `changes` is the feed that it leaves behind; `snapshot` reads. The store knows nothing of indexes: a commit carries
//! document operations, opaque index rows and claims (collection → owner).
//!
//! Next on the walk: `keyspace`.

pub mod backup;
pub mod changes;
mod claims;
pub mod codec;
pub mod collections;
pub mod commit;
pub mod coordinator;
mod distribution;
pub mod document;
mod engine;
mod error;
mod figures;
mod format;
pub mod keyspace;
mod meta;
pub(crate) mod previous;
pub mod probe;
pub mod purge;
pub mod scan;
mod settings;
pub mod snapshot;
pub mod span;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use distribution::Distribution;
pub use distribution::Spread;
pub use engine::Memory;
pub use error::{ErrorKind, StoreError};
pub use figures::StorageFigures;
pub use probe::{Probe, Step};
pub use settings::{Durability, StoreSettings};

use crate::id::{IdRules, IdentityName};
use changes::Feed;
use commit::{Bells, Commit, Committed, Committer, Progression, Queue, Request, Shared};
use coordinator::{Coordinator, Embedded};
use previous::Keeper;
use probe::Counters;
use snapshot::{SharedSnapshot, Snapshot};

/// How far the database's writes have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// The etag through which writes can be read.
    pub written: u64,
    /// The etag through which writes survive a crash; feeds that leave the process stop here.
    pub durable: u64,
}

/// One database: documents, feed, index rows. Cheap to clone; the last clone to drop closes it cleanly.
///
/// ```
/// use treepie::id::{DocumentId, IdRules};
/// use treepie::store::commit::{Commit, Expected, Operation, PutId};
/// use treepie::store::document::{Document, DocumentFlags};
/// use treepie::store::{Store, StoreSettings};
///
/// # let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path(), &StoreSettings::default())?;
/// let id = DocumentId::new("users/1", &IdRules::default())?;
/// let document = Document::parse(br#"{"Name":"Jo"}"#)?.document;
/// let put = Operation::Put {
///     id: PutId::Given(id.clone()),
///     document,
///     flags: DocumentFlags::default(),
///     expected: Expected::New,
/// };
/// store.commit(Commit { operations: vec![put], ..Commit::default() })?;
/// assert_eq!(store.snapshot().get(&id)?.map(|document| document.etag), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    coordinator: Arc<dyn Coordinator>,
    committer: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
}

impl Store {
    /// Opens the database in `path`, creating it where there is none. One process at a time.
    ///
    /// # Errors
    /// It is in use, has a newer format, is damaged, or the disk fails; or a setting is wrong.
    pub fn open(path: &Path, settings: &StoreSettings) -> Result<Self, StoreError> {
        settings.id_rules.check()?;
        let engine = engine::Engine::open(path, settings)?;
        let identity = format::begin(&engine, path)?;
        let last = identity.totals.last_etag;
        let shared = Arc::new(Shared {
            engine,
            queue: Queue::default(),
            progression: Progression::new(Progress { written: last, durable: last }),
            bells: Bells::default(),
            keepers: parking_lot::RwLock::default(),
            names: parking_lot::RwLock::default(),
            tally: probe::Tally::default(),
            rules: parking_lot::RwLock::new(Arc::new(settings.id_rules.clone())),
            incarnation: identity.incarnation,
            durability: settings.durability,
            probe: settings.probe.clone(),
        });
        let committer = Committer::new(Arc::clone(&shared), identity.totals)?;
        let committer = std::thread::Builder::new()
            .name("treepie-commit".to_owned())
            .spawn(move || committer.run())
            .map_err(|source| StoreError::System { action: "starting the committer's thread".to_owned(), source })?;
        let embedded: Arc<dyn Coordinator> = Arc::new(Embedded::new(Arc::clone(&shared)));
        let coordinator = match &settings.coordinators {
            Some(coordinators) => coordinators.coordinator(path, embedded),
            None => embedded,
        };
        Ok(Self { inner: Arc::new(Inner { shared, coordinator, committer: Mutex::new(Some(committer)) }) })
    }

    /// Syncs, marks the stop as clean, gives unused identity numbers back and refuses later commits. Reads go on. A second
    /// call does nothing.
    ///
    /// # Errors
    /// What is written could not be synced, or an earlier write had failed.
    pub fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }

    /// Puts a commit through the pipeline and blocks until it is as durable as it asked to be. Not for async threads.
    ///
    /// # Cost
    /// Waits for the group in hand, its own group's write and, with [`commit::Wait::Durable`], one sync. Waits for room
    /// before, where the queue is full.
    ///
    /// # Errors
    /// The commit was refused and left no trace, or the store takes no writes.
    pub fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.inner.shared.commit(commit, false)
    }

    /// The same, and durable when it returns even where durability is relaxed: for what must never be given out twice.
    pub(crate) fn commit_synced(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.inner.shared.commit(commit, true)
    }

    /// The same as [`Store::commit`] for async callers. Once this has been called the commit happens even if the future is dropped; the future is
    /// only its answer.
    ///
    /// # Errors
    /// The commit was refused and left no trace, the store takes no writes, or, as [`StoreError::Busy`], too many commits
    /// wait already.
    ///
    /// # Cancel safety
    /// Dropping the future loses the answer, not the commit.
    pub fn submit(&self, commit: Commit) -> impl Future<Output = Result<Committed, StoreError>> + Send + use<> {
        let (request, answer) = Request::task(commit);
        let queued = self.inner.shared.queue.push_now(request);
        async move {
            queued?;
            answer.await.unwrap_or_else(|_| Err(StoreError::Closed("the committer has stopped".to_owned())))
        }
    }

    /// Takes a consistent view of everything written so far.
    pub fn snapshot(&self) -> Snapshot<'_> {
        let shared = &self.inner.shared;
        Snapshot::new(&shared.engine, &shared.names, shared.progression.get())
    }

    /// Takes a consistent view that lives as long as somebody holds it.
    pub fn shared_snapshot(&self) -> SharedSnapshot {
        SharedSnapshot::new(self.clone())
    }

    /// The present progress.
    pub fn progress(&self) -> Progress {
        self.inner.shared.progression.get()
    }

    /// Follows progress from async code.
    pub fn watch_progress(&self) -> tokio::sync::watch::Receiver<Progress> {
        self.inner.shared.progression.watch()
    }

    /// Blocks a thread until `written` is above `etag`, the time is over, or [`Store::wake`] is called. Returns the progress.
    ///
    /// A wake before the call is not seen; use [`Store::wait_written_or_woken`] where that matters.
    pub fn wait_written_above(&self, etag: u64, timeout: Duration) -> Progress {
        self.inner.shared.progression.wait_written_above(etag, None, timeout)
    }

    /// The same, and returns at once where [`Store::wake`] was called since [`Store::wakes`] gave `wakes`.
    pub fn wait_written_or_woken(&self, etag: u64, wakes: u64, timeout: Duration) -> Progress {
        self.inner.shared.progression.wait_written_above(etag, Some(wakes), timeout)
    }

    /// Wakes every thread in [`Store::wait_written_above`] (an index was added, stopped or deleted).
    pub fn wake(&self) {
        self.inner.shared.progression.wake();
    }

    /// Follows a feed from async code: the receiver changes when the feed has new durable changes.
    pub(crate) fn follow(&self, feed: &Feed) -> tokio::sync::watch::Receiver<()> {
        match feed {
            Feed::All => self.inner.shared.bells.follow(None),
            Feed::Collection(name) => self.inner.shared.bells.follow(Some(&crate::id::lower(name))),
        }
    }

    /// Keeps, from now on, versions of a collection through `seen_through` for a reader when they are overwritten or deleted.
    /// Blocks while the group in hand is written: what is read after this call is kept.
    pub(crate) fn keep_previous(&self, keeper: Keeper) {
        let mut keepers = self.inner.shared.keepers.write();
        match keepers.iter_mut().find(|known| known.reader == keeper.reader) {
            Some(known) => *known = keeper,
            None => keepers.push(keeper),
        }
    }

    /// Keeps nothing more for a reader.
    pub(crate) fn forget_previous(&self, reader: u64) {
        self.inner.shared.keepers.write().retain(|keeper| keeper.reader != reader);
    }

    /// Tells the probe of the settings, where there is one, that an index has reached a step.
    pub(crate) fn reached(&self, step: probe::Step) {
        self.inner.shared.reached(step);
    }

    /// How often [`Store::wake`] was called.
    pub fn wakes(&self) -> u64 {
        self.inner.shared.progression.wakes()
    }

    /// Takes the next `count` numbers of an identity, each above `above`; durable when it returns. Rising, never reused, gaps
    /// allowed. Where a finished id is taken, ask again above one less than what [`crate::id::identity::free_number`] finds.
    ///
    /// # Cost
    /// One sync for every 32 numbers.
    ///
    /// # Errors
    /// More than 1,048,576 numbers at once, no numbers left, the disk failed, or the nodes that must agree can't be reached.
    pub fn next_identities(&self, name: &IdentityName, above: u64, count: u64) -> Result<Vec<u64>, StoreError> {
        const COUNT_MAX: u64 = 1 << 20;
        if count > COUNT_MAX {
            return Err(StoreError::Condition(format!(
                "{count} numbers of identity '{}' were asked for at once, and {COUNT_MAX} are allowed; ask several times",
                name.key()
            )));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let first = self.inner.coordinator.next_identities(&name.key(), above, count)?;
        Ok((first..).take(usize::try_from(count).unwrap_or(0)).collect())
    }

    /// Sets an identity's last value; without `force` never downwards. Returns the value it now has.
    ///
    /// # Errors
    /// The disk failed, or the nodes that must agree can't be reached.
    pub fn seed_identity(&self, name: &IdentityName, value: u64, force: bool) -> Result<u64, StoreError> {
        self.inner.coordinator.seed_identity(&name.key(), value, force)
    }

    /// Lists all identities, by key (`users|`), with their last values.
    ///
    /// # Errors
    /// A read failed, or the nodes that must agree can't be reached.
    pub fn list_identities(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.inner.coordinator.list_identities()
    }

    /// Who gives out identities and keeps configuration values.
    pub fn coordinator(&self) -> &dyn Coordinator {
        self.inner.coordinator.as_ref()
    }

    /// The rules by which this database reads ids: separator, node tag, trailing slash, GUID version.
    pub fn id_rules(&self) -> Arc<IdRules> {
        Arc::clone(&self.inner.shared.rules.read())
    }

    /// Reads ids by other rules from now on. Stored ids stay as they are, and counters go on. The node tag stays.
    ///
    /// # Errors
    /// The rules themselves are refused; nothing has changed then.
    pub fn set_id_rules(&self, rules: &IdRules) -> Result<(), StoreError> {
        rules.check()?;
        let mut present = self.inner.shared.rules.write();
        *present = Arc::new(IdRules { node_tag: present.node_tag.clone(), ..rules.clone() });
        Ok(())
    }

    /// The incarnation of the data directory, 22 characters.
    pub fn incarnation(&self) -> &str {
        &self.inner.shared.incarnation
    }

    /// Bytes on disk, as RocksDB counts its live files and the WAL.
    ///
    /// # Errors
    /// The files can't be listed.
    pub fn size_on_disk(&self) -> Result<u64, StoreError> {
        self.inner.shared.engine.size_on_disk()
    }

    /// How the work of the committer is spread since the store was opened.
    pub fn commit_spreads(&self) -> probe::CommitSpreads {
        self.inner.shared.tally.spreads()
    }

    /// Why the store takes no writes: it was closed, or a write or a sync has failed. `None`: it takes them.
    pub fn refuses_writes(&self) -> Option<String> {
        self.inner.shared.queue.closed()
    }

    /// How much was done since the store was opened.
    pub fn counters(&self) -> Counters {
        self.inner.shared.tally.read(self.inner.shared.engine.wal_syncs())
    }
}

impl Shared {
    /// Puts a commit through the pipeline; `internal` ones may write the store's own rows, and wait for a sync in any case.
    fn commit(&self, commit: Commit, internal: bool) -> Result<Committed, StoreError> {
        let (request, answer) = Request::blocking(commit, internal);
        self.queue.push_blocking(request)?;
        answer.recv().unwrap_or_else(|_| Err(StoreError::Closed("the committer has stopped".to_owned())))
    }
}

impl Inner {
    fn close(&self) -> Result<(), StoreError> {
        // Held to the end, so that a second caller returns after the stop.
        let mut committer = self.committer.lock();
        let Some(thread) = committer.take() else { return Ok(()) };
        let given_back = self.coordinator.close();
        self.shared.queue.close("it is closed");
        let stopped =
            thread.join().unwrap_or_else(|_| Err(StoreError::Closed("the committer has panicked".to_owned())));
        stopped.and(given_back)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(name: "store.close.failed", %error, "the database was not closed cleanly");
        }
    }
}
