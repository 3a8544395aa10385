//! RavenDB's TCP protocol on the port of HTTP, byte by byte; the real clients are in `tests/clients`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::subscription::{create, put_numbered, state};
use crate::support::TestServer;

const PATIENCE: Duration = Duration::from_secs(30);

struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    async fn connect(server: &TestServer) -> Self {
        Self { stream: TcpStream::connect(server.address).await.unwrap(), read: Vec::new() }
    }

    async fn say(&mut self, message: Value) {
        self.stream.write_all(message.to_string().as_bytes()).await.unwrap();
    }

    /// The next message; `None` where the connection was closed.
    async fn hear(&mut self) -> Option<Value> {
        loop {
            let mut values = serde_json::Deserializer::from_slice(&self.read).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                let end = values.byte_offset();
                self.read.drain(..end);
                return Some(value);
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await.unwrap();
            if read.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Shakes hands and opens subscription `s`; returns what the server says to that.
    async fn open(server: &TestServer, more: Value) -> (Self, Value) {
        let mut wire = Self::connect(server).await;
        wire.say(json!({ "DatabaseName": "db", "Operation": "Subscription", "OperationVersion": 53_000 })).await;
        let reply = wire.hear().await.unwrap();
        assert_eq!(reply, json!({ "Status": "Ok", "Version": 53_000, "Message": null, "LicensedFeatures": null }));
        let mut options = json!({ "SubscriptionName": "s", "Strategy": "OpenIfFree", "MaxDocsPerBatch": 2 });
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        wire.say(options).await;
        let status = wire.hear().await.unwrap();
        (wire, status)
    }

    /// The ids of the next batch.
    async fn batch(&mut self) -> Vec<Value> {
        let mut data = Vec::new();
        loop {
            let message = self.hear().await.unwrap();
            match message["Type"].as_str().unwrap() {
                "Data" => data.push(message["Data"].clone()),
                "EndOfBatch" => return data,
                other => panic!("{other}: {message}"),
            }
        }
    }

    async fn acknowledge(&mut self, vector: Value) {
        self.say(json!({ "Type": "Acknowledge", "ChangeVector": vector })).await;
        assert_eq!(self.hear().await.unwrap(), json!({ "Type": "Confirm" }));
    }
}

fn ids(data: &[Value]) -> Vec<&str> {
    data.iter().map(|document| document["@metadata"]["@id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_delivered_acknowledged_and_confirmed() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=5).await;
    create(&server, "from Items", json!({})).await;
    let (mut wire, status) = Wire::open(&server, json!({})).await;
    assert_eq!((&status["Type"], &status["Status"]), (&json!("ConnectionStatus"), &json!("Accepted")));
    let batch = wire.batch().await;
    assert_eq!((ids(&batch), &batch[0]), (vec!["items/1", "items/2"], &server.document("items/1").await.unwrap()));
    // The change vector of the last document, a shorter way in between, and none, which means all.
    wire.acknowledge(batch[1]["@metadata"]["@change-vector"].clone()).await;
    assert_eq!(ids(&wire.batch().await), ["items/3", "items/4"]);
    wire.acknowledge(batch[0]["@metadata"]["@change-vector"].clone()).await;
    assert_eq!(ids(&wire.batch().await), ["items/5"]);
    wire.acknowledge(Value::Null).await;
    assert!(state(&server, "s").await["ChangeVectorForNextBatchStartingPoint"].as_str().unwrap().starts_with("A:5-"));
    server.delete("/databases/db/subscriptions?taskName=s").await;
    let last = wire.hear().await.unwrap();
    assert_eq!((&last["Status"], &last["Data"]["CanReconnect"]), (&json!("Closed"), &json!(false)));
    assert_eq!(wire.hear().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_agreed_on_or_the_connection_ends() {
    let server = TestServer::with_database().await;
    let header =
        |version: i64| json!({ "DatabaseName": "db", "Operation": "Subscription", "OperationVersion": version });
    let mut wire = Wire::connect(&server).await;
    for (asked, answered) in [(99_000, 53_000), (52_000, 51_000), (39, -1)] {
        wire.say(header(asked)).await;
        let reply = wire.hear().await.unwrap();
        assert_eq!((&reply["Status"], &reply["Version"]), (&json!("TcpVersionMismatch"), &json!(answered)), "{asked}");
    }
    wire.say(header(51_000)).await;
    assert_eq!(wire.hear().await.unwrap()["Version"], 51_000);
    let mut wire = Wire::connect(&server).await;
    wire.say(json!({ "DatabaseName": "db", "Operation": "Replication", "OperationVersion": 53_000 })).await;
    assert_eq!(wire.hear().await.unwrap()["Version"], -1);
    assert_eq!(wire.hear().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_opened_is_refused_with_its_status() {
    let server = TestServer::with_database().await;
    create(&server, "from Items", json!({})).await;
    let (_wire, status) = Wire::open(&server, json!({ "SubscriptionName": "nope" })).await;
    assert_eq!(status["Status"], "NotFound");
    let (mut first, _) = Wire::open(&server, json!({})).await;
    let (_wire, status) = Wire::open(&server, json!({})).await;
    assert_eq!(status["Status"], "InUse");
    let (_wire, status) = Wire::open(&server, json!({ "Strategy": "Other" })).await;
    assert_eq!(status["Status"], "Invalid");
    let (_second, status) = Wire::open(&server, json!({ "Strategy": "TakeOver" })).await;
    assert_eq!(status["Status"], "Accepted");
    assert_eq!(first.hear().await.unwrap()["Status"], "InUse");
    let mut wire = Wire::connect(&server).await;
    wire.say(json!({ "DatabaseName": "nope", "Operation": "Subscription", "OperationVersion": 53_000 })).await;
    wire.say(json!({ "SubscriptionName": "s" })).await;
    assert_eq!(wire.hear().await.unwrap()["Status"], "Ok");
    let error = wire.hear().await.unwrap();
    assert!(error["Exception"].as_str().unwrap().contains("DatabaseDoesNotExistException"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_ends_the_connection_and_nothing_else() {
    let server = TestServer::with_database().await;
    create(&server, "from Items", json!({})).await;
    for rubbish in ["{]", "{\"Operation\":7}", "{\"a\":", &format!("{{\"a\":\"{}\"}}", "x".repeat(100_000))] {
        let mut wire = Wire::connect(&server).await;
        wire.stream.write_all(rubbish.as_bytes()).await.unwrap();
        wire.stream.shutdown().await.unwrap();
        while wire.hear().await.is_some() {}
    }
    let (mut wire, _) = Wire::open(&server, json!({})).await;
    wire.stream.write_all(b"{\"Type\":\"Acknowledge\"} nonsense").await.unwrap();
    assert_eq!(wire.hear().await.unwrap()["Type"], "Error");
    assert_eq!(wire.hear().await, None);
    let (_wire, status) = Wire::open(&server, json!({ "Strategy": "WaitForFree" })).await;
    assert_eq!(status["Status"], "Accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_runs_stand_in_the_metadata() {
    let server = TestServer::with_database().await;
    put_numbered(&server, "Items", 1..=1).await;
    create(&server, "from Items (Deletes = true, Previous = true) as item", json!({})).await;
    let (mut wire, _) = Wire::open(&server, json!({})).await;
    wire.batch().await;
    wire.acknowledge(Value::Null).await;
    server.must_put("items/1", r#"{"n":2,"@metadata":{"@collection":"Items"}}"#).await;
    let batch = wire.batch().await;
    assert_eq!((&batch[0]["n"], &batch[0]["@metadata"]["@previous"]["n"]), (&json!(2), &json!(1)));
    wire.acknowledge(Value::Null).await;
    server.delete("/databases/db/docs?id=items/1").await;
    let batch = wire.batch().await;
    let metadata = &batch[0]["@metadata"];
    assert_eq!((&metadata["@deleted"], &metadata["@previous"]["n"]), (&json!(true), &json!(2)));
    assert_eq!((&metadata["@id"], &metadata["@collection"]), (&json!("items/1"), &json!("Items")));
    assert!(metadata["@change-vector"].as_str().unwrap().starts_with("A:3-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_ends_worker_connections() {
    let mut server = TestServer::with_database().await;
    create(&server, "from Items", json!({})).await;
    let (mut wire, _) = Wire::open(&server, json!({})).await;
    let mut silent = Wire::connect(&server).await;
    server.tell_to_stop();
    assert_eq!(wire.hear().await, None);
    assert_eq!(silent.hear().await, None);
    server.stopped().await;
}
