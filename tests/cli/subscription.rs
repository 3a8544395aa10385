//! `subscription`: create, list, tail, acknowledge, delete.

use serde_json::Value;

use crate::program::{Ran, Server};

fn put(server: &Server, id: &str, document: &str) {
    server.run_with(&["put", id, "--collection", "C"], document).json();
}

fn ids(ran: &Ran) -> Vec<String> {
    ran.json().iter().map(|row| row["Id"].as_str().unwrap().to_owned()).collect()
}

/// The only line that was printed.
fn only(ran: &Ran) -> Value {
    let lines = ran.json();
    assert_eq!(lines.len(), 1, "{ran:?}");
    lines[0].clone()
}

#[test]
fn what_was_acknowledged_is_not_printed_again() {
    let server = Server::start();
    put(&server, "c/1", "{\"n\":1.00}");
    put(&server, "c/2", "{}");
    let created = only(&server.run(&["subscription", "create", "s", "--collection", "C", "--deletes"]));
    assert_eq!(created["Name"], "s");
    let tail = ["subscription", "tail", "s", "--until-empty", "--ack"];
    let printed = server.run(&[&tail[..], &["--batch", "1"]].concat());
    assert!(printed.stdout.contains("1.00"), "{printed:?}");
    assert_eq!(ids(&printed), ["c/1", "c/2"]);
    server.run(&["delete", "c/1"]).json();
    let printed = only(&server.run(&tail));
    assert_eq!((&printed["Id"], &printed["Deleted"]), (&"c/1".into(), &true.into()));
    let list = server.run(&["subscription", "list", "--text"]);
    assert!(list.stdout.contains("SUBSCRIPTION") && list.stdout.contains("from 'C'"), "{list:?}");
    let row = list.stdout.lines().nth(1).unwrap();
    assert!(row.contains("idle") && row.contains("A:3-"), "{row}");
    assert_eq!(server.run(&["subscription", "delete", "s", "--text"]).stdout, "deleted subscription s\n");
    assert_eq!(server.run(&["subscription", "delete", "s"]).code, Some(3));
    assert_eq!(server.run(&["subscription", "tail", "s"]).code, Some(3));
}

#[test]
fn a_script_and_a_start_can_be_given_and_a_position_acknowledged() {
    let server = Server::start();
    for n in 1..=4 {
        put(&server, &format!("c/{n}"), &format!("{{\"n\":{n}}}"));
    }
    server.file("even.rhai", "fn filter(doc) { doc.n % 2 == 0 }");
    let create = ["subscription", "create", "s", "--collection", "C", "--script", "even.rhai", "--start", "1"];
    server.run(&create).json();
    let acknowledged = only(&server.run(&["subscription", "ack", "s", "2"]));
    assert_eq!(acknowledged["through"], "2");
    let tail = server.run(&["subscription", "tail", "s", "--until-empty", "--ack", "--text"]);
    assert_eq!(tail.stdout, "c/4  {\"n\":4}\n");
    let ahead = server.run(&["subscription", "ack", "s", "99"]);
    assert_eq!(ahead.code, Some(1));
    assert!(ahead.stderr.contains("lies ahead"), "{ahead:?}");
    let again = server.run(&create);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("already"), "{again:?}");
}
