//! A database in a directory of its own, with the few words that the tests speak: put, delete, index, sync, read, reopen.
//!
//! What it reads, it reads through one snapshot, and it checks on the way that listing, reads by id, the collection's
//! feed and its count agree about which documents exist.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use treepie::database::{Database, DatabaseError, DatabaseSettings, ResultRange, TombstoneSettings, Write};
use treepie::id::DocumentId;
use treepie::index::definition::IndexDefinition;
use treepie::script::Texts;
use treepie::store::changes::{ChangeKind, Feed};
use treepie::store::commit::{Committed, Expected};
use treepie::store::document::{Document, StoredDocument};
use treepie::store::keyspace::{Family, KeyRange};
use treepie::store::scan::Direction;
use treepie::store::snapshot::{IdRange, Snapshot};

use crate::oracle::{Model, Source};

/// How long a test waits for indexes before it gives up: a safety net, far above what any wait needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// An index row: its family, its key without the generation, and its value.
pub(crate) type Row = (Family, Vec<u8>, Vec<u8>);

/// A database under test.
#[derive(Debug)]
pub(crate) struct World {
    directory: TempDir,
    settings: DatabaseSettings,
    database: Option<Database>,
}

impl World {
    /// An empty database.
    pub(crate) fn new() -> Self {
        Self::with(DatabaseSettings::default())
    }

    /// An empty database with settings of its own.
    pub(crate) fn with(settings: DatabaseSettings) -> Self {
        let mut world = Self { directory: tempfile::tempdir().unwrap(), settings, database: None };
        world.open();
        world
    }

    /// An empty database that removes tombstones as soon as its indexes have passed them, when it is told to.
    pub(crate) fn keeping_no_tombstones() -> Self {
        let hour = Duration::from_secs(3_600);
        let tombstones = TombstoneSettings { kept_min: Duration::ZERO, every: hour, ..TombstoneSettings::default() };
        Self::with(DatabaseSettings { tombstones, ..DatabaseSettings::default() })
    }

    fn open(&mut self) {
        self.database = Some(Database::open(self.directory.path(), self.settings.clone()).unwrap());
    }

    /// What a process finds that opens the directory after this one was killed just now.
    pub(crate) fn copied(&self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // A file may go while its directory is copied: what a kill leaves is the directory at one moment.
        let is_copied = (0..100).any(|_| copy(self.directory.path(), directory.path()));
        assert!(is_copied, "files kept vanishing");
        let mut world = Self { directory, settings: DatabaseSettings::default(), database: None };
        world.open();
        world
    }

    /// The database itself.
    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    /// Stops the database and opens it again.
    pub(crate) fn reopen(&mut self) {
        self.database.take().unwrap().close().unwrap();
        self.open();
    }

    /// Writes one document from the text of its properties.
    pub(crate) fn put(&self, collection: &str, id: &str, body: &str) -> u64 {
        self.write(vec![put(collection, id, body)]).last_etag
    }

    /// Deletes one document.
    pub(crate) fn delete(&self, id: &str) -> u64 {
        self.write(vec![delete(id)]).last_etag
    }

    /// Writes all or nothing.
    pub(crate) fn write(&self, writes: Vec<Write>) -> Committed {
        self.database().write(writes).unwrap()
    }

    /// Puts an index that stands in one script.
    pub(crate) fn index(&self, name: &str, script: &str) -> bool {
        self.try_index(name, script).unwrap()
    }

    /// Puts an index that may be refused.
    pub(crate) fn try_index(&self, name: &str, script: &str) -> Result<bool, Box<DatabaseError>> {
        self.database().put_index(definition(name, script)).map_err(Box::new)
    }

    /// Waits until every running index has taken in all that was written.
    pub(crate) fn sync(&self) {
        self.database().wait_for_indexes(None, PATIENCE).unwrap();
    }

    /// Waits for these indexes alone.
    pub(crate) fn sync_only(&self, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        self.database().wait_for_indexes(Some(&names), PATIENCE).unwrap();
    }

    /// The documents of a collection by id, after checking that all ways to read them agree.
    pub(crate) fn documents(&self, collection: &str) -> BTreeMap<String, StoredDocument> {
        documents(&self.database().store().snapshot(), collection)
    }

    /// The bodies of the documents of a collection, sorted.
    pub(crate) fn bodies(&self, collection: &str) -> Vec<String> {
        let mut bodies: Vec<String> = self.documents(collection).into_values().map(|document| document.body).collect();
        bodies.sort();
        bodies
    }

    /// The etag of each document of a collection.
    pub(crate) fn etags(&self, collection: &str) -> BTreeMap<String, u64> {
        self.documents(collection).into_iter().map(|(id, document)| (id, document.etag)).collect()
    }

    /// One document.
    pub(crate) fn get(&self, id: &str) -> Option<StoredDocument> {
        let id = DocumentId::new(id, &self.database().store().id_rules()).unwrap();
        self.database().store().snapshot().get(&id).unwrap()
    }

    /// The highest etag that was given out.
    pub(crate) fn last_etag(&self) -> u64 {
        self.database().store().progress().written
    }

    /// Every live document outside `@…` collections, as the oracle wants them.
    pub(crate) fn sources(&self) -> Vec<Source> {
        sources(&self.database().store().snapshot())
    }

    /// Compares an index's artificial documents with plain folding.
    pub(crate) fn assert_equals(&self, model: &Model) {
        assert_equals(self.database(), model);
    }

    /// An index's results in key order: key, source (of an entry) and value.
    pub(crate) fn results(&self, name: &str, range: &ResultRange) -> Vec<(Value, String, Value)> {
        let json = |text: &str| serde_json::from_str(text).unwrap();
        let results = self.database().index_results(name, range).unwrap();
        results.into_iter().map(|it| (json(&it.key), it.source.unwrap_or_default(), json(&it.value))).collect()
    }

    /// The rows of every generation that has any, generation numbers aside.
    pub(crate) fn rows(&self) -> BTreeSet<Vec<Row>> {
        let snapshot = self.database().store().snapshot();
        let mut generations: BTreeMap<Vec<u8>, Vec<Row>> = BTreeMap::new();
        for family in Family::OF_GENERATIONS {
            let mut scan = snapshot.rows(family, KeyRange::all(), Direction::Forward);
            while let Some((key, value)) = scan.next_row().unwrap() {
                let (generation, rest) = key.split_at(4);
                generations.entry(generation.to_vec()).or_default().push((family, rest.to_vec(), value.to_vec()));
            }
        }
        generations.into_values().collect()
    }

    /// The generations that have a row in any family or in `meta`.
    pub(crate) fn generations(&self) -> BTreeSet<u32> {
        generations(&self.database().store().snapshot())
    }

    /// The texts of an index's recorded faults with the document or key they are about.
    pub(crate) fn faults(&self, name: &str) -> Vec<(String, String)> {
        let records = self.database().index_faults(name).unwrap();
        records.into_iter().map(|record| (record.subject, record.fault.to_string())).collect()
    }
}

/// The generations that have a row in any family, or progress, faults or blocked groups in `meta`.
pub(crate) fn generations(snapshot: &Snapshot<'_>) -> BTreeSet<u32> {
    let mut generations = BTreeSet::new();
    for family in Family::OF_GENERATIONS {
        let mut scan = snapshot.rows(family, KeyRange::all(), Direction::Forward);
        while let Some((key, _)) = scan.next_row().unwrap() {
            generations.insert(u32::from_be_bytes(key[..4].try_into().unwrap()));
        }
    }
    let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(b"generation-"), Direction::Forward);
    while let Some((key, _)) = scan.next_row().unwrap() {
        generations.insert(std::str::from_utf8(key).unwrap().split('/').nth(1).unwrap().parse().unwrap());
    }
    generations
}

/// Copies a directory's files but for the lock. `false`: files came or went meanwhile, so that it may be no directory of one moment.
fn copy(from: &Path, to: &Path) -> bool {
    for stale in std::fs::read_dir(to).unwrap() {
        std::fs::remove_file(stale.unwrap().path()).unwrap();
    }
    let files = || -> BTreeSet<OsString> {
        let names = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name != "LOCK").collect()
    };
    let before = files();
    let is_copied = before.iter().all(|name| match std::fs::copy(from.join(name), to.join(name)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        copied => copied.is_ok(),
    });
    is_copied && files() == before
}

/// One document write from the text of its properties.
pub(crate) fn put(collection: &str, id: &str, body: &str) -> Write {
    let fields = body.trim().strip_prefix('{').unwrap();
    let comma = if fields.trim_start().starts_with('}') { "" } else { "," };
    let json = format!("{{\"@metadata\":{{\"@collection\":{}}}{comma}{fields}", Value::from(collection));
    let document = Document::parse(json.as_bytes()).unwrap().document;
    Write::Put { id: Some(id.to_owned()), document, expected: Expected::Any }
}

/// One delete.
pub(crate) fn delete(id: &str) -> Write {
    Write::Delete { id: id.to_owned(), expected: Expected::Any }
}

/// A definition that stands in one script.
pub(crate) fn definition(name: &str, script: &str) -> IndexDefinition {
    IndexDefinition {
        name: name.to_owned(),
        texts: Texts { maps: vec![script.to_owned()], reduce: None },
        output: None,
        reference_pattern: None,
        reference_collection: None,
    }
}

/// Compares an index's artificial documents with plain folding: bodies byte for byte; ids unique and well-formed.
pub(crate) fn assert_equals(database: &Database, model: &Model) {
    let snapshot = database.store().snapshot();
    let outputs = documents(&snapshot, model.output);
    let mut bodies: Vec<&String> = outputs.values().map(|document| &document.body).collect();
    bodies.sort();
    let expected = model.expected(&sources(&snapshot));
    assert_eq!(bodies, expected.iter().collect::<Vec<_>>(), "outputs of {}", model.name);
    for document in outputs.values() {
        assert!(is_artificial(&document.id, model.output), "id {}", document.id);
        assert!(document.flags.artificial);
        assert_eq!(document.collection, model.output);
    }
    let counts = model.counts(&sources(&snapshot));
    let status = database.index_status().unwrap().into_iter().find(|status| status.name == model.name).unwrap();
    let entries: usize = counts.values().sum();
    assert_eq!((status.entries, status.groups), (entries as u64, counts.len() as u64), "counts of {}", model.name);
}

/// Whether an id has the form `Collection/<32 lower-case hex digits>`.
pub(crate) fn is_artificial(id: &str, collection: &str) -> bool {
    id.strip_prefix(collection).and_then(|rest| rest.strip_prefix('/')).is_some_and(|hash| {
        hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Every live document of a snapshot outside `@…` collections.
pub(crate) fn sources(snapshot: &Snapshot<'_>) -> Vec<Source> {
    let all = snapshot.documents(&IdRange::default()).map(Result::unwrap);
    all.filter(|document| !document.collection.starts_with('@'))
        .map(|document| Source {
            body: serde_json::from_str(&document.body).unwrap(),
            id: document.id,
            collection: document.collection,
            text: document.body,
        })
        .collect()
}

/// The documents of a collection in a snapshot, read by listing; the feed, the count and reads by id must tell the same.
pub(crate) fn documents(snapshot: &Snapshot<'_>, collection: &str) -> BTreeMap<String, StoredDocument> {
    let listed: BTreeMap<String, StoredDocument> = snapshot
        .documents(&IdRange::default())
        .map(Result::unwrap)
        .filter(|document| document.collection.eq_ignore_ascii_case(collection))
        .map(|document| (document.id.clone(), document))
        .collect();
    let feed = Feed::Collection(collection.to_owned());
    let live: BTreeMap<String, u64> = snapshot
        .changes(&feed, 0, u64::MAX, Direction::Forward)
        .map(Result::unwrap)
        .filter(|change| change.kind == ChangeKind::Put)
        .map(|change| (change.id, change.etag))
        .collect();
    let etags: BTreeMap<String, u64> = listed.iter().map(|(id, document)| (id.clone(), document.etag)).collect();
    assert_eq!(live, etags, "the feed of {collection} and its listing");
    let count = snapshot.collection(collection).unwrap().map_or(0, |count| count.documents);
    assert_eq!(count, listed.len() as u64, "the count of {collection}");
    listed
}
