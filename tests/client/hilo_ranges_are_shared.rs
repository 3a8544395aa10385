//! One store has one range for each collection: sessions share it, it is fetched once, and its rest goes back.

use std::collections::HashSet;

use treepie::client::{Conventions, ErrorKind};

use crate::support::{Middleman, World, open, user};

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_need_one_request_for_a_range() {
    let world = World::start().await;
    let middleman = Middleman::before(&world.url).await;
    let store = open(&middleman.url, Conventions::new());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut session = store.session();
            let entity = session.store(user("x")).await.unwrap();
            session.document_id(&entity).unwrap().to_owned()
        });
    }
    let ids: HashSet<String> = tasks.join_all().await.into_iter().collect();
    assert_eq!(ids, (1..=32).map(|number| format!("users/{number}-A")).collect());
    assert_eq!((middleman.count("/hilo/next"), middleman.count("/configuration/client")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_never_hand_out_one_id_twice() {
    let world = World::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = world.another_store();
        for _ in 0..4 {
            let store = store.clone();
            tasks.spawn(async move {
                let mut session = store.session();
                let mut ids = Vec::new();
                for _ in 0..100 {
                    let entity = session.store(user("x")).await.unwrap();
                    ids.push(session.document_id(&entity).unwrap().to_owned());
                }
                session.save_changes().await.unwrap();
                ids
            });
        }
    }
    let ids: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!((ids.len(), ids.iter().collect::<HashSet<_>>().len()), (1600, 1600));
}

#[tokio::test]
async fn the_rest_of_a_range_goes_back_when_the_store_is_closed() {
    let world = World::start().await;
    let store = world.another_store();
    let mut session = store.session();
    for _ in 0..5 {
        session.store(user("x")).await.unwrap();
    }
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(session.save_changes().await.unwrap_err().kind(), ErrorKind::Caller);

    let mut session = world.store.session();
    let entity = session.store(user("y")).await.unwrap();
    assert_eq!(session.document_id(&entity), Some("users/6-A"));
}

#[tokio::test]
async fn a_made_id_never_overwrites_a_document() {
    let world = World::start().await;
    let mut session = world.store.session();
    session.store_as(user("by hand"), "users/1-A").await.unwrap();
    session.save_changes().await.unwrap();
    let mut another = world.store.session();
    let made = another.store(user("made")).await.unwrap();
    assert_eq!(another.document_id(&made), Some("users/1-A"));
    assert!(another.save_changes().await.unwrap_err().is_conflict());
    assert_eq!(world.raw("users/1-A").await.unwrap()["name"], "by hand");
}
