//! What a session saves: all that changed, nothing else, all or nothing.

use serde_json::json;
use treepie::client::{Conventions, ErrorKind, Saved};

use crate::support::{Middleman, User, World, open, user};

#[tokio::test]
async fn only_what_changed_is_written() {
    let world = World::start().await;
    let mut session = world.store.session();
    session.store_as(user("a"), "users/a").await.unwrap();
    session.store_as(user("b"), "users/b").await.unwrap();
    assert_eq!(session.save_changes().await.unwrap(), Saved { stored: 2, deleted: 0, patched: 0 });
    assert_eq!(session.save_changes().await.unwrap(), Saved::default());

    let mut session = world.store.session();
    let loaded = session.load_many::<User>(&["users/a", "users/b"]).await.unwrap();
    let (a, b) = (loaded[0].unwrap(), loaded[1].unwrap());
    let before = session.change_vector(&b).unwrap().to_owned();
    session.get_mut(&a).unwrap().name = "A".into();
    // Touched, and as before.
    session.get_mut(&b).unwrap().name = "b".into();
    assert!(session.has_changed(&a).unwrap() && !session.has_changed(&b).unwrap());
    assert_eq!(session.save_changes().await.unwrap(), Saved { stored: 1, deleted: 0, patched: 0 });
    assert_eq!(session.change_vector(&b), Some(before.as_str()));
    assert_eq!(world.raw("users/a").await.unwrap()["name"], "A");
    assert!(session.last_modified(&a).is_some());
}

#[tokio::test]
async fn nothing_is_sent_where_nothing_changed() {
    let world = World::start().await;
    let middleman = Middleman::before(&world.url).await;
    let mut session = open(&middleman.url, Conventions::new()).session();
    session.save_changes().await.unwrap();
    assert_eq!(middleman.count(""), 0);
}

#[tokio::test]
async fn fields_and_metadata_that_the_type_does_not_know_stay() {
    let world = World::start().await;
    let document = json!({ "name": "a", "salary": 1, "@metadata": { "@collection": "Staff", "owner": "me" } });
    let mut session = world.store.session();
    session.store_as(document, "users/a").await.unwrap();
    session.save_changes().await.unwrap();

    let mut session = world.store.session();
    let loaded = session.load::<User>("users/a").await.unwrap().unwrap();
    session.get_mut(&loaded).unwrap().name = "b".into();
    session.set_metadata(&loaded, "seen", &true).unwrap();
    session.save_changes().await.unwrap();
    let stored = world.raw("users/a").await.unwrap();
    assert_eq!((&stored["name"], &stored["salary"]), (&json!("b"), &json!(1)));
    let metadata = &stored["@metadata"];
    assert_eq!(
        (&metadata["@collection"], &metadata["owner"], &metadata["seen"]),
        (&json!("Staff"), &json!("me"), &json!(true))
    );
    assert!(session.set_metadata(&loaded, "@id", &"x").is_err());
}

#[tokio::test]
async fn a_refused_save_stores_nothing_and_can_be_tried_again() {
    let world = World::start().await;
    let mut session = world.store.session();
    let good = session.store_as(user("a"), "users/a").await.unwrap();
    let bad = session.store_as(user("b"), &"x".repeat(600)).await.unwrap();
    let error = session.save_changes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller);
    assert!(world.raw("users/a").await.is_none());
    session.forget(&bad).unwrap();
    assert_eq!(session.save_changes().await.unwrap().stored, 1);
    assert!(session.change_vector(&good).is_some());
}

#[tokio::test]
async fn deletions_are_saved_with_the_rest() {
    let world = World::start().await;
    let mut session = world.store.session();
    let a = session.store_as(user("a"), "users/a").await.unwrap();
    session.store_as(user("b"), "users/b").await.unwrap();
    session.save_changes().await.unwrap();
    session.delete(&a).unwrap();
    session.delete_by_id("users/b").unwrap();
    assert!(session.load::<User>("users/a").await.unwrap().is_none());
    let anew = session.store_as(user("new"), "users/a").await.unwrap();
    assert_eq!(session.save_changes().await.unwrap(), Saved { stored: 1, deleted: 2, patched: 0 });
    assert_eq!(world.raw("users/a").await.unwrap()["name"], "new");
    assert!(world.raw("users/b").await.is_none());
    session.get_mut(&anew).unwrap().name = "newer".into();
    assert!(session.delete_by_id("users/a").is_err());
}

#[tokio::test]
async fn with_optimistic_concurrency_nobody_is_overwritten() {
    let world = World::start().await;
    let mut first = world.store.session();
    first.store_as(user("a"), "users/a").await.unwrap();
    first.save_changes().await.unwrap();

    let mut mine = world.store.session();
    mine.set_optimistic_concurrency(true);
    let loaded = mine.load::<User>("users/a").await.unwrap().unwrap();
    let mut theirs = world.store.session();
    let other = theirs.load::<User>("users/a").await.unwrap().unwrap();
    theirs.get_mut(&other).unwrap().name = "theirs".into();
    theirs.save_changes().await.unwrap();

    mine.get_mut(&loaded).unwrap().name = "mine".into();
    mine.store_as(user("b"), "users/b").await.unwrap();
    let error = mine.save_changes().await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(world.raw("users/a").await.unwrap()["name"], "theirs");
    assert!(world.raw("users/b").await.is_none());

    let mut fresh = world.store.session();
    fresh.set_optimistic_concurrency(true);
    fresh.store_as(user("again"), "users/a").await.unwrap();
    assert!(fresh.save_changes().await.unwrap_err().is_conflict());
    fresh.clear();
    let theirs = fresh.load::<User>("users/a").await.unwrap().unwrap();
    fresh.delete(&theirs).unwrap();
    fresh.save_changes().await.unwrap();
    assert!(world.raw("users/a").await.is_none());
}

#[tokio::test]
async fn one_id_is_one_entity() {
    let world = World::start().await;
    let mut session = world.store.session();
    session.store_as(user("a"), "users/a").await.unwrap();
    let error = session.store_as(user("b"), "Users/A").await.unwrap_err();
    assert!(error.to_string().contains("Users/A"), "{error}");
    let error = session.store(3).await.unwrap_err();
    assert!(error.to_string().contains("JSON object"), "{error}");
}

#[tokio::test]
async fn each_entity_of_a_batch_gets_its_own_id() {
    let world = World::start().await;
    let mut session = world.store.session();
    let mut entities = Vec::new();
    for id in ["users|", "users/", "", "users|", "users/x"] {
        entities.push(session.store_as(user(id), id).await.unwrap());
    }
    session.save_changes().await.unwrap();
    let ids: Vec<_> = entities.iter().map(|entity| session.document_id(entity).unwrap()).collect();
    assert_eq!((ids[0], ids[3], ids[4]), ("users/1", "users/2", "users/x"));
    assert!(ids[1].starts_with("users/00000") && ids[2].len() == 36);
    for (entity, asked) in entities.iter().zip(["users|", "users/", "", "users|", "users/x"]) {
        let id = session.document_id(entity).unwrap();
        assert_eq!(world.raw(id).await.unwrap()["name"], asked);
    }
}
