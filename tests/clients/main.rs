//! The clients of RavenDB and CouchDB, unmodified, against the real server: the npm and PyPI packages that `scripts/clients` installs, in
//! the versions pinned beside their tests. One function runs one file of tests; a missing package is a failure.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect has failed"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

#[test]
fn node_names_documents_in_every_way() {
    node("names.test.js");
}

#[test]
fn node_reads_and_writes_documents() {
    node("documents.test.js");
}

#[test]
fn node_administers_databases_and_indexes() {
    node("administration.test.js");
}

#[test]
fn node_is_told_of_changes() {
    node("changes.test.js");
}

#[test]
fn node_reads_in_couchdbs_shape() {
    node("couch.test.js");
}

#[test]
fn python_is_told_of_changes() {
    python("test_changes");
}

#[test]
fn node_asks_questions() {
    node("queries.test.js");
}

#[test]
fn python_asks_questions() {
    python("test_queries");
}

#[test]
fn node_subscribes() {
    node("subscriptions.test.js");
}

#[test]
fn python_names_documents_in_every_way() {
    python("test_names");
}

#[test]
fn python_reads_and_writes_documents() {
    python("test_documents");
}

#[test]
fn python_administers_databases_and_indexes() {
    python("test_administration");
}

#[test]
fn python_subscribes() {
    python("test_subscriptions");
}

/// A server on a free port with a directory of its own; it is killed when dropped.
struct Server {
    child: Child,
    url: String,
    _data: TempDir,
}

impl Server {
    fn start() -> Self {
        let data = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(data.path());
        let mut child = command.env("TREEPIE_LOG", "warn").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("the server says where it listens");
        Self { child, url: ready["url"].as_str().unwrap().to_owned(), _data: data }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node(file: &str) {
    let installed = installed("node", "package-lock.json");
    let server = Server::start();
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=tap", "--test-timeout=120000", file]);
    command.env("NODE_PATH", installed.join("node_modules"));
    let output = run(command, "node", &server);
    let count = |what: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(&format!("# {what} ")));
        line.and_then(|number| number.trim().parse::<u32>().ok())
    };
    assert!(count("pass").is_some_and(|passed| passed > 0), "no test has run:\n{output}");
    assert_eq!((count("fail"), count("skipped"), count("cancelled")), (Some(0), Some(0), Some(0)), "{output}");
}

fn python(module: &str) {
    let installed = installed("python", "requirements.txt");
    let server = Server::start();
    let mut command = Command::new(installed.join("bin/python"));
    command.args(["-B", "-W", "error::ResourceWarning", "-m", "unittest", "-v", module]);
    let output = run(command, "python", &server);
    assert!(!output.contains("Ran 0 tests") && !output.contains("skipped"), "a test has not run:\n{output}");
}

/// Runs tests in the language's directory; they must end well. Returns what they printed.
fn run(mut command: Command, language: &str, server: &Server) -> String {
    command.current_dir(directory(language)).env("TREEPIE_URL", &server.url).stdin(Stdio::null());
    // Clients would send requests for the loopback through a proxy, where one is configured.
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let ran = command.output().unwrap_or_else(|error| panic!("{language} can't be run: {error}; run scripts/clients"));
    let output = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(ran.status.success(), "{language} tests have failed ({}):\n{output}", ran.status);
    output
}

/// Where a client is installed, in the version that is pinned.
fn installed(language: &str, pinned: &str) -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let clients = variable("TREEPIE_CLIENTS").or_else(|| Some(cache()?.join("treepie/clients")));
    let installed = clients.expect("HOME is set").join(language);
    let wanted = std::fs::read(directory(language).join(pinned)).unwrap();
    let present = std::fs::read(installed.join("installed")).unwrap_or_default();
    assert!(present == wanted, "the pinned {language} client is not in {}; run scripts/clients", installed.display());
    installed
}

fn directory(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(language)
}
