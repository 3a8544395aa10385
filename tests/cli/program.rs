//! Runs the program: a server on a free port with a directory of its own, and commands that talk to it.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const TREEPIE: &str = env!("CARGO_BIN_EXE_treepie");

/// A running server; it is killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) files: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let files = TempDir::new().unwrap();
        let (child, url) = serve(&files.path().join("data"), &["--listen", "127.0.0.1:0"]);
        Self { child, url, files }
    }

    /// A server that was started in another way; its commands run in a directory of their own.
    pub(crate) fn of(child: Child, url: String) -> Self {
        Self { child, url, files: TempDir::new().unwrap() }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command with nothing on standard input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    /// Runs a command with `input` on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        run(self.command(arguments), input)
    }

    /// A command that talks to this server, piped.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TREEPIE);
        command.args(arguments).env("TREEPIE_URL", &self.url).current_dir(self.files.path());
        command.env_remove("TREEPIE_TEXT").env_remove("TREEPIE_DATABASE");
        command
    }

    /// Writes a file into the directory where commands run.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Sends a signal by name: `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(kill.unwrap().success());
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Starts again on the same data.
    pub(crate) fn restart(&mut self) {
        (self.child, self.url) = serve(&self.files.path().join("data"), &["--listen", "127.0.0.1:0"]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// The output as JSON lines, after a success.
    pub(crate) fn json(&self) -> Vec<Value> {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Lines of a file, one for each number.
pub(crate) fn lines(numbers: Range<u64>, line: impl Fn(u64) -> String) -> String {
    let lines: Vec<String> = numbers.map(|number| line(number) + "\n").collect();
    lines.concat()
}

/// Starts a server and reads the line that says where it listens.
pub(crate) fn serve(data: &Path, arguments: &[&str]) -> (Child, String) {
    let mut command = Command::new(TREEPIE);
    command.arg("serve").arg("--json").arg("--data").arg(data).args(arguments);
    let mut child = command.env("TREEPIE_LOG", "warn").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).expect("the server says where it listens");
    (child, ready["url"].as_str().unwrap().to_owned())
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command, input: impl AsRef<[u8]>) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    // A command that ends early closes its standard input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}
