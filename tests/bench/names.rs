//! Ids: how many documents each way to name them gives a second, to one client and to 16 at once; and bulk inserts beside
//! batches of the same documents.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Result;
use crate::http::Connection;
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::workload::Orders;

/// How long each strategy is measured.
const TIME: Duration = Duration::from_secs(1);
/// Clients at the same time.
const CLIENTS: [usize; 2] = [1, 16];
/// Connections that load documents at the same time.
const LOADERS: [usize; 2] = [1, 4];

/// A way to name a document.
#[derive(Clone, Copy, Debug)]
enum Strategy {
    Semantic,
    Guid,
    ServerSide,
    Identity,
    Hilo,
}

impl Strategy {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Semantic, "semantic"),
        (Self::Guid, "GUID"),
        (Self::ServerSide, "server-side"),
        (Self::Identity, "identity"),
        (Self::Hilo, "HiLo"),
    ];
}

/// A client with its range of HiLo numbers.
struct Client {
    connection: Connection,
    database: String,
    next: u64,
    high: u64,
    last_size: u64,
    last_at: String,
    ranges: u64,
}

impl Client {
    fn open(server: &Server, database: &str) -> Result<Self> {
        let connection = Connection::open(server.address())?;
        let database = database.to_owned();
        Ok(Self { connection, database, next: 1, high: 0, last_size: 0, last_at: String::new(), ranges: 0 })
    }

    /// Puts one document.
    fn put(&mut self, strategy: Strategy, client: usize, number: u64) -> Result<()> {
        let id = match strategy {
            Strategy::Semantic => format!("users%2F{client}-{number}"),
            Strategy::Guid => String::new(),
            Strategy::ServerSide => "users%2F".to_owned(),
            Strategy::Identity => "users%7C".to_owned(),
            Strategy::Hilo => format!("users%2F{}-A", self.hilo()?),
        };
        let path = format!("/databases/{}/docs?id={id}", self.database);
        self.connection.call("PUT", &path, b"{\"Name\":\"Jo\",\"@metadata\":{\"@collection\":\"Users\"}}")?;
        Ok(())
    }

    fn hilo(&mut self) -> Result<u64> {
        if self.next > self.high {
            let (database, size, at, max) = (&self.database, self.last_size, &self.last_at, self.high);
            let path = format!(
                "/databases/{database}/hilo/next?tag=users&lastBatchSize={size}&lastRangeAt={at}&lastMax={max}"
            );
            let range: Value = serde_json::from_slice(&self.connection.call("GET", &path, b"")?)?;
            let number = |name: &str| range[name].as_u64().ok_or("a range without numbers");
            (self.next, self.high, self.last_size) = (number("Low")?, number("High")?, number("LastSize")?);
            range["LastRangeAt"].as_str().unwrap_or_default().clone_into(&mut self.last_at);
            self.ranges += 1;
        }
        self.next += 1;
        Ok(self.next - 1)
    }
}

/// Measures each strategy.
pub(crate) fn measure(server: &Server, report: &mut Report) -> Result<()> {
    for (strategy, name) in Strategy::ALL {
        for clients in CLIENTS {
            let database = format!("ids-{}-{clients}", name.to_ascii_lowercase());
            create(server, &database)?;
            let (ids, ranges) = (AtomicU64::new(0), AtomicU64::new(0));
            let start = Instant::now();
            let run = |number: usize| -> Result<()> {
                let mut client = Client::open(server, &database)?;
                let mut count = 0;
                while start.elapsed() < TIME {
                    client.put(strategy, number, count)?;
                    count += 1;
                }
                ids.fetch_add(count, Ordering::Relaxed);
                ranges.fetch_add(client.ranges, Ordering::Relaxed);
                Ok(())
            };
            std::thread::scope(|scope| {
                let run = &run;
                let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || run(number))).collect();
                threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a client panicked")?)
            })?;
            let rate = ids.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
            let plural = if clients == 1 { "" } else { "s" };
            report.add(Figure::new(&format!("{name} ids, {clients} client{plural}"), rate, "ids/s"));
            if matches!(strategy, Strategy::Hilo) {
                report.add(Figure::new("  requests for ranges", ranges.load(Ordering::Relaxed) as f64, ""));
            }
        }
    }
    Ok(())
}

/// Measures bulk inserts beside batches of 1,000, both durable when they are answered.
pub(crate) fn bulk(server: &Server, orders: &Orders, report: &mut Report) -> Result<()> {
    let (batches, elements) = (orders.bulk_bodies(), orders.insert_elements());
    for loaders in LOADERS {
        let database = format!("docs-{loaders}");
        create(server, &database)?;
        let path = format!("/databases/{database}/bulk_docs");
        let batched = rate(orders, loaders, |loader| {
            let mut connection = Connection::open(server.address())?;
            batches
                .iter()
                .skip(loader)
                .step_by(loaders)
                .try_for_each(|body| connection.call("POST", &path, body).map(|_| ()))
        })?;
        let database = format!("insert-{loaders}");
        create(server, &database)?;
        let path = format!("/databases/{database}/bulk_insert");
        let inserted = rate(orders, loaders, |loader| {
            let pieces: Vec<&[u8]> = elements.iter().skip(loader).step_by(loaders).map(Vec::as_slice).collect();
            Connection::open(server.address())?.post_array(&path, &pieces)
        })?;
        let plural = if loaders == 1 { "" } else { "s" };
        let name = format!("bulk insert, {loaders} connection{plural}");
        report.add(Figure::new(&name, inserted, "docs/s").limit(batched, "bulk_docs").aim("≥ 150 %"));
    }
    Ok(())
}

/// Documents a second that loaders store together.
fn rate(orders: &Orders, loaders: usize, load: impl Fn(usize) -> Result<()> + Sync) -> Result<f64> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let load = &load;
        let threads: Vec<_> = (0..loaders).map(|loader| scope.spawn(move || load(loader))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a loader panicked")?)
    })?;
    Ok(orders.len() as f64 / start.elapsed().as_secs_f64())
}

fn create(server: &Server, database: &str) -> Result<()> {
    let record = format!("{{\"DatabaseName\":\"{database}\"}}");
    Connection::open(server.address())?.call("PUT", &format!("/admin/databases?name={database}"), record.as_bytes())?;
    Ok(())
}
