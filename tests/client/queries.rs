//! Queries: rows as a stream, all at once, and counted.

use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use treepie::client::ErrorKind;

use crate::support::{Company, User, World, user};

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Employees {
    employer: String,
    count: u64,
}

async fn with_users(count: u32) -> World {
    let world = World::start().await;
    let mut session = world.store.session();
    for n in 0..count {
        let employer = Some(format!("companies/{}", n % 3));
        session.store_as(User { employer, ..user(&format!("user {n:04}")) }, &format!("users/{n:04}")).await.unwrap();
    }
    session.save_changes().await.unwrap();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_one_by_one_with_their_ids() {
    let world = with_users(3_000).await;
    let query = world.store.query::<User>("from Users where employer = $employer order by name desc");
    let mut rows = pin!(query.parameter("employer", "companies/1").stream());
    let first = rows.try_next().await.unwrap().unwrap();
    assert_eq!((first.id.as_str(), first.name.as_str()), ("users/2998", "user 2998"));
    assert_eq!(rows.count().await, 999);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_gathered_and_counted() {
    let world = with_users(10).await;
    let query = || {
        world.store.query::<User>("from Users where employer in ($employers)").parameter("employers", ["companies/0"])
    };
    let ids: Vec<String> = query().all().await.unwrap().into_iter().map(|user| user.id).collect();
    assert_eq!(ids, ["users/0000", "users/0003", "users/0006", "users/0009"]);
    assert_eq!(query().count().await.unwrap(), 4);
    let names = world.store.query::<Company>("from Users order by name select name limit 1, 2").all().await.unwrap();
    assert_eq!(names.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["user 0001", "user 0002"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_asked_and_waited_for() {
    let world = with_users(10).await;
    let script = r#"
        source("Users");
        fn map(user) { emit(#{ employer: user.employer }, #{ count: 1 }); }
        fn reduce(key, values) { #{ count: values.sum("count") } }
    "#;
    world.store.indexes().put_script("Employees", script).await.unwrap();
    let query = world.store.query::<Employees>("from index Employees where count > 3");
    let found = query.wait_for_non_stale_results(Duration::from_secs(60)).all().await.unwrap();
    assert_eq!(found, [Employees { employer: "companies/0".into(), count: 4 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told() {
    let world = with_users(1).await;
    let error = world.store.query::<User>("from Users where").all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller);
    assert!(error.to_string().contains("1:17"), "{error}");
    let error = world.store.query::<User>("from index Nope").count().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    let mut rows = pin!(world.store.query::<Company>("from Users where search(name, 'x')").stream());
    assert_eq!(rows.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(rows.next().await.is_none(), "an error is the last item");
}
