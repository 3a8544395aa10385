//! Bulk insert: many documents in one long request, with bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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
    assert_eq!((middleman.count("/bulk_insert"), middleman.count("/bulk_docs")), (1, 0));
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

/// Answers what comes before an insert; then reads the insert slowly, and notes how far the writer was ahead.
async fn read_slowly(mut stream: TcpStream, given: &AtomicUsize, ahead_most: &AtomicUsize) {
    let mut seen = Vec::new();
    let mut taken = 0;
    loop {
        // On one thread: the writer goes on until it must wait.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        ahead_most.fetch_max(given.load(Ordering::SeqCst).saturating_sub(taken), Ordering::SeqCst);
        let mut piece = vec![0; 64 * 1024];
        let read = stream.read(&mut piece).await.unwrap();
        seen.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&seen);
        if text.contains("POST /databases/db/bulk_insert") {
            taken += read;
            if text.ends_with("]\r\n0\r\n\r\n") {
                stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                return;
            }
            seen.drain(..seen.len().saturating_sub(64));
            seen.splice(0..0, *b"POST /databases/db/bulk_insert ");
        } else if text.ends_with("\r\n\r\n") {
            let answer = if text.contains("next-operation-id") { r#"{"Id":1,"NodeTag":"A"}"# } else { r#"{"Etag":0}"# };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            seen.clear();
        } else if read == 0 {
            return;
        }
    }
}

#[tokio::test]
async fn whoever_stores_waits_for_a_server_that_is_slower() {
    const DOCUMENTS: usize = 4_000;
    const BYTES: usize = 8 * 1024;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = open(&format!("http://{}", listener.local_addr().unwrap()), Conventions::new());
    let (given, ahead_most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (given_there, ahead_there) = (Arc::clone(&given), Arc::clone(&ahead_most));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (given, ahead) = (Arc::clone(&given_there), Arc::clone(&ahead_there));
            tokio::spawn(async move { read_slowly(stream, &given, &ahead).await });
        }
    });
    let mut bulk = store.bulk_insert();
    let name = "x".repeat(BYTES);
    for number in 0..DOCUMENTS {
        bulk.store_as(user(&name), &format!("users/{number}")).await.unwrap();
        given.fetch_add(BYTES, Ordering::SeqCst);
    }
    assert_eq!(bulk.finish().await.unwrap(), DOCUMENTS as u64);
    // Pieces that wait, and what the sockets of the system hold.
    let ahead = ahead_most.load(Ordering::SeqCst);
    assert!(ahead > 0 && ahead < 16 * 1024 * 1024, "{ahead} of {} bytes", DOCUMENTS * BYTES);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_is_aborted_or_dropped_is_given_up() {
    let world = World::start().await;
    let mut bulk = world.store.bulk_insert();
    for number in 0..5_000 {
        bulk.store_as(user(&"x".repeat(1_000)), &format!("aborted/{number}")).await.unwrap();
    }
    bulk.abort().await.unwrap();
    let mut bulk = world.store.bulk_insert();
    for number in 0..5_000 {
        bulk.store_as(user(&"x".repeat(1_000)), &format!("dropped/{number}")).await.unwrap();
    }
    drop(bulk);
    assert!(world.raw("aborted/4999").await.is_none());
    assert!(world.raw("dropped/4999").await.is_none());
    let mut bulk = world.store.bulk_insert();
    bulk.store_as(user("a"), "users/1").await.unwrap();
    assert_eq!(bulk.finish().await.unwrap(), 1);
    assert_eq!(world.store.bulk_insert().finish().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_under_way_reaches_whoever_stores() {
    let world = World::start().await;
    let mut bulk = world.store.bulk_insert();
    bulk.store_as(user("a"), &"x".repeat(600)).await.unwrap();
    let mut outcome = Ok(());
    for number in 0..100_000 {
        outcome = bulk.store_as(user(&"x".repeat(1_000)), &format!("users/{number}")).await;
        if outcome.is_err() {
            break;
        }
    }
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller, "{error}");
    assert!(error.to_string().contains("512 bytes"), "{error}");
    let error = bulk.store_as(user("b"), "users/b").await.and(bulk.finish().await.map(|_| ())).unwrap_err();
    assert!(error.to_string().contains("begin another one"), "{error}");
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
