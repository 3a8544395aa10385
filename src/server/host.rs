//! What all requests share: settings, databases, the bounds on work, and the signal to stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::Method;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::Span;

use super::body;
use super::error::ApiError;
use super::metrics::Counts;
use super::node::Node;
use super::operations::Operations;
use super::registry::Databases;
use super::settings::ServerSettings;
use super::tls::Tls;
use crate::access::Access;

/// Characters of a request's path that are kept to name it.
const PATH_SHOWN: usize = 200;

/// Verifications and trials of indexes at once: each keeps a core busy.
const HEAVY_MAX: usize = 4;

/// The shared state of a server.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) settings: ServerSettings,
    pub(crate) databases: Databases,
    /// Who gets in.
    pub(crate) access: Access,
    pub(crate) tls: Option<Tls>,
    /// Who this server is.
    pub(crate) node: Node,
    /// Bounds [`Host::blocking`].
    blocking: Arc<Semaphore>,
    /// Bounds listings that hold a thread while their reader reads.
    pub(crate) listings: Arc<Semaphore>,
    /// Bounds verifications and trials of indexes.
    heavy: Arc<Semaphore>,
    /// Bounds requests in hand.
    requests: Arc<Semaphore>,
    in_hand: Arc<InHandList>,
    /// The budget of request bodies.
    pub(crate) bodies: Arc<Semaphore>,
    /// Work that clients ask about by number.
    pub(crate) operations: Operations,
    /// What is counted about requests.
    pub(crate) counts: Arc<Counts>,
    pub(crate) started: Instant,
    stop: watch::Sender<bool>,
}

/// What a server opens before it serves.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) databases: Databases,
    pub(crate) node: Node,
    pub(crate) access: Access,
    pub(crate) tls: Option<Tls>,
}

/// A request in hand, as an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct InHand(#[allow(dead_code, reason = "held, never read")] Arc<Held>);

/// What is held for a request: its permit, and its line in the list.
#[derive(Debug)]
struct Held {
    number: u64,
    list: Arc<InHandList>,
    _permit: OwnedSemaphorePermit,
}

/// The requests in hand, so that those that are cut off at the end can be named.
#[derive(Debug, Default)]
struct InHandList {
    last: AtomicU64,
    requests: Mutex<BTreeMap<u64, (String, Instant)>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.list.requests.lock().remove(&self.number);
    }
}

impl Host {
    pub(crate) fn new(settings: ServerSettings, parts: Parts) -> Self {
        let Parts { databases, node, access, tls } = parts;
        let limits = &settings.limits;
        Self {
            blocking: Arc::new(Semaphore::new(limits.blocking_max)),
            listings: Arc::new(Semaphore::new(limits.listings_max)),
            heavy: Arc::new(Semaphore::new(HEAVY_MAX)),
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            in_hand: Arc::default(),
            bodies: body::budget(limits),
            operations: Operations::default(),
            counts: Arc::default(),
            started: Instant::now(),
            stop: watch::Sender::new(false),
            settings,
            databases,
            node,
            access,
            tls,
        }
    }

    /// Runs work that blocks (RocksDB, scripts, much parsing) on a thread that may block, `blocking_max` at a time.
    ///
    /// # Cancel safety
    /// Work that has begun is finished even when the future is dropped.
    pub(crate) async fn blocking<T, F>(&self, work: F) -> Result<T, ApiError>
    where
        F: FnOnce() -> Result<T, ApiError> + Send + 'static,
        T: Send + 'static,
    {
        let Ok(permit) = Arc::clone(&self.blocking).acquire_owned().await else {
            return Err(ApiError::busy("The server is stopping."));
        };
        let span = Span::current();
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            span.in_scope(work)
        });
        task.await.unwrap_or_else(|error| Err(broken(&error)))
    }

    /// Counts one more verification or trial of an index, until what is returned is dropped.
    ///
    /// # Errors
    /// 503 where there are too many already.
    pub(crate) fn take_heavy(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.heavy).try_acquire_owned().map_err(|_| {
            ApiError::busy(format!("{HEAVY_MAX} verifications or trials of indexes run already; try again later."))
        })
    }

    /// Counts one more request in hand, until what is returned and all its clones are dropped; open feeds keep theirs.
    ///
    /// # Errors
    /// 503 where there are `requests_max` already.
    pub(crate) fn take_request(&self, method: &Method, path: &str) -> Result<InHand, ApiError> {
        let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else {
            return Err(ApiError::busy(
                "The server has as many requests in hand as requests_max allows; try again in a moment.",
            ));
        };
        let list = Arc::clone(&self.in_hand);
        let number = list.last.fetch_add(1, Ordering::Relaxed);
        let shown = format!("{method} {}", path.chars().take(PATH_SHOWN).collect::<String>());
        list.requests.lock().insert(number, (shown, Instant::now()));
        Ok(InHand(Arc::new(Held { number, list, _permit: permit })))
    }

    /// The requests in hand, the oldest first, each with its age.
    pub(crate) fn list_in_hand(&self) -> Vec<(String, Duration)> {
        let requests = self.in_hand.requests.lock();
        requests.values().map(|(request, since)| (request.clone(), since.elapsed())).collect()
    }

    /// How many requests are in hand.
    pub(crate) fn requests_in_hand(&self) -> u64 {
        self.settings.limits.requests_max.saturating_sub(self.requests.available_permits()) as u64
    }

    /// Memory that the bodies of requests hold.
    pub(crate) fn bodies_bytes_held(&self) -> u64 {
        body::budget_bytes(&self.settings.limits).saturating_sub(body::budget_left(&self.bodies)) as u64
    }

    /// Follows the signal to stop: `true` once the server must come to an end.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Gives the signal to stop.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Whether the signal to stop was given.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }
}

/// Says that a task of the server died.
pub(crate) fn broken(error: &tokio::task::JoinError) -> ApiError {
    tracing::error!(name: "http.task.broken", error = %error, "a task of the server broke; this is a fault of Treepie");
    ApiError::internal("A task of the server broke; its log has the details.")
}

/// Waits until a signal is given; for ever where its sender is gone without having given it.
pub(crate) async fn signalled(signal: &mut watch::Receiver<bool>) {
    if signal.wait_for(|given| *given).await.is_err() {
        std::future::pending::<()>().await;
    }
}
