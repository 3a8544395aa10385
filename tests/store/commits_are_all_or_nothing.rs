//! A commit happens whole or leaves no trace, and a refused one harms no neighbour.

use treepie::store::commit::{Commit, Condition, Expected, Operation, OperationResult, PutId, RowChange};
use treepie::store::document::DocumentFlags;
use treepie::store::keyspace::{Family, KeyRange};
use treepie::store::probe::Step;
use treepie::store::{ErrorKind, StoreError};

use crate::world::{Gate, World, delete, delete_expecting, document, id, meta, put, put_expecting};

fn vector(world: &World, id: &str) -> String {
    world.get(id).unwrap().change_vector
}

#[test]
fn a_stale_change_vector_refuses_the_whole_batch() {
    let world = World::new();
    world.put("a", "C");
    let stale = vector(&world, "a");
    world.put("a", "C");
    let error = world
        .run(vec![
            put("b", "New", "{}"),
            delete("a"),
            put_expecting("a", "C", "{}", Expected::New),
            put_expecting("c", "C", "{}", Expected::ChangeVector(stale.clone())),
        ])
        .unwrap_err();
    assert!(
        matches!(&error, StoreError::Concurrency { id, expected, actual: None } if id == "c" && *expected == stale),
        "{error}"
    );
    assert_eq!(world.get("a").unwrap().etag, 2);
    assert_eq!(world.get("b"), None);
    assert_eq!(world.store.snapshot().collection("New").unwrap(), None);
    assert_eq!(world.put("d", "C"), 3, "no etag was used");
    world.assert_sound();
}

#[test]
fn expectations_hold_or_refuse() {
    let world = World::new();
    let run = |operation| world.run(vec![operation]).map_err(|error| error.kind());
    let is = |vector: &str| Expected::ChangeVector(vector.to_owned());
    assert!(run(put_expecting("a", "C", "{}", Expected::New)).is_ok());
    assert!(run(put_expecting("A", "C", "{}", is(&vector(&world, "a")))).is_ok());
    assert!(run(delete_expecting("none", Expected::New)).is_ok());
    for refused in [
        put_expecting("a", "C", "{}", Expected::New),
        put_expecting("a", "C", "{}", is("A:1-nonsense")),
        put_expecting("none", "C", "{}", is("A:1-nonsense")),
        delete_expecting("a", Expected::New),
        delete_expecting("a", is("A:1-nonsense")),
        delete_expecting("none", is("A:1-nonsense")),
    ] {
        assert_eq!(run(refused).unwrap_err(), ErrorKind::Conflict);
    }
    assert!(run(delete_expecting("a", is(&vector(&world, "a")))).is_ok());
}

#[test]
fn a_refused_neighbour_in_the_group_leaves_no_trace() {
    let gate = Gate::new(Step::BeforeWrite);
    let world = World::with(&gate.settings());
    world.put("kept", "C");
    world.put("gone", "C");
    world.delete("gone");
    let commit = |operations| Commit { operations, ..Commit::default() };
    let answers = gate.one_group(
        &world.store,
        vec![
            commit(vec![put("a", "C", "{}")]),
            commit(vec![
                put("a", "Elsewhere", r#"{"refused":true}"#),
                put("gone", "C", "{}"),
                delete("kept"),
                put_expecting("a", "C", "{}", Expected::New),
            ]),
            commit(vec![put_expecting("a", "C", r#"{"v":2}"#, Expected::Any), put("b", "D", "{}")]),
            commit(vec![put_expecting("b", "D", "{}", Expected::New)]),
        ],
    );
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false]);
    assert_eq!(answers[2].as_ref().unwrap().last_etag, 6);
    assert_eq!(world.get("a").unwrap().body, r#"{"v":2}"#);
    assert!(world.get("kept").is_some() && world.get("gone").is_none());
    assert_eq!(world.store.snapshot().collection("Elsewhere").unwrap(), None);
    world.assert_sound();
    world.reopened().assert_sound();
}

#[test]
fn a_change_vector_from_the_same_group_is_known() {
    let world = World::new();
    let results = world.run(vec![put("a", "C", "{}")]).unwrap().results;
    let OperationResult::Put { change_vector, etag, .. } = &results[0] else { panic!("{results:?}") };
    assert_eq!(*change_vector, format!("A:{etag}-{}", world.store.incarnation()));
    assert_eq!(vector(&world, "a"), *change_vector);
}

#[test]
fn a_taken_id_is_named_with_its_operation() {
    let world = World::new();
    world.put("Users/1", "C");
    let put = |number: u32| Operation::Put {
        id: PutId::MustBeNew(id(&format!("users/{number}"))),
        document: document("C", "{}"),
        flags: DocumentFlags::default(),
        expected: Expected::Any,
    };
    let error = world.run(vec![put(2), put(1)]).unwrap_err();
    assert!(matches!(&error, StoreError::Taken { id, operation: 1 } if id == "Users/1"), "{error}");
    assert!(matches!(world.run(vec![put(3), put(3)]), Err(StoreError::Taken { operation: 1, .. })));
    assert_eq!(world.get("users/2"), None);
}

#[test]
fn conditions_see_what_the_group_has_accepted() {
    let gate = Gate::new(Step::BeforeWrite);
    let world = World::with(&gate.settings());
    let advance = |from: Option<&[u8]>, to: &[u8]| Commit {
        rows: vec![meta("test/mark", to)],
        conditions: vec![Condition::MetaIs { name: "test/mark".to_owned(), value: from.map(<[u8]>::to_vec) }],
        ..Commit::default()
    };
    let wipe = Commit {
        rows: vec![RowChange::DeleteRange { family: Family::Meta, range: KeyRange::prefix(b"test/") }],
        ..Commit::default()
    };
    let answers = gate.one_group(
        &world.store,
        vec![advance(None, b"1"), advance(None, b"2"), advance(Some(b"1"), b"3"), wipe, advance(None, b"4")],
    );
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true, true]);
    assert!(answers[1].as_ref().is_err_and(|error| error.to_string().contains("'test/mark' was changed")));
    assert_eq!(world.store.snapshot().row(Family::Meta, b"test/mark").unwrap().as_deref(), Some(&b"4"[..]));
    assert_eq!(world.store.progress().written, 0, "index rows take no etag");
}

#[test]
fn the_stores_own_rows_are_out_of_reach() {
    let world = World::new();
    let range = |from: &[u8], before: Option<&[u8]>| RowChange::DeleteRange {
        family: Family::Meta,
        range: KeyRange { from: from.to_vec(), before: before.map(<[u8]>::to_vec) },
    };
    for row in [
        meta("store/format", b""),
        RowChange::Delete { family: Family::Documents, key: b"a".to_vec() },
        range(b"", None),
        range(b"s", Some(b"t")),
    ] {
        let error = world.store.commit(Commit { rows: vec![row], ..Commit::default() }).unwrap_err();
        assert!(error.to_string().contains("the store's own"), "{error}");
    }
    for row in [range(b"", Some(b"store/")), range(b"store0", None)] {
        world.store.commit(Commit { rows: vec![row], ..Commit::default() }).unwrap();
    }
}

#[test]
fn a_bad_collection_name_refuses_the_batch() {
    let world = World::new();
    for name in ["", "@mine", "a\nb", &"x".repeat(257)] {
        let error = world.run(vec![put("a", "C", "{}"), put("b", name, "{}")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Caller, "{error}");
    }
    assert_eq!(world.get("a"), None);
    world.run(vec![put("a", "@hilo", "{}"), put("b", "@empty", "{}")]).unwrap();
}

#[test]
fn a_dropped_future_still_commits() {
    let world = World::new();
    drop(world.store.submit(Commit { operations: vec![put("a", "C", "{}")], ..Commit::default() }));
    world.put("b", "C");
    assert_eq!(world.get("a").unwrap().etag, 1);
}
