//! A deletion is kept for every index that has not taken it in, however long that takes, and for readers that the database
//! does not know for as long as it was told to.

use std::time::Duration;

use treepie::database::{DatabaseError, DatabaseSettings, TombstoneStatus};
use treepie::store::StoreError;
use treepie::store::changes::{ChangeKind, Feed};

use crate::models::SUMS;
use crate::world::{World, delete, put};

const BODY: &str = r#"{"k":"a","v":2,"lines":[],"name":"n","bad":false,"x":1}"#;

fn status(world: &World, collection: &str) -> TombstoneStatus {
    let statuses = world.database().tombstones().unwrap();
    statuses.into_iter().find(|status| status.collection == collection).unwrap()
}

fn clean_up(world: &World) -> u64 {
    world.database().clean_up_tombstones().unwrap()
}

#[test]
fn an_index_that_stands_still_holds_the_deletions_of_its_sources() {
    let mut world = World::keeping_no_tombstones();
    world.index(SUMS.name, SUMS.script);
    for n in 0..20 {
        world.put("Orders", &format!("orders/{n}"), BODY);
    }
    world.put("Elsewhere", "elsewhere/1", "{}");
    world.sync();
    world.database().set_index_disabled(SUMS.name, true).unwrap();
    world.write((0..20).map(|n| delete(&format!("orders/{n}"))).chain([delete("elsewhere/1")]).collect());
    // Nobody reads the other collection.
    assert_eq!(clean_up(&world), 1);
    let held = status(&world, "Orders");
    assert_eq!((held.tombstones, held.purged_through), (20, 0));
    assert_eq!(held.held_by.as_deref(), Some(format!("index '{}'", SUMS.name).as_str()));
    world.reopen();
    assert_eq!(clean_up(&world), 0);
    world.database().set_index_disabled(SUMS.name, false).unwrap();
    world.sync();
    world.assert_equals(&SUMS);
    assert!(world.bodies(SUMS.output).is_empty());
    // Those of its outputs go with them.
    assert!(clean_up(&world) > 20);
    assert_eq!(status(&world, "Orders").tombstones, 0);
    assert_eq!(world.database().store().snapshot().verify().unwrap(), Vec::<String>::new());
}

#[test]
fn an_index_that_begins_after_a_clean_up_needs_nothing_of_before() {
    let world = World::keeping_no_tombstones();
    for n in 0..10 {
        world.put("Orders", &format!("orders/{n}"), BODY);
    }
    world.delete("orders/3");
    assert_eq!(clean_up(&world), 1);
    world.index(SUMS.name, SUMS.script);
    world.sync();
    world.assert_equals(&SUMS);
    world.delete("orders/4");
    world.sync();
    clean_up(&world);
    world.assert_equals(&SUMS);
}

#[test]
fn a_deletion_is_kept_for_its_time() {
    let world = World::with(DatabaseSettings::default());
    world.put("Orders", "orders/1", "{}");
    world.delete("orders/1");
    assert_eq!(clean_up(&world), 0);
    let kept = status(&world, "Orders");
    assert!(kept.held_by.unwrap().contains("1209600s"), "14 days");
    assert_eq!(kept.removable_through, 0);
}

#[test]
fn a_watch_misses_no_deletion_in_silence() {
    let patience = Duration::from_secs(30);
    let world = World::keeping_no_tombstones();
    let etags = [world.put("Orders", "a", "{}"), world.put("Orders", "b", "{}"), world.put("Orders", "c", "{}")];
    let deleted = world.delete("b");
    let mut in_time = world.database().watch(Feed::All, etags[1]).unwrap();
    assert_eq!(in_time.next_change(patience).unwrap().unwrap().id, "c");
    assert_eq!(in_time.next_change(patience).unwrap().unwrap().kind, ChangeKind::Delete);
    assert_eq!(clean_up(&world), 1);
    // Where it stands nothing is missing.
    world.write(vec![put("Orders", "d", "{}")]);
    assert_eq!(in_time.next_change(patience).unwrap().unwrap().id, "d");
    let mut late = world.database().watch(Feed::All, etags[1]).unwrap();
    let error = late.next_change(patience).unwrap_err();
    assert!(matches!(error, DatabaseError::Store(StoreError::Purged { through, .. }) if through == deleted), "{error}");
    let mut fresh = world.database().watch(Feed::All, 0).unwrap();
    let ids: Vec<String> = (0..3).map(|_| fresh.next_change(patience).unwrap().unwrap().id).collect();
    assert_eq!(ids, ["a", "c", "d"]);
}
