//! The samples of the documentation that describe how documents are named, each as a program would write it.

use serde::{Deserialize, Serialize};
use treepie::client::{ClientConfiguration, Conventions};

use crate::support::{World, user};

#[derive(Debug, Default, Serialize, Deserialize)]
struct Prefix {
    name: String,
}

/// Saves one user under `id`, and returns the id that it got.
async fn saved(world: &World, id: &str) -> String {
    let mut session = world.store.session();
    let entity = session.store_as(user("John"), id).await.unwrap();
    session.save_changes().await.unwrap();
    let id = session.document_id(&entity).unwrap().to_owned();
    assert_eq!(session.get(&entity).unwrap().id, id);
    assert!(!session.has_changes().unwrap());
    id
}

#[tokio::test]
async fn a_semantic_id_is_taken_as_it_is() {
    let world = World::start().await;
    assert_eq!(saved(&world, "users/john@john.doe").await, "users/john@john.doe");
    assert_eq!(world.raw("users/john@john.doe").await.unwrap()["name"], "John");
}

#[tokio::test]
async fn an_empty_id_gives_a_guid() {
    let world = World::start().await;
    let id = saved(&world, "").await;
    assert_eq!((id.len(), id.matches('-').count()), (36, 4));
}

#[tokio::test]
async fn a_trailing_slash_gives_a_server_side_id() {
    let world = World::start().await;
    assert_eq!(saved(&world, "users/").await, "users/0000000000000000001-A");
}

#[tokio::test]
async fn a_trailing_bar_gives_an_identity() {
    let world = World::start().await;
    assert_eq!(saved(&world, "users|").await, "users/1");
    assert_eq!(saved(&world, "users|").await, "users/2");
}

#[tokio::test]
async fn no_id_gives_a_hilo_id_before_anything_is_saved() {
    let world = World::start().await;
    let mut session = world.store.session();
    let entity = session.store(user("John")).await.unwrap();
    assert_eq!(session.document_id(&entity), Some("users/1-A"));
    assert_eq!(session.get(&entity).unwrap().id, "users/1-A");
    session.save_changes().await.unwrap();
    assert_eq!(world.raw("users/1-A").await.unwrap()["@metadata"]["@collection"], "Users");
}

#[tokio::test]
async fn the_servers_separator_goes_before_the_clients() {
    for (separator, conventions) in [('#', Conventions::new()), ('-', Conventions::new().separator('$'))] {
        let world = World::start_with(conventions, |_| {}).await;
        let configuration =
            ClientConfiguration { identity_parts_separator: Some(separator), ..ClientConfiguration::default() };
        world.store.configuration().put(&configuration).await.unwrap();
        let mut session = world.store.session();
        let made = session.store(user("John")).await.unwrap();
        assert_eq!(session.document_id(&made), Some(format!("users{separator}1-A").as_str()));
        assert_eq!(saved(&world, "users|").await, format!("users{separator}1"));
        let server_side = saved(&world, &format!("users{separator}")).await;
        assert!(server_side.starts_with(&format!("users{separator}00000")), "{server_side}");
        let mut session = world.store.session();
        let prefix = session.store_as(Prefix::default(), "Prefix|").await.unwrap();
        session.save_changes().await.unwrap();
        assert_eq!(session.document_id(&prefix), Some(format!("Prefix{separator}1").as_str()));
    }
}

#[tokio::test]
async fn a_separator_of_the_client_alone_is_for_its_own_ids() {
    let world = World::start_with(Conventions::new().separator('$'), |_| {}).await;
    let mut session = world.store.session();
    let entity = session.store(user("John")).await.unwrap();
    assert_eq!(session.document_id(&entity), Some("users$1-A"));
    assert_eq!(saved(&world, "users|").await, "users/1");
}

#[tokio::test]
async fn a_disabled_configuration_is_not_heeded() {
    let world = World::start().await;
    let configuration = ClientConfiguration { identity_parts_separator: Some('#'), disabled: true };
    world.store.configuration().put(&configuration).await.unwrap();
    let mut session = world.store.session();
    let entity = session.store(user("John")).await.unwrap();
    assert_eq!(session.document_id(&entity), Some("users/1-A"));
}

#[tokio::test]
async fn clients_notice_that_the_separator_changed() {
    let world = World::start().await;
    let mut session = world.store.session();
    let before = session.store(user("John")).await.unwrap();
    assert_eq!(session.document_id(&before), Some("users/1-A"));
    let configuration = ClientConfiguration { identity_parts_separator: Some('#'), ..ClientConfiguration::default() };
    world.another_store().configuration().put(&configuration).await.unwrap();
    // Any answer says that there is something new.
    session.save_changes().await.unwrap();
    let after = session.store(user("Jane")).await.unwrap();
    assert!(session.document_id(&after).unwrap().starts_with("users#"));
}

#[tokio::test]
async fn identities_are_seeded_one_by_one_and_many_at_once() {
    let world = World::start().await;
    let identities = world.store.identities();
    assert_eq!(identities.seed("users|", 1990).await.unwrap(), 1990);
    assert_eq!(saved(&world, "users|").await, "users/1991");
    assert_eq!(identities.seed("users", 5).await.unwrap(), 1991);
    assert_eq!(identities.seed_many(&[("orders", 100), ("Companies|", 7)]).await.unwrap(), [100, 7]);
    assert_eq!(identities.next("orders|").await.unwrap(), 101);
    let listed = identities.list().await.unwrap();
    assert_eq!((listed["users|"], listed["orders|"], listed["companies|"]), (1991, 101, 7));
    assert_eq!(identities.seed_forced("users", 5).await.unwrap(), 5);
}

#[tokio::test]
async fn the_older_rule_gives_identities_for_a_trailing_slash() {
    let legacy = |settings: &mut treepie::server::ServerSettings| {
        settings.database.store.id_rules.trailing_slash_is_identity = true;
    };
    let world = World::start_with(Conventions::new(), legacy).await;
    assert_eq!(saved(&world, "users/1").await, "users/1");
    assert_eq!(saved(&world, "users/").await, "users/2");
}
