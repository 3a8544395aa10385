//! `serve`: its end, its settings.

use crate::program::{Server, TREEPIE, run, serve};

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

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

/// A server whose log is kept, with a request in hand that never ends.
fn with_endless_request(shutdown_max: &str) -> (std::process::Child, TcpStream, String) {
    let files = tempfile::TempDir::new().unwrap().keep();
    let mut command = Command::new(TREEPIE);
    command
        .args(["serve", "--json", "--listen", "127.0.0.1:0", "--shutdown-max", shutdown_max, "--data"])
        .arg(files.join("data"));
    let mut child = command.env("TREEPIE_LOG", "warn").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = serde_json::from_str::<serde_json::Value>(&line).unwrap()["url"].as_str().unwrap().to_owned();
    let mut create = Command::new(TREEPIE);
    create.args(["put", "a", "-", "--url", &url]);
    assert_eq!(run(create, "{}").code, Some(0));
    let mut connection = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let head =
        "PUT /databases/main/docs?id=late HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n";
    connection.write_all(head.as_bytes()).unwrap();
    connection.read_exact(&mut [0; 25]).unwrap();
    (child, connection, files.to_str().unwrap().to_owned())
}

fn signal(child: &std::process::Child, name: &str) {
    assert!(Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap().success());
}

#[test]
fn what_is_cut_off_at_the_end_is_said() {
    let (child, connection, files) = with_endless_request("0s");
    signal(&child, "TERM");
    let ended = child.wait_with_output().unwrap();
    drop(connection);
    let log = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{log}");
    assert!(log.contains("cut off") && log.contains("PUT /databases/main/docs"), "{log}");
    std::fs::remove_dir_all(files).unwrap();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (mut child, connection, files) = with_endless_request("1h");
    signal(&child, "TERM");
    let mut line = String::new();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    while !line.contains("a second signal ends it at once") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the server says that it stops");
    }
    assert_eq!(child.try_wait().unwrap(), None, "the request in hand holds it");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(connection);
    std::fs::remove_dir_all(files).unwrap();
}
