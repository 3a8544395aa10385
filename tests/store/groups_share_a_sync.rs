//! One sync of the log for a group of commits; none where nobody waits for it; one soon after.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use treepie::store::commit::Commit;
use treepie::store::probe::{Probe, Step};
use treepie::store::{Durability, Progress, StoreSettings};

use crate::world::{Gate, World, block_on, put, unsynced};

/// Long enough for any machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_group_has_one_batch_and_one_sync() {
    let gate = Gate::new(Step::BeforeWrite);
    let world = World::with(&gate.settings());
    let before = world.store.counters();
    let commits = (0..100).map(|number| {
        let operations = vec![put(&format!("d/{number}"), "C", "{}")];
        Commit { operations, ..Commit::default() }
    });
    let answers = gate.one_group(&world.store, commits.collect());
    let etags = answers.into_iter().map(|answer| answer.unwrap().last_etag).collect::<Vec<_>>();
    assert_eq!(etags, (1..=100).collect::<Vec<_>>(), "etag order is commit order");
    let after = world.store.counters();
    assert_eq!(
        (after.batches - before.batches, after.wal_syncs - before.wal_syncs),
        (2, 2),
        "one for the first commit"
    );
}

/// A disk whose syncs take a while, so that how many writers are waiting by then does not hang on who is given a processor.
#[derive(Debug)]
struct SlowDisk;

impl Probe for SlowDisk {
    fn reached(&self, step: Step) {
        if step == Step::BeforeSync {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

#[test]
fn sixteen_writers_need_at_most_a_quarter_as_many_syncs_as_writes() {
    let world = World::with(&StoreSettings { probe: Some(Arc::new(SlowDisk)), ..StoreSettings::default() });
    let before = world.store.counters();
    let writes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let (world, writes) = (&world, &writes);
            scope.spawn(move || {
                for number in 0..200 {
                    world.put(&format!("{writer}/{number}"), "C");
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (after, writes) = (world.store.counters(), writes.into_inner());
    let syncs = after.wal_syncs - before.wal_syncs;
    assert!(syncs > 0 && syncs * 4 <= writes, "{syncs} syncs for {writes} writes");
    assert_eq!(after.commits, writes);
}

#[test]
fn a_written_commit_is_readable_before_its_sync_and_synced_soon() {
    let gate = Gate::new(Step::BeforeSync);
    let world = World::with(&gate.settings());
    gate.shut();
    let syncs = world.store.counters().wal_syncs;
    assert_eq!(world.store.commit(unsynced(vec![put("a", "C", "{}")])).unwrap().last_etag, 1);
    assert!(world.get("a").is_some());
    gate.wait_reached();
    assert_eq!(world.store.progress(), Progress { written: 1, durable: 0 });
    assert_eq!(world.store.snapshot().progress(), Progress { written: 1, durable: 0 });
    assert_eq!(world.store.counters().wal_syncs, syncs);
    let mut progress = world.store.watch_progress();
    gate.open();
    block_on(progress.wait_for(|progress| progress.durable == 1)).unwrap();
    assert_eq!(world.store.counters().wal_syncs, syncs + 1);
}

#[test]
fn who_needs_no_sync_does_not_wait_for_the_groups() {
    let gate = Gate::new(Step::BeforeSync);
    let world = World::with(&gate.settings());
    gate.shut();
    let durable = world.store.submit(Commit { operations: vec![put("a", "C", "{}")], ..Commit::default() });
    gate.wait_reached();
    assert!(world.get("a").is_some(), "what is written can be read");
    let written = world.store.submit(unsynced(vec![put("b", "C", "{}")]));
    gate.open();
    assert_eq!((block_on(durable).unwrap().last_etag, block_on(written).unwrap().last_etag), (1, 2));
}

#[test]
fn relaxed_durability_answers_and_publishes_without_a_sync() {
    let gate = Gate::new(Step::BeforeSync);
    let world = World::with(&StoreSettings { durability: Durability::Relaxed, ..gate.settings() });
    gate.shut();
    let syncs = world.store.counters().wal_syncs;
    assert_eq!(world.put("a", "C"), 1);
    assert_eq!(world.store.progress(), Progress { written: 1, durable: 1 });
    assert_eq!(world.store.counters().wal_syncs, syncs);
    gate.wait_reached();
    gate.open();
}

#[test]
fn the_unsynced_tail_is_bounded() {
    let gate = Gate::new(Step::BeforeSync);
    let world = World::with(&StoreSettings { durability: Durability::Relaxed, ..gate.settings() });
    let many = |from: usize, count: usize| (from..from + count).map(|it| put(&format!("d/{it}"), "C", "{}")).collect();
    world.run(many(0, 65_536)).unwrap();
    let syncs = world.store.counters().wal_syncs;
    world.run(many(65_536, 1)).unwrap();
    assert_eq!(world.store.counters().wal_syncs, syncs + 1, "the 65,537th etag waits for a sync of the others");
}

#[test]
fn waiters_are_woken_by_writes_and_by_hand() {
    let world = World::new();
    let store = &world.store;
    let waiting = Arc::new(std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let waiter = {
            let waiting = Arc::clone(&waiting);
            scope.spawn(move || {
                waiting.wait();
                store.wait_written_above(0, PATIENCE)
            })
        };
        waiting.wait();
        world.put("a", "C");
        assert_eq!(waiter.join().unwrap().written, 1);
        let wakes = store.wakes();
        let waiter = scope.spawn(move || store.wait_written_or_woken(1, wakes, PATIENCE));
        store.wake();
        assert_eq!(waiter.join().unwrap().written, 1);
    });
    assert_eq!(store.wait_written_above(1, Duration::ZERO).written, 1);
}
