//! Numbers of identities rise, are durable before they are given out, and are never given out twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use treepie::id::identity::free_number;
use treepie::id::{IdRequest, IdRules, IdentityName};
use treepie::store::commit::{Commit, Expected, Operation, PutId};
use treepie::store::coordinator::{Coordinator, Coordinators};
use treepie::store::document::DocumentFlags;
use treepie::store::{ErrorKind, Store, StoreError, StoreSettings};

use crate::world::{World, document};

fn name(name: &str) -> IdentityName {
    IdentityName::new(name, &IdRules::default()).unwrap()
}

fn next(world: &World, identity: &str) -> u64 {
    world.store.next_identities(&name(identity), 0, 1).unwrap()[0]
}

#[test]
fn numbers_rise_by_name_without_regard_to_case() {
    let world = World::new();
    assert_eq!(world.store.next_identities(&name("users|"), 0, 3).unwrap(), [1, 2, 3]);
    assert_eq!(next(&world, "USERS"), 4);
    assert_eq!(next(&world, "orders|"), 1);
    assert_eq!(world.store.next_identities(&name("users|"), 10, 2).unwrap(), [11, 12]);
    assert_eq!(world.store.next_identities(&name("users|"), 5, 0).unwrap(), Vec::<u64>::new());
    assert_eq!(world.store.list_identities().unwrap(), [("orders|".to_owned(), 1), ("users|".to_owned(), 12)]);
    assert!(world.store.next_identities(&name("users|"), u64::MAX - 1, 2).is_err());
    assert!(world.store.next_identities(&name("users|"), 0, 1 << 21).is_err());
    assert_eq!(next(&world, "users|"), 13);
}

#[test]
fn a_clean_stop_gives_unused_numbers_back() {
    let world = World::new();
    assert_eq!((next(&world, "users|"), next(&world, "users|")), (1, 2));
    world.store.close().unwrap();
    assert!(world.store.next_identities(&name("users|"), 0, 1).is_err(), "given back is given back");
    let world = world.reopened();
    assert_eq!(next(&world, "users|"), 3);
}

#[test]
fn a_kill_leaves_a_gap_of_at_most_32_and_reuses_nothing() {
    let mut world = World::new();
    let mut last = 0;
    for uses in [1, 31, 32, 33] {
        for _ in 0..uses {
            let number = next(&world, "users|");
            assert!(number > last && number <= last + 33, "{number} after {last}");
            last = number;
        }
        world = world.after_kill();
    }
}

#[test]
fn one_sync_serves_32_numbers() {
    let world = World::new();
    let syncs = world.store.counters().wal_syncs;
    let numbers = (0..64).map(|_| next(&world, "users|")).collect::<Vec<_>>();
    assert_eq!(numbers, (1..=64).collect::<Vec<_>>());
    assert_eq!(world.store.counters().wal_syncs - syncs, 2);
}

#[test]
fn concurrent_callers_get_different_numbers() {
    let world = World::new();
    let numbers = std::thread::scope(|scope| {
        let threads = (0..8).map(|_| scope.spawn(|| (0..100).map(|_| next(&world, "users|")).collect::<Vec<_>>()));
        let threads = threads.collect::<Vec<_>>();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<BTreeSet<_>>()
    });
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), (1..=800).collect::<Vec<_>>());
}

#[test]
fn seeding_goes_down_only_by_force() {
    let world = World::new();
    let seed = |value, force| world.store.seed_identity(&name("users|"), value, force).unwrap();
    assert_eq!(seed(1990, false), 1990);
    assert_eq!(next(&world, "users|"), 1991);
    assert_eq!(seed(5, false), 1991);
    assert_eq!(seed(5, true), 5);
    assert_eq!(next(&world, "users|"), 6);
    let world = world.after_kill();
    assert!((7..=38).contains(&next(&world, "users|")));
}

#[test]
fn an_identity_skips_taken_ids_and_never_overwrites() {
    let world = World::new();
    let operations = (1..=1_000).map(|number| crate::world::put(&format!("Users/{number}"), "C", "{\"old\":1}"));
    world.run(operations.collect()).unwrap();
    let identity = name("users|");
    let mut made = Vec::new();
    for _ in 0..5 {
        let mut above = 0;
        let id = loop {
            let number = world.store.next_identities(&identity, above, 1).unwrap()[0];
            let id = identity.finish(number, &world.store.id_rules()).unwrap();
            let put = Operation::Put {
                id: PutId::MustBeNew(id.clone()),
                document: document("C", "{}"),
                flags: DocumentFlags::default(),
                expected: Expected::Any,
            };
            match world.store.commit(Commit { operations: vec![put], ..Commit::default() }) {
                Ok(_) => break id,
                Err(StoreError::Taken { operation: 0, .. }) => {}
                Err(other) => panic!("{other}"),
            }
            let snapshot = world.store.snapshot();
            let is_taken = |number| snapshot.exists(&identity.finish(number, &world.store.id_rules())?);
            above = free_number(number, is_taken).unwrap().unwrap() - 1;
        };
        made.push(id.as_str().to_owned());
    }
    assert_eq!(made, ["users/1001", "users/1002", "users/1003", "users/1004", "users/1005"]);
    assert_eq!(world.get("users/1000").unwrap().body, "{\"old\":1}");
}

#[test]
fn configuration_values_change_only_from_what_was_seen() {
    let world = World::new();
    let set = |expected: Option<&str>, value: Option<&str>| {
        let bytes = |text: &str| text.as_bytes().to_vec();
        world.store.coordinator().compare_and_set("client", expected.map(bytes), value.map(bytes)).unwrap()
    };
    assert!(set(None, Some("1")));
    assert!(!set(None, Some("2")));
    assert!(set(Some("1"), Some("2")));
    assert_eq!(world.store.coordinator().value("client").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(set(Some("2"), None));
    assert_eq!(world.store.coordinator().value("client").unwrap(), None);
}

/// Nodes that can't reach each other.
#[derive(Debug)]
struct NoMajority;

impl NoMajority {
    fn refuse<T>() -> Result<T, StoreError> {
        Err(StoreError::Busy(
            "identities need a majority of the nodes, and it can't be reached now; ask again later".into(),
        ))
    }
}

impl Coordinator for NoMajority {
    fn next_identities(&self, _: &str, _: u64, _: u64) -> Result<u64, StoreError> {
        Self::refuse()
    }

    fn seed_identity(&self, _: &str, _: u64, _: bool) -> Result<u64, StoreError> {
        Self::refuse()
    }

    fn list_identities(&self) -> Result<Vec<(String, u64)>, StoreError> {
        Self::refuse()
    }

    fn value(&self, _: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Self::refuse()
    }

    fn compare_and_set(&self, _: &str, _: Option<Vec<u8>>, _: Option<Vec<u8>>) -> Result<bool, StoreError> {
        Self::refuse()
    }

    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Coordinators for NoMajority {
    fn coordinator(&self, _: &Path, _: Arc<dyn Coordinator>) -> Arc<dyn Coordinator> {
        Arc::new(NoMajority)
    }
}

#[test]
fn without_a_majority_identities_are_refused_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let settings = StoreSettings { coordinators: Some(Arc::new(NoMajority)), ..StoreSettings::default() };
    let store = Store::open(directory.path(), &settings).unwrap();
    let Ok(IdRequest::Identity(identity)) = IdRequest::parse(Some("users|"), &store.id_rules()) else { panic!() };
    assert_eq!(store.next_identities(&identity, 0, 1).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(store.seed_identity(&identity, 1, true).unwrap_err().kind(), ErrorKind::Busy);
    let world = World { store, directory };
    world.put("users/1", "C");
    world.run(vec![crate::world::put_server_side("users/", "C")]).unwrap();
    world.store.close().unwrap();
}
