//! `backup`, `restore`, `export` and `import`.

use std::fs;

use crate::program::{Server, lines};

#[test]
fn a_backup_is_taken_listed_and_restored() {
    let server = Server::start();
    server.run_with(&["load", "-", "--id", "a/{n}"], lines(0..50, |n| format!("{{\"n\":{n}}}"))).json();
    let taken = server.run(&["backup", "--keep", "3", "--verify-all"]).json();
    assert_eq!(taken[0]["Documents"], 50);
    let name = taken[0]["Name"].as_str().unwrap();
    assert_eq!(server.run(&["backup", "--list"]).json()[0]["Name"], name);
    let shown = server.run(&["backup", "--text"]);
    assert!(
        shown.code == Some(0) && shown.stdout.starts_with("backup main/") && shown.stdout.contains("50 documents"),
        "{shown:?}"
    );
    server.run(&["restore", name, "-d", "copy"]).json();
    assert_eq!(server.run(&["list", "-d", "copy"]).json().len(), 50);
    let again = server.run(&["restore", name, "-d", "copy"]);
    assert!(again.code == Some(1) && again.stderr.contains("already"), "{again:?}");
    let unknown = server.run(&["restore", "main/none", "-d", "other"]);
    assert!(unknown.code == Some(3) && unknown.stderr.contains("main/latest"), "{unknown:?}");
    let nothing = server.run(&["backup", "-d", "none"]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
}

#[test]
fn an_export_is_read_again_plain_and_gzipped_by_name_and_by_pipe() {
    let server = Server::start();
    server.run_with(&["load", "-", "--id", "a/{n}"], lines(0..3000, |n| format!("{{\"n\":{n}}}"))).json();
    server.run(&["export", "main.jsonl"]);
    server.run(&["export", "main.jsonl.gz"]);
    let (plain, packed) = (server.files.path().join("main.jsonl"), server.files.path().join("main.jsonl.gz"));
    assert!(fs::metadata(&packed).unwrap().len() < fs::metadata(&plain).unwrap().len() / 2);
    let piped = server.run(&["export"]);
    assert_eq!(piped.stdout.lines().count(), 3002);
    for (database, file, input) in
        [("b", "main.jsonl", ""), ("c", "main.jsonl.gz", ""), ("d", "-", piped.stdout.as_str())]
    {
        let done = server.run_with(&["import", file, "-d", database], input).json();
        assert_eq!(done[0]["Documents"], 3000);
        assert_eq!(server.run(&["list", "-d", database, "--prefix", "a/"]).json().len(), 3000);
    }
    assert!(!server.files.path().join("main.jsonl.part").exists());
}

#[test]
fn a_bad_line_ends_an_import_and_is_told_with_the_way_on() {
    let server = Server::start();
    server.run_with(&["load", "-", "--id", "a/{n}"], lines(0..10, |n| format!("{{\"n\":{n}}}"))).json();
    let exported = server.run(&["export"]).stdout;
    let spoilt = exported.replace("{\"n\":7,", "{\"n\":007,");
    let refused = server.run_with(&["import", "-", "-d", "copy"], spoilt);
    let place = exported.lines().position(|line| line.starts_with("{\"n\":7,")).unwrap() + 1;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(&format!("Line {place}:")) && refused.stderr.contains("fromLine="), "{refused:?}");
    let done = server.run_with(&["import", "-", "-d", "copy", "--from-line", &place.to_string()], exported);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.run(&["list", "-d", "copy"]).json().len(), 10);
}

/// The most memory that a process has ever had, in bytes.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn an_export_and_an_import_take_little_memory_however_much_there_is() {
    // 200 MB of documents: a server that held them would grow by more.
    const EXPORT_MAX: u64 = 64 << 20;
    // A second database fills its write buffers meanwhile.
    const IMPORT_MAX: u64 = 128 << 20;
    let server = Server::start();
    let long = "treepie ".repeat(12_500);
    server
        .run_with(&["load", "-", "--id", "a/{n}"], lines(0..2_000, |n| format!("{{\"n\":{n},\"long\":\"{long}\"}}")))
        .json();
    let before = peak(server.process());
    let exported = server.run(&["export", "all.jsonl"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert!(fs::metadata(server.files.path().join("all.jsonl")).unwrap().len() > 200_000_000);
    let exporting = peak(server.process()).saturating_sub(before);
    assert!(exporting < EXPORT_MAX, "the server grew by {exporting} bytes while it exported");
    let done = server.run(&["import", "all.jsonl", "-d", "copy"]).json();
    assert_eq!(done[0]["Documents"], 2_000);
    let importing = peak(server.process()).saturating_sub(before);
    assert!(importing < IMPORT_MAX, "the server grew by {importing} bytes while it imported");
}
