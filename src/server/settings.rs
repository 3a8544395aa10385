//! What the server can be told, with defaults: addresses, databases, and a bound for everything that callers can make large.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::tls::TlsFiles;
use crate::database::DatabaseSettings;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The data directory; databases live in `<data>/databases/<lower-case name>/`.
    pub data: PathBuf,
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The URL under which clients reach this server (`https://db.example.com`), told to them in topologies. `None`: what the
    /// client itself used, taken from its `Host` header.
    pub public_url: Option<String>,
    /// Speaks TLS where given, and only that.
    pub tls: Option<TlsFiles>,
    /// Dangers that are wanted.
    pub exposure: Exposure,
    /// The directory that backups go to, in a directory for each database. `None`: `<data>/backups`.
    pub backups: Option<PathBuf>,
    /// The settings of every database.
    pub database: DatabaseSettings,
    /// What bounds callers.
    pub limits: ServerLimits,
}

/// Dangers that a server runs only where it is told so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Listens on more than the loopback without credentials: whoever reaches it can do everything.
    pub open_to_everyone: bool,
    /// Takes credentials from other machines without TLS, where whoever is on the way can read them. For a server behind a
    /// proxy that speaks TLS.
    pub plain_text: bool,
}

/// What bounds callers of a server.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Open connections; more wait in the listener's queue. Default 4,096.
    pub connections_max: usize,
    /// Requests in hand, open change feeds included; more are answered 503. Default 8,192.
    pub requests_max: usize,
    /// Requests that read or write the store's files at one moment; more wait. Default 32.
    pub blocking_max: usize,
    /// Listings being streamed at one moment; more wait. Default 64.
    pub listings_max: usize,
    /// Bytes of a request's head over HTTP/1 (more is 431), and of a header list over HTTP/2. At least 8 KiB. Default 128 KiB.
    pub head_bytes_max: usize,
    /// Bytes of one document. Default 64 MiB.
    pub document_bytes_max: usize,
    /// Bytes of one batch (`bulk_docs`), decompressed. Default 256 MiB.
    pub batch_bytes_max: usize,
    /// Bytes of any other body: index definitions, lists of ids, database records. Default 16 MiB.
    pub request_bytes_max: usize,
    /// Bytes of all request bodies held at one moment; a body beyond it is answered 503. Default 1 GiB.
    pub bodies_bytes_max: usize,
    /// Documents that one answer may include by path. Default 10,000.
    pub includes_max: usize,
    /// Bytes that one query may hold for each of sorting, grouping and telling rows apart; one that needs more is refused.
    /// Default 64 MiB.
    pub query_memory_max: usize,
    /// How long a client may take to send a request's head, and a connection may stay idle. Default 60 s.
    pub head_timeout: Duration,
    /// How long a client may pause while it sends a body. Default 30 s.
    pub body_pause_max: Duration,
    /// How long a client may send nothing in a bulk insert, heartbeats included. Default 5 min.
    pub bulk_insert_pause_max: Duration,
    /// How long a whole body may take. Default 10 min.
    pub body_timeout: Duration,
    /// How long a client may leave a streamed answer unread before it is cut off. Default 60 s.
    pub unread_max: Duration,
    /// The longest `timeout`, `heartbeat` and wait for indexes that a caller can ask for. Default 1 h.
    pub wait_max: Duration,
    /// How long requests in hand may take after the server was told to stop. Default 30 s.
    pub shutdown_max: Duration,
}

impl ServerSettings {
    /// Makes settings with the default limits.
    #[must_use]
    pub fn new(data: PathBuf, listen: SocketAddr, database: DatabaseSettings) -> Self {
        Self {
            data,
            listen,
            public_url: None,
            tls: None,
            exposure: Exposure::default(),
            backups: None,
            database,
            limits: ServerLimits::default(),
        }
    }
}

impl ServerSettings {
    /// The directory that backups go to.
    #[must_use]
    pub fn backups(&self) -> PathBuf {
        self.backups.clone().unwrap_or_else(|| self.data.join("backups"))
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        const KIB: usize = 1024;
        const MIB: usize = 1024 * KIB;
        Self {
            connections_max: 4_096,
            requests_max: 8_192,
            blocking_max: 32,
            listings_max: 64,
            head_bytes_max: 128 * KIB,
            document_bytes_max: 64 * MIB,
            batch_bytes_max: 256 * MIB,
            request_bytes_max: 16 * MIB,
            bodies_bytes_max: 1024 * MIB,
            includes_max: 10_000,
            query_memory_max: 64 * MIB,
            head_timeout: Duration::from_secs(60),
            body_pause_max: Duration::from_secs(30),
            bulk_insert_pause_max: Duration::from_secs(300),
            body_timeout: Duration::from_secs(600),
            unread_max: Duration::from_secs(60),
            wait_max: Duration::from_secs(3_600),
            shutdown_max: Duration::from_secs(30),
        }
    }
}
