//! The worker of the Rust client: batches, acknowledgements, and coming back.

use std::time::Duration;

use serde::Deserialize;
use treepie::client::{ClientError, ErrorKind, Strategy, SubscriptionDefinition, WorkerOptions};

use crate::support::{User, World, user};

/// Long enough for a loaded machine; nothing that works waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

async fn save(world: &World, names: &[&str]) {
    let mut session = world.store.session();
    for name in names {
        session.store_as(user(name), &format!("users/{name}")).await.unwrap();
    }
    session.save_changes().await.unwrap();
}

async fn subscribed(world: &World, definition: &SubscriptionDefinition) {
    assert_eq!(world.store.subscriptions().create(definition).await.unwrap(), "s");
}

fn all_users() -> SubscriptionDefinition {
    SubscriptionDefinition { include_deletes: true, ..SubscriptionDefinition::new("s", "from Users") }
}

async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_batch_is_acknowledged_when_the_work_succeeds() {
    let world = World::start().await;
    save(&world, &["a", "b", "c"]).await;
    subscribed(&world, &all_users()).await;
    let options = WorkerOptions { batch_changes: 2, ends_when_empty: true, ..WorkerOptions::default() };
    let mut worker = world.store.subscriptions().worker("s", options);
    let mut names = Vec::new();
    let work = worker.run(async |batch| -> Result<(), ClientError> {
        for change in &batch.changes {
            names.push(change.read::<User>()?.name);
        }
        Ok(())
    });
    patiently(work).await.unwrap();
    assert_eq!(names, ["a", "b", "c"]);
    let state = world.store.subscriptions().state("s").await.unwrap().unwrap();
    assert_eq!(state.delivered, 3);
    assert!(state.change_vector_for_next_batch_starting_point.unwrap().starts_with("A:3-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_work_failed_on_comes_again() {
    let world = World::start().await;
    save(&world, &["a"]).await;
    subscribed(&world, &all_users()).await;
    let mut worker = world.store.subscriptions().worker("s", WorkerOptions::default());
    let failed = worker.run(async |_| Err(ClientError::Usage("not yet".to_owned())));
    assert_eq!(patiently(failed).await.unwrap_err().to_string(), "not yet");
    drop(worker);
    let options = WorkerOptions { strategy: Strategy::WaitForFree, ..WorkerOptions::default() };
    let mut worker = world.store.subscriptions().worker("s", options);
    let batch = patiently(worker.next()).await.unwrap().unwrap();
    assert_eq!((batch.changes[0].id.as_str(), batch.through, batch.is_caught_up), ("users/a", 1, true));
    assert!(worker.acknowledge(&batch).await.unwrap());
    let mut session = world.store.session();
    session.delete_by_id("users/a").unwrap();
    session.save_changes().await.unwrap();
    let batch = patiently(worker.next()).await.unwrap().unwrap();
    assert!(batch.changes[0].deleted && batch.changes[0].read::<User>().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lost_its_place_hears_of_it() {
    let world = World::start().await;
    save(&world, &["a"]).await;
    subscribed(&world, &all_users()).await;
    let subscriptions = world.store.subscriptions();
    let mut first = subscriptions.worker("s", WorkerOptions::default());
    let batch = patiently(first.next()).await.unwrap().unwrap();
    let refused = patiently(subscriptions.worker("s", WorkerOptions::default()).next()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let taking = WorkerOptions { strategy: Strategy::TakeOver, ..WorkerOptions::default() };
    let mut second = subscriptions.worker("s", taking);
    assert_eq!(patiently(second.next()).await.unwrap().unwrap().changes.len(), 1);
    assert!(!first.acknowledge(&batch).await.unwrap(), "it is not its batch any more");
    let missing = patiently(subscriptions.worker("nope", WorkerOptions::default()).next()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_filters_and_shapes_what_is_read() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Shout {
        loud: String,
    }

    let world = World::start().await;
    save(&world, &["ann", "bob", "eve"]).await;
    let script = "fn filter(doc) { doc.name != \"bob\" } fn project(doc) { #{ loud: doc.name.to_upper() } }";
    let definition = SubscriptionDefinition { script: Some(script.to_owned()), ..all_users() };
    subscribed(&world, &definition).await;
    world.store.subscriptions().create_if_missing(&definition).await.unwrap();
    let mut worker = world.store.subscriptions().worker("s", WorkerOptions::default());
    let batch = patiently(worker.next()).await.unwrap().unwrap();
    let read: Vec<Shout> = batch.changes.iter().map(|change| change.read().unwrap()).collect();
    assert_eq!(read, [Shout { loud: "ANN".to_owned() }, Shout { loud: "EVE".to_owned() }]);
    let refused = SubscriptionDefinition::new("t", "from Users where name = 'x'");
    assert_eq!(world.store.subscriptions().create(&refused).await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(world.store.subscriptions().list().await.unwrap().len(), 1);
    world.store.subscriptions().acknowledge("s", "3").await.unwrap();
    world.store.subscriptions().delete("s").await.unwrap();
    assert_eq!(world.store.subscriptions().state("s").await.unwrap(), None);
}
