//! Where a server's settings come from, and what is said when they are wrong.

use std::process::Command;

use crate::program::{Ran, TREEPIE, run};

fn serve(files: &std::path::Path, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(TREEPIE);
    command.arg("serve").args(arguments).envs(variables.iter().copied()).current_dir(files);
    command.env_remove("TREEPIE_LISTEN").env_remove("TREEPIE_LOG");
    run(command, "")
}

#[test]
fn what_is_printed_is_a_file_of_the_same_settings() {
    let files = tempfile::TempDir::new().unwrap();
    let flags =
        ["--print-config", "--node-tag", "B", "--write-buffer", "8MiB", "--public-url", "https://db.example.com"];
    let printed = serve(files.path(), &flags, &[("TREEPIE_GUID", "v7"), ("TREEPIE_NODE_TAG", "C")]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    for line in [
        "node-tag = \"B\"",
        "guid = \"v7\"",
        "write-buffer = \"8MiB\"",
        "# The tag of this node in the ids it makes: 1 to 4 capital letters.",
    ] {
        assert!(printed.stdout.lines().any(|found| found == line), "{line}: {}", printed.stdout);
    }
    std::fs::write(files.path().join("treepie.toml"), &printed.stdout).unwrap();
    let again = serve(files.path(), &["--config", "treepie.toml", "--print-config"], &[]);
    assert_eq!(again.stdout, printed.stdout);
    let changed = serve(files.path(), &["--config", "treepie.toml", "--print-config"], &[("TREEPIE_GUID", "v4")]);
    assert!(changed.stdout.contains("guid = \"v4\"") && changed.stdout.contains("node-tag = \"B\""), "{changed:?}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once_and_nothing_starts() {
    let files = tempfile::TempDir::new().unwrap();
    std::fs::write(files.path().join("bad.toml"), "nod-tag = \"A\"\nconnections-max = 0\n").unwrap();
    let flags = ["--config", "bad.toml", "--block-cache", "much", "--tls-key", "k.pem"];
    let ran = serve(files.path(), &flags, &[("TREEPIE_DURABILITY", "often")]);
    assert_eq!(ran.code, Some(2));
    for words in [
        "bad.toml: nod-tag: there is no such setting",
        "bad.toml: connections-max: '0' must be 1 to 1000000",
        "TREEPIE_DURABILITY: 'often' must be one of strict, relaxed",
        "--block-cache: 'much' must be",
        "tls-certificate and tls-key go together",
        "--print-config",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(!files.path().join("treepie-data").exists());
}

#[test]
fn a_variable_that_looks_like_a_setting_is_told() {
    let files = tempfile::TempDir::new().unwrap();
    let ran = serve(files.path(), &["--print-config"], &[("TREEPIE_NOD_TAG", "B")]);
    assert!(ran.code == Some(0) && ran.stderr.contains("TREEPIE_NOD_TAG"), "{ran:?}");
}

#[test]
fn a_server_is_not_opened_to_a_network_without_saying_so() {
    let files = tempfile::TempDir::new().unwrap();
    let ran = serve(files.path(), &["--listen", "0.0.0.0:0"], &[]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("treepie key") && ran.stderr.contains("--anyone-may-read-and-write-everything"),
        "{ran:?}"
    );
}
