//! Bulk insert: many documents, with bounded requests under way.

use treepie::client::{Conventions, ErrorKind};

use crate::support::{Middleman, User, World, open, user};

#[tokio::test]
async fn many_documents_are_stored() {
    let world = World::start().await;
    let middleman = Middleman::before(&world.url).await;
    let store = open(&middleman.url, Conventions::new());
    let mut bulk = store.bulk_insert();
    for number in 0..30_000 {
        bulk.store_as(user(&number.to_string()), &format!("users/{number}")).await.unwrap();
    }
    let made = bulk.store(user("made")).await.unwrap();
    assert_eq!(bulk.finish().await.unwrap(), 30_001);
    assert_eq!(made, "users/1-A");
    assert_eq!(middleman.count("/bulk_docs"), 8);
    assert!(middleman.in_hand_most() <= 4, "{}", middleman.in_hand_most());
    let stored = world.raw("users/29999").await.unwrap();
    assert_eq!((&stored["name"], &stored["@metadata"]["@collection"]), (&"29999".into(), &"Users".into()));
    let mut session = store.session();
    assert!(session.load::<User>(&made).await.unwrap().is_some());
}

#[tokio::test]
async fn the_document_that_was_stored_last_stays() {
    let world = World::start().await;
    let mut bulk = world.store.bulk_insert();
    for number in 0..20_000 {
        bulk.store_as(user(&number.to_string()), &format!("users/{}", number % 100)).await.unwrap();
    }
    bulk.finish().await.unwrap();
    for last in [0, 99] {
        assert_eq!(world.raw(&format!("users/{last}")).await.unwrap()["name"], (19_900 + last).to_string());
    }
}

#[tokio::test]
async fn a_refused_batch_ends_the_insert() {
    let world = World::start().await;
    let mut bulk = world.store.bulk_insert();
    bulk.store_as(user("a"), "users/a").await.unwrap();
    bulk.store_as(user("b"), &"x".repeat(600)).await.unwrap();
    let error = bulk.finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller);
    assert!(world.raw("users/a").await.is_none());
}

#[tokio::test]
async fn identities_are_refused() {
    let world = World::start().await;
    let mut bulk = world.store.bulk_insert();
    let error = bulk.store_as(user("a"), "users|").await.unwrap_err();
    assert!(error.to_string().contains("users|"), "{error}");
    bulk.store_as(user("a"), "users/").await.unwrap();
    assert_eq!(bulk.finish().await.unwrap(), 1);
}
