//! What a snapshot reads: documents by id and by range, index rows, always as of one moment.

use treepie::id::{DocumentId, IdRules, lower};
use treepie::store::commit::{Commit, RowChange};
use treepie::store::keyspace::{self, Family, Generation, KeyRange};
use treepie::store::scan::Direction::{self, Backward, Forward};
use treepie::store::snapshot::IdRange;

use crate::world::{World, id};

fn list(world: &World, prefix: &str, after: Option<&str>, direction: Direction) -> Vec<String> {
    let range = IdRange { prefix: prefix.to_owned(), after: after.map(str::to_owned), direction };
    world.store.snapshot().documents(&range).map(|document| document.unwrap().id).collect()
}

#[test]
fn a_prefix_takes_exactly_its_ids_in_byte_order() {
    let world = World::new();
    let ids = ["m/a", "m/♪♫", "m/\u{FFFD}", "m/😀", "m/\u{10FFFF}", "m0", "n"];
    for id in ids.iter().rev() {
        world.put(id, "C");
    }
    assert_eq!(list(&world, "", None, Forward), ids);
    assert_eq!(list(&world, "m/", None, Forward), ids[..5]);
    assert_eq!(list(&world, "M/", None, Backward), ids[..5].iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(list(&world, "m/\u{10FFFF}", None, Forward), ids[4..5]);
    assert_eq!(list(&world, "x", None, Forward), Vec::<String>::new());
}

#[test]
fn after_is_exclusive_in_both_directions_and_need_not_exist() {
    let world = World::new();
    for id in ["a", "A/1", "a/2", "a/3", "b"] {
        world.put(id, "C");
    }
    assert_eq!(list(&world, "a/", Some("A/1"), Forward), ["a/2", "a/3"]);
    assert_eq!(list(&world, "a/", Some("a/1x"), Forward), ["a/2", "a/3"]);
    assert_eq!(list(&world, "a/", Some("a/3"), Backward), ["a/2", "A/1"]);
    assert_eq!(list(&world, "a/", Some("zzz"), Backward), ["a/3", "a/2", "A/1"]);
    assert_eq!(list(&world, "a/", Some("zzz"), Forward), Vec::<String>::new());
    assert_eq!(list(&world, "a/", Some("a"), Backward), Vec::<String>::new());
    assert_eq!(list(&world, "", Some("a"), Forward), ["A/1", "a/2", "a/3", "b"]);
}

#[test]
fn ids_compare_without_regard_to_case_and_show_the_newest_spelling() {
    let world = World::new();
    world.put("AbC", "C");
    world.put("abc", "C");
    world.put("Straße", "C");
    world.put("STRASSE", "C");
    world.put("İ", "C");
    assert_eq!(world.get("ABC").unwrap().id, "abc");
    assert_eq!(world.get("i\u{307}").unwrap().id, "İ");
    assert_eq!(list(&world, "", None, Forward), ["abc", "İ", "STRASSE", "Straße"]);
    world.delete("aBc");
    assert_eq!(world.get("abc"), None);
}

#[test]
fn many_documents_are_read_in_the_order_of_the_ids() {
    let world = World::new();
    for number in 0..3_000 {
        if number % 7 != 0 {
            world
                .store
                .commit(crate::world::unsynced(vec![crate::world::put(&format!("d/{number}"), "C", "{}")]))
                .unwrap();
        }
    }
    let ids = (0..3_000).rev().map(|number| id(&format!("d/{number}"))).collect::<Vec<_>>();
    let documents = world.store.snapshot().get_many(&ids).unwrap();
    assert_eq!(documents.len(), ids.len());
    for ((id, document), number) in ids.iter().zip(&documents).zip((0..3_000).rev()) {
        let expected = (number % 7 != 0).then_some(id.as_str());
        assert_eq!(document.as_ref().map(|document| document.id.as_str()), expected);
    }
}

#[test]
fn a_snapshot_does_not_move() {
    let world = World::new();
    world.put("a", "C");
    let snapshot = world.store.snapshot();
    world.put("a", "D");
    world.put("b", "C");
    assert_eq!(snapshot.get(&id("a")).unwrap().unwrap().etag, 1);
    assert!(!snapshot.exists(&id("b")).unwrap() && snapshot.exists(&id("A")).unwrap());
    assert_eq!(snapshot.progress().written, 1);
    assert_eq!(snapshot.verify().unwrap(), Vec::<String>::new());
    let documents = snapshot.documents(&IdRange::default()).map(|document| document.unwrap().id);
    assert_eq!(documents.collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_scan_outlives_the_snapshot_it_came_from() {
    let world = World::new();
    world.put("a", "C");
    let mut scan = world.store.snapshot().rows(Family::Documents, KeyRange::all(), Forward);
    world.put("b", "C");
    assert_eq!(scan.next_row().unwrap().map(|(key, _)| key.to_vec()), Some(b"a".to_vec()));
    assert_eq!(scan.next_row().unwrap(), None);
    assert_eq!(scan.next_row().unwrap(), None);
}

#[test]
fn index_rows_are_read_by_key_range_and_nearest() {
    let world = World::new();
    let key = |generation: u32, id: &str| keyspace::map_document(Generation(generation), id);
    let put = |key: Vec<u8>| RowChange::Put { family: Family::MapDocuments, value: key.clone(), key };
    let rows = [(1, "a"), (1, "b"), (2, "a"), (2, "c"), (3, "a")].map(|(generation, id)| put(key(generation, id)));
    world.store.commit(Commit { rows: rows.into(), ..Commit::default() }).unwrap();
    let gone = keyspace::generation_range(Generation(1));
    let delete = |key| RowChange::Delete { family: Family::MapDocuments, key };
    let rows = vec![RowChange::DeleteRange { family: Family::MapDocuments, range: gone }, delete(key(3, "a"))];
    world.store.commit(Commit { rows, ..Commit::default() }).unwrap();

    let snapshot = world.store.snapshot();
    let found = snapshot.rows_many(Family::MapDocuments, &[key(2, "c"), key(1, "a"), key(2, "a")]).unwrap();
    assert_eq!(found, [Some(key(2, "c")), None, Some(key(2, "a"))]);
    assert_eq!(snapshot.row(Family::MapDocuments, &key(3, "a")).unwrap(), None);
    let range = keyspace::generation_range(Generation(2));
    for (direction, expected) in [(Forward, [key(2, "a"), key(2, "c")]), (Backward, [key(2, "c"), key(2, "a")])] {
        let mut scan = snapshot.rows(Family::MapDocuments, range.clone(), direction);
        let mut keys = Vec::new();
        while let Some((key, _)) = scan.next_row().unwrap() {
            keys.push(key.to_vec());
        }
        assert_eq!(keys, expected);
    }
    let nearest = |key: &[u8]| {
        let row = snapshot.row_at_or_before(Family::MapDocuments, &range.from, key).unwrap();
        row.map(|(key, _)| key)
    };
    assert_eq!(nearest(&key(2, "c")), Some(key(2, "c")));
    assert_eq!(nearest(&key(2, "b")), Some(key(2, "a")));
    assert_eq!(nearest(&key(2, "A")), None);
}

#[test]
fn an_inverted_range_is_empty() {
    let world = World::new();
    world.put("b", "C");
    for (from, before) in [("c", "a"), ("b", "b")] {
        let range = KeyRange { from: from.into(), before: Some(before.into()) };
        for direction in [Forward, Backward] {
            let mut scan = world.store.snapshot().rows(Family::Documents, range.clone(), direction);
            assert_eq!(scan.next_row().unwrap(), None);
        }
    }
}

#[test]
fn an_id_from_another_separator_can_still_be_read() {
    let world = World::new();
    let hash = IdRules { separator: '#', ..IdRules::default() };
    let id = DocumentId::new("users/", &hash).unwrap();
    assert_eq!(id.lower(), lower("Users/"));
    assert!(!world.store.snapshot().exists(&DocumentId::existing("users/").unwrap()).unwrap());
}
