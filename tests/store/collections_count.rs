//! Counts of collections and of the database, as a snapshot sees them.

use treepie::store::snapshot::{CollectionCount, DatabaseCount};

use crate::world::World;

fn count(name: &str, documents: u64, tombstones: u64, last_etag: u64) -> CollectionCount {
    CollectionCount { name: name.to_owned(), documents, tombstones, last_etag }
}

#[test]
fn collections_count_documents_tombstones_and_the_newest_etag() {
    let world = World::new();
    world.put("a", "Users");
    let before = world.store.snapshot();
    world.put("b", "users");
    world.put("c", "Orders");
    world.put("b", "Orders");
    world.delete("c");
    assert_eq!(before.collections().unwrap(), [count("Users", 1, 0, 1)]);
    assert_eq!(before.count().unwrap(), DatabaseCount { documents: 1, tombstones: 0, last_etag: 1 });
    drop(before);
    for world in [world.after_kill(), world.reopened()] {
        let snapshot = world.store.snapshot();
        assert_eq!(snapshot.collections().unwrap(), [count("Orders", 1, 1, 6), count("Users", 1, 1, 4)]);
        assert_eq!(snapshot.collection("USERS").unwrap(), Some(count("Users", 1, 1, 4)));
        assert_eq!(snapshot.collection("none").unwrap(), None);
        let counted = snapshot.count().unwrap();
        assert_eq!((counted.documents, counted.tombstones), (2, 2));
    }
}

#[test]
fn a_collection_without_documents_is_not_listed_and_keeps_its_spelling() {
    let world = World::new();
    world.put("a", "Users");
    world.delete("a");
    assert_eq!(world.store.snapshot().collections().unwrap(), []);
    let world = world.reopened();
    world.put("a", "USERS");
    assert_eq!(world.store.snapshot().collections().unwrap(), [count("Users", 1, 0, 3)]);
    assert_eq!(world.get("a").unwrap().collection, "USERS", "the document keeps its own spelling");
}

#[test]
fn each_collection_has_a_feed_of_its_own() {
    let world = World::new();
    for name in ["sales", "sales2", "sale", "sales/x"] {
        world.put(&format!("{name}/1"), name);
    }
    for name in ["sales", "sales2", "sale", "sales/x"] {
        let feed = world.feed_of(name);
        assert_eq!(feed.iter().map(|(_, _, id, _)| id.as_str()).collect::<Vec<_>>(), [format!("{name}/1")]);
    }
}
