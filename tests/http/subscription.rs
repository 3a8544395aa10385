//! A subscription of `db`, read as `curl` would.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::change_feed::Lines;
use crate::support::{Answer, TestServer, escape};

/// An open stream of a subscription.
pub(crate) struct Stream {
    lines: Lines,
    pub(crate) worker: String,
}

/// A batch: its lines and the line after it.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) lines: Vec<Value>,
    pub(crate) end: Value,
}

impl Batch {
    /// The ids, a deleted one with `-` before it.
    pub(crate) fn ids(&self) -> Vec<String> {
        let id = |line: &Value| {
            let sign = if line["Deleted"] == true { "-" } else { "" };
            format!("{sign}{}", line["Id"].as_str().unwrap())
        };
        self.lines.iter().map(id).collect()
    }

    pub(crate) fn etags(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line["Etag"].as_u64().unwrap()).collect()
    }
}

impl Stream {
    /// Opens a subscription; `more` is appended to the query.
    pub(crate) async fn open(server: &TestServer, name: &str, more: &str) -> Self {
        let path = format!("/databases/db/subscriptions/stream?name={}{more}", escape(name));
        let mut lines = Lines::open(server, &path).await;
        let accepted = next(&mut lines).await.unwrap();
        assert_eq!(accepted["Status"], "Accepted", "{accepted}");
        Self { lines, worker: accepted["Worker"].as_str().unwrap().to_owned() }
    }

    /// The next batch.
    pub(crate) async fn batch(&mut self) -> Batch {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await.unwrap();
            match line["Type"].as_str().unwrap() {
                "Data" => lines.push(line),
                "EndOfBatch" => return Batch { lines, end: line },
                _ => panic!("{line}"),
            }
        }
    }

    /// The next line that is no heartbeat; `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<Value> {
        next(&mut self.lines).await
    }

    /// Acknowledges what it holds.
    pub(crate) async fn acknowledge(&self, server: &TestServer, name: &str) {
        let answer = acknowledge(server, name, &format!("&worker={}", self.worker)).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    }
}

async fn next(lines: &mut Lines) -> Option<Value> {
    loop {
        match lines.next().await {
            None => return None,
            Some(line) if line.is_empty() => {}
            Some(line) => return Some(serde_json::from_str(&line).unwrap()),
        }
    }
}

pub(crate) async fn acknowledge(server: &TestServer, name: &str, more: &str) -> Answer {
    let path = format!("/databases/db/subscriptions/ack?name={}{more}", escape(name));
    server.send(Method::POST, &path, "").await
}

/// Asks for a subscription.
pub(crate) async fn put(server: &TestServer, wanted: &Value) -> Answer {
    server.send(Method::PUT, "/databases/db/subscriptions", wanted.to_string()).await
}

/// Creates a subscription `s`, which must be possible.
pub(crate) async fn create(server: &TestServer, query: &str, more: Value) {
    let mut wanted = json!({ "Name": "s", "Query": query });
    wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = put(server, &wanted).await;
    assert_eq!((answer.status, &answer.json()["Name"]), (StatusCode::CREATED, &json!("s")), "{answer:?}");
}

/// How subscription `name` is doing.
pub(crate) async fn state(server: &TestServer, name: &str) -> Value {
    let answer = server.get(&format!("/databases/db/subscriptions/state?name={}", escape(name))).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()
}

/// Changes subscription `s`.
pub(crate) async fn update(server: &TestServer, mut wanted: Value) -> Answer {
    wanted["Name"] = json!("s");
    server.send(Method::POST, "/databases/db/subscriptions/update", wanted.to_string()).await
}

/// Puts documents `<prefix>/1` to `<prefix>/count` into a collection, each with its number.
pub(crate) async fn put_numbered(server: &TestServer, collection: &str, numbers: std::ops::RangeInclusive<u32>) {
    let commands: Vec<Value> = numbers
        .map(|n| {
            let document = json!({ "n": n, "@metadata": { "@collection": collection } });
            json!({ "Type": "PUT", "Id": format!("{}/{n}", collection.to_ascii_lowercase()), "Document": document })
        })
        .collect();
    let answer = server.batch(&json!(commands)).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
}
