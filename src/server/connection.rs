//! The server itself: binds, accepts connections within bounds, and comes to an orderly end.
//!
//! Next on the walk: `router`.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::files;
use super::host::{Host, signalled};
use super::node::Node;
use super::registry::Databases;
use super::router::{self, Shared};
use super::settings::{ServerLimits, ServerSettings};
use super::subscriptions;
use crate::store::Memory;

/// Requests at one moment on one HTTP/2 connection.
const STREAMS_MAX: u32 = 256;

/// How long a connection is silent before it is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// How long to wait when the system has no descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that is bound to its address, with its databases open.
///
/// ```
/// use treepie::database::DatabaseSettings;
/// use treepie::server::{Server, ServerSettings};
///
/// # let directory = tempfile::tempdir()?;
/// # let data = directory.path().to_owned();
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let settings = ServerSettings::new(data, ([127, 0, 0, 1], 0).into(), DatabaseSettings::default());
/// let server = Server::bind(settings).await?;
/// assert_ne!(server.local_address()?.port(), 0);
/// let stop = async { /* completes when it is time to stop */ };
/// server.run(stop).await
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    host: Shared,
    /// Keeps other servers out of the data directory.
    lock: File,
}

impl Server {
    /// Opens the data directory with all its databases, and binds. A database that can't be opened does not stop the
    /// others; its paths answer with the error.
    ///
    /// # Errors
    /// The data directory can't be made or read, or another server uses it, or the address can't be bound.
    ///
    /// # Cost
    /// As long as the slowest database takes to open; several are opened at once.
    pub async fn bind(settings: ServerSettings) -> io::Result<Self> {
        let (data, mut database) = (settings.data.clone(), settings.database.clone());
        // One budget for all databases: a budget for each would grow with their number.
        let store = &mut database.store;
        store.memory.get_or_insert_with(|| Memory::new(store.write_buffer_bytes, store.block_cache_bytes));
        let opening = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&data)?;
            let lock = files::lock(&data)?;
            let node = Node::open(&data, &database.store.id_rules)?;
            Ok::<_, io::Error>((lock, node, Databases::open(&data, database)?))
        });
        let listener = TcpListener::bind(settings.listen).await?;
        let (lock, node, databases) = opening.await.map_err(io::Error::other)??;
        Ok(Self { listener, host: Arc::new(Host::new(settings, databases, node)), lock })
    }

    /// The address that the server listens on, with the real port.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` completes; then stops accepting, ends streams, lets requests in hand finish (for
    /// `shutdown_max`), closes the databases and returns.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Cancel safety
    /// Dropping the future stops serving at once; databases then close when their last user drops them.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let Self { listener, host, lock: _lock } = self;
        let limits = host.settings.limits.clone();
        let mut connections = Connections::new(Arc::clone(&host));
        tracing::info!(name: "server.started", address = ?listener.local_addr().ok(), "the server listens");
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = connections.accept(&listener) => connections.serve(accepted),
            }
        }
        tracing::info!(name: "server.stopping", "the server stops: no new connections, requests in hand finish");
        drop(listener);
        host.stop();
        connections.finish(limits.shutdown_max).await;
        host.databases.close_all(limits.shutdown_max).await;
        tracing::info!(name: "server.stopped", "the server has stopped");
        Ok(())
    }
}

/// The open connections.
struct Connections {
    host: Shared,
    builder: auto::Builder<TokioExecutor>,
    service: TowerToHyperService<axum::Router>,
    graceful: GracefulShutdown,
    tasks: JoinSet<()>,
    room: Arc<Semaphore>,
}

impl Connections {
    fn new(host: Shared) -> Self {
        let limits = &host.settings.limits;
        Self {
            builder: builder(limits),
            room: Arc::new(Semaphore::new(limits.connections_max)),
            service: TowerToHyperService::new(router::router(Arc::clone(&host))),
            host,
            graceful: GracefulShutdown::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Waits for room and then for a connection.
    async fn accept(&mut self, listener: &TcpListener) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(&self.room).acquire_owned().await.ok()?;
        while self.tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => Some((stream, permit)),
            Err(error) if is_of_connection(&error) => None,
            Err(error) => {
                tracing::error!(name: "server.accept.failed", %error, "a connection can't be accepted; are there too few file descriptors?");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }

    fn serve(&mut self, accepted: Option<(TcpStream, OwnedSemaphorePermit)>) {
        let Some((stream, permit)) = accepted else { return };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(name: "server.nodelay.failed", %error, "a connection keeps small packets back");
        }
        // A client that vanished without a word is noticed also where nothing is sent to it.
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3).with_retries(3);
        if let Err(error) = SockRef::from(&stream).set_tcp_keepalive(&keepalive) {
            tracing::debug!(name: "server.keepalive.failed", %error, "a connection is not watched");
        }
        let (host, builder, service) = (Arc::clone(&self.host), self.builder.clone(), self.service.clone());
        let watcher = self.graceful.watcher();
        self.tasks.spawn(async move {
            let _permit = permit;
            match protocol(&host, &stream).await {
                Protocol::Http => {}
                Protocol::Subscription => return subscriptions::tcp::serve(host, stream).await,
                Protocol::None => return,
            }
            let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(name: "http.connection.broken", %error, "a connection broke");
            }
        });
    }

    /// Waits for requests in hand; tasks of other protocols watch the signal to stop themselves.
    async fn finish(mut self, wait: Duration) {
        if tokio::time::timeout(wait, self.graceful.shutdown()).await.is_err() {
            tracing::warn!(name: "server.requests.cut", connections = self.tasks.len(), "requests were still in hand after shutdown_max and are cut off");
        }
        self.tasks.shutdown().await;
    }
}

/// What is spoken on a connection.
enum Protocol {
    Http,
    Subscription,
    /// Nothing, and nothing will be.
    None,
}

/// Tells by its first byte what is spoken on a connection. No HTTP request begins with `{`.
async fn protocol(host: &Host, stream: &TcpStream) -> Protocol {
    let (mut first, mut stopping) = ([0], host.stop_signal());
    let peeked = tokio::select! {
        peeked = tokio::time::timeout(host.settings.limits.head_timeout, stream.peek(&mut first)) => peeked,
        () = signalled(&mut stopping) => return Protocol::None,
    };
    match peeked {
        Ok(Ok(1)) if first == *b"{" => Protocol::Subscription,
        Ok(Ok(1)) => Protocol::Http,
        _ => Protocol::None,
    }
}

fn builder(limits: &ServerLimits) -> auto::Builder<TokioExecutor> {
    let head_bytes = limits.head_bytes_max.max(8 * 1024);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(head_bytes)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.head_timeout);
    builder
}

/// Whether only one connection is lost, and not the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
