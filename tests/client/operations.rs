//! Databases, indexes and the client configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use treepie::client::{ClientConfiguration, ErrorKind, IndexDefinition, LockMode, Priority};

use crate::support::{Company, World, user};

const SCRIPT: &str = r#"
source("Users");
output("Names");
fn map(user) { emit(#{ Name: user.name }, #{ Count: 1 }); }
fn reduce(key, values) { #{ Count: values.sum("Count") } }
"#;

#[tokio::test]
async fn databases_come_and_go() {
    let world = World::start().await;
    let databases = world.store.databases();
    assert!(databases.create("db").await.unwrap_err().is_conflict());
    assert!(!databases.create_if_missing("db").await.unwrap());
    assert!(databases.create_if_missing("other").await.unwrap());
    assert_eq!(databases.list().await.unwrap(), ["db", "other"]);
    let other = world.store.for_database("Other").unwrap();
    let mut session = other.session();
    session.store_as(user("a"), "users/a").await.unwrap();
    session.save_changes().await.unwrap();
    assert!(world.raw("users/a").await.is_none());
    databases.delete("other").await.unwrap();
    assert_eq!(databases.list().await.unwrap(), ["db"]);
}

#[tokio::test]
async fn indexes_are_put_and_waited_for() {
    let world = World::start().await;
    let indexes = world.store.indexes();
    indexes.put_script("Users/Names", SCRIPT).await.unwrap();
    let mut session = world.store.session();
    for (id, name) in [("users/1", "Ann"), ("users/2", "Ann"), ("users/3", "Bob")] {
        session.store_as(user(name), id).await.unwrap();
    }
    session.set_wait_for_indexes(Some(Duration::from_secs(60)));
    session.save_changes().await.unwrap();
    let found = session.load_starting_with::<serde_json::Value>("Names/", 0, 10).await.unwrap();
    let mut counts: Vec<_> = found.iter().map(|entity| session.get(entity).unwrap()["Count"].as_u64()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [Some(1), Some(2)]);

    indexes.wait(Duration::from_secs(60)).await.unwrap();
    let stats = indexes.stats().await.unwrap();
    assert_eq!((stats.len(), stats[0].name.as_str(), stats[0].is_stale), (1, "Users/Names", false));
    assert_eq!(indexes.get("users/names").await.unwrap().unwrap().maps.len(), 1);
    assert!(indexes.get("none").await.unwrap().is_none());
    indexes.stop("Users/Names").await.unwrap();
    indexes.start("Users/Names").await.unwrap();
    assert!(indexes.delete("Users/Names").await.unwrap());
    assert!(!indexes.delete("Users/Names").await.unwrap());
    let both = ["A", "B"].map(|name| IndexDefinition {
        name: name.into(),
        maps: vec![SCRIPT.replace("Names", &format!("Names{name}"))],
        ..IndexDefinition::default()
    });
    indexes.put(&both).await.unwrap();
    let names: Vec<String> = indexes.list().await.unwrap().into_iter().map(|index| index.name).collect();
    assert_eq!(names, ["A", "B"]);
}

#[tokio::test]
async fn the_documents_of_a_query_are_deleted() {
    let world = World::start().await;
    let mut session = world.store.session();
    for number in 0..300 {
        session.store_as(user("a"), &format!("users/{number}")).await.unwrap();
    }
    session.store_as(Company { name: "kept".into() }, "companies/1").await.unwrap();
    session.save_changes().await.unwrap();
    let deleted = world.store.delete_by_query("from 'Users'", &BTreeMap::new()).await.unwrap();
    assert_eq!(deleted, 300);
    assert!(world.raw("users/7").await.is_none() && world.raw("companies/1").await.is_some());
    let error = world.store.delete_by_query("from", &BTreeMap::new()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Caller | ErrorKind::Unsupported), "{error}");
}

#[tokio::test]
async fn an_index_changes_goes_back_is_locked_and_turned_off() {
    let world = World::start().await;
    let indexes = world.store.indexes();
    let patience = Duration::from_secs(60);
    indexes.put_script("Names", SCRIPT).await.unwrap();
    let mut session = world.store.session();
    session.store_as(user("Ann"), "users/1").await.unwrap();
    session.save_changes().await.unwrap();
    indexes.wait(patience).await.unwrap();
    let count = async || {
        let mut session = world.store.session();
        let found = session.load_starting_with::<serde_json::Value>("Names/", 0, 10).await.unwrap();
        found.first().and_then(|entity| session.get(entity).unwrap()["Count"].as_u64())
    };
    let tenfold = SCRIPT.replace("Count: 1", "Count: 10");
    assert_eq!(indexes.swap_now("Names").await.unwrap_err().kind(), ErrorKind::Caller);
    indexes.stop("Names").await.unwrap();
    indexes.put_script("Names", &tenfold).await.unwrap();
    assert_eq!(indexes.stats().await.unwrap()[1].name, "ReplacementOf/Names");
    assert!(indexes.cancel_change("Names").await.unwrap());
    assert!(!indexes.cancel_change("Names").await.unwrap());
    indexes.put_script("Names", &tenfold).await.unwrap();
    indexes.start("Names").await.unwrap();
    indexes.wait(patience).await.unwrap();
    assert_eq!(count().await, Some(10));
    indexes.roll_back("Names").await.unwrap();
    indexes.wait(patience).await.unwrap();
    assert_eq!(count().await, Some(1));
    indexes.reset("Names").await.unwrap();
    indexes.set_lock(&["Names"], LockMode::LockedError).await.unwrap();
    indexes.set_priority(&["Names"], Priority::Low).await.unwrap();
    indexes.clear_errors("Names").await.unwrap();
    assert_eq!(indexes.put_script("Names", &tenfold).await.unwrap_err().kind(), ErrorKind::Caller);
    indexes.disable("Names").await.unwrap();
    let stats = indexes.stats().await.unwrap().remove(0);
    assert_eq!(
        (stats.state.as_str(), stats.lock_mode, stats.priority),
        ("Disabled", LockMode::LockedError, Priority::Low)
    );
    indexes.enable("Names").await.unwrap();
    indexes.wait(patience).await.unwrap();
    assert!(indexes.delete_keeping_outputs("Names").await.unwrap());
    assert_eq!(count().await, Some(1), "the document stays");
}

#[tokio::test]
async fn a_script_that_is_refused_says_where() {
    let world = World::start().await;
    let error = world.store.indexes().put_script("Bad", "fn map(").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller);
    assert!(error.to_string().contains("script:1:8"), "{error}");
}

#[tokio::test]
async fn a_databases_configuration_goes_before_the_servers() {
    let world = World::start().await;
    let configuration = world.store.configuration();
    assert_eq!(configuration.get().await.unwrap(), None);
    let with = |separator| ClientConfiguration { identity_parts_separator: Some(separator), disabled: false };
    configuration.put_server_wide(&with('-')).await.unwrap();
    assert_eq!(configuration.get().await.unwrap().unwrap().identity_parts_separator, Some('-'));
    configuration.put(&with('#')).await.unwrap();
    assert_eq!(configuration.get().await.unwrap().unwrap().identity_parts_separator, Some('#'));
    assert_eq!(configuration.put(&with('|')).await.unwrap_err().kind(), ErrorKind::Caller);
}
