//! Definitions that are put, changed and deleted while their index builds, is read, is waited for, or is stopped: the end is that of
//! the last definition alone, nothing is left of the others, and nobody sees a collection empty that never was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use treepie::database::{DatabaseSettings, Write};
use treepie::store::probe::{Probe, Step};

use crate::models::{PARITIES, SUMS, sum_by_k};
use crate::world::{World, definition, put};

const DOCUMENTS: usize = 5_000;
const GROUPS: usize = 400;

fn fill(world: &World) {
    let one = |n: usize| put("Orders", &format!("orders/{n}"), &format!(r#"{{"k":{},"v":{n}}}"#, n % GROUPS));
    world.write((0..DOCUMENTS).map(one).collect());
}

/// [`SUMS`] with another constant, which makes it another definition with the same results.
fn variant(number: usize) -> String {
    SUMS.script.replace("fn map(doc) {", &format!("fn map(doc) {{ let variant = {number};"))
}

/// The writes that make the same orders elsewhere.
fn orders(world: &World) -> Vec<Write> {
    let orders = world.sources().into_iter().filter(|source| source.collection == "Orders");
    orders.map(|order| put("Orders", &order.id, &order.text)).collect()
}

/// Asserts that one generation has rows and that they are those of a fresh build.
fn assert_no_leftovers(world: &World, script: &str) {
    let fresh = World::new();
    fresh.write(orders(world));
    fresh.index("Sums", script);
    fresh.sync();
    assert!(world.rows() == fresh.rows(), "rows differ from those of a fresh build, or are left of another generation");
}

/// Tells of each time that a step is reached, and waits until it is let go on.
#[derive(Debug)]
struct Gate {
    step: Step,
    at: Sender<()>,
    go: Receiver<()>,
    is_open: Arc<AtomicBool>,
}

impl Probe for Gate {
    fn reached(&self, step: Step) {
        if step == self.step && !self.is_open.load(Ordering::Relaxed) {
            let _ = self.at.send(());
            let _ = self.go.recv();
        }
    }
}

#[test]
fn of_definitions_that_follow_each_other_during_a_build_the_last_one_counts() {
    let world = World::new();
    fill(&world);
    for number in 0..6 {
        assert!(world.index("Sums", &variant(number)));
    }
    assert!(!world.index("Sums", &variant(5)));
    world.sync();
    world.assert_equals(&SUMS);
    assert_no_leftovers(&world, &variant(5));
}

#[test]
fn outputs_that_were_given_up_during_a_build_are_emptied_and_free() {
    let mut world = World::new();
    fill(&world);
    world.index("Sums", &sum_by_k("Orders", "Out1"));
    world.sync();
    for output in ["Out2", "Out3", "Out1", "Out4", "Out3"] {
        world.index("Sums", &sum_by_k("Orders", output));
        if output == "Out4" {
            world.reopen();
        }
    }
    world.sync();
    assert_eq!(world.bodies("Out3").len(), GROUPS);
    for output in ["Out1", "Out2", "Out4"] {
        assert_eq!(world.bodies(output).len(), 0, "{output}");
        world.put(output, &format!("{output}/{:032x}", 1), r#"{"free":"again"}"#);
    }
    world.database().write(vec![put("Out3", "mine", "{}")]).unwrap_err();
    assert_no_leftovers(&world, &sum_by_k("Orders", "Out3"));
}

#[test]
fn an_index_that_is_deleted_during_its_build_leaves_nothing() {
    for step in [Step::RunCommitted, Step::SweepCommitted] {
        let (at_sender, at) = bounded(1);
        let (go, go_receiver) = bounded(1);
        let is_open = Arc::new(AtomicBool::new(false));
        let gate = Gate { step, at: at_sender, go: go_receiver, is_open: Arc::clone(&is_open) };
        let mut settings = DatabaseSettings::default();
        settings.store.probe = Some(Arc::new(gate));
        let mut world = World::with(settings);
        fill(&world);
        world.index("Sums", SUMS.script);
        at.recv_timeout(Duration::from_secs(60)).unwrap();
        is_open.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let deleted = scope.spawn(|| world.database().delete_index("sums").unwrap());
            go.send(()).unwrap();
            assert!(deleted.join().unwrap());
        });
        assert!(world.rows().is_empty(), "rows are left after {step:?}");
        assert!(world.documents("Sums").is_empty());
        world.put("Sums", "mine", "{}");
        world.reopen();
        assert_eq!(world.database().indexes(), []);
        world.delete("mine");
        world.index("Sums", SUMS.script);
        world.sync();
        world.assert_equals(&SUMS);
    }
}

#[test]
fn a_build_that_is_stopped_at_any_step_goes_on_to_the_same_end() {
    for step in [Step::RunCommitted, Step::SweepCommitted, Step::BeforeWrite] {
        for count in [1, 2, 30] {
            let (at_sender, at) = unbounded();
            let (_, go_at_once) = bounded(0);
            let gate = Gate { step, at: at_sender, go: go_at_once, is_open: Arc::default() };
            let mut settings = DatabaseSettings::default();
            settings.store.probe = Some(Arc::new(gate));
            let mut world = World::with(settings);
            fill(&world);
            while at.try_recv().is_ok() {}
            world.index("Sums", SUMS.script);
            for _ in 0..count {
                if at.recv_timeout(Duration::from_millis(200)).is_err() {
                    break;
                }
            }
            world.reopen();
            world.put("Orders", "orders/7", r#"{"k":1,"v":5}"#);
            world.index("Sums", SUMS.script);
            world.sync();
            world.assert_equals(&SUMS);
            assert_no_leftovers(&world, SUMS.script);
        }
    }
}

#[test]
fn a_changed_definition_never_shows_its_collection_empty() {
    let world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.index("Parities", PARITIES.script);
    world.sync();
    let before = world.etags("Sums");
    let is_over = AtomicBool::new(false);
    let looks = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(world.documents("Sums").len(), GROUPS);
                assert_eq!(world.documents("Parities").len(), 2);
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        for number in 0..4 {
            world.index("Sums", &variant(number));
            if number % 2 == 1 {
                world.sync();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(looks.load(Ordering::Relaxed) > 0);
    assert_eq!(world.etags("Sums"), before, "equal results are not written again");
    world.assert_equals(&PARITIES);
}

#[test]
fn a_moved_output_is_whole_in_the_new_place_before_it_leaves_the_old_one() {
    let world = World::new();
    fill(&world);
    world.index("Sums", &sum_by_k("Orders", "Out0"));
    world.sync();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let snapshot = world.database().store().snapshot();
                let count = |output: &str| snapshot.collection(output).unwrap().map_or(0, |count| count.documents);
                let counts: Vec<u64> = (0..4).map(|n| count(&format!("Out{n}"))).collect();
                assert!(counts.contains(&(GROUPS as u64)), "{counts:?}");
            }
        });
        for number in 1..4 {
            world.index("Sums", &sum_by_k("Orders", &format!("Out{number}")));
            world.sync();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_no_leftovers(&world, &sum_by_k("Orders", "Out3"));
}

#[test]
fn an_index_above_follows_while_the_one_below_changes_and_is_written_to() {
    let mut world = World::new();
    fill(&world);
    world.index("Parities", PARITIES.script);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..300 {
                world.put("Orders", &format!("orders/{}", n * 3), &format!(r#"{{"k":{},"v":{n}}}"#, n % 50));
            }
        });
        for number in 0..5 {
            world.index("Sums", &variant(number));
        }
    });
    world.sync();
    world.assert_equals(&SUMS);
    world.assert_equals(&PARITIES);
    world.reopen();
    world.index("Sums", &variant(9).replace("v: doc.v", "v: doc.v + doc.v"));
    world.sync();
    world.assert_equals(&PARITIES);
}

#[test]
fn clients_that_put_one_definition_at_once_make_one_index() {
    let world = World::new();
    fill(&world);
    let changed: usize = std::thread::scope(|scope| {
        let puts: Vec<_> = (0..8).map(|_| scope.spawn(|| usize::from(world.index("Sums", SUMS.script)))).collect();
        puts.into_iter().map(|put| put.join().unwrap()).sum()
    });
    assert_eq!(changed, 1);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let world = &world;
            scope.spawn(move || world.index("Sums", &variant(number)));
        }
    });
    world.sync();
    world.assert_equals(&SUMS);
    let definitions = world.database().indexes();
    assert_eq!(definitions.len(), 1);
    assert_no_leftovers(&world, &definitions[0].texts.maps[0]);
}

#[test]
fn who_waits_for_an_index_waits_on_when_its_definition_changes_and_no_longer_when_it_is_deleted() {
    let world = World::new();
    fill(&world);
    world.index("Sums", SUMS.script);
    world.database().pause_indexes(None).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.database().wait_for_indexes(None, Duration::from_secs(60)));
        std::thread::yield_now();
        world.index("Sums", &variant(1));
        world.database().resume_indexes(None).unwrap();
        waiting.join().unwrap().unwrap();
    });
    world.assert_equals(&SUMS);
    world.database().pause_indexes(None).unwrap();
    world.put("Orders", "orders/1", r#"{"k":1,"v":1}"#);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.database().wait_for_indexes(None, Duration::from_secs(60)));
        assert!(world.database().delete_index("Sums").unwrap());
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn an_index_over_all_documents_takes_users_and_artificial_ones_alike() {
    let mut world = World::new();
    let script = r#"
        source(ALL_DOCS);
        fn map(doc) { emit(collection(doc), #{ n: 1 }); }
        fn reduce(key, values) { #{ n: values.sum("n") } }
    "#;
    world.index("Everything", script);
    world.index("Sums", &sum_by_k("Orders", "Out"));
    fill(&world);
    world.sync();
    let entries = |world: &World| {
        let status = world.database().index_status().unwrap();
        let status = status.into_iter().find(|status| status.name == "Everything").unwrap();
        (status.entries, status.groups, status.stale)
    };
    assert_eq!(entries(&world), ((DOCUMENTS + GROUPS) as u64, 2, false));
    world.reopen();
    assert!(world.database().delete_index("Sums").unwrap());
    world.sync();
    assert_eq!(entries(&world), (DOCUMENTS as u64, 1, false));
    let error = world.try_index("Everything", &format!("output(\"All\");\n{script}")).unwrap_err();
    assert!(error.to_string().contains("can have no output"), "{error}");
}

#[test]
fn one_document_with_thousands_of_groups_comes_and_goes_like_any_other() {
    let world = World::new();
    let script = r#"
        source("Orders");
        output("Out");
        fn map(doc) { for n in 0..doc.groups { emit(n, #{ n: 1 }); } }
        fn reduce(key, values) { #{ n: values.sum("n") } }
    "#;
    world.index("Wide", script);
    for groups in [10_000, 9_999, 3, 10_000] {
        world.put("Orders", "orders/1", &format!(r#"{{"groups":{groups}}}"#));
        world.sync();
        assert_eq!(world.documents("Out").len(), groups);
    }
    world.put("Orders", "orders/1", r#"{"groups":10001}"#);
    world.sync();
    assert_eq!(world.documents("Out").len(), 0, "all or nothing");
    let faults = world.faults("Wide");
    assert!(faults.len() == 1 && faults[0].1.contains("10000 entries at most"), "{faults:?}");
    world.put("Orders", "orders/1", r#"{"groups":1}"#);
    world.put("Orders", "orders/2", r#"{"groups":10000}"#);
    world.sync();
    assert_eq!(world.faults("Wide"), []);
    let before = world.documents("Out");
    world.index("Wide", &script.replace("n: 1", "n: 2"));
    world.sync();
    assert_eq!(world.documents("Out").len(), before.len());
    assert_eq!(world.database().indexes(), [definition("Wide", &script.replace("n: 1", "n: 2"))]);
}

#[test]
fn a_build_over_large_values_goes_in_commits_of_bounded_size() {
    let world = World::new();
    for n in 0..48 {
        let texts = vec![format!("\"{}\"", format!("{}", n % 10).repeat(50_000)); 10].join(",");
        world.put("Orders", &format!("orders/{n}"), &format!(r#"{{"k":{},"texts":[{texts}]}}"#, n % 5));
    }
    let script = r#"
        source("Orders");
        output("Out");
        fn map(doc) { emit(doc.k, #{ n: 1, t: doc.texts }); emit("all", #{ n: 1, t: doc.texts }); }
        fn reduce(key, values) { #{ n: values.sum("n") } }
    "#;
    world.index("Large", script);
    world.sync();
    assert_eq!(world.faults("Large"), []);
    let bodies = world.bodies("Out");
    let expected: Vec<String> =
        (0..5).map(|k| format!(r#"{{"Key":{k},"n":{}}}"#, if k < 3 { 10 } else { 9 })).collect();
    assert_eq!(bodies[1..], expected);
    assert_eq!(bodies[0], r#"{"Key":"all","n":48}"#);
    let runs = world.database().index_counters("Large").unwrap().runs;
    assert!(runs >= 48 / 9, "48 MiB of entries in {runs} commits, where each may have 8 MiB and one document more");
    let fresh = World::new();
    fresh.index("Large", script);
    for order in orders(&world) {
        fresh.write(vec![order]);
    }
    fresh.sync();
    assert!(fresh.rows() == world.rows(), "written one by one, or built from what is there");
}
