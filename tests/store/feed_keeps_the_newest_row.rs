//! The feed has at most one row for each document and collection: the newest.

use treepie::store::changes::ChangeKind::{Delete, Put};
use treepie::store::changes::{ChangeKind, Feed};
use treepie::store::commit::{Commit, OperationResult};
use treepie::store::probe::Step;
use treepie::store::scan::Direction;

use crate::world::{Gate, World, delete, put};

fn row(etag: u64, kind: ChangeKind, id: &str, collection: &str) -> (u64, ChangeKind, String, String) {
    (etag, kind, id.to_owned(), collection.to_owned())
}

#[test]
fn a_newer_write_replaces_the_row_of_the_older() {
    let world = World::new();
    assert_eq!([world.put("Users/1", "Users"), world.put("users/2", "Users")], [1, 2]);
    assert_eq!(world.put("USERS/1", "users"), 3);
    let expected = [row(2, Put, "users/2", "Users"), row(3, Put, "USERS/1", "Users")];
    assert_eq!(world.feed(), expected);
    assert_eq!(world.feed_of("USERS"), expected);
    world.assert_sound();
}

#[test]
fn a_delete_leaves_a_tombstone_and_a_put_removes_it() {
    let world = World::new();
    world.put("a", "C");
    assert_eq!(world.delete("A"), Some(2));
    assert_eq!(world.feed(), [row(2, Delete, "a", "C")]);
    world.assert_sound();
    let world = world.reopened();
    assert_eq!(world.put("A", "C"), 3);
    assert_eq!(world.feed_of("c"), [row(3, Put, "A", "C")]);
    assert_eq!(world.store.snapshot().count().unwrap().tombstones, 0);
    world.assert_sound();
}

#[test]
fn deleting_what_is_not_there_is_no_change() {
    let world = World::new();
    let committed = world.run(vec![delete("a")]).unwrap();
    let nothing = OperationResult::Delete { id: "a".into(), existed: false, etag: None, change_vector: None };
    assert_eq!((committed.results.as_slice(), committed.last_etag), ([nothing].as_slice(), 0));
    world.put("a", "C");
    world.delete("a");
    assert_eq!(world.delete("a"), None);
    assert_eq!(world.feed(), [row(2, Delete, "a", "C")]);
}

#[test]
fn a_move_leaves_a_tombstone_in_the_old_collection_before_the_put() {
    let world = World::new();
    world.put("x", "Users");
    assert_eq!(world.put("X", "People"), 3);
    assert_eq!(world.feed(), [row(2, Delete, "x", "Users"), row(3, Put, "X", "People")]);
    assert_eq!(world.feed_of("Users"), [row(2, Delete, "x", "Users")]);
    world.assert_sound();
    assert_eq!(world.put("x", "users"), 5);
    assert_eq!(world.feed(), [row(4, Delete, "X", "People"), row(5, Put, "x", "Users")]);
    world.assert_sound();
    world.delete("x");
    world.put("x", "Third");
    assert_eq!(world.feed().len(), 3, "tombstones of one id in two collections stand beside its document in a third");
    world.assert_sound();
}

#[test]
fn one_batch_is_applied_in_order() {
    let world = World::new();
    let committed = world.run(vec![
        put("a", "C", r#"{"v":1}"#),
        delete("a"),
        put("a", "C", r#"{"v":2}"#),
        put("b", "C", "{}"),
        put("b", "D", "{}"),
        put("c", "C", "{}"),
        delete("c"),
        delete("c"),
    ]);
    assert_eq!(committed.unwrap().results.len(), 8);
    assert_eq!(world.get("a").unwrap().body, r#"{"v":2}"#);
    assert_eq!(
        world.feed(),
        [row(3, Put, "a", "C"), row(5, Delete, "b", "C"), row(6, Put, "b", "D"), row(8, Delete, "c", "C")]
    );
    world.assert_sound();
    world.reopened().assert_sound();
}

#[test]
fn put_delete_put_in_one_group_leaves_one_row() {
    let gate = Gate::new(Step::BeforeWrite);
    let world = World::with(&gate.settings());
    world.put("old", "C");
    let one = |operation| Commit { operations: vec![operation], ..Commit::default() };
    let answers = gate.one_group(
        &world.store,
        vec![
            one(put("a", "C", "{}")),
            one(delete("a")),
            one(put("A", "C", "{}")),
            one(delete("old")),
            one(delete("a")),
        ],
    );
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(world.feed(), [row(5, Delete, "old", "C"), row(6, Delete, "A", "C")]);
    world.assert_sound();
}

#[test]
fn the_feed_is_read_in_parts_and_backwards() {
    let world = World::new();
    for number in 1..=9 {
        world.put(&format!("d/{number}"), if number % 3 == 0 { "Thirds" } else { "Others" });
    }
    let snapshot = world.store.snapshot();
    let etags = |feed: &Feed, after, through, direction| {
        snapshot.changes(feed, after, through, direction).map(|change| change.unwrap().etag).collect::<Vec<_>>()
    };
    let thirds = Feed::Collection("thirds".to_owned());
    assert_eq!(etags(&Feed::All, 3, 6, Direction::Forward), [4, 5, 6]);
    assert_eq!(etags(&Feed::All, 6, u64::MAX, Direction::Backward), [9, 8, 7]);
    assert_eq!(etags(&thirds, 0, 6, Direction::Backward), [6, 3]);
    assert_eq!(etags(&thirds, 3, u64::MAX, Direction::Forward), [6, 9]);
    for (after, through) in [(9, 9), (9, 3), (100, u64::MAX), (u64::MAX, u64::MAX)] {
        assert_eq!(etags(&Feed::All, after, through, Direction::Forward), Vec::<u64>::new());
    }
    assert_eq!(etags(&Feed::Collection("none".to_owned()), 0, u64::MAX, Direction::Forward), Vec::<u64>::new());
    assert_eq!(snapshot.progress().written, 9);
}
