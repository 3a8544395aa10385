//! Tombstones that are removed leave documents, feeds and counts right, take no etag, and are known to be gone.

use treepie::store::StoreError;
use treepie::store::changes::Feed;
use treepie::store::commit::Commit;
use treepie::store::probe::Step;

use crate::world::{Gate, World, delete, put};

fn feed(collection: &str) -> Feed {
    Feed::Collection(collection.to_owned())
}

fn tombstones(world: &World, collection: &str) -> u64 {
    world.store.snapshot().collection(collection).unwrap().unwrap().tombstones
}

#[test]
fn a_purge_takes_no_etag_and_leaves_what_is_alive() {
    let world = World::new();
    world.put("a", "Users");
    world.put("b", "Users");
    world.put("c", "Orders");
    let deleted = world.delete("a").unwrap();
    world.delete("c");
    let last = world.store.progress();
    let purged = world.store.purge_tombstones("USERS", 0, last.durable).unwrap();
    assert_eq!((purged.removed, purged.through), (1, last.durable));
    assert_eq!(world.store.progress(), last);
    assert_eq!((tombstones(&world, "Users"), tombstones(&world, "Orders")), (0, 1));
    assert_eq!(world.store.snapshot().count().unwrap().tombstones, 1);
    assert!(world.feed().iter().all(|(etag, ..)| *etag != deleted));
    world.assert_sound();
    let world = world.reopened();
    assert_eq!(world.store.snapshot().purged_through(&feed("Users")).unwrap(), deleted);
    assert_eq!(world.put("a", "Users"), last.written + 1);
    world.assert_sound();
}

#[test]
fn a_reader_that_comes_back_too_late_is_told_and_a_fresh_one_is_not() {
    let world = World::new();
    for id in ["a", "b", "c"] {
        world.put(id, "Users");
    }
    let first = world.delete("a").unwrap();
    let second = world.delete("b").unwrap();
    world.put("d", "Orders");
    world.store.purge_tombstones("Users", 0, first).unwrap();
    let snapshot = world.store.snapshot();
    for of in [Feed::All, feed("Users")] {
        assert_eq!(snapshot.check_reader(&of, first, 0).unwrap(), first);
        assert_eq!(snapshot.check_reader(&of, second, 0).unwrap(), first);
        // Began with nothing when both were deleted: it never saw them.
        assert_eq!(snapshot.check_reader(&of, 0, second).unwrap(), first);
        for (after, begun) in [(1, 0), (first - 1, 0), (0, first - 1)] {
            let error = snapshot.check_reader(&of, after, begun).unwrap_err();
            assert!(matches!(error, StoreError::Purged { since, through } if since == after && through == first));
        }
    }
    snapshot.check_reader(&feed("Orders"), 1, 0).unwrap();
}

#[test]
fn a_tombstone_that_a_write_has_superseded_meanwhile_is_left_alone() {
    let gate = Gate::new(Step::BeforeWrite);
    let world = World::with(&gate.settings());
    world.put("a", "Users");
    let deleted = world.delete("a").unwrap();
    gate.shut();
    // The purge is planned while the write that supersedes its tombstone waits before it.
    let write = world.store.submit(Commit { operations: vec![put("a", "Users", "{}")], ..Commit::default() });
    gate.wait_reached();
    std::thread::scope(|scope| {
        let purge = scope.spawn(|| world.store.purge_tombstones("Users", 0, deleted));
        gate.open();
        purge.join().unwrap().unwrap();
    });
    crate::world::block_on(write).unwrap();
    assert!(world.get("a").is_some());
    assert_eq!(tombstones(&world, "Users"), 0);
    world.assert_sound();
}

#[test]
fn many_tombstones_go_in_several_commits() {
    let world = World::new();
    let ids: Vec<String> = (0..1_300).map(|n| format!("n/{n}")).collect();
    world.run(ids.iter().map(|id| put(id, "Users", "{}")).collect()).unwrap();
    world.run(ids.iter().map(|id| delete(id)).collect()).unwrap();
    let through = world.store.progress().durable;
    let (mut after, mut removed) = (0, Vec::new());
    while after < through {
        let purged = world.store.purge_tombstones("Users", after, through).unwrap();
        (after, removed) = (purged.through, [removed, vec![purged.removed]].concat());
    }
    assert_eq!(removed, [512, 512, 276]);
    assert_eq!(world.feed(), []);
    world.assert_sound();
}

#[test]
fn what_is_not_durable_stays() {
    let gate = Gate::new(Step::BeforeSync);
    let world = World::with(&gate.settings());
    world.put("a", "Users");
    gate.shut();
    let deletion = world.store.submit(Commit { operations: vec![delete("a")], ..Commit::default() });
    gate.wait_reached();
    assert_eq!(world.store.progress().written, 2);
    let purged = world.store.purge_tombstones("Users", 0, u64::MAX).unwrap();
    assert_eq!((purged.removed, purged.through), (0, 1));
    gate.open();
    crate::world::block_on(deletion).unwrap();
}
