//! A server that is told to stop ends its streams, answers what it has in hand, closes, and keeps what it confirmed.

use serde_json::json;

use crate::change_feed::Lines;
use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn open_feeds_end_in_good_order() {
    let mut server = TestServer::with_database().await;
    server.must_put("a", "{}").await;
    let mut continuous =
        Lines::open(&server, "/databases/db/_changes?feed=continuous&since=now&heartbeat=3600000").await;
    let mut longpoll = Lines::open(&server, "/databases/db/_changes?feed=longpoll&since=now&timeout=3600000").await;
    let mut events = Lines::open(&server, "/databases/db/_changes?feed=eventsource&since=0").await;
    assert!(events.next().await.unwrap().starts_with("data: "));
    server.tell_to_stop();
    assert_eq!(continuous.next_json().await, json!({"last_seq": 1, "pending": 0}));
    assert_eq!(continuous.next().await, None);
    let mut text = String::new();
    while let Some(line) = longpoll.next().await {
        text.push_str(&line);
    }
    assert_eq!(text, "{\"results\":[],\"last_seq\":1,\"pending\":0}");
    while events.next().await.is_some() {}
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    let mut vectors = Vec::new();
    for n in 0..20 {
        vectors.push(server.must_put(&format!("a/{n}"), format!("{{\"n\":{n}}}")).await);
    }
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    for (n, vector) in vectors.iter().enumerate() {
        let found = server.document(&format!("a/{n}")).await.unwrap();
        assert_eq!((&found["n"], &found["@metadata"]["@change-vector"]), (&json!(n), &json!(vector)));
    }
    let guid = server.put("", "{}").await.json()["Id"].clone();
    assert_eq!(guid.as_str().unwrap().len(), 36);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_hand_is_answered_before_the_end() {
    let mut server = TestServer::with_database().await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(1);
    let body = reqwest::Body::wrap_stream(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let request = server.request(reqwest::Method::PUT, "/databases/db/docs?id=late").body(body);
    let answer = tokio::spawn(request.send());
    sender.send(Ok("{\"a\":".to_owned())).await.unwrap();
    // The third part can only be queued when the first has been taken for sending.
    sender.send(Ok("1".to_owned())).await.unwrap();
    sender.send(Ok("}".to_owned())).await.unwrap();
    server.tell_to_stop();
    drop(sender);
    let status = answer.await.unwrap().map(|response| response.status().as_u16());
    assert!(status.is_err() || status.is_ok_and(|status| status == 201));
    server.stopped().await;
}
