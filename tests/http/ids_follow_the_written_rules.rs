//! Any string as an id, on the URL and in a batch, against the written rules: a GUID for nothing, an identity for a trailing
//! bar, a server-side id for a trailing separator, the id itself otherwise; no control characters, at most 512 bytes.
//!
//! The rules stand here a second time, without the code that is judged.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};

/// What comes of an id.
#[derive(Debug, PartialEq)]
enum Verdict {
    Guid,
    Itself,
    /// The prefix, separator included.
    ServerSide(String),
    /// The prefix, separator included.
    Identity(String),
    Refused,
}

fn lower_bytes(id: &str) -> usize {
    id.chars().flat_map(char::to_lowercase).map(char::len_utf8).sum()
}

fn verdict(id: &str) -> Verdict {
    const MAX: usize = 512;
    if id.chars().all(char::is_whitespace) {
        return Verdict::Guid;
    }
    if id.chars().any(char::is_control) {
        return Verdict::Refused;
    }
    if let Some(prefix) = id.strip_suffix('|') {
        let shortest = format!("{prefix}/1");
        return if lower_bytes(&shortest) <= MAX { Verdict::Identity(format!("{prefix}/")) } else { Verdict::Refused };
    }
    if id.ends_with('/') {
        let shortest = format!("{id}0000000000000000001-a");
        return if lower_bytes(&shortest) <= MAX { Verdict::ServerSide(id.to_owned()) } else { Verdict::Refused };
    }
    if lower_bytes(id) <= MAX { Verdict::Itself } else { Verdict::Refused }
}

/// The finished id is what the verdict says.
fn assert_finished(asked: &str, id: &str) {
    match verdict(asked) {
        Verdict::Guid => assert!(id.len() == 36 && id.matches('-').count() == 4, "{asked:?} became {id:?}"),
        Verdict::Itself => assert_eq!(asked, id),
        Verdict::ServerSide(prefix) => {
            let rest = id.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix("-A"));
            let digits = rest.unwrap_or_else(|| panic!("{asked:?} became {id:?}"));
            assert!(digits.len() == 19 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{id:?}");
        }
        Verdict::Identity(prefix) => {
            let number = id.strip_prefix(&prefix).unwrap_or_else(|| panic!("{asked:?} became {id:?}"));
            assert!(number.parse::<u64>().is_ok_and(|number| number > 0), "{id:?}");
        }
        Verdict::Refused => panic!("{asked:?} became {id:?} and should be refused"),
    }
}

/// Letters that newer versions of Unicode have given a lower case are left out: the table of ids is that of their format.
fn letter() -> impl Strategy<Value = char> {
    let is_newer = |letter: char| matches!(u32::from(letter), 0x10D40..=0x10D8F | 0xA7CB..=0xA7DC | 0x16EA0..=0x16EDF);
    prop_oneof![
        4 => any::<char>(),
        3 => prop::sample::select("aZ09 /|#%+?&\"\\.-_@ßİẞΣςｱ日😀\u{212A}\u{0301}\u{00A0}\u{2028}".chars().collect::<Vec<_>>()),
        1 => prop::sample::select("\0\t\n\r\u{1b}\u{7f}\u{85}".chars().collect::<Vec<_>>()),
    ]
    .prop_filter("a newer letter", move |letter| !is_newer(*letter))
}

fn id() -> impl Strategy<Value = String> {
    let body = prop_oneof![
        6 => prop::collection::vec(letter(), 0..12).prop_map(String::from_iter),
        2 => prop::collection::vec(letter().prop_filter("no control", |letter| !letter.is_control()), 0..20)
            .prop_map(String::from_iter),
        // About the limit, in letters of one to four bytes; İ is longer in lower case, and Kelvin's sign shorter.
        2 => (prop::sample::select(vec!["a", "Ä", "✈", "😀", "İ", "\u{212A}"]), 480_usize..520).prop_map(|(unit, bytes)| {
            let width = lower_bytes(unit);
            format!("{}{}", unit.repeat(bytes / width), "x".repeat(bytes % width))
        }),
    ];
    let end = prop::sample::select(vec!["", "", "", "/", "|", "//", "||", "|/", "/|", " "]);
    (body, end).prop_map(|(body, end)| format!("{body}{end}"))
}

async fn assert_reads_back(server: &TestServer, id: &str, token: u64) {
    let document = server.document(id).await.unwrap_or_else(|| panic!("{id:?} is not there"));
    assert_eq!((&document["@metadata"]["@id"], &document["token"]), (&json!(id), &json!(token)));
}

async fn on_the_url(server: &TestServer, asked: &str, token: u64) {
    let answer = server.put(asked, json!({ "token": token }).to_string()).await;
    if verdict(asked) == Verdict::Refused {
        return assert_refused(&answer, asked);
    }
    assert_eq!(answer.status, StatusCode::CREATED, "{asked:?}: {}", answer.text());
    let id = answer.json()["Id"].as_str().unwrap().to_owned();
    assert_finished(asked, &id);
    assert_reads_back(server, &id, token).await;
}

async fn in_a_batch(server: &TestServer, asked: &[String], token: u64) {
    let put = |(at, id): (usize, &String)| json!({"Type": "PUT", "Id": id, "Document": {"token": token + at as u64}});
    let commands: Vec<Value> = asked.iter().enumerate().map(put).collect();
    let etag = server.get("/databases/db/stats").await.json()["LastDocEtag"].clone();
    let answer = server.batch(&json!(commands)).await;
    if let Some(first) = asked.iter().position(|id| verdict(id) == Verdict::Refused) {
        assert_refused(&answer, &asked[first]);
        assert!(answer.text().contains(&format!("command {first}, counted from 0")), "{}", answer.text());
        assert_eq!(server.get("/databases/db/stats").await.json()["LastDocEtag"], etag, "nothing is stored");
        return;
    }
    assert_eq!(answer.status, StatusCode::CREATED, "{asked:?}: {}", answer.text());
    let results = answer.json()["Results"].as_array().unwrap().clone();
    assert_eq!(results.len(), asked.len());
    let mut last = HashMap::new();
    for (at, (asked, result)) in asked.iter().zip(&results).enumerate() {
        let id = result["@id"].as_str().unwrap();
        assert_finished(asked, id);
        let key: String = id.chars().flat_map(char::to_lowercase).collect();
        let before = last.insert(key, (id.to_owned(), token + at as u64));
        let is_made = verdict(asked) != Verdict::Itself;
        assert!(before.is_none() || !is_made, "{asked:?} became {id:?}, which the batch had already");
    }
    for (id, token) in last.values() {
        assert_reads_back(server, id, *token).await;
    }
}

fn assert_refused(answer: &Answer, asked: &str) {
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{asked:?}: {}", answer.text());
    let message = answer.json()["Message"].as_str().unwrap().to_owned();
    let control = asked.chars().any(char::is_control);
    assert!(message.contains(if control { "control character" } else { "bytes" }), "{asked:?}: {message}");
}

#[test]
fn any_string_is_stored_made_or_refused_as_the_rules_say() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(TestServer::with_database());
    let mut runner = TestRunner::new(Config { cases: 192, failure_persistence: None, ..Config::default() });
    let mut token = 0;
    let tokens = std::cell::RefCell::new(&mut token);
    runner
        .run(&prop::collection::vec(id(), 1..5), |ids| {
            let token = {
                let mut tokens = tokens.borrow_mut();
                **tokens += 100;
                **tokens
            };
            runtime.block_on(async {
                on_the_url(&server, &ids[0], token).await;
                in_a_batch(&server, &ids, token + 1).await;
            });
            Ok(())
        })
        .unwrap();
    runtime.block_on(server.stop());
}
