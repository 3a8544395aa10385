//! RavenDB's changes socket: what is told to whom, how a connection ends, and that nobody's slowness costs others anything.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::TestServer;

/// Long enough for a loaded machine; nothing that works waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    commands: u64,
}

impl Socket {
    async fn open(server: &TestServer) -> Self {
        let url = format!("ws://{}/databases/DB/changes", server.address);
        Self { stream: connect_async(url).await.unwrap().0, commands: 0 }
    }

    /// Opens a socket that watches something, and waits until that counts.
    async fn watching(server: &TestServer, command: &str, param: Value) -> Self {
        let mut socket = Self::open(server).await;
        socket.send(command, param).await;
        assert_eq!(socket.next().await, json!({"Type": "Confirm", "CommandId": 1}));
        socket
    }

    async fn send(&mut self, command: &str, param: Value) {
        self.commands += 1;
        let text = json!({ "CommandId": self.commands, "Command": command, "Param": param }).to_string();
        self.stream.send(Message::text(text)).await.unwrap();
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            match tokio::time::timeout(PATIENCE, self.stream.next()).await.unwrap() {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next message; each comes in an array of its own.
    async fn next(&mut self) -> Value {
        let Some(Message::Text(text)) = self.receive().await else { panic!("the socket has ended") };
        let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(messages.len(), 1);
        messages[0].clone()
    }

    async fn closed(&mut self) -> Option<CloseFrame> {
        loop {
            match self.receive().await {
                Some(Message::Close(frame)) => return frame,
                Some(_) => {}
                None => return None,
            }
        }
    }
}

fn told(message: &Value) -> (&str, &str, &str) {
    assert_eq!(message["Type"], "DocumentChange");
    let text = |name: &str| message["Value"][name].as_str().unwrap();
    (text("Type"), text("Id"), text("CollectionName"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_told_once_whatever_it_matches() {
    let server = TestServer::with_database().await;
    server.must_put("Users/0", r#"{"@metadata":{"@collection":"Users"}}"#).await;
    let mut socket = Socket::watching(&server, "watch-docs", Value::Null).await;
    for (command, param) in [("watch-doc", "users/1"), ("watch-prefix", "USERS/"), ("watch-collection", "users")] {
        socket.send(command, json!(param)).await;
        assert_eq!(socket.next().await["Type"], "Confirm");
    }
    let vector = server.must_put("Users/1", r#"{"@metadata":{"@collection":"Users"}}"#).await;
    let change = socket.next().await;
    assert_eq!((told(&change), &change["Value"]["ChangeVector"]), (("Put", "Users/1", "Users"), &json!(vector)));
    server.delete("/databases/db/docs?id=users/1").await;
    assert_eq!(told(&socket.next().await), ("Delete", "Users/1", "Users"));
    server.must_put("last", "{}").await;
    assert_eq!(told(&socket.next().await), ("Put", "last", "@empty"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_told_in_the_order_of_its_writes() {
    let server = TestServer::with_database().await;
    let mut socket = Socket::watching(&server, "watch-collection", json!("Items")).await;
    let commands: Vec<_> = (0..5_000)
        .map(|n| {
            let collection = if n % 2 == 0 { "Items" } else { "Others" };
            json!({"Type": "PUT", "Id": format!("n/{n}"), "Document": {"@metadata": {"@collection": collection}}})
        })
        .collect();
    assert_eq!(server.batch(&json!(commands)).await.status, StatusCode::CREATED);
    for n in (0..5_000).step_by(2) {
        assert_eq!(told(&socket.next().await), ("Put", format!("n/{n}").as_str(), "Items"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_command_is_answered_and_does_not_end_the_connection() {
    let server = TestServer::with_database().await;
    let mut socket = Socket::open(&server).await;
    socket.stream.send(Message::text("watch me")).await.unwrap();
    assert!(socket.next().await["Exception"].as_str().unwrap().contains("no command"));
    socket.send("watch-all-timeseries", Value::Null).await;
    assert_eq!(socket.next().await, json!({"Type": "Confirm", "CommandId": 1}));
    let refused = socket.next().await;
    assert_eq!((&refused["Type"], &refused["CommandId"]), (&json!("Error"), &json!(1)));
    assert!(refused["Exception"].as_str().unwrap().contains("'watch-all-timeseries'"));
    socket.send("watch-doc", Value::Null).await;
    assert_eq!(socket.next().await["CommandId"], 2);
    assert!(socket.next().await["Exception"].as_str().unwrap().contains("Param"));
    socket.send("watch-docs", Value::Null).await;
    assert_eq!(socket.next().await["CommandId"], 3);
    let answer = server.get("/databases/db/changes").await;
    answer.assert_error(400, "ArgumentException", &["WebSocket", "/_changes"]);
    let answer = server.get("/databases/none/changes").await;
    assert_eq!((answer.status, answer.header("Database-Missing")), (StatusCode::SERVICE_UNAVAILABLE, Some("none")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_too_long_ends_the_connection() {
    let server = TestServer::with_database().await;
    let mut socket = Socket::open(&server).await;
    let _ = socket.stream.send(Message::text("x".repeat(1 << 20))).await;
    socket.closed().await;
    server.must_put("a", "{}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_told_why_the_server_ends_it() {
    let mut server = TestServer::with_database().await;
    server.create("other").await;
    let mut first = Socket::watching(&server, "watch-docs", Value::Null).await;
    let url = format!("ws://{}/databases/other/changes", server.address);
    let mut second = Socket { stream: connect_async(url).await.unwrap().0, commands: 0 };
    let body = r#"{"DatabaseNames":["db"],"HardDelete":true}"#;
    let deleted = server.send(Method::DELETE, "/admin/databases", body).await;
    assert_eq!(deleted.json()["PendingDeletes"], json!([]));
    assert!(first.closed().await.unwrap().reason.contains("database closes"));
    server.tell_to_stop();
    assert!(second.closed().await.unwrap().reason.contains("server stops"));
    server.stopped().await;
}

/// Waits until there is room for one more request: that somebody's place was given back.
async fn room(server: &TestServer) {
    let room = async {
        while server.get("/databases/db/stats").await.status != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, room).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_is_noticed() {
    let server = TestServer::start_with(|limits| limits.requests_max = 2).await;
    server.create("db").await;
    for _ in 0..10 {
        let mut socket = Socket::watching(&server, "watch-docs", Value::Null).await;
        let one_more = Socket::watching(&server, "watch-docs", Value::Null).await;
        assert_eq!(server.get("/databases/db/stats").await.status, StatusCode::SERVICE_UNAVAILABLE);
        drop(one_more);
        room(&server).await;
        socket.stream.close(None).await.unwrap();
        room(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_cut_off_and_holds_nobody_back() {
    let change = |limits: &mut treepie::server::ServerLimits| {
        limits.requests_max = 3;
        limits.unread_max = Duration::from_millis(300);
    };
    let server = TestServer::start_with(change).await;
    server.create("db").await;
    let slow = Socket::watching(&server, "watch-docs", Value::Null).await;
    let mut quick = Socket::watching(&server, "watch-prefix", json!("last")).await;
    let id = "x".repeat(400);
    for round in 0..12 {
        let commands: Vec<_> =
            (0..4_000).map(|n| json!({"Type": "PUT", "Id": format!("{id}/{round}/{n}"), "Document": {}})).collect();
        assert_eq!(server.batch(&json!(commands)).await.status, StatusCode::CREATED);
    }
    server.must_put("last", "{}").await;
    assert_eq!(told(&quick.next().await).1, "last");
    // There is room for a third, and beside it for one more as soon as the first is cut off.
    let _third = Socket::watching(&server, "watch-docs", Value::Null).await;
    room(&server).await;
    drop(slow);
}
