//! A verification finds whatever was done to an index behind its back, in every family of rows, and mends it; and it finds
//! nothing in what the index did itself, while it is written to, paused or full of faults.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use treepie::database::{DatabaseError, VerifyOptions};
use treepie::id::DocumentId;
use treepie::index::verify::{Difference, DifferenceKind, Verified, VerifyEvent};
use treepie::store::commit::{Author, Commit, Expected, Operation, PutId, RowChange};
use treepie::store::document::{Document, DocumentFlags};
use treepie::store::keyspace::{Family, KeyRange};
use treepie::store::scan::{Direction, OwnedRow};

use crate::models::{PARITIES, SUMS, sum_by_k};
use crate::world::{World, delete, put};

/// What a verification has told.
#[derive(Debug, Default)]
struct Told {
    differences: Vec<Difference>,
    verified: Vec<Verified>,
    mended: Vec<(Option<String>, bool, String)>,
    left: Option<u64>,
}

impl Told {
    fn kinds(&self) -> Vec<(DifferenceKind, &str)> {
        self.differences.iter().map(|it| (it.kind, it.family)).collect()
    }
}

fn verify(world: &World, index: Option<&str>, repair: bool) -> Told {
    try_verify(world, index, repair).unwrap()
}

fn try_verify(world: &World, index: Option<&str>, repair: bool) -> Result<Told, DatabaseError> {
    let options = VerifyOptions { index: index.map(str::to_owned), repair, patience: Duration::from_secs(120) };
    let mut told = Told::default();
    let left = world.database().verify(&options, &mut |event| {
        match event {
            VerifyEvent::Progress(_) => {}
            VerifyEvent::Difference(difference) => told.differences.push(difference),
            VerifyEvent::Verified(found) => told.verified.push(found),
            VerifyEvent::Mended { index, done, what } => told.mended.push((index, done, what)),
        }
        ControlFlow::Continue(())
    })?;
    told.left = left;
    Ok(told)
}

/// Nothing that was left alone may differ from what it should be.
pub(crate) fn assert_sound(world: &World) {
    let told = verify(world, None, false);
    assert_eq!(told.left, Some(0), "{told:#?}");
}

/// 700 documents: a group with a tree of several levels, a small one, and one that is the document's own.
fn world() -> World {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Sums"));
    let key = |number: u32| match number % 10 {
        0 => "\"small\"".to_owned(),
        1 => number.to_string(),
        _ => "\"large\"".to_owned(),
    };
    let order =
        |number| put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":{},"v":{number}}}"#, key(number)));
    world.write((0..700).map(order).collect());
    world.put("People", "people/1", r#"{"k":1}"#);
    world.sync();
    world
}

/// The rows of a family, all of them of the only index.
fn rows(world: &World, family: Family) -> Vec<OwnedRow> {
    let snapshot = world.database().store().snapshot();
    let mut scan = snapshot.rows(family, KeyRange::all(), Direction::Forward);
    let mut rows = Vec::new();
    while let Some((key, value)) = scan.next_row().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    rows
}

fn change(world: &World, rows: Vec<RowChange>) {
    world.database().store().commit(Commit { rows, ..Commit::default() }).unwrap();
}

fn output(world: &World, operation: Operation) {
    let author = Author::Index(1);
    world.database().store().commit(Commit { author, operations: vec![operation], ..Commit::default() }).unwrap();
}

fn artificial(id: &str, body: &str) -> Operation {
    Operation::Put {
        id: PutId::Given(DocumentId::existing(id).unwrap()),
        document: Document { collection: "Sums".to_owned(), metadata: "{}".to_owned(), body: body.to_owned() },
        flags: DocumentFlags { artificial: true },
        expected: Expected::Any,
    }
}

/// Does something to the rows of a sound index, and expects the verification to find this, to mend it and to find nothing more.
fn check(world: &World, what: &str, damage: impl FnOnce(&World), expected: (DifferenceKind, &str)) {
    let before = (world.rows(), world.bodies("Sums"));
    damage(world);
    let told = verify(world, Some("sums"), false);
    assert!(told.kinds().contains(&expected), "{what}: {told:#?}");
    assert!(told.left > Some(0) && told.mended.is_empty(), "{what}: {told:#?}");
    let told = verify(world, Some("Sums"), true);
    assert_eq!(told.left, Some(0), "{what}: {told:#?}");
    assert_eq!(told.mended.len(), 1, "{what}: {told:#?}");
    assert_eq!(told.verified.last().unwrap().differences(), 0, "{what}");
    assert!((world.rows(), world.bodies("Sums")) == before, "{what} is mended");
    world.sync();
}

/// A row of a family, and its neighbour by a changed last byte.
fn neighbour(row: &OwnedRow) -> Vec<u8> {
    let mut key = row.0.clone();
    *key.last_mut().unwrap() ^= 0x40;
    key
}

#[test]
fn a_missing_changed_or_foreign_row_of_every_family_is_found_and_mended() {
    let world = world();
    assert_eq!(verify(&world, None, false).left, Some(0));
    for family in [Family::MapDocuments, Family::MapEntries, Family::ReduceNodes, Family::ReduceGroups] {
        let name = family.name();
        assert!(rows(&world, family).len() > 10, "{name}");
        for place in [0, 1] {
            let pick = move |world: &World| {
                let rows = rows(world, family);
                rows[(rows.len() - 1) * place / 2].clone()
            };
            let delete = |world: &World| change(world, vec![RowChange::Delete { family, key: pick(world).0 }]);
            check(&world, &format!("missing {name} {place}"), delete, (DifferenceKind::Missing, name));
            let replace = |world: &World| {
                let (key, mut value) = pick(world);
                let other = rows(world, family).into_iter().find(|(_, other)| *other != value);
                value = other.map_or_else(|| [value.as_slice(), b"x"].concat(), |(_, other)| other);
                change(world, vec![RowChange::Put { family, key, value }]);
            };
            check(&world, &format!("changed {name} {place}"), replace, (DifferenceKind::Changed, name));
            let add = |world: &World| {
                let row = pick(world);
                change(world, vec![RowChange::Put { family, key: neighbour(&row), value: row.1 }]);
            };
            check(&world, &format!("foreign {name} {place}"), add, (DifferenceKind::Foreign, name));
        }
    }
}

#[test]
fn a_row_that_can_not_be_read_is_found_and_mended() {
    let world = world();
    for (family, kind) in
        [(Family::MapDocuments, DifferenceKind::Changed), (Family::ReduceGroups, DifferenceKind::Unreadable)]
    {
        let garble = |world: &World| {
            let (key, _) = rows(world, family).remove(5);
            change(world, vec![RowChange::Put { family, key, value: vec![0xff; 3] }]);
        };
        check(&world, family.name(), garble, (kind, family.name()));
    }
}

#[test]
fn a_missing_changed_or_foreign_artificial_document_is_found_and_only_it_is_written_again() {
    let world = world();
    let ids: Vec<String> = world.documents("Sums").into_keys().collect();
    let deleted = |id: &str| Operation::Delete { id: DocumentId::existing(id).unwrap(), expected: Expected::Any };
    let family = Family::Documents.name();
    let stray = "Sums/0123456789abcdef0123456789abcdef";
    let damages: [(&str, Operation, DifferenceKind); 5] = [
        ("missing", deleted(&ids[3]), DifferenceKind::Missing),
        ("changed", artificial(&ids[0], r#"{"Key":1,"n":99}"#), DifferenceKind::Changed),
        ("the last changed", artificial(ids.last().unwrap(), "{}"), DifferenceKind::Changed),
        ("of no group", artificial(stray, "{}"), DifferenceKind::Foreign),
        ("of an odd id", artificial("Sums/extra", "{}"), DifferenceKind::Foreign),
    ];
    for (what, damage, kind) in damages {
        let etags = world.etags("Sums");
        let rows_before = rows(&world, Family::ReduceGroups);
        check(&world, what, |world| output(world, damage), (kind, family));
        let moved = world.etags("Sums").iter().filter(|(id, etag)| etags.get(*id) != Some(*etag)).count();
        assert!(moved <= 1, "{what}: {moved} documents were written");
        assert_eq!(rows(&world, Family::ReduceGroups), rows_before, "{what}: the generation is the same one");
    }
}

#[test]
fn counts_that_do_not_add_up_are_found() {
    let world = world();
    let mut progress =
        rows(&world, Family::Meta).into_iter().filter(|(key, _)| key.starts_with(b"generation-progress/"));
    let (key, mut value) = progress.next().unwrap();
    // Numbers from 251 on stand as a mark and two bytes; one of them is the count of entries, 700.
    for at in 0..value.len() - 2 {
        if value[at] == 251 {
            value[at + 1] ^= 1;
        }
    }
    change(&world, vec![RowChange::Put { family: Family::Meta, key, value }]);
    let told = verify(&world, Some("Sums"), false);
    assert_eq!(told.kinds(), [(DifferenceKind::Changed, "meta")], "{told:?}");
    assert!(told.differences[0].detail.contains("700 entries"), "{told:?}");
}

#[test]
fn rows_of_a_generation_that_no_index_knows_are_found_and_deleted() {
    let world = world();
    let before = world.rows();
    for family in Family::OF_GENERATIONS {
        let key = [&[0, 0, 0x77, 0x77], b"anything".as_slice()].concat();
        change(&world, vec![RowChange::Put { family, key, value: Vec::new() }]);
    }
    let told = verify(&world, None, false);
    assert_eq!(told.left, Some(8), "{told:#?}");
    assert!(told.differences.iter().all(|it| it.place.contains("30583") && it.kind == DifferenceKind::Foreign));
    assert_eq!(verify(&world, None, true).left, Some(0));
    assert_eq!(world.rows(), before);
}

#[test]
fn an_index_that_is_written_to_is_verified_without_a_difference() {
    let world = world();
    world.index(SUMS.name, SUMS.script);
    world.index(PARITIES.name, PARITIES.script);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let id = format!("orders/{}", number * 7 % 900);
                world.write(vec![match number % 5 {
                    0 => delete(&id),
                    1 => put("Returns", &id, &format!(r#"{{"k":{},"v":1}}"#, number % 11)),
                    2 => put("Nowhere", &id, "{}"),
                    _ => put(
                        "Orders",
                        &id,
                        &format!(r#"{{"k":{},"v":{number},"bad":{}}}"#, number % 13, number % 17 == 3),
                    ),
                }]);
            }
            number
        });
        for _ in 0..8 {
            let told = verify(&world, None, false);
            assert_eq!(told.left, Some(0), "{told:#?}");
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 100);
    });
    world.sync();
    let told = verify(&world, None, false);
    assert_eq!((told.left, told.verified.len()), (Some(0), 2), "{told:#?}");
    assert!(told.verified.iter().all(|found| found.waiting == 0 && found.documents > 0), "{told:#?}");
}

#[test]
fn what_a_paused_index_has_yet_to_take_in_is_no_difference() {
    let world = world();
    world.database().pause_indexes(Some("Sums")).unwrap();
    world.write(vec![
        put("Orders", "orders/1", r#"{"k":"large","v":5}"#),
        put("Elsewhere", "orders/2", "{}"),
        delete("orders/3"),
        put("Orders", "orders/new", r#"{"k":"small","v":5}"#),
    ]);
    let told = verify(&world, Some("Sums"), false);
    assert_eq!((told.left, told.verified[0].waiting), (Some(0), 4), "{told:#?}");
    let row =
        rows(&world, Family::MapEntries).into_iter().find(|(key, _)| key.windows(9).any(|it| it == b"orders/3\0"));
    change(&world, vec![RowChange::Delete { family: Family::MapEntries, key: row.unwrap().0 }]);
    let told = verify(&world, Some("Sums"), false);
    assert!(told.kinds().contains(&(DifferenceKind::Missing, "map_entries")), "{told:#?}");
    let told = verify(&world, Some("Sums"), true);
    assert!(told.left > Some(0) && !told.mended[0].1, "it can't be built anew while it is paused: {told:#?}");
    world.database().resume_indexes(None).unwrap();
    assert_eq!(verify(&world, Some("Sums"), true).left, Some(0));
}

#[test]
fn faults_of_documents_and_groups_are_as_they_should_be() {
    let world = World::new();
    world.index(SUMS.name, SUMS.script);
    let order = |number: u32| {
        let key = if number % 9 == 0 { "poison".to_owned() } else { (number % 4).to_string() };
        put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":"{key}","v":1,"bad":{}}}"#, number % 25 == 0))
    };
    world.write((0..300).map(order).collect());
    world.put("Users", "Sums/5", "{}");
    world.sync();
    assert!(!world.faults("Sums").is_empty());
    let told = verify(&world, None, false);
    assert_eq!(told.left, Some(0), "{told:#?}");
}

#[test]
fn an_index_that_is_not_there_is_refused_by_name_and_one_that_never_ends_its_build_is_given_up() {
    let world = world();
    assert!(matches!(try_verify(&world, Some("none"), false), Err(DatabaseError::NoIndex { .. })));
    world.database().set_index_disabled("Sums", true).unwrap();
    world.database().reset_index("Sums").unwrap();
    world.database().set_index_disabled("Sums", true).unwrap();
    match try_verify(&world, Some("Sums"), false) {
        Err(DatabaseError::StillStale { indexes, .. }) => assert_eq!(indexes, ["Sums"]),
        // Where its build had ended already, it is sound.
        Ok(told) => assert_eq!(told.left, Some(0)),
        Err(other) => panic!("{other}"),
    }
}

/// Indexes with everything besides: entries in key order, loaded documents, reference documents.
fn wide_world() -> World {
    let world = World::new();
    world.index(
        "Sums",
        r#"source("Orders"); output("Sums"); reference("sums/{Region}");
           fn map(doc) {
               let customer = load(doc.customer, "Customers");
               emit(#{ Region: customer.region ?? "nowhere", k: doc.k }, #{ n: 1 });
           }
           fn reduce(key, values) { #{ n: values.sum("n") } }"#,
    );
    world.index("ByK", r#"source("Orders"); fn map(doc) { emit(doc.k, #{ v: doc.v }); emit(doc.k, #{ v: 0 }); }"#);
    for number in 0..20 {
        world.put("Customers", &format!("customers/{number}"), &format!(r#"{{"region":"r{}"}}"#, number % 4));
    }
    let order = |number: u32| {
        let customer = format!("customers/{}", number % 25);
        put(
            "Orders",
            &format!("orders/{number}"),
            &format!(r#"{{"k":{},"v":{number},"customer":"{customer}"}}"#, number % 7),
        )
    };
    world.write((0..150).map(order).collect());
    world.sync();
    world
}

#[test]
fn rows_in_key_order_of_loads_and_of_references_are_found_and_mended_too() {
    let world = wide_world();
    assert_eq!(verify(&world, None, false).left, Some(0));
    for family in [Family::MapKeys, Family::Loads, Family::ReduceKeys, Family::References] {
        let name = family.name();
        let sound = (world.rows(), world.bodies("Sums"));
        let (first, last) = (rows(&world, family).remove(0), rows(&world, family).pop().unwrap());
        assert_ne!(first, last, "{name}");
        let damages = [
            (DifferenceKind::Missing, RowChange::Delete { family, key: first.0.clone() }),
            (DifferenceKind::Changed, RowChange::Put { family, key: last.0.clone(), value: b"\x07other".to_vec() }),
            (DifferenceKind::Foreign, RowChange::Put { family, key: neighbour(&last), value: last.1.clone() }),
        ];
        for (kind, damage) in damages {
            // A build anew gives the rows of the family other generations, and so other keys, from the second on.
            let damage = of_present(&world, damage);
            change(&world, vec![damage]);
            let told = verify(&world, None, false);
            assert!(told.kinds().contains(&(kind, name)), "{kind:?} {name}: {told:#?}");
            assert_eq!(verify(&world, None, true).left, Some(0), "{kind:?} {name}");
            assert!((world.rows(), world.bodies("Sums")) == sound, "{kind:?} {name} is mended");
        }
    }
}

/// The same change in the generation that has rows of this family now.
fn of_present(world: &World, damage: RowChange) -> RowChange {
    let moved = |family: Family, key: Vec<u8>| {
        let present = rows(world, family).remove(0).0;
        [&present[..4], &key[4..]].concat()
    };
    match damage {
        RowChange::Put { family, key, value } => RowChange::Put { family, key: moved(family, key), value },
        RowChange::Delete { family, key } => RowChange::Delete { family, key: moved(family, key) },
        other => other,
    }
}

#[test]
fn a_reference_document_that_was_changed_taken_away_or_made_up_is_found_and_mended() {
    let world = wide_world();
    let reference = world.database().store().snapshot().claim("Sums").unwrap().unwrap().owner;
    let collection = world.get("sums/r0").unwrap().collection;
    let commit = |operation: Operation| {
        let author = Author::Index(reference);
        world.database().store().commit(Commit { author, operations: vec![operation], ..Commit::default() }).unwrap();
    };
    let put = |id: &str| Operation::Put {
        id: PutId::Given(DocumentId::existing(id).unwrap()),
        document: Document { collection: collection.clone(), metadata: "{}".to_owned(), body: "{}".to_owned() },
        flags: DocumentFlags { artificial: true },
        expected: Expected::Any,
    };
    let gone = Operation::Delete { id: DocumentId::existing("sums/r1").unwrap(), expected: Expected::Any };
    let before = world.bodies(&collection);
    for (kind, damage) in [
        (DifferenceKind::Changed, put("sums/r0")),
        (DifferenceKind::Missing, gone),
        (DifferenceKind::Foreign, put("sums/made-up")),
    ] {
        commit(damage);
        let told = verify(&world, Some("Sums"), true);
        assert_eq!(told.kinds(), [(kind, "documents")], "{told:#?}");
        assert_eq!((told.left, world.bodies(&collection)), (Some(0), before.clone()), "{kind:?}");
    }
}

#[test]
fn who_loads_what_an_index_has_yet_to_take_in_is_no_difference() {
    let world = wide_world();
    world.database().pause_indexes(None).unwrap();
    world.put("Customers", "customers/3", r#"{"region":"elsewhere"}"#);
    world.put("Customers", "customers/22", r#"{"region":"new"}"#);
    world.delete("customers/5");
    let told = verify(&world, Some("Sums"), false);
    assert_eq!((told.left, told.verified[0].waiting), (Some(0), 18), "{told:#?}");
}
