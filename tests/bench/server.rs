//! The server under test, a child process, and what the system says it used.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{MIB, Result};

/// Clock ticks a second in `/proc/<pid>/stat`: the same on every Linux that this runs on.
const TICKS: f64 = 100.0;

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts the server on an empty directory and a free port, and waits until it says where it listens.
    pub(crate) fn start(data: &Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treepie"));
        command
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--listen", "127.0.0.1:0", "--log", "warn"])
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no standard output")?;
        let mut server = Self { child, address: String::new() };
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            if let Some((_, rest)) = line.split_once("http://") {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".:[]".contains(c))).unwrap_or(rest.len());
                rest[..end].clone_into(&mut server.address);
                return Ok(server);
            }
        }
        Err(format!("the server ended before it listened: {}", server.child.wait()?).into())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The processor time it has used.
    pub(crate) fn cpu_time(&self) -> Result<CpuTime> {
        CpuTime::of(&self.child.id().to_string())
    }

    /// The most memory it has held.
    pub(crate) fn peak_memory_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(peak.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// Stops it with SIGTERM and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let ended = self.child.wait()?;
        if sent.success() && ended.success() { Ok(()) } else { Err(format!("the server ended with {ended}").into()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a clean stop there is nothing to kill, and nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime(f64);

impl CpuTime {
    /// Of this process.
    pub(crate) fn own() -> Result<Self> {
        Self::of("self")
    }

    fn of(process: &str) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name in parentheses may hold blanks; user and system time are the 12th and 13th field after it.
        let (_, fields) = stat.rsplit_once(')').ok_or("an odd /proc/…/stat")?;
        let ticks: Vec<f64> =
            fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<std::result::Result<_, _>>()?;
        Ok(Self(ticks.iter().sum::<f64>() / TICKS))
    }

    /// Seconds since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> f64 {
        self.0 - earlier.0
    }
}

/// How many threads of the whole system wanted to run in the last minute: figures of a busy machine tell little.
pub(crate) fn load_average() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

/// What a directory takes on disk.
pub(crate) fn disk_mib(directory: &Path) -> Result<f64> {
    let mut blocks = 0;
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else {
                blocks += entry.metadata()?.blocks();
            }
        }
    }
    Ok(blocks as f64 * 512.0 / MIB)
}
