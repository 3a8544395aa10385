//! What all requests share: settings, databases, the bounds on work, and the signal to stop.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::Span;

use super::body;
use super::error::ApiError;
use super::node::Node;
use super::operations::Operations;
use super::registry::Databases;
use super::settings::ServerSettings;

/// Verifications and trials of indexes at once: each keeps a core busy.
const HEAVY_MAX: usize = 4;

/// The shared state of a server.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) settings: ServerSettings,
    pub(crate) databases: Databases,
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
    /// The budget of request bodies.
    pub(crate) bodies: Arc<Semaphore>,
    /// Work that clients ask about by number.
    pub(crate) operations: Operations,
    stop: watch::Sender<bool>,
}

/// A request in hand, as an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct InHand(#[allow(dead_code, reason = "held, never read")] Arc<OwnedSemaphorePermit>);

impl Host {
    pub(crate) fn new(settings: ServerSettings, databases: Databases, node: Node) -> Self {
        let limits = &settings.limits;
        Self {
            blocking: Arc::new(Semaphore::new(limits.blocking_max)),
            listings: Arc::new(Semaphore::new(limits.listings_max)),
            heavy: Arc::new(Semaphore::new(HEAVY_MAX)),
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            bodies: body::budget(limits),
            operations: Operations::default(),
            stop: watch::Sender::new(false),
            settings,
            databases,
            node,
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
    pub(crate) fn take_request(&self) -> Result<InHand, ApiError> {
        Arc::clone(&self.requests).try_acquire_owned().map(|permit| InHand(Arc::new(permit))).map_err(|_| {
            ApiError::busy("The server has as many requests in hand as requests_max allows; try again in a moment.")
        })
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
