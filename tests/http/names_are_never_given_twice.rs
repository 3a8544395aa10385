//! Many writers at once, each in every way to name a document, one by one and in batches: no id is given twice, no document
//! is overwritten, and identities and server-side ids never fail on what is there.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer, escape};

const WRITERS: usize = 6;

/// One way to name a document.
#[derive(Clone, Debug)]
enum Way {
    Guid,
    ServerSide,
    Identity,
    /// From the writer's range.
    Hilo,
    /// By hand, where identities, server-side ids or HiLo come by; only where nothing is.
    ByHand(String),
}

/// One request of a writer.
#[derive(Clone, Debug)]
enum Step {
    One(Way),
    Batch(Vec<Way>),
    /// Everything a batch makes goes when it is refused; its last command always is.
    Failing(Vec<Way>),
    /// Sets the identity's last number, which moves no number that was given out.
    Seed(u64),
    /// Gives the rest of the range back.
    Return,
}

fn way() -> impl Strategy<Value = Way> {
    let by_hand = prop_oneof![
        (1_u64..60).prop_map(|n| format!("users/{n}")),
        (1_u64..60).prop_map(|n| format!("users/{n}-A")),
        (1_u64..400).prop_map(|n| format!("Users/{n:019}-A")),
    ];
    prop_oneof![
        1 => Just(Way::Guid),
        2 => Just(Way::ServerSide),
        4 => Just(Way::Identity),
        3 => Just(Way::Hilo),
        3 => by_hand.prop_map(Way::ByHand),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => way().prop_map(Step::One),
        3 => prop::collection::vec(way(), 1..6).prop_map(Step::Batch),
        1 => prop::collection::vec(way(), 1..4).prop_map(Step::Failing),
        1 => (0_u64..80).prop_map(Step::Seed),
        1 => Just(Step::Return),
    ]
}

/// One writer with its range of numbers.
struct Writer {
    server: Arc<TestServer>,
    database: String,
    name: usize,
    written: Vec<(String, String)>,
    range: Option<(u64, u64)>,
    last_max: u64,
    tokens: usize,
}

impl Writer {
    async fn send(&self, method: Method, path: &str, body: String) -> Answer {
        self.server.send(method, &format!("/databases/{}/{path}", self.database), body).await
    }

    /// The id to ask for, and whether it must be new.
    async fn asked(&mut self, way: &Way) -> (String, bool) {
        match way {
            Way::Guid => (String::new(), false),
            Way::ServerSide => ("users/".to_owned(), false),
            Way::Identity => ("users|".to_owned(), false),
            Way::ByHand(id) => (id.clone(), true),
            Way::Hilo => {
                let (number, high) = match self.range.take() {
                    Some(range) => range,
                    None => {
                        let path = format!("hilo/next?tag=users&lastMax={}", self.last_max);
                        let range = self.send(Method::GET, &path, String::new()).await.json();
                        (range["Low"].as_u64().unwrap(), range["High"].as_u64().unwrap())
                    }
                };
                self.last_max = high;
                self.range = (number < high).then_some((number + 1, high));
                (format!("users/{number}-A"), true)
            }
        }
    }

    async fn command(&mut self, way: &Way) -> (Value, String) {
        let (id, is_new) = self.asked(way).await;
        self.tokens += 1;
        let token = format!("{}:{}", self.name, self.tokens);
        let vector = if is_new { json!("") } else { Value::Null };
        (json!({"Type": "PUT", "Id": id, "ChangeVector": vector, "Document": {"token": token}}), token)
    }

    async fn run(&mut self, step: Step) {
        match step {
            Step::One(way) => {
                let (command, token) = self.command(&way).await;
                let id = command["Id"].as_str().unwrap();
                let path = format!("databases/{}/docs?id={}", self.database, escape(id));
                let mut request = self.server.request(Method::PUT, &format!("/{path}"));
                if command["ChangeVector"].is_string() {
                    request = request.header("If-Match", "\"\"");
                }
                let answer = Answer::read(request.body(command["Document"].to_string()).send().await.unwrap()).await;
                if may_be_there(&way) && answer.status == StatusCode::CONFLICT {
                    return;
                }
                assert_eq!(answer.status, StatusCode::CREATED, "{way:?}: {}", answer.text());
                self.written.push((answer.json()["Id"].as_str().unwrap().to_owned(), token));
            }
            Step::Batch(ways) => self.batch(ways, false).await,
            Step::Failing(ways) => self.batch(ways, true).await,
            Step::Seed(value) => {
                let path = format!("identity/seed?name=users&value={value}");
                assert_eq!(self.send(Method::POST, &path, String::new()).await.status, StatusCode::OK);
            }
            Step::Return => {
                let Some((next, high)) = self.range.take() else { return };
                let path = format!("hilo/return?tag=users&end={high}&last={}", next - 1);
                assert_eq!(self.send(Method::PUT, &path, String::new()).await.status, StatusCode::OK);
            }
        }
    }

    async fn batch(&mut self, ways: Vec<Way>, fails: bool) {
        let (mut commands, mut tokens) = (Vec::new(), Vec::new());
        for way in &ways {
            let (command, token) = self.command(way).await;
            commands.push(command);
            tokens.push(token);
        }
        if fails {
            commands.push(json!({"Type": "DELETE", "Id": "users/none", "ChangeVector": "A:0-never"}));
        }
        let answer = self.send(Method::POST, "bulk_docs", json!({ "Commands": commands }).to_string()).await;
        if answer.status == StatusCode::CONFLICT && (fails || ways.iter().any(may_be_there)) {
            return;
        }
        assert!(answer.status == StatusCode::CREATED && !fails, "{ways:?}: {}", answer.text());
        let results = answer.json()["Results"].as_array().unwrap().clone();
        let ids = results.iter().map(|result| result["@id"].as_str().unwrap().to_owned());
        self.written.extend(ids.zip(tokens));
    }
}

fn may_be_there(way: &Way) -> bool {
    matches!(way, Way::ByHand(_) | Way::Hilo)
}

async fn run(server: &Arc<TestServer>, database: String, plans: Vec<Vec<Step>>) {
    server.create(&database).await;
    let writers = plans.into_iter().enumerate().map(|(name, plan)| {
        let (server, database) = (Arc::clone(server), database.clone());
        tokio::spawn(async move {
            let mut writer =
                Writer { server, database, name, written: Vec::new(), range: None, last_max: 0, tokens: 0 };
            for step in plan {
                writer.run(step).await;
            }
            writer.written
        })
    });
    let mut written = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        written.extend(writer.await.unwrap());
    }
    let different: HashSet<String> = written.iter().map(|(id, _)| treepie::id::lower(id)).collect();
    assert_eq!(different.len(), written.len(), "an id was given twice");
    for (id, token) in written {
        let found = server.get(&format!("/databases/{database}/docs?id={}", escape(&id))).await.json();
        assert_eq!(found["Results"][0]["token"], token, "'{id}' was overwritten");
    }
}

#[test]
fn interleaved_writers_never_get_one_id_twice_and_never_overwrite() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = Arc::new(runtime.block_on(TestServer::start()));
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    let databases = std::sync::atomic::AtomicUsize::new(0);
    let plans = prop::collection::vec(prop::collection::vec(step(), 1..20), WRITERS);
    runner
        .run(&plans, |plans| {
            let name = format!("db{}", databases.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
            runtime.block_on(run(&server, name, plans));
            Ok(())
        })
        .unwrap();
}
