//! What a session loads: by id, many, with what documents name, by prefix; each document once.

use treepie::client::{Conventions, ErrorKind};

use crate::support::{Company, Middleman, User, World, open, user};

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Strict {
    salary: u32,
}

async fn fill(world: &World) {
    let mut session = world.store.session();
    session.store_as(Company { name: "Hibernating Rhinos".into() }, "companies/1").await.unwrap();
    for number in 1..=3 {
        let entity = User { employer: Some("companies/1".into()), ..user(&format!("user {number}")) };
        session.store_as(entity, &format!("users/{number}")).await.unwrap();
    }
    session.save_changes().await.unwrap();
}

#[tokio::test]
async fn documents_come_in_the_order_of_their_ids() {
    let world = World::start().await;
    fill(&world).await;
    let mut session = world.store.session();
    let loaded = session.load_many::<User>(&["users/3", "users/none", "USERS/1"]).await.unwrap();
    let names: Vec<Option<&str>> =
        loaded.iter().map(|entity| Some(session.get(&(*entity)?).unwrap().name.as_str())).collect();
    assert_eq!(names, [Some("user 3"), None, Some("user 1")]);
    assert_eq!(session.document_id(&loaded[2].unwrap()), Some("users/1"));
}

#[tokio::test]
async fn a_document_is_asked_for_once() {
    let world = World::start().await;
    fill(&world).await;
    let middleman = Middleman::before(&world.url).await;
    let store = open(&middleman.url, Conventions::new());
    let mut session = store.session();
    let first = session.load::<User>("users/1").await.unwrap().unwrap();
    session.get_mut(&first).unwrap().name = "changed".into();
    let again = session.load::<User>("Users/1").await.unwrap().unwrap();
    assert_eq!(first, again);
    assert_eq!(session.get(&again).unwrap().name, "changed");
    assert!(session.load::<User>("users/none").await.unwrap().is_none());
    assert!(session.load::<User>("users/none").await.unwrap().is_none());
    assert_eq!(middleman.count("/docs"), 2);
}

#[tokio::test]
async fn includes_come_along() {
    let world = World::start().await;
    fill(&world).await;
    let middleman = Middleman::before(&world.url).await;
    let store = open(&middleman.url, Conventions::new());
    let mut session = store.session();
    let loaded = session.include("employer").load::<User>("users/1").await.unwrap().unwrap();
    let employer = session.get(&loaded).unwrap().employer.clone().unwrap();
    let company = session.load::<Company>(&employer).await.unwrap().unwrap();
    assert_eq!(session.get(&company).unwrap().name, "Hibernating Rhinos");
    assert_eq!(middleman.count("/docs"), 1);
}

#[tokio::test]
async fn documents_are_loaded_by_prefix() {
    let world = World::start().await;
    fill(&world).await;
    let mut session = world.store.session();
    let loaded = session.load_starting_with::<User>("users/", 1, 5).await.unwrap();
    let ids: Vec<_> = loaded.iter().map(|entity| session.document_id(entity).unwrap()).collect();
    assert_eq!(ids, ["users/2", "users/3"]);
}

#[tokio::test]
async fn a_document_of_another_shape_is_refused_by_name() {
    let world = World::start().await;
    fill(&world).await;
    let mut session = world.store.session();
    let error = session.load::<Strict>("users/1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller);
    assert!(error.to_string().contains("users/1") && error.to_string().contains("salary"), "{error}");
    session.load::<User>("users/1").await.unwrap().unwrap();
    let error = session.load::<Company>("users/1").await.unwrap_err();
    assert!(error.to_string().contains("User"), "{error}");
}

#[tokio::test]
async fn handles_are_of_one_session() {
    let world = World::start().await;
    let (mut one, mut other) = (world.store.session(), world.store.session());
    let mine = one.store_as(user("a"), "users/a").await.unwrap();
    other.store_as(user("b"), "users/b").await.unwrap();
    assert_eq!(other.get(&mine).unwrap_err().kind(), ErrorKind::Caller);
    assert_eq!(other.document_id(&mine), None);
    one.forget(&mine).unwrap();
    assert!(one.get(&mine).is_err());
}

#[tokio::test]
async fn a_missing_database_is_missing() {
    let world = World::start().await;
    let store = world.store.for_database("nope").unwrap();
    let error = store.session().load::<User>("users/1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    assert!(error.to_string().contains("nope"), "{error}");
    assert!(world.store.session().load::<User>(" ").await.is_err());
}
