//! `/bulk_insert`: documents in one long request, stored while it goes on.
//!
//! What has arrived is committed in batches, each whole or not at all, so an insert that breaks off leaves the batches
//! before. It is answered as soon as its array closes: the Node.js client never ends the request itself.
//!
//! Next on the walk: `elements`, then [`crate::database::Database::write_async`].

mod elements;
mod unpack;

use std::sync::Arc;

use axum::body::{Body, BodyDataStream};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::task::JoinHandle;

use super::body::Share;
use super::bulk;
use super::error::{ApiError, names};
use super::host::{broken, signalled};
use super::operations::{Operations, Progress, Running};
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::settings::ServerLimits;
use crate::database::{DatabaseError, Write};
use elements::Elements;
pub(super) use unpack::Unpacker;

/// Documents in one commit.
const BATCH_DOCUMENTS: usize = 2_048;
/// Bytes in one commit, unless a single document has more.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// What an element may have besides its document.
const ENVELOPE_BYTES: usize = 64 * 1024;

/// Inserts documents until the array ends, the client goes, or the operation is killed.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    query.refuse(&["skipOverwriteIfUnchanged"], "bulk_insert")?;
    let id = query.number("id")?.unwrap_or_else(|| host.operations.next_id());
    let unpacker = Unpacker::new(&headers)?;
    let running = Operations::begin(&host, lease.name(), id)?;
    let (mut stopping, mut closing) = (host.stop_signal(), lease.stop_signal());
    let mut insert = Insert::new(Shared::clone(&host), lease, unpacker);
    let outcome = tokio::select! {
        outcome = insert.run(body.into_data_stream(), &running) => outcome,
        () = running.killed() => {
            running.end(Progress::Killed);
            return Err(aborted("It was ended by operations/kill", insert.stored));
        }
        () = signalled(&mut stopping) => Err(aborted("The server stops", insert.stored)),
        () = signalled(&mut closing) => Err(aborted("The database closes", insert.stored)),
    };
    match outcome {
        Ok(stored) => {
            running.end(Progress::Done(stored));
            Ok(StatusCode::CREATED.into_response())
        }
        Err(error) => {
            running.end(Progress::Failed(error.clone()));
            Err(error)
        }
    }
}

/// One insert.
struct Insert {
    host: Shared,
    lease: Arc<Lease>,
    unpacker: Unpacker,
    elements: Elements,
    share: Share,
    /// Elements that are not yet in a commit.
    waiting: Vec<Vec<u8>>,
    waiting_bytes: usize,
    /// The commit in hand, and its documents.
    commit: Option<(JoinHandle<Result<(), ApiError>>, u64)>,
    /// Documents that are stored.
    stored: u64,
}

impl Insert {
    fn new(host: Shared, lease: Lease, unpacker: Unpacker) -> Self {
        let bytes_max = host.settings.limits.document_bytes_max.saturating_add(ENVELOPE_BYTES);
        Self {
            share: Share::none(&host),
            host,
            lease: Arc::new(lease),
            unpacker,
            elements: Elements::new(bytes_max),
            waiting: Vec::new(),
            waiting_bytes: 0,
            commit: None,
            stored: 0,
        }
    }

    /// Returns how many documents were stored.
    async fn run(&mut self, mut stream: BodyDataStream, running: &Running) -> Result<u64, ApiError> {
        let pause_max = self.host.settings.limits.bulk_insert_pause_max;
        while !self.elements.has_ended() {
            let piece = match tokio::time::timeout(pause_max, stream.next()).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(Some(Err(error))) => return self.fail(&format!("The request was cut off ({error})")).await,
                Ok(None) => return self.fail("The request ended before its array did").await,
                Err(_) => {
                    let why = format!("Nothing came for {pause_max:?} (bulk_insert_pause_max); send heartbeats");
                    return self.fail(&why).await;
                }
            };
            self.take(&piece)?;
            if self.waiting.len() >= BATCH_DOCUMENTS || self.waiting_bytes >= BATCH_BYTES {
                self.begin_commit(running).await?;
            }
        }
        self.begin_commit(running).await?;
        self.end_commit(running).await?;
        Ok(self.stored)
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), ApiError> {
        let Self { unpacker, elements, waiting, waiting_bytes, share, .. } = self;
        unpacker.push(piece, |bytes| {
            *waiting_bytes += bytes.len();
            // Twice: the commit in hand holds as much.
            share.grow_to(2 * *waiting_bytes)?;
            elements.push(bytes, waiting)
        })
    }

    /// Puts what waits into a commit, after the one in hand. It is read while that one is written.
    async fn begin_commit(&mut self, running: &Running) -> Result<(), ApiError> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return self.end_commit(running).await;
        }
        let first = self.stored + self.commit.as_ref().map_or(0, |(_, documents)| *documents);
        let limits = self.host.settings.limits.clone();
        let read = self.host.blocking(move || read_all(&waiting, first, &limits)).await;
        self.end_commit(running).await?;
        let writes = read?;
        let documents = writes.len() as u64;
        let lease = Arc::clone(&self.lease);
        let commit =
            tokio::spawn(
                async move { lease.write_async(writes).await.map(|_| ()).map_err(|error| refused(error, first)) },
            );
        self.commit = Some((commit, documents));
        Ok(())
    }

    async fn end_commit(&mut self, running: &Running) -> Result<(), ApiError> {
        if let Some((commit, documents)) = self.commit.take() {
            commit.await.unwrap_or_else(|error| Err(broken(&error)))?;
            self.stored += documents;
            running.advance(self.stored);
        }
        Ok(())
    }

    /// Ends an insert whose client does not go on; what has arrived since the last commit is thrown away.
    async fn fail(&mut self, why: &str) -> Result<u64, ApiError> {
        if let Some((commit, documents)) = self.commit.take()
            && let Ok(Ok(())) = commit.await
        {
            self.stored += documents;
        }
        Err(aborted(why, self.stored))
    }
}

fn read_all(elements: &[Vec<u8>], first: u64, limits: &ServerLimits) -> Result<Vec<Write>, ApiError> {
    let mut writes = Vec::with_capacity(elements.len());
    for element in elements {
        let position = first + writes.len() as u64;
        let read = bulk::read_insert(element, limits);
        writes.extend(read.map_err(|error| error.at(&place(position)))?);
    }
    Ok(writes)
}

fn refused(error: DatabaseError, first: u64) -> ApiError {
    let operation = match &error {
        DatabaseError::Write { operation, .. } => *operation as u64,
        _ => 0,
    };
    let position = first + operation;
    ApiError::from(error).at(&place(position))
}

fn place(position: u64) -> String {
    format!(
        "Document {position} of the bulk insert, counted from 0, or one of its batch; the batches before are stored"
    )
}

fn aborted(why: &str, stored: u64) -> ApiError {
    let message = format!("The bulk insert was broken off. {why}. {stored} documents were stored before.");
    ApiError::new(StatusCode::BAD_REQUEST, names::BULK_INSERT_ABORTED, message)
}
