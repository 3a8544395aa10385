//! `serve`: its end, its settings.

use crate::program::{Server, TREEPIE, run, serve};

use std::process::Command;

#[test]
fn sigterm_and_sigint_end_it_with_everything_stored() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start();
        server.run_with(&["load", "-", "--id", "a/{n}"], "{\"n\":1}\n{\"n\":2}\n").json();
        server.signal(signal);
        assert_eq!(server.wait(), Some(0), "{signal}");
        server.restart();
        assert_eq!(server.run(&["list"]).json().len(), 2, "{signal}");
    }
}

#[test]
fn what_was_answered_survives_a_kill() {
    let mut server = Server::start();
    server.run_with(&["load", "-"], "{}\n".repeat(2500)).json();
    server.signal("KILL");
    assert_eq!(server.wait(), None);
    server.restart();
    assert_eq!(server.run(&["list"]).json().len(), 2500);
}

#[test]
fn the_node_tag_is_in_the_ids_it_makes() {
    let files = tempfile::TempDir::new().unwrap();
    let (mut child, url) = serve(&files.path().join("data"), &["--listen", "127.0.0.1:0", "--node-tag", "B"]);
    let mut put = Command::new(TREEPIE);
    put.args(["put", "users/", "--url", &url]);
    let ran = run(put, "{}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ran.json()[0]["Id"], "users/0000000000000000001-B");
}

#[test]
fn larger_documents_than_allowed_are_refused_and_named() {
    let files = tempfile::TempDir::new().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--document-max", "1KiB", "--batch-max", "2KiB"];
    let (mut child, url) = serve(&files.path().join("data"), &arguments);
    let mut load = Command::new(TREEPIE);
    load.args(["load", "-", "--id", "a/{n}", "--skip-bad", "--json", "--url", &url]);
    let long = "x".repeat(1500);
    // The batch as a whole is too large as well; its halves are not.
    let ran = run(
        load,
        format!("{{\"n\":1}}\n{{\"n\":2,\"long\":\"{long}\"}}\n{{\"n\":3,\"long\":\"{long}\"}}\n{{\"n\":4}}\n"),
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ran.json()[0]["documents"], 2, "{ran:?}");
    assert!(ran.stderr.contains("standard input:2: ") && ran.stderr.contains("standard input:3: "), "{ran:?}");
}

#[test]
fn what_can_not_be_served_is_refused() {
    let server = Server::start();
    let taken = server.url.trim_start_matches("http://").to_owned();
    for (arguments, code, words) in [
        (vec!["serve", "--data", "other", "--listen", &taken], 1, taken.as_str()),
        (vec!["serve", "--data", "other", "--listen", &taken], 1, "choose another with --listen"),
        (vec!["serve", "--data", "data", "--listen", "127.0.0.1:0"], 1, "another server uses this data directory"),
        (vec!["serve", "--data", "a-file", "--listen", "127.0.0.1:0"], 1, "a-file"),
        (vec!["serve", "--node-tag", "lower"], 2, "capital"),
        (vec!["serve", "--block-cache", "much"], 2, "MiB"),
        (vec!["serve", "--listen", "nowhere"], 2, "--listen"),
    ] {
        server.file("a-file", "");
        let ran = server.run(&arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(words), "{arguments:?} {ran:?}");
    }
}
