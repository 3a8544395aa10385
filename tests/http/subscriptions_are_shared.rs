//! Who may have a subscription: one worker, the next one, the one that takes over, or several with disjoint shares.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::subscription::{Stream, acknowledge, create, put_numbered, state};
use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_has_it_and_the_next_waits_or_takes_over() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=2).await;
    create(&server, "from Items", json!({})).await;
    let mut first = Stream::open(&server, "s", "&worker=first").await;
    assert_eq!(first.batch().await.ids(), ["items/1", "items/2"]);
    assert_eq!(state(&server, "s").await["Connections"][0]["WorkerId"], "first");
    let busy = server.get("/databases/db/subscriptions/stream?name=s").await;
    busy.assert_error(409, "SubscriptionInUseException", &["'s'", "occupied", "OpenIfFree"]);
    let other = server.get("/databases/db/subscriptions/stream?name=s&strategy=Concurrent").await;
    other.assert_error(409, "SubscriptionInUseException", &["not concurrent"]);
    let waiting = {
        let path = server.url("/databases/db/subscriptions/stream?name=s&strategy=WaitForFree&worker=waiting");
        let response = server.client.get(path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response
    };
    drop(first);
    let mut lines = crate::change_feed::Lines::of(waiting);
    let mut ids = Vec::new();
    while ids.len() < 2 {
        let line = lines.next().await.unwrap();
        if line.contains("\"Type\":\"Data\"") {
            ids.push(serde_json::from_str::<serde_json::Value>(&line).unwrap()["Id"].clone());
        }
    }
    assert_eq!(ids, ["items/1", "items/2"]);
    let mut third = Stream::open(&server, "s", "&strategy=TakeOver").await;
    let closed = loop {
        match lines.next().await {
            Some(line) if line.contains("Closed") => break line,
            Some(_) => {}
            None => panic!("no last word"),
        }
    };
    assert!(closed.contains("TakeOver"), "{closed}");
    assert_eq!(third.batch().await.ids(), ["items/1", "items/2"]);
    let late = acknowledge(&server, "s", "&worker=waiting").await;
    late.assert_error(409, "SubscriptionClosedException", &["'waiting'", "delivered again"]);
    let again = server.get("/databases/db/subscriptions/stream?name=s&strategy=TakeOver").await;
    again.assert_error(409, "SubscriptionInUseException", &["took it over"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_have_disjoint_shares() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=6).await;
    create(&server, "from Items", json!({})).await;
    let open = "&strategy=Concurrent&batch=3";
    let mut one = Stream::open(&server, "s", open).await;
    let mut two = Stream::open(&server, "s", open).await;
    let (first, second) = (one.batch().await, two.batch().await);
    let ids: BTreeSet<_> = first.ids().into_iter().chain(second.ids()).collect();
    assert_eq!(ids.len(), 6);
    acknowledge(&server, "s", "&through=6").await.assert_error(409, "SubscriptionInUseException", &["worker="]);

    // A document in one worker's hands is not given to another, however often it changes.
    put_numbered(&server, "Items", 1..=1).await;
    two.acknowledge(&server, "s").await;
    put_numbered(&server, "Items", 7..=7).await;
    let (holder, free, holds_first) = match first.ids().contains(&"items/1".to_owned()) {
        true => (&mut one, &mut two, first),
        false => (&mut two, &mut one, second),
    };
    drop(holds_first);
    let mut seen = Vec::new();
    while !seen.contains(&"items/7".to_owned()) {
        seen.extend(free.batch().await.ids());
        free.acknowledge(&server, "s").await;
    }
    assert!(!seen.contains(&"items/1".to_owned()), "{seen:?}");
    holder.acknowledge(&server, "s").await;
    let mut found = false;
    while !found {
        tokio::select! {
            batch = holder.batch() => found = batch.ids() == ["items/1"],
            batch = free.batch() => found = batch.ids() == ["items/1"],
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_worker_held_goes_to_another_and_nothing_acknowledged_comes_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    put_numbered(&server, "Items", 1..=9).await;
    create(&server, "from Items", json!({})).await;
    let open = "&strategy=Concurrent&batch=3";
    let mut one = Stream::open(&server, "s", open).await;
    let lost = one.batch().await.ids();
    let mut two = Stream::open(&server, "s", open).await;
    let kept = two.batch().await.ids();
    two.acknowledge(&server, "s").await;
    assert_eq!(two.batch().await.lines.len(), 3);
    drop(one);
    two.acknowledge(&server, "s").await;
    assert_eq!(two.batch().await.ids(), lost, "in their order");
    drop(two);
    server.stop().await;
    // What was acknowledged out of turn is remembered.
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let mut last = Stream::open(&server, "s", "").await;
    let again = last.batch().await.ids();
    assert_eq!(again, lost);
    assert!(again.iter().all(|id| !kept.contains(id)));
    drop(last);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_can_be_dropped_by_request() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=1).await;
    create(&server, "from Items", json!({})).await;
    let mut one = Stream::open(&server, "s", "&strategy=Concurrent&worker=one").await;
    let mut two = Stream::open(&server, "s", "&strategy=Concurrent&worker=two").await;
    let dropped = server.send(Method::POST, "/databases/db/subscriptions/drop?name=s&workerId=two", "").await;
    assert_eq!(dropped.status, StatusCode::NO_CONTENT);
    loop {
        let line = two.line().await.unwrap();
        if line["Status"] == "Closed" {
            assert_eq!(line["Data"]["CanReconnect"], false);
            break;
        }
    }
    assert_eq!(one.batch().await.ids(), ["items/1"]);
    server.send(Method::POST, "/databases/db/subscriptions/drop?name=s", "").await;
    while one.line().await.is_some() {}
    assert_eq!(state(&server, "s").await["Connections"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_the_subscription_free() {
    let server = TestServer::with_database().await;
    create(&server, "from Items", json!({})).await;
    drop(Stream::open(&server, "s", "").await);
    let mut next = Stream::open(&server, "s", "&strategy=WaitForFree").await;
    put_numbered(&server, "Items", 1..=1).await;
    assert_eq!(next.batch().await.ids(), ["items/1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_end_when_the_server_stops_or_the_database_goes() {
    let mut server = TestServer::with_database().await;
    server.create("other").await;
    create(&server, "from Items", json!({})).await;
    let mut stream = Stream::open(&server, "s", "").await;
    let wanted = json!({ "Name": "t", "Query": "from Items" }).to_string();
    server.send(Method::PUT, "/databases/other/subscriptions", wanted).await;
    let mut gone = crate::change_feed::Lines::open(&server, "/databases/other/subscriptions/stream?name=t").await;
    let body = r#"{"DatabaseNames":["other"],"HardDelete":true}"#;
    assert_eq!(server.send(Method::DELETE, "/admin/databases", body).await.status, StatusCode::OK);
    while gone.next().await.is_some() {}
    server.tell_to_stop();
    while stream.line().await.is_some() {}
    server.stopped().await;
}
