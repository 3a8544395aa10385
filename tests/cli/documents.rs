//! `get`, `list`, `put` and `delete`.

use crate::program::{Ran, Server, TREEPIE, lines, run};

use std::process::Command;

fn put(server: &Server, id: &str, document: &str) -> String {
    let stored = server.run_with(&["put", id], document).json();
    stored[0]["Id"].as_str().unwrap().to_owned()
}

#[test]
fn a_document_is_put_read_and_deleted() {
    let server = Server::start();
    let ran = server
        .run_with(&["put", "users/Ayende", "--collection", "Users"], r#"{"n": 1.00, "big": 123456789012345678901}"#);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("created database 'main'"), "{ran:?}");
    let got = server.run(&["get", "USERS/ayende"]);
    assert!(got.stdout.contains("1.00") && got.stdout.contains("123456789012345678901"), "{got:?}");
    let document = &got.json()[0];
    assert_eq!(document["@metadata"]["@id"], "users/Ayende");
    assert_eq!(document["@metadata"]["@collection"], "Users");
    assert_eq!(server.run(&["delete", "users/ayende"]).json()[0]["deleted"], true);
    assert_eq!(server.run(&["get", "users/ayende"]).code, Some(3));
    assert_eq!(server.run(&["delete", "users/ayende"]).code, Some(0), "deleting again is no failure");
}

#[test]
fn every_form_of_id_can_be_put() {
    let server = Server::start();
    assert_eq!(put(&server, "a/b", "{}"), "a/b");
    assert_eq!(put(&server, "users/", "{}"), "users/0000000000000000002-A");
    assert_eq!(put(&server, "users|", "{}"), "users/1");
    assert_eq!(put(&server, "", "{}").len(), 36, "a GUID");
}

#[test]
fn several_documents_are_printed_in_the_order_asked_for() {
    let server = Server::start();
    let ids: Vec<String> = (0..40).map(|number| format!("d/{number}")).collect();
    for id in &ids {
        put(&server, id, &format!("{{\"id\":\"{id}\"}}"));
    }
    let mut arguments = vec!["get"];
    arguments.extend(ids.iter().rev().map(String::as_str));
    let found: Vec<String> =
        server.run(&arguments).json().iter().map(|document| document["id"].as_str().unwrap().to_owned()).collect();
    assert!(found.iter().eq(ids.iter().rev()), "{found:?}");
}

#[test]
fn what_is_missing_is_named_and_the_rest_is_printed() {
    let server = Server::start();
    put(&server, "a", "{}");
    let ran = server.run(&["get", "x", "a", "y"]);
    assert_eq!(ran.code, Some(3));
    assert_eq!(ran.stdout.lines().count(), 1);
    assert!(ran.stderr.contains("'x'") && ran.stderr.contains("'y'"), "{ran:?}");
}

#[test]
fn odd_characters_in_ids_come_back_as_they_were() {
    let server = Server::start();
    let ids = ["a+b", "a b", "a%20b", "a%2Bb", "100%", "x?y=1", "x#y", "x&y", "a;b", "ü+😀"];
    for id in ids {
        assert_eq!(put(&server, id, "{}"), id);
    }
    for id in ids {
        assert_eq!(server.run(&["get", id]).json()[0]["@metadata"]["@id"], *id);
    }
    assert_eq!(server.run(&["list"]).json().len(), ids.len());
}

#[test]
fn lists_go_by_prefix_collection_and_limit_over_many_pages() {
    let server = Server::start();
    let lines = lines(0..1000, |number| format!("{{\"id\":\"a/{number:04}\"}}"));
    assert_eq!(server.run_with(&["load", "-", "--collection", "A"], lines).code, Some(0));
    let lines = "{\"id\":\"a/x\"}\n{\"id\":\"b/x\"}\n";
    assert_eq!(server.run_with(&["load", "-", "--collection", "B"], lines).code, Some(0));
    let ids = |arguments: &[&str]| -> Vec<String> {
        let documents = server.run(&[&["list"], arguments].concat()).json();
        documents.iter().map(|document| document["@metadata"]["@id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&[]).len(), 1002);
    let all = ids(&["--prefix", "a/"]);
    assert_eq!(all.len(), 1001);
    assert!(all.is_sorted());
    assert_eq!(ids(&["--prefix", "a/", "--limit", "300"]), all[..300]);
    assert_eq!(ids(&["--collection", "a"]).len(), 1000);
    assert_eq!(ids(&["--collection", "B", "--prefix", "A/"]), ["a/x"]);
    assert_eq!(ids(&["--collection", "B", "--limit", "1"]).len(), 1);
    assert!(ids(&["--prefix", "c"]).is_empty());
    assert!(ids(&["--limit", "0"]).is_empty());
}

#[test]
fn output_for_people_is_short_and_only_asked_for_when_piped() {
    let server = Server::start();
    put(&server, "a", r#"{"n":1.50,"list":[1]}"#);
    let ran = server.run(&["list", "--text"]);
    assert_eq!(ran.stdout, "a  {\"n\":1.50,\"list\":[1]}\n");
    let ran = server.run(&["get", "a", "--text"]);
    assert!(ran.stdout.starts_with("{\n  \"n\": 1.50,\n  \"list\": [\n    1\n  ],"), "{ran:?}");
    let ran = run(
        {
            let mut command = server.command(&["delete", "a"]);
            command.env("TREEPIE_TEXT", "1");
            command
        },
        "",
    );
    assert_eq!(ran.stdout, "deleted a\n");
    put(&server, "b", "{}");
    let ran = run(
        {
            let mut command = server.command(&["get", "b", "--json"]);
            command.env("TREEPIE_TEXT", "1");
            command
        },
        "",
    );
    assert_eq!(ran.json().len(), 1, "an option goes before the environment");
}

#[test]
fn a_closed_pipe_ends_a_list_quietly() {
    let server = Server::start();
    let lines = "{}\n".repeat(5000);
    assert_eq!(server.run_with(&["load", "-"], lines).code, Some(0));
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -o pipefail; '{TREEPIE}' list | head -n 1 > /dev/null")]);
    shell.env("TREEPIE_URL", &server.url);
    let Ran { code, stderr, .. } = run(shell, "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
}

#[test]
fn exit_codes_tell_what_went_wrong() {
    let server = Server::start();
    put(&server, "a", "{}");
    for (arguments, code, words) in [
        (vec!["get", "missing"], 3, "there is no document 'missing'"),
        (vec!["get", "a", "-d", "nowhere"], 3, "there is no database 'nowhere'"),
        (vec!["list", "-d", "nowhere"], 3, "there is no database 'nowhere'"),
        (vec!["put", &"x".repeat(600), "doc.json"], 1, "512"),
        (vec!["put", "a", "list.json"], 1, "list.json: not a JSON object"),
        (vec!["put", "a", "none.json"], 1, "none.json"),
        (vec!["put", "a", "{\"n\":1}"], 1, "echo '{…}' | treepie put ID"),
        (vec!["put", "a"], 1, "standard input: not a JSON object"),
        (vec!["get"], 2, "ID"),
        (vec!["frobnicate"], 2, "frobnicate"),
        (vec!["get", "a", "--url", "nonsense"], 2, "--url"),
        (vec!["get", "a", "--url", "http://127.0.0.1:1"], 4, "treepie serve"),
    ] {
        server.file("doc.json", "{}");
        server.file("list.json", "[]");
        let ran = server.run(&arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(words), "{arguments:?} {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
    assert!(server.run(&["--help"]).stdout.contains("Exit codes"));
}
