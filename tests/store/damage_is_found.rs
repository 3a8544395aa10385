//! Rows that contradict each other are found by the check, and rows that can't be decoded are errors that name them.

use treepie::store::changes::Feed;
use treepie::store::keyspace;
use treepie::store::scan::Direction;
use treepie::store::snapshot::IdRange;
use treepie::store::{ErrorKind, Store, StoreSettings};

use crate::world::{World, id};

/// Closes the store, lets `damage` loose on a family, and opens it again.
fn damaged(world: World, family: &str, damage: impl Fn(&dyn Fn(&[u8], Option<&[u8]>))) -> World {
    let World { store, directory } = world;
    drop(store);
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, directory.path()).unwrap();
    let db = rocksdb::DB::open_cf(&options, directory.path(), families).unwrap();
    let handle = db.cf_handle(family).unwrap();
    damage(&|key, value| match value {
        Some(value) => db.put_cf(&handle, key, value).unwrap(),
        None => db.delete_cf(&handle, key).unwrap(),
    });
    drop(handle);
    drop(db);
    let store = Store::open(directory.path(), &StoreSettings::default()).unwrap();
    World { store, directory }
}

fn filled() -> World {
    let world = World::new();
    world.put("a", "C");
    world.put("b", "C");
    world.delete("b");
    world
}

/// Family, key, new value (`None`: the row goes), what is found.
type Case<'c> = (&'c str, &'c [u8], Option<&'c [u8]>, &'c str);

#[test]
fn a_missing_or_superfluous_row_is_found() {
    let change = keyspace::change(1);
    let of_collection = keyspace::collection_change(keyspace::CollectionNumber(1), 1);
    let tombstone = keyspace::tombstone(keyspace::CollectionNumber(1), "b");
    let cases: [Case<'_>; 5] = [
        ("changes", &change, None, "document 'a' with etag 1 has no row in the feed of the database"),
        ("collections", &of_collection, None, "document 'a' with etag 1 has no row in the feed of its collection"),
        ("documents", b"a", None, "the feed has Put of 'a' with etag 1"),
        ("tombstones", &tombstone, None, "the feed has Delete of 'b' with etag 3"),
        ("meta", b"store/totals", Some(&[3, 9, 9]), "the database counts"),
    ];
    for (family, key, value, finding) in cases {
        let world = damaged(filled(), family, |write| write(key, value));
        let findings = world.store.snapshot().verify().unwrap();
        assert!(findings.iter().any(|found| found.contains(finding)), "{family}: {findings:?}");
    }
}

#[test]
fn a_record_that_cannot_be_decoded_is_named() {
    let world = damaged(filled(), "documents", |write| write(b"a", Some(&[1, 2, 3])));
    let snapshot = world.store.snapshot();
    let error = snapshot.get(&id("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().starts_with("damaged row in documents at a: "), "{error}");
    assert!(snapshot.get_many(&[id("a")]).is_err() && snapshot.verify().is_err());
    let mut listing = snapshot.documents(&IdRange::default());
    assert!(listing.next().is_some_and(|document| document.is_err()));
    assert!(listing.next().is_none());
    let error = world.run(vec![crate::world::put("a", "C", "{}")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "a write that needs the row is refused");
    world.put("c", "C");
}

#[test]
fn a_damaged_feed_row_ends_the_feed_as_an_error() {
    let world = damaged(filled(), "changes", |write| write(&keyspace::change(1), Some(&[])));
    let snapshot = world.store.snapshot();
    let mut changes = snapshot.changes(&Feed::All, 0, u64::MAX, Direction::Forward);
    assert!(changes.next().is_some_and(|change| change.is_err()));
    assert!(changes.next().is_none());
}
