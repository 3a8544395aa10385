//! A clean stop goes on where it ended, an unclean one leaves a gap of etags; a directory has one user; damage is refused.

use std::fs;
use std::path::{Path, PathBuf};

use treepie::store::commit::Commit;
use treepie::store::probe::Step;
use treepie::store::{ErrorKind, Memory, Store, StoreError, StoreSettings};

use crate::world::{Gate, World, block_on, copy, put};

fn open(path: &Path) -> Result<Store, StoreError> {
    Store::open(path, &StoreSettings::default())
}

/// The log that is being written.
pub(crate) fn log(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "log")).max().unwrap()
}

#[test]
fn a_clean_stop_goes_on_with_the_next_etag() {
    let world = World::new();
    let incarnation = world.store.incarnation().to_owned();
    assert_eq!(incarnation.len(), 22);
    world.put("a", "C");
    let world = world.reopened();
    assert_eq!(world.put("b", "C"), 2);
    assert_eq!(world.store.incarnation(), incarnation);
}

#[test]
fn an_unclean_stop_leaves_a_gap() {
    let world = World::new();
    assert_eq!((world.put("a", "C"), world.put("b", "C"), world.delete("b")), (1, 2, Some(3)));
    let killed = world.after_kill();
    assert_eq!(killed.store.progress().written, 3 + 65_536);
    assert_eq!(killed.put("c", "C"), 3 + 65_536 + 1);
    killed.assert_sound();
    let again = killed.after_kill().reopened();
    assert_eq!(again.put("d", "C"), 3 + 65_536 + 1 + 65_536 + 1);
}

#[test]
fn etags_of_a_group_larger_than_the_tail_are_reserved() {
    let gate = Gate::new(Step::AfterSync);
    let world = World::with(&gate.settings());
    let operations = (0..70_000).map(|number| put(&format!("d/{number}"), "C", "{}")).collect();
    gate.shut();
    let answer = world.store.submit(Commit { operations, ..Commit::default() });
    gate.wait_reached();
    let killed = world.after_kill();
    gate.open();
    assert_eq!(block_on(answer).unwrap().last_etag, 70_000);
    assert_eq!(killed.store.snapshot().count().unwrap().documents, 0, "only the reservation was written");
    assert_eq!(killed.put("a", "C"), 70_001);
}

#[test]
fn a_second_user_is_refused_and_told_why() {
    let world = World::new();
    let error = open(world.directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Busy);
    world.put("a", "C");
    let clone = world.store.clone();
    let World { store, directory } = world;
    drop(store);
    assert!(open(directory.path()).is_err(), "a clone is still there");
    drop(clone);
    assert!(open(directory.path()).is_ok());
}

#[test]
fn a_closed_store_refuses_writes_and_reads_on() {
    let world = World::new();
    world.put("a", "C");
    world.store.close().unwrap();
    world.store.close().unwrap();
    let error = world.store.commit(Commit::default()).unwrap_err();
    assert_eq!(error.to_string(), "the database does not take writes: it is closed");
    assert!(world.get("a").is_some());
    assert_eq!(World { store: world.store, directory: world.directory }.reopened().put("b", "C"), 2);
}

#[test]
fn a_newer_format_is_refused() {
    let world = World::new();
    let World { store, directory } = world;
    drop(store);
    {
        let options = rocksdb::Options::default();
        let families = rocksdb::DB::list_cf(&options, directory.path()).unwrap();
        let db = rocksdb::DB::open_cf(&options, directory.path(), families).unwrap();
        db.put_cf(&db.cf_handle("meta").unwrap(), "store/format", [2]).unwrap();
    }
    let error = open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("format version 2") && error.contains("open it with the version"), "{error}");
    {
        let options = rocksdb::Options::default();
        let families = rocksdb::DB::list_cf(&options, directory.path()).unwrap();
        let db = rocksdb::DB::open_cf(&options, directory.path(), families).unwrap();
        db.create_cf("vectors", &options).unwrap();
    }
    let error = open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("'vectors'"), "{error}");
}

#[test]
fn all_families_exist_from_the_start() {
    let World { store, directory } = World::new();
    drop(store);
    let mut families = rocksdb::DB::list_cf(&rocksdb::Options::default(), directory.path()).unwrap();
    families.retain(|name| name != "default");
    assert_eq!(families, treepie::store::keyspace::Family::ALL.map(treepie::store::keyspace::Family::name));
}

#[test]
fn a_log_that_is_cut_short_loses_only_its_end() {
    let world = World::new();
    for number in 0..20 {
        world.put(&format!("d/{number}"), "C");
    }
    let whole = copy(world.directory.path());
    let length = fs::metadata(log(whole.path())).unwrap().len();
    for cut in [1, 3, 7, 100, 1_000] {
        let torn = copy(whole.path());
        let file = fs::OpenOptions::new().write(true).open(log(torn.path())).unwrap();
        file.set_len(length - cut).unwrap();
        let store = open(torn.path()).unwrap_or_else(|error| panic!("{cut} bytes cut: {error}"));
        assert_eq!(store.snapshot().verify().unwrap(), Vec::<String>::new());
        let documents = store.snapshot().count().unwrap().documents;
        assert!((1..20).contains(&documents), "{documents} documents are left with {cut} bytes cut");
    }
}

#[test]
fn a_log_that_is_damaged_in_the_middle_is_refused() {
    let world = World::new();
    for number in 0..20 {
        world.put(&format!("d/{number}"), "C");
    }
    let damaged = copy(world.directory.path());
    let path = log(damaged.path());
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xFF;
    fs::write(&path, bytes).unwrap();
    let error = open(damaged.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn wrong_id_rules_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = StoreSettings::default();
    settings.id_rules.node_tag = "a".to_owned();
    assert_eq!(Store::open(directory.path(), &settings).unwrap_err().kind(), ErrorKind::Caller);
}

#[test]
fn missing_directories_are_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("databases").join("x");
    let store = open(&path).unwrap();
    assert!(store.size_on_disk().unwrap() > 0);
}

#[test]
fn a_failed_write_ends_writing_and_reading_goes_on() {
    let settings = StoreSettings { write_buffer_bytes: 1 << 20, ..StoreSettings::default() };
    let world = World::with(&settings);
    world.put("a", "C");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(world.directory.path(), elsewhere.path().join("gone")).unwrap();
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    let error = (0..1_000).find_map(|number| world.run(vec![put(&format!("d/{number}"), "C", &body)]).err()).unwrap();
    assert!(matches!(&error, StoreError::Closed(reason) if reason.contains("a write to disk failed")), "{error}");
    let later = world.run(vec![put("b", "C", "{}")]).unwrap_err();
    assert_eq!(later.to_string(), error.to_string(), "the reason stays");
    assert_eq!(later.kind(), ErrorKind::Internal);
    assert_eq!(world.get("b"), None);
    assert!(world.get("a").is_some());
    assert!(world.store.close().is_err());
}

#[test]
fn stores_may_share_their_memory() {
    let settings = StoreSettings { memory: Some(Memory::new(1 << 20, 1 << 20)), ..StoreSettings::default() };
    let (one, other) = (World::with(&settings), World::with(&settings));
    one.put("a", "C");
    drop(one);
    other.put("b", "C");
    other.assert_sound();
}
