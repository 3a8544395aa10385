//! `index test`: what a script would do, on documents of a file without a server, or on those of a server.

use serde_json::{Value, json};

use crate::program::{Ran, Server, TREEPIE, run};

const SALES: &str = "source(\"Sales\");\noutput(\"Totals\");\nfn map(sale) {\n    \
    emit(#{ Product: sale.product }, #{ n: 1, total: sale.price * (sale.count ?? 1), tax: sale.taxx });\n}\n\
    fn reduce(key, values) {\n    #{ n: values.sum(\"n\"), total: values.sum(\"total\") }\n}\n";

const SAMPLE: &str = r#"{"product":"pie","price":2.50}
{"product":"pie","price":1,"count":3,"@metadata":{"@id":"sales/2","@collection":"Sales"}}

{"product":"tart","price":4}
"#;

/// Runs the program in a directory of its own, with these files and no server anywhere.
fn alone(files: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let mut command = std::process::Command::new(TREEPIE);
    command.args(arguments).current_dir(directory.path()).env("TREEPIE_URL", "http://127.0.0.1:1");
    command.env_remove("TREEPIE_TEXT").env_remove("TREEPIE_DATABASE");
    run(command, "")
}

#[test]
fn a_script_is_tried_on_a_file_without_a_server() {
    let files = [("Totals.rhai", SALES), ("sample.jsonl", SAMPLE)];
    let ran = alone(&files, &["index", "test", "Totals.rhai", "--input", "sample.jsonl", "--text"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[..9],
        [
            "line/1",
            r#"  {"Product":"pie"}  {"n":1,"tax":null,"total":2.5}"#,
            "sales/2",
            r#"  {"Product":"pie"}  {"n":1,"tax":null,"total":3}"#,
            "line/4",
            r#"  {"Product":"tart"}  {"n":1,"tax":null,"total":4}"#,
            "2 groups",
            r#"  2 entries: {"Product":"pie","n":2,"total":5.5}"#,
            r#"  1 entries: {"Product":"tart","n":1,"total":4}"#,
        ]
    );
    assert_eq!(lines[9], "nothing has the field taxx, which map read 3 times");
    assert!(lines[10].starts_with("map: 3 calls, 0 failed; ") && lines[11].starts_with("reduce: 2 calls"), "{lines:?}");
    let json = alone(&files, &["index", "test", "Totals.rhai", "--input", "sample.jsonl"]).json();
    assert_eq!(json[0]["UnknownFields"], json!([{"Phase": "Map", "Field": "taxx", "Reads": 3}]));
}

#[test]
fn tables_are_tried_too_and_few_lines_are_printed_of_many() {
    let rows: String = (0..50).map(|n| format!("p{n},{n}\n")).collect();
    let files = [("t.rhai", SALES), ("sample.csv", &*format!("product,price\n{rows}"))];
    let ran = alone(&files, &["index", "test", "t.rhai", "--input", "sample.csv", "--text", "--show", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("… and 48 more\n50 groups\n") && ran.stdout.lines().count() < 14, "{}", ran.stdout);
    let few = alone(&files, &["index", "test", "t.rhai", "--input", "sample.csv", "--count", "3"]).json();
    assert_eq!(few[0]["Documents"].as_array().unwrap().len(), 3);
    let other = alone(&files, &["index", "test", "t.rhai", "--input", "sample.csv", "--collection", "Other", "--text"]);
    assert!(other.stdout.contains("50 documents are in no collection that the script maps"), "{other:?}");
}

#[test]
fn what_fails_is_named_with_its_place_and_ends_with_an_error() {
    let bad = SAMPLE.replace("4}", "\"four\"}");
    let files = [("t.rhai", SALES), ("bad.jsonl", bad.as_str()), ("broken.jsonl", "{\"a\":1}\n{\"a\":\n")];
    let ran = alone(&files, &["index", "test", "t.rhai", "--input", "bad.jsonl", "--text"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let failed = ran.stdout.lines().find(|line| line.starts_with("failed: line/4: script:4:")).unwrap();
    assert!(failed.contains("* cannot be applied to a string and a number"), "{failed}");
    assert!(ran.stderr.contains("1 document or group failed"), "{ran:?}");
    let ran = alone(&files, &["index", "test", "t.rhai", "--input", "broken.jsonl"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("broken.jsonl:2: "), "{ran:?}");
    let ran = alone(&files, &["index", "test", "t.rhai", "--input", "none.jsonl"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("none.jsonl: "), "{ran:?}");
    let slip = SALES.replace("emit(", "emti(");
    let ran = alone(&[("t.rhai", &slip), ("s.jsonl", SAMPLE)], &["index", "test", "t.rhai", "--input", "s.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--> t.rhai:4:") && ran.stderr.contains("emti"), "{ran:?}");
}

#[test]
fn without_a_file_it_is_tried_on_what_the_server_has_and_nothing_is_written() {
    let server = Server::start();
    server.run_with(&["load", "-", "--collection", "Sales", "--id", "sales/{product}{price}"], SAMPLE).json();
    server.file("Totals.rhai", SALES);
    let tried = server.run(&["index", "test", "Totals.rhai"]).json();
    assert_eq!(tried[0]["Groups"].as_array().unwrap().len(), 2);
    let one = server.run(&["index", "test", "Totals.rhai", "--id", "sales/tart4", "--id", "sales/none"]).json();
    assert_eq!((&one[0]["Documents"][0]["Id"], &one[0]["Map"]["Calls"]), (&json!("sales/tart4"), &json!(1)));
    assert_eq!(server.run(&["index", "list"]).json(), Vec::<Value>::new());
    assert_eq!(server.run(&["list", "--collection", "Totals"]).json(), Vec::<Value>::new());
    let broken = server.run_with(&["index", "test", "-"], SALES.replace("emit(", "emti("));
    assert!(broken.code == Some(1) && broken.stderr.contains("--> standard input:4:"), "{broken:?}");
    let ran = server.run(&["index", "test", "Totals.rhai", "--database", "none"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}
