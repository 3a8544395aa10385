//! HiLo ranges: how long they are, what comes back, and that no number is handed out twice, whatever happens.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer, escape};

const NEVER: &str = "0001-01-01T00:00:00.0000000Z";

async fn next(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/databases/db/hilo/next?{query}")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()
}

async fn give_back(server: &TestServer, query: &str) -> Answer {
    server.send(Method::PUT, &format!("/databases/db/hilo/return?{query}"), "").await
}

fn range(answer: &Value) -> (u64, u64) {
    (answer["Low"].as_u64().unwrap(), answer["High"].as_u64().unwrap())
}

fn seconds_ago(seconds: i64) -> String {
    let time = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds);
    escape(&time.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_range_is_1_to_32_and_its_document_can_be_read() {
    let server = TestServer::with_database().await;
    let query = format!("tag=users&lastBatchSize=0&lastRangeAt={NEVER}&identityPartsSeparator=/&lastMax=0");
    let first = next(&server, &query).await;
    assert_eq!(
        (&first["Prefix"], &first["ServerTag"], &first["LastSize"]),
        (&json!("users/"), &json!("A"), &json!(32))
    );
    assert_eq!(range(&first), (1, 32));
    assert_eq!(first["LastRangeAt"].as_str().unwrap().len(), 28);
    let document = server.document("Raven/Hilo/users").await.unwrap();
    assert_eq!((&document["Max"], &document["@metadata"]["@collection"]), (&json!(32), &json!("@hilo")));
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_grow_when_asked_for_soon_and_shrink_when_late() {
    let server = TestServer::with_database().await;
    let (mut size, mut max) = (0, 0);
    for expected in [(1, 32), (33, 96), (97, 224), (225, 480)] {
        let query = format!("tag=g&lastBatchSize={size}&lastMax={max}&lastRangeAt={}", seconds_ago(1));
        let answer = next(&server, &query).await;
        assert_eq!(range(&answer), expected);
        (size, max) = (answer["LastSize"].as_u64().unwrap(), expected.1);
    }
    let late = next(&server, &format!("tag=g&lastBatchSize=256&lastRangeAt={}", seconds_ago(600))).await;
    assert_eq!(range(&late), (481, 608));
    let same = next(&server, &format!("tag=g&lastBatchSize=256&lastRangeAt={}", seconds_ago(45))).await;
    assert_eq!(range(&same), (609, 864));
    let capped = next(&server, &format!("tag=g&lastBatchSize=9000000&lastRangeAt={}", seconds_ago(0))).await;
    assert_eq!(capped["LastSize"], 1 << 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_arrive_has_its_default() {
    let server = TestServer::with_database().await;
    // As the Node.js client with the separator '#': it and all that follows is lost as the URL's fragment.
    let answer = next(&server, "lastBatchSize=0&tag=users&lastRangeAt=&identityPartsSeparator=").await;
    assert_eq!((range(&answer), &answer["Prefix"]), ((1, 32), &json!("users/")));
    assert_eq!(next(&server, "tag=dash&identityPartsSeparator=-").await["Prefix"], "dash-");
    assert_eq!(range(&next(&server, "tag=users&lastMax=5000").await), (5001, 5032));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_unused_end_of_the_newest_range_comes_back() {
    let server = TestServer::with_database().await;
    assert_eq!(range(&next(&server, "tag=users").await), (1, 32));
    assert_eq!(range(&next(&server, "tag=users").await), (33, 64));
    for ignored in ["end=32&last=10", "end=64&last=20", "end=64&last=64", "end=64&last=65", "end=900&last=800"] {
        let answer = give_back(&server, &format!("tag=users&{ignored}")).await;
        assert_eq!((answer.status, answer.header("content-length")), (StatusCode::OK, Some("0")), "{ignored}");
        assert_eq!(server.document("Raven/Hilo/users").await.unwrap()["Max"], 64, "{ignored}");
    }
    assert_eq!(give_back(&server, "tag=users&end=64&last=40").await.status, StatusCode::OK);
    assert_eq!(server.document("Raven/Hilo/users").await.unwrap()["Max"], 40);
    assert_eq!(give_back(&server, "tag=users&end=40&last=34").await.status, StatusCode::OK);
    assert_eq!(range(&next(&server, "tag=USERS").await), (41, 72));
    assert_eq!(give_back(&server, "tag=unknown&end=32&last=10").await.status, StatusCode::OK);
    assert_eq!(server.document("Raven/Hilo/unknown").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_the_document_stays_as_it_is() {
    let server = TestServer::with_database().await;
    let body = r#"{"Note":"ours","Price":1.10,"Max":"64","@metadata":{"@collection":"Counters","Mine":true}}"#;
    server.must_put("Raven/Hilo/users", body).await;
    assert_eq!(range(&next(&server, "tag=users").await), (65, 96));
    let answer = server.get("/databases/db/docs?id=Raven/Hilo/users").await.text();
    assert!(
        answer.contains(r#"{"Note":"ours","Price":1.10,"Max":96,"@metadata":{"@collection":"Counters","Mine":true,"#)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_refused() {
    let server = TestServer::with_database().await;
    for (query, word) in [
        ("", "'tag'"),
        ("tag=", "'tag'"),
        ("tag=a%7C", "'|'"),
        ("tag=a%01", "U+0001"),
        ("tag=users&lastMax=-1", "'lastMax'"),
        ("tag=users&lastMax=99999999999999999999", "'lastMax'"),
        ("tag=users&lastMax=9223372036854775807", "another tag"),
        ("tag=users&lastBatchSize=many", "'lastBatchSize'"),
        ("tag=users&lastRangeAt=soon", "'lastRangeAt'"),
        ("tag=users&identityPartsSeparator=%7C", "'|'"),
        ("tag=users&identityPartsSeparator=ab", "'identityPartsSeparator'"),
    ] {
        server.get(&format!("/databases/db/hilo/next?{query}")).await.assert_error(400, "ArgumentException", &[word]);
    }
    for (query, word) in [
        ("end=2&last=1", "'tag'"),
        ("tag=users&last=1", "'end'"),
        ("tag=users&end=32", "'last'"),
        ("tag=users&end=x&last=1", "'end'"),
    ] {
        give_back(&server, query).await.assert_error(400, "ArgumentException", &[word]);
    }
    server.must_put("Raven/Hilo/odd", r#"{"Max":-5}"#).await;
    let answer = server.get("/databases/db/hilo/next?tag=odd").await;
    answer.assert_error(400, "ArgumentException", &["Raven/Hilo/odd", "correct the document"]);
    assert_eq!(server.document("Raven/Hilo/users").await, None, "nothing was handed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_deleted_or_lowered_gives_no_number_twice() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    assert_eq!(range(&next(&server, "tag=users").await), (1, 32));
    server.delete("/databases/db/docs?id=Raven/Hilo/users").await;
    assert_eq!(range(&next(&server, "tag=users").await), (33, 64));
    server.must_put("raven/hilo/USERS", r#"{"Max":12}"#).await;
    assert_eq!(range(&next(&server, "tag=users").await), (65, 96));
    server.delete("/databases/db/docs?id=Raven/Hilo/users").await;
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    assert_eq!(range(&next(&server, "tag=users").await), (97, 128));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_get_ranges_of_their_own() {
    let server = std::sync::Arc::new(TestServer::with_database().await);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..16 {
        let server = std::sync::Arc::clone(&server);
        clients.spawn(async move {
            let mut taken = Vec::new();
            for round in 0..8 {
                let (low, high) = range(&next(&server, "tag=users").await);
                taken.extend(low..=high);
                if (client + round) % 3 == 0 {
                    let kept = low + 4;
                    give_back(&server, &format!("tag=users&end={high}&last={kept}")).await;
                    taken.truncate(taken.len() - usize::try_from(high - kept).unwrap());
                }
                if (client + round) % 5 == 0 {
                    server.delete("/databases/db/docs?id=Raven/Hilo/users").await;
                }
            }
            taken
        });
    }
    let (mut all, mut seen) = (0, BTreeSet::new());
    while let Some(taken) = clients.join_next().await {
        let taken = taken.unwrap();
        all += taken.len();
        seen.extend(taken);
    }
    assert_eq!(seen.len(), all, "a number was handed out twice");
}

struct Process(Child, String);

impl Process {
    fn start(data: &std::path::Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        command.args(["serve", "--json", "--durability", "relaxed", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
        Self(child, url)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_outlives_a_kill_right_after_its_answer() {
    let directory = tempfile::tempdir().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut last = 0;
    for round in 0..4 {
        let server = Process::start(directory.path());
        if round == 0 {
            let created = client.put(format!("{}/admin/databases?name=db", server.1)).body("{}").send().await.unwrap();
            assert_eq!(created.status(), StatusCode::CREATED);
        }
        let answer = client.get(format!("{}/databases/db/hilo/next?tag=users", server.1)).send().await.unwrap();
        let (low, high) = range(&answer.json::<Value>().await.unwrap());
        server.kill();
        assert!(low > last, "{low} after {last}");
        last = high;
    }
}
