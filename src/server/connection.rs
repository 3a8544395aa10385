//! The server itself: binds, accepts connections within bounds, and comes to an orderly end.
//!
//! Next on the walk: `router`.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use super::access::{self, Peer};
use super::exposure;
use super::files;
use super::host::{Host, Parts, signalled};
use super::node::Node;
use super::registry::Databases;
use super::router::{self, Shared};
use super::settings::{ServerLimits, ServerSettings};
use super::subscriptions;
use super::tls::{self, Tls};
use crate::access::Access;
use crate::store::Memory;

/// Requests at one moment on one HTTP/2 connection.
const STREAMS_MAX: u32 = 256;

/// The first byte of every TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// How long databases may take to close, at least, after the last request was cut off.
const CLOSE_MIN: Duration = Duration::from_secs(1);

/// Requests that are named when they are cut off.
const CUT_SHOWN: usize = 20;
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
    /// The data directory can't be made or read, or another server uses it, or the address can't be bound, or the settings
    /// would open the door further than they say in so many words ([`super::Exposure`]).
    ///
    /// # Cost
    /// As long as the slowest database takes to open; several are opened at once.
    pub async fn bind(settings: ServerSettings) -> io::Result<Self> {
        let (data, mut database) = (settings.data.clone(), settings.database.clone());
        // One budget for all databases: a budget for each would grow with their number.
        let store = &mut database.store;
        store.memory.get_or_insert_with(|| Memory::new(store.write_buffer_bytes, store.block_cache_bytes));
        let guarded = settings.clone();
        let opening = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&data)?;
            let lock = files::lock(&data)?;
            let access = Access::open(&data).map_err(io::Error::other)?;
            exposure::check(&guarded, access.is_required())?;
            let tls = guarded.tls.map(Tls::open).transpose()?;
            let node = Node::open(&data, &database.store.id_rules)?;
            let databases = Databases::open(&data, database)?;
            Ok::<_, io::Error>((lock, Parts { databases, node, access, tls }))
        });
        let listener = TcpListener::bind(settings.listen).await?;
        let (lock, parts) = opening.await.map_err(io::Error::other)??;
        Ok(Self { listener, host: Arc::new(Host::new(settings, parts)), lock })
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
        tokio::spawn(access::follow_files(Arc::clone(&host)));
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
        let deadline = Instant::now() + limits.shutdown_max;
        connections.finish(limits.shutdown_max).await;
        let left = deadline.saturating_duration_since(Instant::now());
        host.databases.close_all(left.max(CLOSE_MIN)).await;
        tracing::info!(name: "server.stopped", "the server has stopped");
        Ok(())
    }
}

/// The open connections.
struct Connections {
    host: Shared,
    http: Http,
    graceful: GracefulShutdown,
    tasks: JoinSet<()>,
    room: Arc<Semaphore>,
}

/// What a connection is served with.
#[derive(Clone)]
struct Http {
    builder: auto::Builder<TokioExecutor>,
    router: axum::Router,
}

impl Connections {
    fn new(host: Shared) -> Self {
        let limits = &host.settings.limits;
        Self {
            http: Http { builder: builder(limits), router: router::router(Arc::clone(&host)) },
            room: Arc::new(Semaphore::new(limits.connections_max)),
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
        let (host, http, watcher) = (Arc::clone(&self.host), self.http.clone(), self.graceful.watcher());
        self.tasks.spawn(async move {
            let _held = (permit, host.counts.connected());
            let Some(tls) = &host.tls else {
                return http.serve(&host, stream, Peer::default(), watcher).await;
            };
            if let Some(stream) = handshake(&host, tls, stream).await {
                let peer = Peer { certificate: tls::client_certificate(&stream) };
                http.serve(&host, stream, peer, watcher).await;
            }
        });
    }

    /// Waits for requests in hand; tasks of other protocols watch the signal to stop themselves.
    async fn finish(mut self, wait: Duration) {
        if tokio::time::timeout(wait, self.graceful.shutdown()).await.is_err() {
            let in_hand = self.host.list_in_hand();
            let count = in_hand.len();
            tracing::warn!(name: "server.requests.cut", count, "requests were still in hand after shutdown_max and are cut off");
            for (request, age) in in_hand.into_iter().take(CUT_SHOWN) {
                tracing::warn!(name: "server.request.cut", %request, ?age, "this request is cut off; what it had not been answered may be done or not");
            }
        }
        self.tasks.shutdown().await;
    }
}

impl Http {
    /// Serves one connection to its end, in what is spoken on it.
    async fn serve<S>(self, host: &Shared, stream: S, peer: Peer, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // It holds the first byte; longer reads go past it.
        let mut stream = BufReader::with_capacity(1, stream);
        match protocol(host, &mut stream).await {
            Protocol::Http => {}
            Protocol::Subscription => {
                return subscriptions::tcp::serve(Arc::clone(host), Box::new(stream), &peer).await;
            }
            Protocol::None => return,
        }
        let service = self.router.map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = self.builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(name: "http.connection.broken", %error, "a connection broke");
        }
    }
}

/// Begins TLS; `None` where the client does not, takes too long, or the server stops.
async fn handshake(host: &Shared, tls: &Tls, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let mut stopping = host.stop_signal();
    let begun = tokio::time::timeout(host.settings.limits.head_timeout, async {
        let mut first = [0];
        if stream.peek(&mut first).await? > 0 && first != [TLS_HANDSHAKE] {
            refuse_plain_text(stream).await?;
            return Err(io::Error::other("the client does not speak TLS"));
        }
        tls.accept(stream).await
    });
    let begun = tokio::select! {
        begun = begun => begun.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut))),
        () = signalled(&mut stopping) => return None,
    };
    begun
        .inspect_err(|error| tracing::debug!(name: "tls.refused", %error, "a connection has not become one of TLS"))
        .ok()
}

/// Tells a client that begins without TLS what is the matter.
async fn refuse_plain_text(mut stream: TcpStream) -> io::Result<()> {
    let text = "This server speaks TLS: use https:// in place of http://.\n";
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // What the client has sent is read first: a connection closed over unread bytes is reset, and the answer lost.
    let _ = stream.read(&mut [0; 8 * 1024]).await?;
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// What is spoken on a connection.
enum Protocol {
    Http,
    Subscription,
    /// Nothing, and nothing will be.
    None,
}

/// Tells by its first byte what is spoken on a connection, within TLS where there is TLS. No HTTP request begins with `{`.
async fn protocol(host: &Host, stream: &mut (impl AsyncBufRead + Unpin)) -> Protocol {
    let mut stopping = host.stop_signal();
    let begun = tokio::select! {
        begun = tokio::time::timeout(host.settings.limits.head_timeout, stream.fill_buf()) => begun,
        () = signalled(&mut stopping) => return Protocol::None,
    };
    match begun {
        Ok(Ok([b'{', ..])) => Protocol::Subscription,
        Ok(Ok([_, ..])) => Protocol::Http,
        Ok(Ok([]) | Err(_)) | Err(_) => Protocol::None,
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
