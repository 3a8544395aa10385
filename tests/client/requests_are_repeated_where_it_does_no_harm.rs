//! When the server is busy or an answer is lost: what is sent again, and what is not.

use treepie::client::{Conventions, DocumentStore, ErrorKind};

use crate::support::{Deed, Middleman, User, World, open, user};

async fn spoiled() -> (World, Middleman, DocumentStore) {
    let world = World::start().await;
    let middleman = Middleman::before(&world.url).await;
    let store = open(&middleman.url, Conventions::new());
    (world, middleman, store)
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let (world, middleman, store) = spoiled().await;
    middleman.plan("/bulk_docs", Deed::Answer(503));
    middleman.plan("/bulk_docs", Deed::Answer(503));
    let mut session = store.session();
    // Its id is not finished: only what was not carried out may be sent again.
    session.store_as(user("a"), "users|").await.unwrap();
    session.save_changes().await.unwrap();
    assert_eq!(middleman.count("/bulk_docs"), 3);
    assert!(world.raw("users/1").await.is_some());
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_where_nothing_can_be_stored_twice() {
    let (world, middleman, store) = spoiled().await;
    for path in ["/docs", "/bulk_docs", "/hilo/next", "/configuration/client"] {
        middleman.plan(path, Deed::LoseAnswer);
    }
    let mut session = store.session();
    assert!(session.load::<User>("users/a").await.unwrap().is_none());
    session.store_as(user("a"), "users/a").await.unwrap();
    session.save_changes().await.unwrap();
    assert!(world.raw("users/a").await.is_some());
    let made = session.store(user("b")).await.unwrap();
    // The first range went astray.
    assert!(session.document_id(&made).is_some_and(|id| id != "users/1-A"));
    assert_eq!((middleman.count("/bulk_docs"), middleman.count("/hilo/next")), (2, 2));
}

#[tokio::test]
async fn a_lost_answer_is_reported_where_it_could_be_stored_twice() {
    let (_world, middleman, store) = spoiled().await;
    for id in ["users/", "users|", ""] {
        middleman.plan("/bulk_docs", Deed::LoseAnswer);
        let mut session = store.session();
        session.store_as(user("a"), id).await.unwrap();
        let error = session.save_changes().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("nobody knows"), "{error}");
        assert!(session.has_changes().unwrap());
    }
    assert_eq!(middleman.count("/bulk_docs"), 3);
    middleman.plan("/bulk_docs", Deed::LoseAnswer);
    let mut careful = store.session();
    careful.set_optimistic_concurrency(true);
    careful.store_as(user("a"), "users/a").await.unwrap();
    assert_eq!(careful.save_changes().await.unwrap_err().kind(), ErrorKind::Unreachable);
}

#[tokio::test]
async fn refusals_are_not_repeated() {
    let (_world, middleman, store) = spoiled().await;
    middleman.plan("/docs", Deed::Answer(500));
    let error = store.session().load::<User>("users/a").await.unwrap_err();
    assert_eq!((error.kind(), middleman.count("/docs")), (ErrorKind::Internal, 1));
}

#[tokio::test]
async fn attempts_end() {
    let (_world, middleman, store) = spoiled().await;
    for _ in 0..9 {
        middleman.plan("/docs", Deed::Answer(503));
    }
    let error = store.session().load::<User>("users/a").await.unwrap_err();
    assert_eq!((error.kind(), middleman.count("/docs")), (ErrorKind::Busy, 5));
}

#[tokio::test]
async fn where_one_url_is_dead_the_next_is_tried() {
    let world = World::start().await;
    let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let urls = [format!("http://{dead}"), world.url.clone()];
    let store = DocumentStore::with_settings(&urls, "db", treepie::client::StoreSettings::default()).unwrap();
    assert!(store.session().load::<User>("users/a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let store = open(&format!("http://{dead}"), Conventions::new());
    let error = store.session().load::<User>("users/a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains(&dead.to_string()), "{error}");
}
