//! Subscriptions over RavenDB's TCP protocol: documents delivered a second, and the time from a write to its delivery.
//!
//! The worker does next to nothing with what it reads: it counts messages and acknowledges batches.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::http::Connection;
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::updates::Quantiles;
use crate::workload::Orders;
use crate::{DATABASE, Result};

const DATA: &[u8] = b"{\"Type\":\"Data\"";
const END: &[u8] = b"{\"Type\":\"EndOfBatch\"}";
const CONFIRM: &[u8] = b"{\"Type\":\"Confirm\"}";

/// Measures one worker, ten that share a subscription, ten with one each, and the way of single writes.
pub(crate) fn measure(
    server: &Server,
    orders: &Orders,
    updates: usize,
    bare: &[f64],
    report: &mut Report,
) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    for (name, workers, subscriptions) in
        [("1 worker", 1, 1), ("10 workers of one subscription", 10, 1), ("10 workers, a subscription each", 1, 10)]
    {
        let names: Vec<String> = (0..subscriptions).map(|n| format!("{workers}-{subscriptions}-{n}")).collect();
        for name in &names {
            create(&mut connection, name, "BeginningOfTime")?;
        }
        let before = server.cpu_time()?;
        let begun = Instant::now();
        let delivered: usize = std::thread::scope(|scope| {
            let strategy = if workers > 1 { "Concurrent" } else { "OpenIfFree" };
            let each = names.iter().flat_map(|name| std::iter::repeat_n(name, workers));
            let running: Vec<_> = each.map(|name| scope.spawn(move || drain(server, name, strategy))).collect();
            running.into_iter().map(|worker| worker.join().map_err(|_| "a worker panicked")?).sum::<Result<usize>>()
        })?;
        let seconds = begun.elapsed().as_secs_f64();
        if delivered < orders.len() * subscriptions {
            return Err(format!("{delivered} of {} documents were delivered", orders.len() * subscriptions).into());
        }
        let rate = delivered as f64 / seconds;
        report.add(Figure::new(&format!("delivered to {name}"), rate, "docs/s").aim("≥ 100,000"));
        report.add(Figure::new("  server CPU / wall", server.cpu_time()?.since(before) / seconds, ""));
    }
    idle(server, &mut connection, report)?;
    let bare = Quantiles::of(bare.to_vec());
    latency(server, &mut connection, updates)?.report("PUT until delivered", &bare, "≤ 1", report);
    Ok(())
}

fn create(connection: &mut Connection, name: &str, start: &str) -> Result<()> {
    let body = format!("{{\"Name\":\"{name}\",\"Query\":\"from Orders\",\"ChangeVector\":\"{start}\"}}");
    connection.call("PUT", &format!("/databases/{DATABASE}/subscriptions"), body.as_bytes()).map(|_| ())
}

/// What a thousand open subscriptions cost to which nothing happens, while another collection is written.
fn idle(server: &Server, connection: &mut Connection, report: &mut Report) -> Result<()> {
    const IDLE: usize = 1_000;
    const WRITES: usize = 500;
    let path = format!("/databases/{DATABASE}/docs?id=busy");
    let mut spent = Vec::new();
    let mut open = Vec::new();
    for subscriptions in [0, IDLE] {
        for n in open.len()..subscriptions {
            let body = format!("{{\"Name\":\"idle-{n}\",\"Query\":\"from Quiet\"}}");
            connection.call("PUT", &format!("/databases/{DATABASE}/subscriptions"), body.as_bytes())?;
            open.push(Worker::open(server, &format!("idle-{n}"), "OpenIfFree", false)?);
        }
        let before = server.cpu_time()?;
        for _ in 0..WRITES {
            connection.call("PUT", &path, b"{\"@metadata\":{\"@collection\":\"Busy\"}}")?;
        }
        spent.push(server.cpu_time()?.since(before));
    }
    if let [without, with] = spent.as_slice() {
        let name = "CPU of 500 writes beside 1,000 idle subscriptions";
        report.add(Figure::new(name, *with, "s").limit(*without, "the same without"));
    }
    Ok(())
}

/// Milliseconds from the first byte of a PUT to its delivery, one after the other.
fn latency(server: &Server, connection: &mut Connection, count: usize) -> Result<Quantiles> {
    create(connection, "latency", "LastDocument")?;
    let mut worker = Worker::open(server, "latency", "OpenIfFree", false)?;
    let path = format!("/databases/{DATABASE}/docs?id=latency");
    let body = b"{\"@metadata\":{\"@collection\":\"Orders\"}}";
    let mut times = Vec::new();
    for _ in 0..count.max(1) {
        let begun = Instant::now();
        connection.send("PUT", &path, body)?;
        worker.batch()?.ok_or("the worker's connection ended")?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        connection.receive()?;
        worker.acknowledge()?;
    }
    Ok(Quantiles::of(times))
}

/// Reads a subscription to its end; returns how many documents came.
fn drain(server: &Server, name: &str, strategy: &str) -> Result<usize> {
    let mut worker = Worker::open(server, name, strategy, true)?;
    let mut documents = 0;
    while let Some(count) = worker.batch()? {
        documents += count;
        worker.acknowledge()?;
    }
    Ok(documents)
}

struct Worker {
    stream: TcpStream,
    buffer: Vec<u8>,
    read: usize,
}

impl Worker {
    fn open(server: &Server, name: &str, strategy: &str, until_empty: bool) -> Result<Self> {
        let stream = TcpStream::connect(server.address())?;
        stream.set_nodelay(true)?;
        let mut worker = Self { stream, buffer: vec![0; 1 << 20], read: 0 };
        let header =
            format!("{{\"DatabaseName\":\"{DATABASE}\",\"Operation\":\"Subscription\",\"OperationVersion\":53000}}");
        worker.stream.write_all(header.as_bytes())?;
        worker.until(b"}")?;
        let options = format!(
            "{{\"SubscriptionName\":\"{name}\",\"Strategy\":\"{strategy}\",\"MaxDocsPerBatch\":4096,\"CloseWhenNoDocsLeft\":{until_empty}}}"
        );
        worker.stream.write_all(options.as_bytes())?;
        worker.until(b"\"Accepted\"")?;
        worker.until(b"}")?;
        Ok(worker)
    }

    /// Reads to the end of a batch; returns how many documents it has, `None` where the connection was closed.
    fn batch(&mut self) -> Result<Option<usize>> {
        let mut documents = 0;
        loop {
            let (read, kept) = (self.read, DATA.len().max(END.len()) - 1);
            let bytes = self.buffer.get(..read).unwrap_or_default();
            if bytes.ends_with(END) {
                documents += count(bytes);
                self.read = 0;
                return Ok(Some(documents));
            }
            // The beginning of a message may be cut: it is looked at again with what follows.
            if read > self.buffer.len() / 2 {
                let whole = read - kept;
                documents += count(bytes.get(..whole + DATA.len() - 1).unwrap_or_default());
                self.buffer.copy_within(whole..read, 0);
                self.read = kept;
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    fn acknowledge(&mut self) -> Result<()> {
        self.stream.write_all(b"{\"Type\":\"Acknowledge\"}")?;
        self.until(CONFIRM)
    }

    /// Reads up to and with these bytes; what follows stays.
    fn until(&mut self, wanted: &[u8]) -> Result<()> {
        loop {
            let bytes = self.buffer.get(..self.read).unwrap_or_default();
            if let Some(place) = bytes.windows(wanted.len()).position(|window| window == wanted) {
                self.buffer.copy_within(place + wanted.len()..self.read, 0);
                self.read -= place + wanted.len();
                return Ok(());
            }
            if self.fill()? == 0 {
                return Err("the server closed a worker's connection".into());
            }
        }
    }

    fn fill(&mut self) -> Result<usize> {
        let room = self.buffer.get_mut(self.read..).unwrap_or_default();
        let read = self.stream.read(room)?;
        self.read += read;
        Ok(read)
    }
}

/// How many messages with a document begin in these bytes.
fn count(bytes: &[u8]) -> usize {
    let begins = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    begins.filter(|(place, _)| bytes.get(*place..).is_some_and(|rest| rest.starts_with(DATA))).count()
}
