//! Whatever happens to documents and to definitions, in whatever order, with pauses, swaps, stops and crashes at any moment: in the end
//! rows and documents are those of a fresh build of the definitions that are left, and nothing of any other generation remains.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use treepie::database::Write;
use treepie::index::definition::IndexDefinition;

use crate::models::{FRIENDS, PARITIES, SHAPES, SUMS, sum_by_k};
use crate::world::{World, delete, put};

const SOURCES: [&str; 2] = ["Orders", "Returns"];
const OUTPUTS: [&str; 8] = ["Sums", "Out1", "Out2", "Shapes", "Parities", "Friends", "Circles", "Rings"];
const INDEXES: [&str; 4] = ["Sums", "Shapes", "Parities", "Friends"];

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    Write(Vec<Change>),
    Define { index: usize, variant: usize },
    Reset(usize),
    Cancel(usize),
    SwapNow(usize),
    RollBack(usize),
    Delete(usize),
    Pause(usize),
    Resume(usize),
    Disable(usize),
    Enable(usize),
    Sync,
    Stop,
    Crash,
}

/// A write of one document.
#[derive(Clone, Debug)]
enum Change {
    Put { id: usize, collection: usize, key: usize, value: i32 },
    Delete { id: usize },
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0_usize..120, 0_usize..2, prop_oneof![2 => Just(0_usize), 3 => 1_usize..12], 0_i32..50)
            .prop_map(|(id, collection, key, value)| Change::Put { id, collection, key, value }),
        1 => (0_usize..120).prop_map(|id| Change::Delete { id }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let index = || 0..INDEXES.len();
    prop_oneof![
        8 => prop::collection::vec(change(), 1..60).prop_map(Event::Write),
        9 => (prop_oneof![3 => Just(0_usize), 2 => Just(3_usize), 1 => 1..INDEXES.len()], 0_usize..6)
            .prop_map(|(index, variant)| Event::Define { index, variant }),
        2 => index().prop_map(Event::Reset),
        2 => index().prop_map(Event::Cancel),
        1 => index().prop_map(Event::SwapNow),
        2 => index().prop_map(Event::RollBack),
        1 => index().prop_map(Event::Delete),
        1 => index().prop_map(Event::Pause),
        2 => index().prop_map(Event::Resume),
        1 => index().prop_map(Event::Disable),
        2 => index().prop_map(Event::Enable),
        3 => Just(Event::Sync),
        1 => Just(Event::Stop),
        2 => Just(Event::Crash),
    ]
}

/// The scripts that an index may have.
fn script(index: usize, variant: usize) -> String {
    match (INDEXES[index], variant) {
        ("Sums", 0) => SUMS.script.to_owned(),
        ("Sums", 1) => SUMS.script.replace("v: doc.v })", "v: doc.v * 2 })"),
        ("Sums", 2) => sum_by_k("Orders", "Sums"),
        ("Sums", 3) => sum_by_k("Orders", "Out1"),
        ("Sums", 4) => sum_by_k("Returns", "Out2"),
        ("Sums", _) => format!("{}\nfn finish(key, value) {{ if value.n % 2 == 0 {{ value }} }}", SUMS.script),
        ("Shapes", 0..3) => SHAPES.script.to_owned(),
        ("Shapes", _) => SHAPES.script.replace("\"(\"", "\"[\""),
        ("Friends", 0) => FRIENDS.script.to_owned(),
        ("Friends", 1) => FRIENDS.script.replace("{n:00}/{v}", "{n}"),
        ("Friends", 2) => FRIENDS.script.replace("\"Circles\"", "\"Rings\""),
        ("Friends", 3) => FRIENDS.script.replace("reference(", "// reference("),
        ("Friends", 4) => {
            r#"source("Orders"); fn map(order) { emit(load(order.friend, "Returns").k, order.v); }"#.to_owned()
        }
        ("Friends", _) => FRIENDS.script.replace("v: order.v }", "v: order.v + 1 }"),
        (_, 0..3) => PARITIES.script.to_owned(),
        _ => PARITIES.script.replace("Groups: 1,", "Groups: 2,"),
    }
}

/// A database that lives.
struct Life {
    world: World,
    crashed: Vec<World>,
    /// Indexes that do not run: nobody can wait then.
    resting: BTreeSet<usize>,
}

impl Life {
    fn meets(&mut self, event: &Event) {
        let database = self.world.database();
        match event {
            Event::Write(changes) => {
                self.world.write(changes.iter().map(write).collect());
            }
            Event::Define { index, variant } => {
                self.world.index(INDEXES[*index], &script(*index, *variant));
            }
            // Where there is no such index, or nothing to go back to, that is told, and nothing happens.
            Event::Reset(index) => drop(database.reset_index(INDEXES[*index])),
            Event::Cancel(index) => drop(database.cancel_index_change(INDEXES[*index]).unwrap()),
            Event::SwapNow(index) => drop(database.swap_index(INDEXES[*index])),
            Event::RollBack(index) => drop(database.roll_back_index(INDEXES[*index])),
            Event::Delete(index) => {
                database.delete_index(INDEXES[*index]).unwrap();
                self.resting.remove(index);
            }
            Event::Pause(index) => {
                if database.pause_indexes(Some(INDEXES[*index])).is_ok() {
                    self.resting.insert(*index);
                }
            }
            Event::Disable(index) => {
                if database.set_index_disabled(INDEXES[*index], true).is_ok() {
                    self.resting.insert(*index);
                }
            }
            Event::Resume(index) => drop(database.resume_indexes(Some(INDEXES[*index]))),
            Event::Enable(index) => drop(database.set_index_disabled(INDEXES[*index], false)),
            Event::Sync if self.resting.is_empty() => self.world.sync(),
            Event::Sync => {}
            Event::Stop => self.world.reopen(),
            Event::Crash => {
                let next = self.world.copied();
                self.crashed.push(std::mem::replace(&mut self.world, next));
            }
        }
    }

    /// Lets everything that rests go on, and waits.
    fn settle(&mut self) {
        for name in INDEXES {
            drop(self.world.database().set_index_disabled(name, false));
        }
        self.world.database().resume_indexes(None).unwrap();
        self.world.sync();
    }
}

fn write(change: &Change) -> Write {
    match change {
        Change::Delete { id } => delete(&format!("o/{id}")),
        Change::Put { id, collection, key, value } => {
            let lines = if value % 3 == 0 { r#"["x","y"]"# } else { r#"["x"]"# };
            let friend = (id * 7 + key) % 130;
            let body = format!(r#"{{"k":{key},"v":{value},"name":"{id},","lines":{lines},"friend":"o/{friend}"}}"#);
            put(SOURCES[*collection], &format!("o/{id}"), &body)
        }
    }
}

fn outputs(world: &World) -> BTreeMap<String, String> {
    let of = |output: &&str| {
        world.documents(output).into_iter().map(|(id, document)| (id, document.body)).collect::<Vec<_>>()
    };
    OUTPUTS.iter().flat_map(of).collect()
}

/// The same documents and definitions in a database that has met nothing else.
fn fresh(world: &World, definitions: &[IndexDefinition]) -> World {
    let fresh = World::new();
    let sources = world.sources().into_iter().filter(|source| SOURCES.contains(&source.collection.as_str()));
    fresh.write(sources.map(|source| put(&source.collection, &source.id, &source.text)).collect());
    for definition in definitions {
        fresh.database().put_index(definition.clone()).unwrap();
    }
    fresh.sync();
    fresh
}

fn check(events: &[Event]) -> TestCaseResult {
    let mut life = Life { world: World::new(), crashed: Vec::new(), resting: BTreeSet::new() };
    for (index, name) in INDEXES.iter().enumerate() {
        life.world.index(name, &script(index, 0));
    }
    for event in events {
        life.meets(event);
    }
    life.settle();
    let definitions = life.world.database().indexes();
    let fresh = fresh(&life.world, &definitions);
    prop_assert_eq!(outputs(&life.world), outputs(&fresh));
    prop_assert!(life.world.rows() == fresh.rows(), "rows differ, or are left of another generation");
    let generations = life.world.generations();
    prop_assert_eq!(generations.len(), definitions.len(), "{:?}", generations);
    let statuses = life.world.database().index_status().unwrap();
    prop_assert!(statuses.iter().all(|status| status.replaces.is_none() && !status.stale), "{:?}", statuses);
    for output in OUTPUTS {
        let words = [format!("output(\"{output}\");"), format!("\", \"{output}\");")];
        let is_written = |line: &str| !line.contains("//") && words.iter().any(|word| line.contains(word));
        let owned = definitions.iter().any(|it| it.texts.maps[0].lines().any(is_written));
        let claim = life.world.database().store().snapshot().claim(output).unwrap();
        prop_assert_eq!(claim.is_some(), owned, "the claim on {}", output);
    }
    prop_assert_eq!(life.world.database().store().snapshot().verify().unwrap(), Vec::<String>::new());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_life_ends_like_a_fresh_build(events in prop::collection::vec(event(), 1..40)) {
        check(&events)?;
    }
}
