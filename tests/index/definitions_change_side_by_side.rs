//! A changed definition is built beside the one that serves, which goes on following its sources; then it takes over, and the documents
//! change by difference only. Cancelled, replaced again, reset or stopped at any step, it leaves nothing behind.

use std::time::Duration;

use treepie::database::DatabaseError;
use treepie::index::status::{IndexPhase, IndexState, IndexStatus};
use treepie::script::Phase;
use treepie::store::probe::Step;

use crate::gate::{Gate, Gated};
use crate::models::{PARITIES, SUMS, sum_by_k};
use crate::world::{World, definition, delete, put};

const DOCUMENTS: usize = 600;
const GROUPS: usize = 60;

/// The thread of the first generation of the first index, and of the second one.
const SERVING: &str = "index-1-1";
const REPLACEMENT: &str = "index-1-2";

fn fill(world: &World) {
    let one = |n: usize| put("Orders", &format!("orders/{n}"), &format!(r#"{{"k":{},"v":{n}}}"#, n % GROUPS));
    world.write((0..DOCUMENTS).map(one).collect());
}

/// [`SUMS`] whose sums are doubled for some groups and whose other groups stay as they are.
fn doubled(from: usize) -> String {
    SUMS.script.replace("v: doc.v })", &format!("v: if doc.k >= {from} {{ doc.v * 2 }} else {{ doc.v }} }})"))
}

/// [`SUMS`] without the groups from `from` on.
fn without(from: usize) -> String {
    SUMS.script
        .replace("emit(doc.k", &format!("if doc.k < {from} {{ emit(doc.k"))
        .replace("v: doc.v });", "v: doc.v }); }")
}

/// A world of orders with `SUMS` built, and the thread of its replacement held at a step.
fn held_at(step: Step) -> (World, Gated) {
    let (gate, gated) = Gate::new(step, REPLACEMENT);
    let world = World::with(gate.into_settings());
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    (world, gated)
}

fn status(world: &World, name: &str) -> Option<IndexStatus> {
    world.database().index_status().unwrap().into_iter().find(|status| status.name == name)
}

/// Waits for what serves, not for the definition that is on its way.
fn follow(world: &World) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let names = vec!["Sums".to_owned()];
    runtime.block_on(world.database().wait_for_results_of(names, Duration::from_secs(60))).unwrap();
}

/// Asserts that the rows, the documents and `meta` are those of a fresh build of one definition.
fn assert_like_fresh(world: &World, script: &str) {
    let fresh = World::new();
    let of_users = |source: &crate::oracle::Source| source.collection == "Orders";
    let orders = world.sources().into_iter().filter(of_users);
    fresh.write(orders.map(|order| put("Orders", &order.id, &order.text)).collect());
    fresh.index("Sums", script);
    fresh.sync();
    let output = ["Sums", "Out1", "Out2"].into_iter().find(|output| !fresh.documents(output).is_empty()).unwrap();
    assert_eq!(world.bodies(output), fresh.bodies(output));
    assert!(world.rows() == fresh.rows(), "rows differ from those of a fresh build, or are left of another generation");
    assert_eq!(world.generations().len(), 1, "{:?}", world.generations());
}

#[test]
fn the_old_definition_serves_and_follows_until_the_new_one_takes_over() {
    let (world, gated) = held_at(Step::RunCommitted);
    let etags = world.etags("Sums");
    assert!(world.index("Sums", &doubled(40)));
    gated.arrived();
    let replacement = status(&world, "ReplacementOf/Sums").unwrap();
    assert_eq!(replacement.replaces.as_deref(), Some("Sums"));
    assert!(replacement.building && replacement.stale && replacement.phase == IndexPhase::Mapping);
    assert!(!status(&world, "Sums").unwrap().building);
    world.put("Orders", "orders/1", r#"{"k":1,"v":1000000}"#);
    follow(&world);
    world.assert_equals(&SUMS);
    assert_eq!(world.etags("Sums").len(), etags.len());
    gated.open();
    world.sync();
    assert!(status(&world, "ReplacementOf/Sums").is_none());
    let now = world.etags("Sums");
    let changed: Vec<&String> = etags.keys().filter(|&id| now[id] != etags[id]).collect();
    assert_eq!(changed.len(), 21, "the twenty doubled groups and the one that was written to");
    assert_like_fresh(&world, &doubled(40));
}

#[test]
fn equal_documents_keep_their_etag_and_groups_that_vanish_go() {
    let world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.index("Parities", PARITIES.script);
    world.sync();
    let (etags, last) = (world.etags("Sums"), world.last_etag());
    world.index("Sums", &SUMS.script.replace("fn map(doc) {", "fn map(doc) { let same = true;"));
    world.sync();
    assert_eq!((world.etags("Sums"), world.last_etag()), (etags.clone(), last), "nothing was written");
    assert_eq!(world.database().index_counters("Sums").unwrap().outputs_written, 0);
    world.index("Sums", &without(20));
    world.sync();
    let now = world.etags("Sums");
    assert_eq!(now.len(), 20);
    assert!(now.iter().all(|(id, etag)| etags[id] == *etag));
    let count = world.database().store().snapshot().collection("Sums").unwrap().unwrap();
    assert_eq!((count.documents, count.tombstones), (20, 40));
    assert_eq!(world.database().index_counters("Sums").unwrap().outputs_written, 40);
    world.assert_equals(&PARITIES);
}

#[test]
fn a_change_that_is_cancelled_at_any_step_leaves_the_old_results_and_nothing_else() {
    for step in [Step::RunCommitted, Step::SweepCommitted, Step::SwapFrozen, Step::MergeCommitted] {
        for output in ["Sums", "Out1"] {
            let (mut world, gated) = held_at(step);
            let script = doubled(0).replace(r#"output("Sums")"#, &format!("output(\"{output}\")"));
            world.index("Sums", &script);
            gated.arrived();
            let cancel = || world.database().cancel_index_change("sums").unwrap();
            assert!(gated.stopping(world.database(), cancel), "{step:?}");
            assert!(!world.database().cancel_index_change("Sums").unwrap());
            world.put("Orders", "orders/1", r#"{"k":1,"v":7}"#);
            world.sync();
            world.assert_equals(&SUMS);
            assert_eq!(world.documents("Out1").len(), 0);
            assert_like_fresh(&world, SUMS.script);
            world.put("Out1", "out1/mine", "{}");
            world.reopen();
            world.sync();
            assert_like_fresh(&world, SUMS.script);
        }
    }
}

#[test]
fn putting_the_present_definition_again_cancels_a_change() {
    let (world, gated) = held_at(Step::SweepCommitted);
    let (etags, last) = (world.etags("Sums"), world.last_etag());
    world.index("Sums", &doubled(0));
    gated.arrived();
    assert!(gated.stopping(world.database(), || world.index("Sums", SUMS.script)));
    assert!(!world.index("Sums", SUMS.script));
    world.sync();
    assert_eq!((world.etags("Sums"), world.last_etag()), (etags, last));
    assert_like_fresh(&world, SUMS.script);
}

#[test]
fn a_definition_that_is_replaced_again_at_any_step_never_counts() {
    for step in [Step::RunCommitted, Step::SwapFrozen, Step::MergeCommitted] {
        for (first, second) in [("Sums", "Sums"), ("Out1", "Sums"), ("Out1", "Out2"), ("Out1", "Out1")] {
            let (world, gated) = held_at(step);
            let to = |output: &str| format!("output(\"{output}\")");
            world.index("Sums", &doubled(0).replace(r#"output("Sums")"#, &to(first)));
            gated.arrived();
            let script = doubled(30).replace(r#"output("Sums")"#, &to(second));
            gated.stopping(world.database(), || world.index("Sums", &script));
            world.sync();
            assert_like_fresh(&world, &script);
            for free in ["Sums", "Out1", "Out2"].into_iter().filter(|output| *output != second) {
                assert_eq!(world.documents(free).len(), 0, "{free} after {step:?}");
                world.put(free, &format!("{free}/mine"), "{}");
            }
        }
    }
}

#[test]
fn a_new_output_collection_is_written_at_the_swap_and_not_before() {
    let (world, gated) = held_at(Step::SwapFrozen);
    world.index("Sums", &sum_by_k("Orders", "Out1"));
    gated.arrived();
    assert_eq!((world.documents("Sums").len(), world.documents("Out1").len()), (GROUPS, 0));
    let refused = world.database().write(vec![put("Out1", "mine", "{}")]).unwrap_err();
    assert!(refused.to_string().contains("Sums"), "the collection is claimed from the put on: {refused}");
    gated.open();
    world.sync();
    assert_eq!((world.documents("Sums").len(), world.documents("Out1").len()), (0, GROUPS));
    assert_like_fresh(&world, &sum_by_k("Orders", "Out1"));
}

#[test]
fn who_has_waited_for_an_index_never_sees_it_fall_back_at_a_swap() {
    let world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            for number in 0..6 {
                world
                    .index("Sums", &SUMS.script.replace("fn map(doc) {", &format!("fn map(doc) {{ let n = {number};")));
                world.sync();
            }
        });
        let mut value = 0;
        while !changes.is_finished() {
            value += 1;
            world.put("Orders", "mine", &format!(r#"{{"k":"mine","v":{value}}}"#));
            follow(&world);
            let body = format!(r#"{{"Key":"mine","n":1,"v":{value}}}"#);
            assert!(world.bodies("Sums").contains(&body), "{body} was there to be read");
        }
        changes.join().unwrap();
    });
}

#[test]
fn a_swap_that_is_asked_for_comes_before_all_is_mapped() {
    let (world, gated) = held_at(Step::RunCommitted);
    assert!(matches!(world.database().swap_index("Sums"), Err(DatabaseError::Definition { .. })));
    world.index("Sums", &doubled(0));
    gated.arrived();
    world.database().swap_index("sums").unwrap();
    gated.open();
    world.sync();
    assert_like_fresh(&world, &doubled(0));
}

#[test]
fn a_reset_builds_anew_without_a_write() {
    let mut world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    let (etags, last, rows) = (world.etags("Sums"), world.last_etag(), world.rows());
    for _ in 0..2 {
        world.database().reset_index("SUMS").unwrap();
        world.sync();
        assert_eq!((world.etags("Sums"), world.last_etag()), (etags.clone(), last));
        assert!(world.rows() == rows);
        world.reopen();
    }
    assert_eq!(world.generations().len(), 1);
}

#[test]
fn an_index_goes_back_to_its_former_definition_and_forth_again() {
    let mut world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    let error = world.database().roll_back_index("Sums").unwrap_err().to_string();
    assert!(error.contains("no other definition before"), "{error}");
    world.index("Sums", &doubled(0));
    world.sync();
    world.database().reset_index("Sums").unwrap();
    world.sync();
    world.reopen();
    assert!(world.database().roll_back_index("sums").unwrap());
    world.sync();
    world.assert_equals(&SUMS);
    assert!(world.database().roll_back_index("Sums").unwrap());
    world.sync();
    assert_like_fresh(&world, &doubled(0));
}

#[test]
fn a_replacement_that_fails_stops_itself_and_harms_nobody() {
    let mut world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    let bad = SUMS.script.replace("emit(doc.k", "throw \"all bad\"; emit(doc.k");
    world.index("Sums", &bad);
    for _ in 0..2 {
        let waited = world.database().wait_for_indexes(None, Duration::from_secs(60)).unwrap_err();
        assert!(matches!(waited, DatabaseError::StillStale { .. }), "{waited}");
        assert_eq!(status(&world, "ReplacementOf/Sums").unwrap().state, IndexState::Error);
        assert_eq!(status(&world, "Sums").unwrap().state, IndexState::Normal);
        assert!(!world.faults("ReplacementOf/Sums").is_empty());
        assert_eq!(world.faults("Sums"), []);
        world.put("Orders", "orders/1", r#"{"k":1,"v":8}"#);
        follow(&world);
        world.assert_equals(&SUMS);
        world.reopen();
    }
    world.index("Sums", &doubled(0));
    world.sync();
    assert_like_fresh(&world, &doubled(0));
}

#[test]
fn the_replacement_of_an_index_that_is_paused_or_turned_off_waits_with_it() {
    let mut world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    world.database().pause_indexes(Some("Sums")).unwrap();
    world.index("Sums", &doubled(0));
    assert_eq!(status(&world, "ReplacementOf/Sums").unwrap().state, IndexState::Paused);
    let error = world.database().swap_index("Sums").unwrap_err().to_string();
    assert!(error.contains("does not run"), "{error}");
    world.assert_equals(&SUMS);
    world.database().set_index_disabled("Sums", true).unwrap();
    world.reopen();
    assert_eq!(status(&world, "ReplacementOf/Sums").unwrap().state, IndexState::Disabled);
    world.assert_equals(&SUMS);
    world.database().set_index_disabled("Sums", false).unwrap();
    world.sync();
    assert_like_fresh(&world, &doubled(0));
}

#[test]
fn a_group_whose_id_was_taken_comes_back_by_itself_when_it_is_free() {
    let mut world = World::new();
    world.put("Orders", "orders/1", r#"{"k":1,"v":5}"#);
    world.index("Sums", SUMS.script);
    world.sync();
    let id = world.etags("Sums").into_keys().next().unwrap();
    world.database().delete_index("Sums").unwrap();
    world.put("Elsewhere", &id, r#"{"foreign":true}"#);
    world.index("Sums", SUMS.script);
    world.sync();
    for _ in 0..2 {
        assert_eq!(world.bodies("Sums").len(), 0);
        let faults = world.database().index_faults("Sums").unwrap();
        assert!(faults.len() == 1 && faults[0].fault.phase == Phase::Finish, "{faults:?}");
        assert!(faults[0].fault.message.contains(&id));
        world.index("Sums", &doubled(1));
        world.sync();
        world.reopen();
    }
    assert_eq!(world.get(&id).unwrap().collection, "Elsewhere");
    world.write(vec![delete(&id)]);
    world.sync();
    assert_eq!(world.bodies("Sums"), [r#"{"Key":1,"n":1,"v":10}"#]);
    assert_eq!(world.faults("Sums"), []);
    assert_like_fresh(&world, &doubled(1));
}

#[test]
fn a_crashed_swap_goes_on_where_it_stood() {
    for step in [Step::SwapFrozen, Step::MergeCommitted, Step::SwapFlipped, Step::OutputEmptied] {
        let (world, gated) = held_at(step);
        world.index("Sums", &sum_by_k("Orders", "Out1"));
        gated.arrived();
        let after = world.copied();
        gated.open();
        after.put("Orders", "orders/1", r#"{"k":5,"v":5}"#);
        after.sync();
        assert_eq!(after.documents("Sums").len(), 0);
        assert_like_fresh(&after, &sum_by_k("Orders", "Out1"));
        assert_eq!(after.database().indexes(), [definition("Sums", &sum_by_k("Orders", "Out1"))]);
    }
}

#[test]
fn the_one_that_serves_is_stopped_only_when_the_other_has_caught_up() {
    let (gate, gated) = Gate::new(Step::RunReduced, SERVING);
    let world = World::with(gate.into_settings());
    fill(&world);
    world.index("Sums", SUMS.script);
    world.sync();
    world.index("Sums", &doubled(0));
    world.sync();
    assert!(!gated.has_arrived(), "a build makes no runs");
    assert_like_fresh(&world, &doubled(0));
}
