//! `explain`: where a value comes from, and what a document does.

use crate::program::{Server, lines};

const DAYS: &str = "source(\"Sales\"); output(\"Days\");\nfn map(sale) { emit(sale.day, #{ total: sale.total }); }\n\
    fn reduce(key, values) { #{ total: values.sum(\"total\") } }";

const ALL: &str = "source(\"Days\"); output(\"All\");\nfn map(day) { emit(\"all\", #{ total: day.total }); }\n\
    fn reduce(key, values) { #{ total: values.sum(\"total\") } }";

fn server() -> Server {
    let server = Server::start();
    let sales = lines(0..40, |n| format!("{{\"n\":{n},\"day\":\"d{}\",\"total\":{n}.50}}", n % 2));
    server.run_with(&["load", "-", "--collection", "Sales", "--id", "sales/{n}"], sales).json();
    server.run_with(&["index", "put", "-", "--name", "Days"], DAYS).json();
    server.run_with(&["index", "put", "-", "--name", "All"], ALL).json();
    server.run(&["index", "status", "--wait"]).json();
    server
}

fn id_of(server: &Server, prefix: &str, part: &str) -> String {
    let found = server.run(&["list", "--prefix", prefix]).json();
    let found = found.iter().find(|it| it.to_string().contains(part)).unwrap();
    found["@metadata"]["@id"].as_str().unwrap().to_owned()
}

#[test]
fn an_artificial_document_shows_its_key_its_sources_and_what_it_feeds() {
    let server = server();
    let (day, all) = (id_of(&server, "Days/", "\"d1\""), id_of(&server, "All/", "all"));
    let ran = server.run(&["explain", &day, "--limit", "3", "--text"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stdout.lines().collect::<Vec<_>>(),
        [
            &*format!("{day}, in Days"),
            "made by Days for \"d1\"",
            r#"  = {"Key":"d1","total":410}"#,
            "from 20 entries:",
            r#"  sales/1  {"total":1.5}"#,
            r#"  sales/11  {"total":11.5}"#,
            r#"  sales/13  {"total":13.5}"#,
            "  … go on with --after '0:sales/13'",
            "feeds 1 group(s) of All",
            &format!(r#"  {all}  + {{"total":410}}"#),
        ]
    );
    let next = server.run(&["explain", &day, "--limit", "1", "--after", "0:sales/13"]).json();
    assert_eq!(next[0]["Group"]["Contributions"][0]["Id"], "sales/15");
}

#[test]
fn a_source_document_shows_all_levels_above_it() {
    let server = server();
    let (day, all) = (id_of(&server, "Days/", "\"d0\""), id_of(&server, "All/", "all"));
    let ran = server.run(&["explain", "sales/2", "--text"]);
    let expected = format!(
        "sales/2, in Sales\nfeeds 1 group(s) of Days\n  {day}  + {{\"total\":2.5}}\n    feeds 1 group(s) of All\n      {all}  + {{\"total\":390}}\n"
    );
    assert_eq!(ran.stdout, expected);
}

#[test]
fn a_group_is_found_by_its_key_and_what_is_not_there_is_named() {
    let server = server();
    let ran = server.run(&["explain", "--index", "Days", "--key", "\"d1\"", "--text"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("made by Days for \"d1\""), "{ran:?}");
    for arguments in [
        &["explain", "none"][..],
        &["explain", "--index", "Days", "--key", "7"],
        &["explain", "--index", "No", "--key", "7"],
    ] {
        let ran = server.run(arguments);
        assert_eq!(ran.code, Some(3), "{arguments:?} {ran:?}");
    }
    assert_eq!(server.run(&["explain"]).code, Some(2));
    assert_eq!(server.run(&["explain", "a", "--index", "Days", "--key", "1"]).code, Some(2));
}
