//! A collection that an index has claimed, and the ids of its artificial documents, are written by that index only.

use treepie::store::StoreError;
use treepie::store::commit::{Author, ClaimChange, Commit, Operation};

use crate::world::{World, delete, put};

const HASH: &str = "0123456789abcdef0123456789abcdef";

fn take(collection: &str, owner: u32) -> ClaimChange {
    ClaimChange::Take { collection: collection.to_owned(), owner, owner_name: format!("ix{owner}") }
}

fn claim(world: &World, claim: ClaimChange) -> Result<(), StoreError> {
    world.store.commit(Commit { claims: vec![claim], ..Commit::default() }).map(|_| ())
}

fn run_as(world: &World, index: u32, operations: Vec<Operation>) -> Result<(), StoreError> {
    let author = Author::Index(index);
    world.store.commit(Commit { author, operations, ..Commit::default() }).map(|_| ())
}

fn assert_owned(result: Result<(), StoreError>) {
    match result {
        Err(StoreError::Owned { collection, index, .. }) => assert_eq!((&*collection, &*index), ("Out", "ix1")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn users_may_not_write_what_an_index_owns() {
    let world = World::new();
    claim(&world, take("Out", 1)).unwrap();
    let own = format!("Out/{HASH}");
    run_as(&world, 1, vec![put(&own, "Out", "{}"), put("elsewhere", "OUT", "{}")]).unwrap();
    world.put("mine", "Mine");
    let world = world.reopened();
    for refused in [
        put("new", "out", "{}"),
        put("mine", "Out", "{}"),
        put("elsewhere", "Mine", "{}"),
        delete("elsewhere"),
        delete(&own),
        put(&format!("OUT/{HASH}"), "Mine", "{}"),
        put("out/ffffffffffffffffffffffffffffffff", "Mine", "{}"),
        delete("out/ffffffffffffffffffffffffffffffff"),
    ] {
        assert_owned(world.run(vec![put("innocent", "Mine", "{}"), refused]).map(|_| ()));
    }
    assert_eq!(world.get("innocent"), None);
    world.put("out/readable", "Mine");
    world.put(&format!("other/{HASH}"), "Mine");
    assert_eq!(world.store.snapshot().claim("oUt").unwrap().unwrap().owner_name, "ix1");
    world.assert_sound();
}

#[test]
fn an_index_may_write_only_what_it_has_claimed() {
    let world = World::new();
    claim(&world, take("Out", 1)).unwrap();
    claim(&world, take("Other", 2)).unwrap();
    assert_owned(run_as(&world, 2, vec![put("a", "Out", "{}")]));
    let error = run_as(&world, 1, vec![put("a", "Free", "{}")]).unwrap_err();
    assert!(error.to_string().contains("'Free' is not claimed"), "{error}");
}

#[test]
fn a_foreign_document_where_an_index_writes_is_named_and_stays() {
    let world = World::new();
    let foreign = format!("Out/{HASH}");
    world.put(&foreign, "Users");
    claim(&world, take("Out", 1)).unwrap();
    for operation in [put(&foreign, "Out", "{}"), delete(&foreign)] {
        let error = run_as(&world, 1, vec![put("a", "Out", "{}"), operation]).unwrap_err();
        match &error {
            StoreError::Foreign { id, collection, operation } => {
                assert_eq!((&**id, &**collection, *operation), (&*foreign, "Users", 1));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(world.get(&foreign).unwrap().collection, "Users");
    assert_eq!(world.get("a"), None);
    assert_owned(world.run(vec![put(&foreign, "Users", "{}")]).map(drop));
    world.run(vec![delete(&foreign)]).unwrap();
    run_as(&world, 1, vec![put(&foreign, "Out", "{}")]).unwrap();
    assert_owned(world.run(vec![delete(&foreign)]).map(drop));
}

#[test]
fn a_collection_can_be_claimed_only_when_empty_and_free() {
    let world = World::new();
    world.put("a", "Out");
    world.put("b", "Out");
    let error = claim(&world, take("oUt", 1)).unwrap_err().to_string();
    assert!(error.contains("'oUt'") && error.contains("2 documents"), "{error}");
    world.delete("a");
    world.delete("b");
    claim(&world, take("Out", 1)).unwrap();
    let error = claim(&world, take("out", 2)).unwrap_err().to_string();
    assert!(error.contains("belongs to index 'ix1'"), "{error}");
    run_as(&world, 1, vec![put("a", "Out", "{}")]).unwrap();
    claim(&world, take("Out", 1)).unwrap();
    for reserved in ["@empty", "@hilo", "@mine", ""] {
        assert!(claim(&world, take(reserved, 1)).is_err());
    }
}

#[test]
fn a_claim_is_taken_before_the_operations_and_released_after_them() {
    let world = World::new();
    let own = |claims, operations| Commit { author: Author::Index(1), claims, operations, ..Commit::default() };
    world.store.commit(own(vec![take("Out", 1)], vec![put("a", "Out", "{}")])).unwrap();
    let release = || vec![ClaimChange::Release { collection: "OUT".to_owned() }];
    let error = world.store.commit(own(release(), vec![delete("a"), put("b", "Free", "{}")])).unwrap_err();
    assert!(error.to_string().contains("not claimed"), "{error}");
    assert_owned(world.run(vec![delete("a")]).map(|_| ()));
    world.store.commit(own(release(), vec![delete("a")])).unwrap();
    world.put("a", "Out");
    let world = world.reopened();
    world.put("b", "Out");
    assert_eq!(world.store.snapshot().claim("Out").unwrap(), None);
}
