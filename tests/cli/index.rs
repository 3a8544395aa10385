//! `index put`, `list`, `show`, `delete` and `status`.

use crate::program::{Server, lines};

const SUMS: &str = r#"source("Things");
output("Sums");
fn map(thing) {
    emit(#{ Kind: thing.kind }, #{ Total: thing.n });
}
fn reduce(key, values) {
    #{ Total: values.sum("Total") }
}
"#;

fn server_with_things() -> Server {
    let server = Server::start();
    let lines = lines(0..300, |number| format!("{{\"kind\":{},\"n\":1}}", number % 3));
    server.run_with(&["load", "-", "--collection", "Things"], lines).json();
    server
}

#[test]
fn an_index_lives_from_put_to_delete() {
    let server = server_with_things();
    server.file("Sums.rhai", SUMS);
    assert_eq!(server.run(&["index", "put", "Sums.rhai"]).json()[0]["name"], "Sums");
    let status = server.run(&["index", "status", "--wait"]).json();
    assert_eq!((&status[0]["Name"], &status[0]["IsStale"]), (&"Sums".into(), &false.into()));
    let sums = server.run(&["list", "--collection", "Sums"]).json();
    assert_eq!(sums.len(), 3);
    assert!(sums.iter().all(|sum| sum["Total"] == 100), "{sums:?}");
    assert_eq!(server.run(&["index", "list"]).json()[0]["Name"], "Sums");
    assert_eq!(server.run(&["index", "list", "--text"]).stdout, "INDEX  OUTPUT\nSums   Sums\n");
    assert_eq!(server.run(&["index", "show", "sums", "--text"]).stdout, SUMS);
    assert_eq!(server.run(&["index", "delete", "Sums"]).code, Some(0));
    assert!(server.run(&["list", "--collection", "Sums"]).json().is_empty());
    assert!(server.run(&["index", "list"]).json().is_empty());
}

#[test]
fn a_definition_changes_beside_the_present_one_and_goes_back() {
    let server = server_with_things();
    let totals = |server: &Server| {
        let sums = server.run(&["list", "--collection", "Sums"]).json();
        sums.iter().map(|sum| sum["Total"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let put = |server: &Server, script: &str| {
        server.file("Sums.rhai", script);
        server.run(&["index", "put", "Sums.rhai"]).json();
    };
    let tenfold = SUMS.replace("thing.n", "thing.n * 10");
    put(&server, SUMS);
    server.run(&["index", "status", "--wait"]).json();
    let paused = server.run(&["index", "pause", "sums"]).json();
    assert_eq!((&paused[0]["name"], &paused[0]["done"]), (&"sums".into(), &"paused".into()));
    put(&server, &tenfold);
    let status = server.run(&["index", "status"]).json();
    assert_eq!((&status[1]["Name"], &status[1]["Replaces"]), (&"ReplacementOf/Sums".into(), &"Sums".into()));
    let refused = server.run(&["index", "swap", "Sums"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("does not run"), "{refused:?}");
    assert_eq!(server.run(&["index", "cancel", "Sums", "--text"]).stdout, "cancelled index Sums\n");
    assert_eq!(server.run(&["index", "cancel", "Sums"]).code, Some(3));
    put(&server, &tenfold);
    assert_eq!(totals(&server), [100, 100, 100], "what serves is what was");
    assert_eq!(server.run(&["index", "resume", "--all", "--text"]).stdout, "resumed index Sums\n");
    server.run(&["index", "status", "--wait"]).json();
    assert_eq!(totals(&server), [1_000, 1_000, 1_000]);
    assert_eq!(server.run(&["index", "rollback", "Sums", "--text"]).stdout, "rolling back index Sums\n");
    server.run(&["index", "status", "--wait"]).json();
    assert_eq!(totals(&server), [100, 100, 100]);
    assert_eq!(server.run(&["index", "show", "Sums", "--text"]).stdout, SUMS);
    server.run(&["index", "reset", "Sums"]).json();
    server.run(&["index", "status", "--wait"]).json();
    assert_eq!(totals(&server), [100, 100, 100]);
}

#[test]
fn an_index_is_turned_off_locked_and_leaves_its_documents() {
    let server = server_with_things();
    server.file("Sums.rhai", SUMS);
    server.run(&["index", "put", "Sums.rhai"]).json();
    server.run(&["index", "status", "--wait"]).json();
    server.run(&["index", "disable", "Sums"]).json();
    let ran = server.run(&["index", "status", "--wait", "--text"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("disabled"), "{ran:?}");
    server.run(&["index", "enable", "Sums"]).json();
    server.run(&["index", "priority", "low", "Sums"]).json();
    assert_eq!(server.run(&["index", "lock", "error", "Sums", "--text"]).stdout, "locked index Sums\n");
    server.file("Sums.rhai", SUMS.replace("thing.n", "1"));
    let refused = server.run(&["index", "put", "Sums.rhai"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("LockedError"), "{refused:?}");
    server.run(&["index", "lock", "unlock", "--all"]).json();
    server.run(&["index", "clear", "Sums"]).json();
    let deleted = server.run(&["index", "delete", "Sums", "--keep-outputs", "--text"]);
    assert_eq!(deleted.stdout, "deleted index Sums\n");
    let kept = server.run(&["list", "--collection", "Sums"]).json();
    assert_eq!(kept.len(), 3);
    let id = kept[0]["@metadata"]["@id"].as_str().unwrap();
    assert_eq!(server.run(&["delete", id]).code, Some(0), "it is a document like any other");
    assert_eq!(server.run(&["index", "pause", "Sums"]).code, Some(3));
    assert_eq!(server.run(&["index", "pause"]).code, Some(2), "which index?");
}

#[test]
fn status_for_people_is_a_table() {
    let server = server_with_things();
    server.run_with(&["index", "put", "-", "--name", "Sums"], SUMS).json();
    let ran = server.run(&["index", "status", "sums", "--wait", "--text"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["INDEX", "STATE", "LAG", "DOCS/S", "LEFT", "ENTRIES", "FAULTS"]
    );
    let cells: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!((cells[0], cells[1], cells[2], cells[5], cells[6]), ("Sums", "current", "0", "300", "0"));
}

#[test]
fn a_refused_script_is_shown_with_line_and_caret() {
    let server = Server::start();
    server.file("Broken.rhai", "source(\"Things\");\nfn map(thing) {\n    emit(thing.kind, 1;\n}\n");
    let ran = server.run(&["index", "put", "Broken.rhai"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("Broken.rhai:3:") && ran.stderr.contains("emit(thing.kind, 1;"), "{ran:?}");
    assert!(ran.stderr.lines().any(|line| line.trim_end().ends_with('^')), "{ran:?}");
}

#[test]
fn a_name_that_is_not_there_is_not_found() {
    let server = Server::start();
    server.run_with(&["put", "a"], "{}").json();
    for arguments in [["index", "show", "Nope"], ["index", "delete", "Nope"], ["index", "status", "Nope"]] {
        let ran = server.run(&arguments);
        assert_eq!(ran.code, Some(3), "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains("'Nope'"), "{arguments:?} {ran:?}");
    }
    assert_eq!(server.run(&["index", "put", "-"]).code, Some(2), "standard input has no name");
}

#[test]
fn waiting_for_an_index_in_error_ends_with_its_faults() {
    let server = server_with_things();
    let script = "source(\"Things\");\noutput(\"Out\");\nfn map(thing) {\n    throw \"no such thing\";\n}\nfn reduce(key, values) { values.sum(\"n\") }\n";
    server.run_with(&["index", "put", "-", "--name", "Bad"], script).json();
    let ran = server.run(&["index", "status", "Bad", "--wait", "--text"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("'Bad'") && ran.stderr.contains("no such thing"), "{ran:?}");
    assert!(ran.stdout.contains("error"), "{ran:?}");
}

#[test]
fn status_can_be_watched_as_it_moves() {
    use std::io::{BufRead, BufReader};

    let server = server_with_things();
    server.run_with(&["index", "put", "-", "--name", "Sums"], SUMS).json();
    server.run(&["index", "status", "--wait"]).json();
    let mut watch = server.command(&["index", "status", "sums", "--watch"]);
    let mut child = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut entries = || {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        (line["Name"].as_str().unwrap().to_owned(), line["Entries"].as_u64().unwrap())
    };
    assert_eq!(entries(), ("Sums".to_owned(), 300));
    server.run_with(&["put", "things/new", "--collection", "Things"], "{\"kind\":1,\"n\":1}").json();
    // What moves besides, such as the rate, is told too.
    while entries().1 != 301 {}
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = server.run(&["index", "status", "Nope", "--watch"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("'Nope'"), "{ran:?}");
}
