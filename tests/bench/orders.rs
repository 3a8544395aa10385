//! Measures a server over HTTP with generated orders: loading, building two indexes, single updates until visible, memory, disk.
//!
//! Beside each figure stands the limit it is held against, measured in the same run with as little code as possible around it.
//! `workload` makes the documents, `limits` measures the bare limits, `server` is the child under test, `http` talks to it,
//! `updates` times single changes, `swap` a changed definition, `queries` asks, `soundness` verifies and fails, `names` the
//! ways to name documents, `subscriptions` what workers are given, `report` prints. Run by `scripts/bench`.
#![allow(clippy::cast_precision_loss, reason = "figures for people, far below 2⁵²")]

mod http;
mod limits;
mod names;
mod queries;
mod report;
mod server;
mod soundness;
mod subscriptions;
mod swap;
mod updates;
mod workload;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::http::Connection;
use crate::report::{Figure, Report};
use crate::server::{CpuTime, Server};
use crate::workload::{Orders, Script};

/// The result of a step; a benchmark ends at the first failure and says why.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The database under test.
pub(crate) const DATABASE: &str = "bench";

/// Measures loading, index builds and single updates.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many orders
    #[arg(long, default_value_t = 200_000)]
    n: usize,
    /// Connections that load at the same time
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Only ids and bulk inserts
    #[arg(long)]
    names: bool,
    /// Single updates of each kind
    #[arg(long, default_value_t = 100)]
    updates: usize,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the data goes; a new directory in it is removed at the end
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let parent = arguments.data.clone().unwrap_or_else(std::env::temp_dir);
    let directory = tempfile::Builder::new().prefix("treepie-bench-").tempdir_in(parent)?;
    let orders = Orders::generate(arguments.n)?;
    let scripts = [Script::read("ProductMonths")?, Script::read("OrderTotals")?];
    let mut report = Report::new(&arguments.n.to_string());
    report.add(Figure::new("load average before (0 on an idle machine)", server::load_average()?, ""));
    let data = directory.path();
    if arguments.names {
        measure_names(data, &orders, &mut report)?;
    } else {
        measure(&arguments, data, &orders, &scripts, &mut report)?;
    }
    report.print(&mut std::io::stdout().lock())?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, report.json())?;
    }
    Ok(())
}

fn measure(
    arguments: &Arguments,
    directory: &Path,
    orders: &Orders,
    scripts: &[Script; 2],
    report: &mut Report,
) -> Result<()> {
    // First the syncs, while nothing is left to be written behind them.
    let bare_sync = limits::synced_writes(&directory.join("bare-sync"), arguments.updates)?;
    let bare_map = [limits::parse_and_map(orders, &scripts[0])?, limits::parse_and_map(orders, &scripts[1])?];
    let bare_load = limits::write_batches(&directory.join("bare"), orders)?;
    let mut server = Server::start(&directory.join("data"))?;
    load(&server, orders, arguments.connections, bare_load, report)?;
    for (script, bare) in scripts.iter().zip(bare_map) {
        build(&server, orders, script, bare, report)?;
    }
    queries::measure(&server, orders, report)?;
    updates::measure(&server, orders, arguments.updates, bare_sync.clone(), report)?;
    subscriptions::measure(&server, orders, arguments.updates, &bare_sync, report)?;
    soundness::measure(&server, orders, arguments.updates, bare_map[0], report)?;
    report.add(Figure::new("peak memory", server.peak_memory_mib()?, "MiB").aim("< 300"));
    report.add(Figure::new("documents alone, as JSON", orders.bytes() as f64 / MIB, "MiB"));
    report.add(Figure::new("disk, before a clean stop", server::disk_mib(&directory.join("data"))?, "MiB"));
    server.stop()?;
    report.add(Figure::new("disk, after a clean stop", server::disk_mib(&directory.join("data"))?, "MiB"));
    swap::measure(&directory.join("swap"), report)?;
    measure_names(&directory.join("names"), orders, report)
}

/// Measures ids and bulk inserts, on a server of their own.
fn measure_names(directory: &Path, orders: &Orders, report: &mut Report) -> Result<()> {
    let mut server = Server::start(directory)?;
    names::measure(&server, report)?;
    names::bulk(&server, orders, report)?;
    server.stop()
}

/// Bytes of a MiB.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// Loads all orders in durable batches over several connections.
fn load(server: &Server, orders: &Orders, connections: usize, bare: f64, report: &mut Report) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    let record = format!("{{\"DatabaseName\":\"{DATABASE}\"}}");
    connection.call("PUT", &format!("/admin/databases?name={DATABASE}"), record.as_bytes())?;
    let bodies = orders.bulk_bodies();
    let next = AtomicUsize::new(0);
    let (before, client_before) = (server.cpu_time()?, CpuTime::own()?);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let loaders: Vec<_> =
            (0..connections.max(1)).map(|_| scope.spawn(|| load_some(server, &bodies, &next))).collect();
        loaders.into_iter().try_for_each(|loader| loader.join().map_err(|_| "a loader panicked")?)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = server.cpu_time()?.since(before);
    let rate = orders.len() as f64 / seconds;
    report.add(
        Figure::new("load over HTTP, durable batches of 1,000", rate, "docs/s")
            .limit(bare, "bare WriteBatch")
            .aim("≥ 80,000"),
    );
    report.add(Figure::new("  server CPU / wall", cpu / seconds, ""));
    report.add(Figure::new("  client CPU / wall", CpuTime::own()?.since(client_before) / seconds, ""));
    Ok(())
}

fn load_some(server: &Server, bodies: &[Vec<u8>], next: &AtomicUsize) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    while let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
        connection.call("POST", &format!("/databases/{DATABASE}/bulk_docs"), body)?;
    }
    Ok(())
}

/// Puts an index and waits until it is current.
fn build(server: &Server, orders: &Orders, script: &Script, bare: f64, report: &mut Report) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    let before = server.cpu_time()?;
    let start = Instant::now();
    connection.call("PUT", &format!("/databases/{DATABASE}/indexes/{}", script.name), script.text.as_bytes())?;
    await_index(&mut connection, script.name, Duration::from_millis(50))?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = server.cpu_time()?.since(before);
    let rate = orders.len() as f64 / seconds;
    let name = format!("build {}", script.name);
    report.add(Figure::new(&name, rate, "docs/s").limit(bare, "bare parse and map").aim("≥ 50 %"));
    report.add(Figure::new("  server CPU / wall", cpu / seconds, "").aim("≥ 1.6"));
    Ok(())
}

/// Asks for an index's state until it is current. The server counts what is left each time, so a build is asked seldom.
pub(crate) fn await_index(connection: &mut Connection, name: &str, pause: Duration) -> Result<()> {
    let path = format!("/databases/{DATABASE}/indexes/stats?name={name}");
    loop {
        let stats: serde_json::Value = serde_json::from_slice(&connection.call("GET", &path, b"")?)?;
        let index = &stats["Results"][0];
        if index["State"] == "Error" {
            return Err(format!("index {name} is in state Error: {stats}").into());
        }
        if index["IsStale"] == false {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
}
