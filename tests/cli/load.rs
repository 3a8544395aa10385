//! `load`: formats, ids, bad lines, order.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::program::{Server, lines};

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// All documents by id, without what the server adds.
fn documents(server: &Server) -> BTreeMap<String, Value> {
    let all = server.run(&["list"]).json();
    let pairs = all.into_iter().map(|mut document| {
        let id = document["@metadata"]["@id"].as_str().unwrap().to_owned();
        document.as_object_mut().unwrap().remove("@metadata");
        (id, document)
    });
    pairs.collect()
}

#[test]
fn csv_fields_become_numbers_nulls_and_texts() {
    let server = Server::start();
    server.file("a.csv", "id,n,zeros,exp,plus,none,na,text\n1,1.50,00123,1e5,+1,,NA,\"a,\"\"b\"\n");
    let loaded = server.run(&["load", "a.csv", "--null", "NA", "--id", "rows/{id}", "--collection", "Rows"]).json();
    assert_eq!(loaded[0]["documents"], 1);
    let got = server.run(&["get", "rows/1"]);
    for part in [
        "\"n\":1.50",
        "\"zeros\":\"00123\"",
        "\"exp\":1e5",
        "\"plus\":\"+1\"",
        "\"none\":null",
        "\"na\":null",
        r#""text":"a,\"b""#,
    ] {
        assert!(got.stdout.contains(part), "{part} in {got:?}");
    }
    assert_eq!(got.json()[0]["@metadata"]["@collection"], "Rows");
}

#[test]
fn every_format_loads_from_file_gzip_and_standard_input() {
    let lines = "{\"id\":\"a\",\"n\":1}\n\n{\"id\":\"b\",\"n\":2}";
    let rows = "id,n\na,1\nb,2\n";
    for (name, content) in [
        ("x.jsonl", lines.as_bytes().to_vec()),
        ("x.jsonl.gz", gzipped(lines)),
        ("x.csv", rows.as_bytes().to_vec()),
        ("x.csv.gz", gzipped(rows)),
        ("lines", lines.as_bytes().to_vec()),
        ("rows", gzipped(rows)),
        ("bom.csv", format!("\u{feff}{rows}").into_bytes()),
        ("bom.jsonl", format!("\u{feff}{lines}").into_bytes()),
        ("crlf.csv", rows.replace('\n', "\r\n").into_bytes()),
        ("two.gz", [gzipped("id,n\na,1\n"), gzipped("b,2\n")].concat()),
    ] {
        for from_file in [true, false] {
            let server = Server::start();
            server.file(name, &content);
            let file = if from_file { name } else { "-" };
            let ran =
                server.run_with(&["load", file, "--id", "{id}"], if from_file { Vec::new() } else { content.clone() });
            assert_eq!(ran.json()[0]["documents"], 2, "{name}");
            let all = documents(&server);
            assert_eq!((&all["a"]["n"], &all["b"]["n"]), (&Value::from(1), &Value::from(2)), "{name}");
        }
    }
}

#[test]
fn json_lines_bring_their_own_ids_and_metadata() {
    let server = Server::start();
    let lines = r#"{"v":1,"@metadata":{"@id":"m","@collection":"M","mine":7}}
{"v":2,"id":"i"}
{"v":3}
"#;
    server.run_with(&["load", "-"], lines).json();
    let all = server.run(&["list"]).json();
    assert_eq!(all.len(), 3);
    let by_value = |value: i64| all.iter().find(|document| document["v"] == value).unwrap();
    assert_eq!(by_value(1)["@metadata"]["@id"], "m");
    assert_eq!(by_value(1)["@metadata"]["@collection"], "M");
    assert_eq!(by_value(1)["@metadata"]["mine"], 7);
    assert_eq!(by_value(2)["@metadata"]["@id"], "i");
    assert_eq!(by_value(2)["id"], "i");
    assert_eq!(by_value(3)["@metadata"]["@id"].as_str().unwrap().len(), 36);
    // A template and a collection go before what the line says.
    server.run_with(&["load", "-", "--id", "t/{v}", "--collection", "T"], lines).json();
    let first = &server.run(&["get", "t/1"]).json()[0];
    assert_eq!(first["@metadata"]["@collection"], "T");
    assert_eq!(first["@metadata"]["mine"], 7);
}

#[test]
fn numbers_given_by_the_server_rise_with_the_lines() {
    for (form, id_of) in
        [("n/", (|number| format!("n/{number:019}-A")) as fn(u64) -> String), ("n|", |number| format!("n/{number}"))]
    {
        let server = Server::start();
        let lines = lines(1..4501, |number| format!("{{\"v\":{number}}}"));
        assert_eq!(server.run_with(&["load", "-", "--id", form], lines).json()[0]["documents"], 4500);
        let all = documents(&server);
        for number in 1..=4500 {
            assert_eq!(all[&id_of(number)]["v"], number);
        }
    }
}

#[test]
fn of_two_lines_with_one_id_the_later_one_wins() {
    let server = Server::start();
    let lines = lines(0..20_000, |number| format!("{{\"k\":{},\"v\":{number}}}", number % 7));
    assert_eq!(server.run_with(&["load", "-", "--id", "k/{k}"], lines).json()[0]["documents"], 20_000);
    let all = documents(&server);
    assert_eq!(all.len(), 7);
    for (id, document) in all {
        let key: u64 = id.trim_start_matches("k/").parse().unwrap();
        let last = (0..20_000).rev().find(|number| number % 7 == key).unwrap();
        assert_eq!(document["v"], last);
    }
}

#[test]
fn a_bad_line_is_named_and_everything_before_it_is_stored() {
    for (bad, words) in [
        ("{\"v\":", "no JSON object"),
        ("[1]", "no JSON object"),
        ("{\"v\":1} x", "no JSON object"),
        ("{\"id\":7}", "'id'"),
        // What only the server finds out.
        ("{\"a\":1,\"a\":2}", "a"),
        ("{\"id\":\"x|y|\",\"@metadata\":{\"@collection\":5}}", "collection"),
    ] {
        let server = Server::start();
        let good = lines(1..2501, |number| format!("{{\"v\":{number}}}"));
        server.file("x.jsonl", format!("{good}{bad}\n{{\"v\":0}}\n"));
        let ran = server.run(&["load", "x.jsonl"]);
        assert_eq!(ran.code, Some(1), "{bad}");
        assert!(ran.stderr.contains("x.jsonl:2501: ") && ran.stderr.contains(words), "{bad} {ran:?}");
        assert!(ran.stderr.contains("2,500 documents are stored"), "{bad} {ran:?}");
        assert_eq!(documents(&server).len(), 2500, "{bad}");

        let ran = server.run(&["load", "x.jsonl", "--skip-bad"]);
        assert_eq!(ran.json()[0]["documents"], 2501, "{bad}");
        assert_eq!(ran.json()[0]["skipped"], 1, "{bad}");
        assert!(ran.stderr.contains("x.jsonl:2501: "), "{bad} {ran:?}");
    }
}

#[test]
fn unfit_tables_are_refused_at_their_line() {
    let server = Server::start();
    for (content, words) in [
        ("a,b\n1,2\n\n3\n", "x.csv:4: the number of its fields is 1, that of the first line 2"),
        ("a,b\r\n1,2\r\n1,2,3\r\n", "x.csv:3: the number of its fields is 3, that of the first line 2"),
        ("a,a\n1,2\n", "x.csv:1: column 2: it is called 'a' like column 1"),
        ("a,\n1,2\n", "x.csv:1: column 2: it has no name"),
        ("@metadata\n1\n", "x.csv:1: column 1"),
    ] {
        server.file("x.csv", content);
        let ran = server.run(&["load", "x.csv"]);
        assert_eq!(ran.code, Some(1), "{content}");
        assert!(ran.stderr.contains(words), "{content} {ran:?}");
    }
    server.file("x.csv", "a\nb\n");
    let ran = server.run(&["load", "x.csv", "--id", "c/{missing}"]);
    assert!(ran.stderr.contains("x.csv:2: it has no field 'missing'"), "{ran:?}");
}

#[test]
fn what_can_not_be_loaded_is_refused_with_a_way_out() {
    let server = Server::start();
    server.file("x.json", "[{\"a\":1}]");
    server.file("cut.gz", &gzipped(&"{\"a\":1}\n".repeat(10_000))[..200]);
    for (arguments, code, words) in [
        (vec!["load", "x.json"], 1, "jq -c"),
        (vec!["load", "none.csv"], 1, "none.csv"),
        (vec!["load", "."], 1, "directory"),
        (vec!["load", "."], 1, "treepie load ./*"),
        (vec!["load", "cut.gz"], 1, "cut.gz"),
        (vec!["load", "-", "-"], 2, "standard input"),
        (vec!["load", "-", "--id", "all-alike"], 2, "every document"),
        (vec!["load", "-", "--id", "a/{b"], 2, "'{'"),
    ] {
        let ran = server.run(&arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(words), "{arguments:?} {ran:?}");
    }
    let ran = Server::start().run(&["load", "."]);
    assert!(!ran.stderr.contains("created database"), "what can't be read leaves no empty database behind: {ran:?}");
}

#[test]
fn large_documents_go_in_batches_of_their_own() {
    let server = Server::start();
    let text = "x".repeat(3 << 20);
    let lines = lines(0..5, |number| format!("{{\"id\":\"big/{number}\",\"text\":\"{text}\"}}"));
    assert_eq!(server.run_with(&["load", "-"], lines).json()[0]["documents"], 5);
    let got = &server.run(&["get", "big/3"]).json()[0];
    assert_eq!(got["text"].as_str().map(str::len), Some(3 << 20));
}

#[test]
fn a_person_gets_one_line_at_the_end() {
    let server = Server::start();
    let ran = server.run_with(&["load", "-", "--text"], "{}\n{}\n");
    assert!(ran.stdout.starts_with("loaded 2 documents in ") && ran.stdout.lines().count() == 1, "{ran:?}");
}
