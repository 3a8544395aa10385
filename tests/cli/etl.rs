//! The example that carries a collection into an SQLite database: whole, deletions included, and only what is new.

use std::process::Command;

use rusqlite::Connection;

use crate::program::Server;

const SUMS: &str = r#"source("C"); output("Sums");
    fn map(doc) { emit(#{ K: doc.k }, #{ N: doc.n }); }
    fn reduce(key, values) { #{ N: values.sum("N") } }"#;

/// Carries what is new; returns what the example printed.
fn carry(server: &Server) -> String {
    let ran = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--offline", "--example", "etl", "--"])
        .args([&server.url, "main", "Sums"])
        .arg(server.files.path().join("sums.sqlite"))
        .arg("--until-empty")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

fn rows(server: &Server) -> Vec<(i64, i64)> {
    let sqlite = Connection::open(server.files.path().join("sums.sqlite")).unwrap();
    let query = "SELECT document ->> 'K', document ->> 'N' FROM documents ORDER BY 1";
    let mut statement = sqlite.prepare(query).unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn put(server: &Server, id: &str, k: u32, n: u32) {
    server.run_with(&["put", id, "--collection", "C"], format!("{{\"k\":{k},\"n\":{n}}}")).json();
}

#[test]
fn the_etl_example_carries_each_change_once() {
    let server = Server::start();
    put(&server, "c/1", 1, 10);
    put(&server, "c/2", 2, 20);
    put(&server, "c/3", 2, 5);
    server.file("Sums.rhai", SUMS);
    server.run(&["index", "put", "Sums.rhai"]).json();
    server.run(&["index", "status", "--wait"]);
    carry(&server);
    assert_eq!(rows(&server), [(1, 10), (2, 25)]);

    put(&server, "c/3", 2, 6);
    server.run(&["delete", "c/1"]).json();
    server.run(&["index", "status", "--wait"]);
    carry(&server);
    assert_eq!(rows(&server), [(2, 26)], "the withdrawn group is gone");
    assert_eq!(carry(&server), "", "nothing is new");

    // As after a crash between SQLite's commit and the acknowledgement: everything comes again, and nothing is taken in twice.
    server.run(&["subscription", "delete", "etl/Sums"]).json();
    let again = carry(&server);
    assert!(again.lines().all(|line| line.starts_with("0 changes")), "{again}");
    assert_eq!(rows(&server), [(2, 26)]);
}
