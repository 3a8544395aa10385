//! A server that is a process of its own, which can be killed and looked at.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running server; it is killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// `host:port`.
    pub(crate) address: String,
}

impl Server {
    /// Starts a server and waits until it says where it listens.
    pub(crate) fn start(data: &Path, listen: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        command.args(["serve", "--json", "--listen", listen, "--data"]).arg(data).env("TREEPIE_LOG", "off");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = ready["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
        Self { child, address }
    }

    /// Kills it without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The most memory that it has held, in MiB.
    pub(crate) fn peak_memory_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
