//! The feeds in CouchDB's shape, as people use them from a terminal: with `curl`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Server, run};

/// Runs `curl` to its end and returns what it printed.
fn curl(server: &Server, path: &str, arguments: &[&str]) -> String {
    let ran = run(command(server, path, arguments), "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

fn command(server: &Server, path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--no-buffer", "--noproxy", "*", "--max-time", "60", "--globoff"]);
    command.args(arguments).arg(format!("{}/databases/main/{path}", server.url));
    command
}

fn put(server: &Server, id: &str, document: &str) {
    server.run_with(&["put", id], document).json();
}

fn ids(listing: &str, rows: &str) -> Vec<String> {
    let listing: Value = serde_json::from_str(listing).unwrap();
    listing[rows].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ids_are_listed_alone_in_ranges_and_newest_first() {
    let server = Server::start();
    for id in ["acc-1/2024-01", "acc-1/2024-02", "acc-1/2024-03", "acc-2/2024-02"] {
        put(&server, id, "{}");
    }
    let quoted = "startkey=%22acc-1/2024-02%22&endkey=%22acc-1/~%22";
    let listing = curl(&server, &format!("_all_docs?{quoted}"), &[]);
    assert_eq!(ids(&listing, "rows"), ["acc-1/2024-02", "acc-1/2024-03"]);
    assert!(!listing.contains("\"doc\""));
    let newest = "startkey=%22acc-1/~%22&endkey=%22acc-1/%22&descending=true&limit=1";
    assert_eq!(ids(&curl(&server, &format!("_all_docs?{newest}"), &[]), "rows"), ["acc-1/2024-03"]);
    let keys = ["-X", "POST", "-d", r#"{"keys":["acc-2/2024-02","acc-1/2024-01"]}"#];
    assert_eq!(ids(&curl(&server, "_all_docs", &keys), "rows"), ["acc-2/2024-02", "acc-1/2024-01"]);
}

#[test]
fn a_long_poll_ends_with_the_next_change() {
    let server = Server::start();
    put(&server, "a", "{}");
    let mut waiting = command(&server, "_changes?feed=longpoll&since=now", &[]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "{\"results\":[", "the feed is open");
    put(&server, "b", "{}");
    let row: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&row["id"], &row["seq"]), (&"b".into(), &2.into()));
    assert_eq!(lines.next().unwrap().unwrap(), "],\"last_seq\":2,\"pending\":0}");
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn a_feed_is_followed_by_lines_and_by_events() {
    let server = Server::start();
    for id in ["a", "b"] {
        put(&server, id, "{\"n\":1.50}");
    }
    server.run(&["delete", "a"]).json();
    let lines = curl(&server, "_changes?feed=continuous&since=0&include_docs=true&limit=2", &[]);
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["doc"]["_id"], &rows[1]["deleted"]), (&"b".into(), &true.into()));
    assert!(lines.contains("\"n\":1.50"), "{lines}");
    let events = curl(&server, "_changes?feed=eventsource&since=0&limit=1", &[]);
    assert!(events.starts_with("data: {\"seq\":2,") && events.ends_with("\nid: 2\n\n"), "{events}");
    let next = curl(&server, "_changes?feed=eventsource&limit=1", &["-H", "Last-Event-ID: 2"]);
    assert!(next.contains("\"deleted\":true") && next.ends_with("\nid: 3\n\n"), "{next}");
}
