//! `watch`: changes as they commit, deletes included.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::program::Server;

struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    /// Starts to watch, and waits until it does.
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut command = server.command(&[&["watch"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut notice = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut notice).unwrap();
        assert!(notice.contains("watching"), "{notice}");
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn put(server: &Server, id: &str, collection: &str, document: &str) {
    server.run_with(&["put", id, "--collection", collection], document).json();
}

#[test]
fn changes_and_deletes_are_printed_as_they_commit() {
    let server = Server::start();
    put(&server, "c/0", "C", "{}");
    let mut watching = Watching::start(&server, &["C", "--limit", "3"]);
    put(&server, "c/1", "C", "{\"n\":1.00}");
    put(&server, "d/1", "D", "{}");
    let first = watching.line();
    assert!(first.contains("1.00"), "{first}");
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["id"], first.get("deleted")), (&"c/1".into(), None));
    server.run(&["delete", "c/0"]).json();
    let second = watching.json();
    assert_eq!((&second["id"], &second["deleted"]), (&"c/0".into(), &true.into()));
    put(&server, "c/1", "C", "{}");
    assert_eq!(watching.json()["id"], "c/1");
    assert_eq!(watching.code(), Some(0), "the limit is reached");
}

#[test]
fn people_see_a_short_line() {
    let server = Server::start();
    put(&server, "c/1", "C", "{\"n\":1}");
    let mut watching = Watching::start(&server, &["C", "--text"]);
    put(&server, "c/2", "C", "{\"n\":2}");
    assert_eq!(watching.line(), "c/2  {\"n\":2}");
    server.run(&["delete", "c/1"]).json();
    assert_eq!(watching.line(), "c/1  deleted");
}

#[test]
fn a_watch_can_begin_with_what_is_there_and_go_on_where_it_was() {
    let server = Server::start();
    put(&server, "c/1", "C", "{}");
    put(&server, "c/2", "C", "{}");
    let rows = server.run(&["watch", "C", "--since", "0", "--limit", "2"]).json();
    assert_eq!((&rows[0]["id"], &rows[1]["id"]), (&"c/1".into(), &"c/2".into()));
    let since = rows[0]["seq"].to_string();
    let rows = server.run(&["watch", "C", "--since", since.trim_matches('"'), "--limit", "1"]).json();
    assert_eq!(rows[0]["id"], "c/2");
    assert_eq!(server.run(&["watch", "C", "--since", "then"]).code, Some(2));
}

#[test]
fn a_server_that_goes_away_ends_it_with_the_place_to_go_on() {
    let mut server = Server::start();
    put(&server, "c/1", "C", "{}");
    let mut watching = Watching::start(&server, &["C", "--since", "0"]);
    assert_eq!(watching.json()["id"], "c/1");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "an open feed does not keep the server from stopping");
    assert_eq!(watching.code(), Some(4));
}
