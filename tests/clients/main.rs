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

#[test]
fn node_shows_its_certificate_over_tls() {
    let tls = Tls::new();
    // Its PEM is read only with an RSA key under the older label; that comes from elsewhere and may do less.
    tls.openssl(&["genrsa", "-traditional", "-out", "rsa.key", "2048"]);
    tls.openssl(&["req", "-x509", "-key", "rsa.key", "-subj", "/CN=rsa", "-days", "2", "-out", "rsa.crt"]);
    let parts = ["rsa.crt", "rsa.key"].map(|name| std::fs::read_to_string(tls.path(name)).unwrap());
    std::fs::write(tls.path("rsa.pem"), parts.concat()).unwrap();
    tls.treepie(&["cert", "add", "rsa", "rsa.pem", "--allow", "tls-PEM=write"]);
    tls.openssl(&["pkcs12", "-export", "-in", "app.pem", "-out", "app.pfx", "-passout", "pass:secret"]);
    let variables = [("TREEPIE_CLIENT_PEM", "rsa.pem"), ("TREEPIE_CLIENT_PFX", "app.pfx")]
        .map(|(name, file)| (name, tls.path(file)));
    let mut command = node_command("tls.test.js");
    command.envs(variables).env("TREEPIE_PFX_PASSWORD", "secret").env("TREEPIE_CA", tls.path("ca.pem"));
    check_node(&run(command, "node", &tls.serve()));
}

#[test]
fn python_shows_its_certificate_over_tls() {
    let tls = Tls::new();
    let mut command = python_command("test_tls");
    command.env("TREEPIE_CLIENT_PEM", tls.path("app.pem")).env("TREEPIE_CA", tls.path("ca.pem"));
    check_python(&run(command, "python", &tls.serve()));
}

/// A directory with the certificates of a server and of a client that may do everything, made by the program.
struct Tls {
    directory: TempDir,
}

impl Tls {
    fn new() -> Self {
        let tls = Self { directory: TempDir::new().unwrap() };
        tls.treepie(&["cert", "server", "--host", "127.0.0.1", "--dir", "."]);
        tls.treepie(&["cert", "client", "app", "--allow", "*=admin", "--dir", "."]);
        tls
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn treepie(&self, arguments: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        self.run(command.args(arguments).env("TREEPIE_DATA", self.path("data")));
    }

    fn openssl(&self, arguments: &[&str]) {
        self.run(Command::new("openssl").args(arguments));
    }

    fn run(&self, command: &mut Command) {
        let ran = command.current_dir(self.directory.path()).output();
        let ran = ran.unwrap_or_else(|error| panic!("{command:?} can't be run: {error}"));
        assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn serve(&self) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        command.args(["serve", "--tls-certificate"]).arg(self.path("server.pem"));
        command.arg("--tls-key").arg(self.path("server.key")).arg("--data").arg(self.path("data"));
        Server::start_by(command, None)
    }
}

/// A server on a free port with a directory of its own; it is killed when dropped.
struct Server {
    child: Child,
    url: String,
    _data: Option<TempDir>,
}

impl Server {
    fn start() -> Self {
        let data = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        command.args(["serve", "--data"]).arg(data.path());
        Self::start_by(command, Some(data))
    }

    fn start_by(mut command: Command, data: Option<TempDir>) -> Self {
        command.args(["--json", "--listen", "127.0.0.1:0"]);
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
    check_node(&run(node_command(file), "node", &Server::start()));
}

fn node_command(file: &str) -> Command {
    let installed = installed("node", "package-lock.json");
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=tap", "--test-timeout=120000", file]);
    command.env("NODE_PATH", installed.join("node_modules"));
    command
}

fn check_node(output: &str) {
    let count = |what: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(&format!("# {what} ")));
        line.and_then(|number| number.trim().parse::<u32>().ok())
    };
    assert!(count("pass").is_some_and(|passed| passed > 0), "no test has run:\n{output}");
    assert_eq!((count("fail"), count("skipped"), count("cancelled")), (Some(0), Some(0), Some(0)), "{output}");
}

fn python(module: &str) {
    check_python(&run(python_command(module), "python", &Server::start()));
}

fn python_command(module: &str) -> Command {
    let installed = installed("python", "requirements.txt");
    let mut command = Command::new(installed.join("bin/python"));
    command.args(["-B", "-W", "error::ResourceWarning", "-m", "unittest", "-v", module]);
    command
}

fn check_python(output: &str) {
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
