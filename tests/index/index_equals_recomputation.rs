//! After any sequence of writes, pauses, restarts and rounds of clean-up an index equals its recomputation: by plain folding, by a fresh database
//! over the same documents in another order of arrival, and by a build anew in place, rows and bodies byte for byte.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};
use treepie::database::{ResultRange, Write};

use crate::models::{CIRCLES, FLOATS, FRIENDS, LINES, PARITIES, SHAPES, SUMS, circle, float, lines};
use crate::oracle::Model;
use crate::verification_finds_damage::assert_sound;
use crate::world::{World, delete, put};

const MODELS: [Model; 5] = [SHAPES, SUMS, PARITIES, FLOATS, FRIENDS];
/// Those that the oracle compares as they are.
const PLAIN: [Model; 4] = [SHAPES, SUMS, PARITIES, FRIENDS];
const COLLECTIONS: [&str; 3] = ["Orders", "Returns", "Elsewhere"];
/// More faults than these could stop an index, which is another behaviour.
const BAD_MAX: usize = 8;

/// What a user does.
#[derive(Clone, Debug)]
enum Deed {
    Write(Vec<Change>),
    Sync,
    Reopen,
    Pause(usize),
    Resume,
    Rebuild(usize),
    CleanUp,
}

/// A write of one document.
#[derive(Clone, Debug)]
enum Change {
    Put { id: usize, collection: usize, key: usize, value: i32, lines: Vec<usize>, bad: bool },
    Delete { id: usize },
    Recreate { id: usize, collection: usize, key: usize, value: i32 },
}

fn change() -> impl Strategy<Value = Change> {
    let id = 0_usize..130;
    let collection = prop_oneof![8 => Just(0_usize), 2 => Just(1_usize), 1 => Just(2_usize)];
    // Mostly one hot group, so that it grows a tree.
    let key = prop_oneof![6 => Just(0_usize), 4 => 1_usize..KEYS, 1 => Just(KEYS)];
    let lines = prop::collection::vec(prop_oneof![4 => Just(0_usize), 1 => 1_usize..4], 0..4);
    let bad = prop::bool::weighted(0.02);
    prop_oneof![
        6 => (id.clone(), collection.clone(), key.clone(), -3_i32..1000, lines, bad)
            .prop_map(|(id, collection, key, value, lines, bad)| Change::Put { id, collection, key, value, lines, bad }),
        3 => id.clone().prop_map(|id| Change::Delete { id }),
        1 => (id, collection, key, -3_i32..1000)
            .prop_map(|(id, collection, key, value)| Change::Recreate { id, collection, key, value }),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => prop::collection::vec(change(), 1..6).prop_map(Deed::Write),
        2 => prop::collection::vec(change(), 60..200).prop_map(Deed::Write),
        4 => Just(Deed::Sync),
        1 => Just(Deed::Reopen),
        2 => (0..MODELS.len()).prop_map(Deed::Pause),
        2 => Just(Deed::Resume),
        1 => (0..MODELS.len()).prop_map(Deed::Rebuild),
        3 => Just(Deed::CleanUp),
    ]
}

const KEYS: usize = 9;

fn key_of(number: usize) -> Value {
    let keys: [Value; KEYS + 1] = [
        json!("hot"),
        json!(1),
        json!("1"),
        json!(null),
        json!(true),
        json!(["a", "b"]),
        json!({ "Product": "é", "Month": "1998-05" }),
        json!(-7),
        json!("日本"),
        json!("poison"),
    ];
    keys[number].clone()
}

/// Ids of every kind, spelled now in capitals and now not.
fn id_of(number: usize, value: i32) -> String {
    let id = match number % 5 {
        0 => format!("orders/{number}"),
        1 => format!("gespräche/{number}"),
        2 => format!("😀{number}"),
        3 => format!("o{number}/lines"),
        _ => format!("{number:019}-a"),
    };
    if value % 2 == 0 { id.to_uppercase() } else { id }
}

fn body_of(id: usize, key: usize, value: i32, lines: &[usize], bad: bool) -> String {
    let lines: Vec<Value> = lines.iter().map(|&line| ["x", "y", "z", "é"][line].into()).collect();
    let name = format!("n{id},");
    // Now and then a document of its own, or one that does not exist.
    let friend = id_of((id * 7 + key * 11) % 140, value + 1);
    let fields = json!({ "k": key_of(key), "v": value, "lines": lines, "name": name, "bad": bad, "friend": friend });
    let text = fields.to_string();
    // A magnitude that only an f64 holds, and a mantissa whose sums round.
    format!("{},\"x\":{value}.7{id}e{}}}", &text[..text.len() - 1], 291 + id % 9)
}

/// A database that lives through deeds.
struct Life {
    world: World,
    bad: usize,
    paused: bool,
}

impl Life {
    fn new() -> Self {
        let world = World::keeping_no_tombstones();
        put_indexes(&world);
        Self { world, bad: 0, paused: false }
    }

    fn does(&mut self, deed: &Deed) {
        match deed {
            Deed::Write(changes) => {
                let writes = changes.iter().flat_map(|change| self.writes(change)).collect();
                self.world.write(writes);
            }
            Deed::Sync => self.sync(),
            Deed::Reopen => {
                self.world.reopen();
                self.paused = false;
            }
            Deed::Pause(number) => {
                self.world.database().pause_indexes(Some(MODELS[*number].name)).unwrap();
                self.paused = true;
            }
            Deed::Resume => self.resume(),
            Deed::CleanUp => drop(self.world.database().clean_up_tombstones().unwrap()),
            Deed::Rebuild(number) => {
                let model = MODELS[*number];
                assert!(self.world.database().delete_index(model.name).unwrap());
                self.world.index(model.name, model.script);
            }
        }
    }

    fn resume(&mut self) {
        self.world.database().resume_indexes(None).unwrap();
        self.paused = false;
    }

    /// Nobody can wait for an index that is paused.
    fn sync(&mut self) {
        if !self.paused {
            self.world.sync();
            self.assert_equals_oracle();
        }
    }

    fn assert_equals_oracle(&self) {
        assert_equals_oracle(&self.world);
    }

    fn writes(&mut self, change: &Change) -> Vec<Write> {
        match change {
            Change::Delete { id } => vec![delete(&id_of(*id, 0))],
            Change::Put { id, collection, key, value, lines, bad } => {
                let (key, bad) = self.bounded(*key, *bad);
                vec![put(COLLECTIONS[*collection], &id_of(*id, *value), &body_of(*id, key, *value, lines, bad))]
            }
            Change::Recreate { id, collection, key, value } => {
                let (key, bad) = self.bounded(*key, false);
                let again = put(COLLECTIONS[*collection], &id_of(*id, *value), &body_of(*id, key, *value, &[0], bad));
                vec![delete(&id_of(*id, 1)), again]
            }
        }
    }

    /// Lets a few documents and groups fail, and no more.
    fn bounded(&mut self, key: usize, bad: bool) -> (usize, bool) {
        if key < KEYS && !bad {
            return (key, bad);
        }
        self.bad += 1;
        if self.bad > BAD_MAX { (0, false) } else { (key, bad) }
    }
}

fn put_indexes(world: &World) {
    for model in MODELS {
        world.index(model.name, model.script);
    }
    world.index(LINES.0, LINES.1);
}

fn assert_equals_oracle(world: &World) {
    for model in PLAIN {
        world.assert_equals(&model);
    }
    assert_floats(world);
    assert_circles(world);
    assert_eq!(world.results(LINES.0, &ResultRange::all(usize::MAX)), lines(&world.sources()));
}

/// Each reference document lists the results that make its id, and there is no other.
fn assert_circles(world: &World) {
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, document) in world.documents(FRIENDS.output) {
        expected.entry(circle(&serde_json::from_str(&document.body).unwrap())).or_default().push(id);
    }
    let expected: BTreeMap<String, String> =
        expected.into_iter().map(|(id, listed)| (id, json!({ "ReduceOutputs": listed }).to_string())).collect();
    let found = world.documents(CIRCLES).into_iter().map(|(id, document)| (id, document.body));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}

/// The sums in f64, compared by their bits: how an f64 is printed is not what this is about.
fn assert_floats(world: &World) {
    let bits = |bodies: Vec<String>| -> BTreeMap<String, Option<u64>> {
        let read = |body: &String| {
            let key = serde_json::from_str::<Value>(body).unwrap().as_object().cloned().unwrap();
            let key: Value = key.into_iter().filter(|(name, _)| name != "x").collect();
            (key.to_string(), float(body, "x").map(f64::to_bits))
        };
        bodies.iter().map(read).collect()
    };
    assert_eq!(bits(world.bodies(FLOATS.output)), bits(FLOATS.expected(&world.sources())));
}

/// Puts the same documents into a fresh database in another order and in one batch, indexes first or last.
fn fresh(world: &World, seed: u64, indexes_first: bool) -> World {
    let fresh = World::new();
    let put_indexes = || {
        assert!(fresh.index(LINES.0, LINES.1));
        MODELS.iter().rev().for_each(|model| assert!(fresh.index(model.name, model.script)));
    };
    if indexes_first {
        put_indexes();
    }
    let of_indexes = |collection: &str| collection == CIRCLES || MODELS.iter().any(|model| model.output == collection);
    let mut documents: Vec<_> = world.sources().into_iter().filter(|source| !of_indexes(&source.collection)).collect();
    documents.sort_by_key(|source| source.id.bytes().fold(seed, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)));
    fresh.write(documents.iter().map(|source| put(&source.collection, &source.id, &source.text)).collect());
    if !indexes_first {
        put_indexes();
    }
    fresh.sync();
    fresh
}

fn outputs(world: &World) -> BTreeMap<String, String> {
    let of = |model: &Model| {
        world.documents(model.output).into_iter().map(|(id, document)| (id, document.body)).collect::<Vec<_>>()
    };
    let circles = world.documents(CIRCLES).into_iter().map(|(id, document)| (id, document.body));
    MODELS.iter().flat_map(of).chain(circles).collect()
}

/// Writes some documents again as they are: nothing but themselves may move.
fn assert_quiet(world: &World) {
    let before = (outputs(world), world.rows());
    let sources = world.sources().into_iter().filter(|source| COLLECTIONS.contains(&source.collection.as_str()));
    let again: Vec<Write> =
        sources.step_by(7).map(|source| put(&source.collection, &source.id, &source.text)).collect();
    let last = world.write(again).last_etag;
    world.sync();
    assert_eq!((outputs(world), world.rows()), before);
    assert_eq!(world.last_etag(), last);
}

fn check_history(deeds: &[Deed], seed: u64) -> TestCaseResult {
    let mut life = Life::new();
    for deed in deeds {
        life.does(deed);
    }
    life.resume();
    life.sync();
    assert_sound(&life.world);
    let (rows, documents) = (life.world.rows(), outputs(&life.world));
    for indexes_first in [true, false] {
        let fresh = fresh(&life.world, seed, indexes_first);
        prop_assert_eq!(&outputs(&fresh), &documents);
        prop_assert!(
            fresh.rows() == rows,
            "rows differ from those of a fresh database: {}",
            difference(&fresh, &life.world)
        );
    }
    for model in MODELS {
        life.does(&Deed::Rebuild(MODELS.iter().position(|other| other.name == model.name).unwrap_or_default()));
    }
    life.sync();
    prop_assert_eq!(&outputs(&life.world), &documents);
    prop_assert!(life.world.rows() == rows, "rows differ after a build anew");
    assert_quiet(&life.world);
    Ok(())
}

/// The rows that one world has and the other has not, cut short.
fn difference(one: &World, other: &World) -> String {
    let flat = |world: &World| world.rows().into_iter().flatten().collect::<std::collections::BTreeSet<_>>();
    let (one, other) = (flat(one), flat(other));
    let text = format!(
        "only in the fresh one: {:?}\nonly in the old one: {:?}",
        one.difference(&other),
        other.difference(&one)
    );
    text.chars().take(4_000).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_history_ends_in_the_rows_and_documents_of_a_fresh_build(
        deeds in prop::collection::vec(deed(), 1..40),
        seed in any::<u64>(),
    ) {
        check_history(&deeds, seed)?;
    }
}

#[test]
fn a_group_that_grows_and_shrinks_across_the_threshold_equals_its_recomputation() {
    let world = World::new();
    world.index(SHAPES.name, SHAPES.script);
    let body = |number: usize| format!(r#"{{"lines":["x"],"name":"{number},"}}"#);
    let mut most = 0;
    for number in 0..90 {
        world.put("Orders", &format!("orders/{}", number * 37 % 90), &body(number));
        world.sync();
        world.assert_equals(&SHAPES);
        most = most.max(SHAPES.counts(&world.sources())["\"x\""]);
    }
    assert_eq!(most, 90);
    for number in 0..90 {
        world.delete(&format!("orders/{}", number * 53 % 90));
        world.sync();
        world.assert_equals(&SHAPES);
    }
    assert_eq!(world.rows().len(), 0, "an index without entries has no rows");
}

#[test]
fn a_document_that_moved_between_two_sources_counts_once() {
    let world = World::new();
    for number in 0..20 {
        world.put("Orders", &format!("orders/{number}"), r#"{"k":1,"v":1}"#);
    }
    for number in 0..10 {
        world.put("Returns", &format!("orders/{number}"), r#"{"k":2,"v":1}"#);
    }
    world.index(SUMS.name, SUMS.script);
    world.sync();
    world.assert_equals(&SUMS);
    assert_eq!(world.bodies("Sums").len(), 2);
}

#[test]
fn writes_during_a_first_build_are_neither_lost_nor_taken_twice() {
    let world = World::new();
    let one = |number: usize, round: usize| {
        let (collection, key) = (COLLECTIONS[(number + round) % 3], (number * 7 + round) % KEYS);
        let id = id_of(number, i32::try_from(round).unwrap());
        put(collection, &id, &body_of(number, key, i32::try_from(round).unwrap(), &[0, round % 4], false))
    };
    for round in 0..2 {
        world.write((0..3_000).map(|number| one(number, round)).collect());
    }
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let world = &world;
            scope.spawn(move || {
                for round in 2..80 {
                    let numbers = (0..40).map(|place| (place * 71 + round * 13 + writer * 1_500) % 3_000);
                    let write = |number: usize| {
                        if number.is_multiple_of(5) { delete(&id_of(number, 0)) } else { one(number, round) }
                    };
                    world.write(numbers.map(write).collect());
                }
            });
        }
        put_indexes(&world);
    });
    world.sync();
    assert_equals_oracle(&world);
    let fresh = fresh(&world, 1, false);
    assert_eq!(outputs(&fresh), outputs(&world));
    assert!(fresh.rows() == world.rows(), "{}", difference(&fresh, &world));
}

#[test]
fn batches_of_any_size_end_alike() {
    let writes = || {
        (0..600_usize).map(|number| {
            let body = body_of(number, number % 3, i32::try_from(number).unwrap_or(0), &[0, number % 4], false);
            put(COLLECTIONS[number % 2], &format!("orders/{}", number % 400), &body)
        })
    };
    let build = |size: usize, sync_each: bool| {
        let world = World::new();
        put_indexes(&world);
        let all: Vec<Write> = writes().collect();
        for batch in all.chunks(size) {
            world.write(batch.to_vec());
            if sync_each {
                world.sync();
            }
        }
        world.sync();
        world
    };
    let one = build(600, false);
    for (size, sync_each) in [(1, false), (7, true), (100, true)] {
        let other = build(size, sync_each);
        assert_eq!(outputs(&other), outputs(&one));
        assert!(other.rows() == one.rows(), "batches of {size}: {}", difference(&other, &one));
    }
    assert_equals_oracle(&one);
}
