//! A store in a temporary directory, short ways to write, and a gate that holds the committer at a step.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use tempfile::TempDir;
use treepie::id::{DocumentId, IdRules};
use treepie::store::changes::{Change, ChangeKind, Feed};
use treepie::store::commit::{Commit, Committed, Expected, Operation, OperationResult, PutId, RowChange, Wait};
use treepie::store::document::{Document, DocumentFlags, StoredDocument};
use treepie::store::keyspace::Family;
use treepie::store::probe::{Probe, Step};
use treepie::store::scan::Direction;
use treepie::store::{Store, StoreError, StoreSettings};

/// A store and its directory.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) directory: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&StoreSettings::default())
    }

    pub(crate) fn with(settings: &StoreSettings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), settings).unwrap();
        Self { store, directory }
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopened(self) -> Self {
        let Self { store, directory } = self;
        drop(store);
        let store = Store::open(directory.path(), &StoreSettings::default()).unwrap();
        Self { store, directory }
    }

    /// What a process finds that opens the directory after this one was killed.
    pub(crate) fn after_kill(&self) -> Self {
        let directory = copy(self.directory.path());
        let store = Store::open(directory.path(), &StoreSettings::default()).unwrap();
        Self { store, directory }
    }

    pub(crate) fn run(&self, operations: Vec<Operation>) -> Result<Committed, StoreError> {
        self.store.commit(Commit { operations, ..Commit::default() })
    }

    /// Puts one document and returns its etag.
    pub(crate) fn put(&self, id: &str, collection: &str) -> u64 {
        etag(&self.run(vec![put(id, collection, "{}")]).unwrap().results[0])
    }

    pub(crate) fn delete(&self, id: &str) -> Option<u64> {
        match self.run(vec![delete(id)]).unwrap().results.remove(0) {
            OperationResult::Delete { etag, .. } => etag,
            OperationResult::Put { .. } | OperationResult::Checked { .. } => None,
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<StoredDocument> {
        self.store.snapshot().get(&self::id(id)).unwrap()
    }

    /// The whole feed as (etag, kind, id, collection).
    pub(crate) fn feed(&self) -> Vec<(u64, ChangeKind, String, String)> {
        self.read_feed(&Feed::All)
    }

    pub(crate) fn feed_of(&self, collection: &str) -> Vec<(u64, ChangeKind, String, String)> {
        self.read_feed(&Feed::Collection(collection.to_owned()))
    }

    fn read_feed(&self, feed: &Feed) -> Vec<(u64, ChangeKind, String, String)> {
        let snapshot = self.store.snapshot();
        let changes = snapshot.changes(feed, 0, u64::MAX, Direction::Forward);
        changes
            .map(|change| {
                let Change { etag, kind, id, collection, .. } = change.unwrap();
                (etag, kind, id, collection)
            })
            .collect()
    }

    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.store.snapshot().verify().unwrap(), Vec::<String>::new());
    }
}

pub(crate) fn id(id: &str) -> DocumentId {
    DocumentId::new(id, &IdRules::default()).unwrap()
}

pub(crate) fn document(collection: &str, body: &str) -> Document {
    Document { collection: collection.to_owned(), metadata: "{}".to_owned(), body: body.to_owned() }
}

pub(crate) fn put(id: &str, collection: &str, body: &str) -> Operation {
    put_expecting(id, collection, body, Expected::Any)
}

pub(crate) fn put_expecting(id: &str, collection: &str, body: &str, expected: Expected) -> Operation {
    let id = PutId::Given(self::id(id));
    Operation::Put { id, document: document(collection, body), flags: DocumentFlags::default(), expected }
}

pub(crate) fn put_server_side(prefix: &str, collection: &str) -> Operation {
    let (id, document) = (PutId::ServerSide(prefix.to_owned()), document(collection, "{}"));
    Operation::Put { id, document, flags: DocumentFlags::default(), expected: Expected::Any }
}

pub(crate) fn delete(id: &str) -> Operation {
    delete_expecting(id, Expected::Any)
}

pub(crate) fn delete_expecting(id: &str, expected: Expected) -> Operation {
    Operation::Delete { id: self::id(id), expected }
}

pub(crate) fn meta(name: &str, value: &[u8]) -> RowChange {
    RowChange::Put { family: Family::Meta, key: name.as_bytes().to_vec(), value: value.to_vec() }
}

/// A commit that needs no sync.
pub(crate) fn unsynced(operations: Vec<Operation>) -> Commit {
    Commit { operations, wait: Wait::Written, ..Commit::default() }
}

pub(crate) fn etag(result: &OperationResult) -> u64 {
    match result {
        OperationResult::Put { etag, .. } | OperationResult::Delete { etag: Some(etag), .. } => *etag,
        OperationResult::Delete { etag: None, .. } | OperationResult::Checked { .. } => {
            panic!("nothing was written: {result:?}")
        }
    }
}

/// Copies a directory's files as they are, but for the lock.
pub(crate) fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    copy_into(from, to.path());
    to
}

/// Copies a directory's files into another directory. An open store may remove an obsolete file meanwhile: then it is copied anew,
/// because what a kill leaves is the directory at one moment.
pub(crate) fn copy_into(from: &Path, to: &Path) {
    let copied = (0..100).any(|_| {
        for stale in std::fs::read_dir(to).unwrap() {
            std::fs::remove_file(stale.unwrap().path()).unwrap();
        }
        try_copy(from, to)
    });
    assert!(copied, "files kept vanishing from {}", from.display());
}

/// `false`: a file vanished between being listed and being copied.
fn try_copy(from: &Path, to: &Path) -> bool {
    std::fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != "LOCK").all(|entry| {
        match std::fs::copy(entry.path(), to.join(entry.file_name())) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            copied => copied.is_ok(),
        }
    })
}

/// Holds the committer at a step until it is opened.
#[derive(Debug)]
pub(crate) struct Gate {
    step: Step,
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum GateState {
    Open,
    Shut,
    Reached,
}

impl Gate {
    pub(crate) fn new(step: Step) -> Arc<Self> {
        Arc::new(Self { step, state: Mutex::new(GateState::Open), changed: Condvar::new() })
    }

    pub(crate) fn settings(self: &Arc<Self>) -> StoreSettings {
        let probe: Arc<dyn Probe> = self.clone();
        StoreSettings { probe: Some(probe), ..StoreSettings::default() }
    }

    /// The next time, the committer stops at the step.
    pub(crate) fn shut(&self) {
        *self.state.lock().unwrap() = GateState::Shut;
    }

    /// Waits until the committer stands at the gate.
    pub(crate) fn wait_reached(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| *state != GateState::Reached).unwrap());
    }

    pub(crate) fn open(&self) {
        *self.state.lock().unwrap() = GateState::Open;
        self.changed.notify_all();
    }

    /// Puts all `commits` into one group, behind a first one of their own.
    pub(crate) fn one_group(&self, store: &Store, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        self.shut();
        let first = store.submit(Commit { rows: vec![meta("test/first", b"")], ..Commit::default() });
        self.wait_reached();
        let before = store.counters().groups;
        let answers = commits.into_iter().map(|commit| store.submit(commit)).collect::<Vec<_>>();
        self.open();
        block_on(first).unwrap();
        let answers = answers.into_iter().map(block_on).collect();
        assert_eq!(store.counters().groups, before + 1, "the commits were not one group");
        answers
    }
}

impl Probe for Gate {
    fn reached(&self, step: Step) {
        let mut state = self.state.lock().unwrap();
        if step == self.step && *state == GateState::Shut {
            *state = GateState::Reached;
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| *state != GateState::Open).unwrap());
        }
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
