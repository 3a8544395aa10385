//! `/operations`: work that has a number, so that a client can ask how it stands and end it: bulk inserts, deletions by
//! query. Kept in memory, the newest that have ended included.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::error::{ApiError, names};
use super::host::signalled;
use super::json::json;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::wire::operation::{NextId, State as OperationState};

/// Operations that have ended and are still known.
const ENDED_MAX: usize = 1_024;

/// The operations of a server.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    last: AtomicU64,
    /// By lower-case database and number.
    known: Mutex<BTreeMap<(String, u64), Known>>,
    /// Rises whenever one changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Known {
    /// Among those that have ended, the first to be forgotten has the lowest.
    turn: u64,
    kill: watch::Sender<bool>,
    state: Progress,
}

/// How an operation stands.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    /// It runs and has processed so many documents.
    Running(u64),
    /// It has ended well, with so many documents.
    Done(u64),
    /// It was ended by a caller.
    Killed,
    /// It has failed.
    Failed(ApiError),
}

/// An operation that runs; where it is dropped without an end it has failed.
#[derive(Debug)]
pub(crate) struct Running {
    host: Shared,
    key: (String, u64),
    kill: watch::Receiver<bool>,
}

impl Operations {
    /// The next number; 1 is the first of a server.
    pub(crate) fn next_id(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins an operation under a number that the caller was given.
    ///
    /// # Errors
    /// 409 where one with this number is known already.
    pub(crate) fn begin(host: &Shared, database: &str, id: u64) -> Result<Running, ApiError> {
        let key = (database.to_ascii_lowercase(), id);
        let (kill, killed) = watch::channel(false);
        let mut known = host.operations.known.lock();
        if let Some(present) = known.get(&key) {
            if matches!(present.state, Progress::Killed) {
                let message = format!("Operation {id} was ended by operations/kill.");
                return Err(ApiError::new(StatusCode::BAD_REQUEST, names::BULK_INSERT_ABORTED, message));
            }
            let message = format!(
                "There is an operation {id} already; ask for a new number with GET operations/next-operation-id."
            );
            return Err(ApiError::new(StatusCode::CONFLICT, names::CONCURRENCY, message));
        }
        known.insert(key.clone(), Known { turn: 0, kill, state: Progress::Running(0) });
        host.operations.changes.send_modify(|changes| *changes += 1);
        Ok(Running { host: Shared::clone(host), key, kill: killed })
    }

    /// Follows changes of operations, all databases' together.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How the operations of a database stand, by number.
    pub(crate) fn of_database(&self, database: &str) -> Vec<(u64, Progress)> {
        let lower = database.to_ascii_lowercase();
        let known = self.known.lock();
        let theirs = known.range((lower.clone(), 0)..=(lower, u64::MAX));
        theirs.map(|((_, id), operation)| (*id, operation.state.clone())).collect()
    }

    fn set(&self, key: &(String, u64), state: Progress) {
        let mut known = self.known.lock();
        let has_ended = !matches!(state, Progress::Running(_));
        let turn = if has_ended { next_turn(&known) } else { 0 };
        let Some(operation) = known.get_mut(key).filter(|it| matches!(it.state, Progress::Running(_))) else { return };
        (operation.state, operation.turn) = (state, turn);
        if has_ended {
            forget_oldest(&mut known);
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Ends an operation, also one whose number was given out and that has not begun.
    fn kill(&self, key: (String, u64)) {
        let mut known = self.known.lock();
        if let Some(operation) = known.get(&key) {
            operation.kill.send_replace(true);
        } else if key.1 <= self.last.load(Ordering::Relaxed) {
            let turn = next_turn(&known);
            known.insert(key, Known { turn, kill: watch::Sender::new(true), state: Progress::Killed });
            forget_oldest(&mut known);
        }
    }
}

fn next_turn(known: &BTreeMap<(String, u64), Known>) -> u64 {
    known.values().map(|it| it.turn).max().unwrap_or(0) + 1
}

fn forget_oldest(known: &mut BTreeMap<(String, u64), Known>) {
    let ended = known.iter().filter(|(_, it)| it.turn > 0);
    let mut ended: Vec<_> = ended.map(|(key, it)| (it.turn, key.clone())).collect();
    if ended.len() > ENDED_MAX {
        ended.sort_unstable();
        if let Some((_, oldest)) = ended.first() {
            known.remove(oldest);
        }
    }
}

impl Running {
    /// Says how many documents are processed.
    pub(crate) fn advance(&self, documents: u64) {
        self.host.operations.set(&self.key, Progress::Running(documents));
    }

    /// Completes when a caller wants an end.
    pub(crate) async fn killed(&self) {
        signalled(&mut self.kill.clone()).await;
    }

    /// Ends it.
    pub(crate) fn end(self, state: Progress) {
        self.host.operations.set(&self.key, state);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let error = ApiError::internal("The operation broke off: its client went away.");
        self.host.operations.set(&self.key, Progress::Failed(error));
    }
}

/// Gives a number for an operation that is about to begin.
pub(crate) async fn next_id(State(host): State<Shared>, _: Lease) -> Response {
    json(StatusCode::OK, &NextId { id: host.operations.next_id(), node_tag: host.node.tag.clone() })
}

/// Says how an operation stands; 404 without a body for one that is not known.
pub(crate) async fn state(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let known = host.operations.known.lock();
    Ok(match known.get(&key(&lease, &query)?) {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(operation) => json(StatusCode::OK, &OperationState::new(&operation.state)),
    })
}

/// Ends an operation; one that has ended needs none. Clients kill before what they began has arrived.
pub(crate) async fn kill(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    host.operations.kill(key(&lease, &query)?);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn key(lease: &Lease, query: &Query) -> Result<(String, u64), ApiError> {
    query.required("id")?;
    Ok((lease.name().to_ascii_lowercase(), query.number("id")?.unwrap_or(0)))
}

/// Runs an operation in the background and returns its number.
pub(crate) fn spawn<F>(host: &Shared, database: &str, work: impl FnOnce(Arc<Running>) -> F) -> Result<u64, ApiError>
where
    F: Future<Output = Result<u64, ApiError>> + Send + 'static,
{
    let id = host.operations.next_id();
    let running = Arc::new(Operations::begin(host, database, id)?);
    let work = work(Arc::clone(&running));
    tokio::spawn(async move {
        let state = tokio::select! {
            done = work => done.map_or_else(Progress::Failed, Progress::Done),
            () = running.killed() => Progress::Killed,
        };
        running.host.operations.set(&running.key, state);
    });
    Ok(id)
}
