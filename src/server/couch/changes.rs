//! `/_changes`: the change feed in CouchDB's shape, once, waiting, or without end.
//!
//! A task reads batches (`feed`) and passes them through a bounded channel, so a slow reader holds its feed back and
//! nobody else. A feed never goes past what is durable, ends when the server or the database stops, and its task ends
//! when its reader goes.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument;

use super::changes_request::{Asked, Mode};
use super::feed::{Batch, Framing, Position, Reader};
use super::lease::CouchLease;
use crate::server::body::{self, BodyLimit};
use crate::server::error::ApiError;
use crate::server::host::{Host, InHand, signalled};
use crate::server::json;
use crate::server::lull::{Lull, changed};
use crate::server::query::Query;
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::stream::{self, Ended, Outlet, PIECE_BYTES};
use crate::server::wire::couch::ChangesBody;
use crate::store::Progress;

/// Why a wait is over.
enum Woken {
    Changed,
    Heartbeat,
    TimedOut,
    Stopped,
}

/// Answers with the feed.
pub(crate) async fn get(
    State(host): State<Shared>,
    Extension(held): Extension<InHand>,
    CouchLease(lease): CouchLease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    follow(host, held, lease, &query, &headers, ChangesBody::default()).await
}

/// The same for callers whose filter does not fit into a URL.
pub(crate) async fn post(
    State(host): State<Shared>,
    Extension(held): Extension<InHand>,
    CouchLease(lease): CouchLease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let body = match payload.bytes() {
        [] => ChangesBody::default(),
        bytes => json::read(bytes, "a JSON object such as {\"doc_ids\": [\"users/1\"]}")?,
    };
    drop(payload);
    follow(host, held, lease, &query, &headers, body).await
}

async fn follow(
    host: Shared,
    held: InHand,
    lease: Lease,
    query: &Query,
    headers: &HeaderMap,
    body: ChangesBody,
) -> Result<Response, ApiError> {
    let durable = lease.store().progress().durable;
    let asked = Asked::read(query, headers, body, durable, &host.settings.limits)?;
    let content_type = match asked.framing {
        Framing::Array => json::CONTENT_TYPE,
        Framing::Lines => HeaderValue::from_static("application/json"),
        Framing::Events => HeaderValue::from_static("text/event-stream"),
    };
    let (outlet, inlet) = stream::answer(host.settings.limits.unread_max);
    let task = async move {
        let _held = held;
        let (stopping, closing) = (host.stop_signal(), lease.stop_signal());
        let progress = lease.store().watch_progress();
        let reader = Arc::new(Reader::new(lease, &asked, host.node.tag.clone()));
        let mut feed = Running { host, reader, asked, stopping, closing, progress, lull: Lull::new() };
        match feed.run(durable, &outlet).await {
            // Where the reader has gone there is nobody to tell.
            Ok(tail) => drop(outlet.finish(tail).await),
            Err(ended) => outlet.fail(ended).await,
        }
    };
    tokio::spawn(task.in_current_span());
    inlet.into_live_response(content_type).await
}

/// A feed under way.
struct Running {
    host: Shared,
    reader: Arc<Reader>,
    asked: Asked,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
    progress: watch::Receiver<Progress>,
    lull: Lull,
}

impl Running {
    /// Sends everything but the end of the answer, and returns that. `durable` is how far the feed had come when it was
    /// asked for.
    async fn run(&mut self, durable: u64, outlet: &Outlet) -> Result<Vec<u8>, Ended> {
        let mut position = if self.asked.descending {
            Position::Falling { after: self.asked.since.etag, through: durable }
        } else {
            let until = (self.asked.mode == Mode::Normal).then_some(durable);
            Position::Rising { after: self.asked.since.etag, until }
        };
        let (mut sent, mut quiet_since) = (0, Instant::now());
        let mut bytes = self.asked.framing.head();
        loop {
            let room = self.asked.limit - sent;
            let batch = read(&self.host, &self.reader, position, room, sent == 0).await?;
            position = batch.position;
            sent += batch.rows;
            bytes.extend_from_slice(&batch.bytes);
            if batch.rows > 0 {
                quiet_since = Instant::now();
            }
            if sent >= self.asked.limit {
                return self.end(bytes, position, self.asked.limit).await;
            }
            if !batch.is_end {
                if bytes.len() >= PIECE_BYTES || self.asked.mode == Mode::Continuous {
                    outlet.send(std::mem::take(&mut bytes)).await?;
                }
                if self.asked.mode == Mode::Normal || !self.is_told_to_stop() {
                    continue;
                }
                return self.end(bytes, position, 0).await;
            }
            if self.asked.mode == Mode::Normal || (self.asked.mode == Mode::LongPoll && sent > 0) {
                return self.end(bytes, position, 0).await;
            }
            outlet.send(std::mem::take(&mut bytes)).await?;
            self.lull.looked(batch.rows > 0);
            if !self.wait(position.etag(), quiet_since, outlet).await? {
                return self.end(bytes, position, 0).await;
            }
        }
    }

    /// Waits for changes above `etag`, with heartbeats. `false`: the time is over, or the feed must end.
    async fn wait(&mut self, etag: u64, quiet_since: Instant, outlet: &Outlet) -> Result<bool, Ended> {
        loop {
            match self.sleep(etag, quiet_since, outlet).await? {
                Woken::Changed => return Ok(true),
                Woken::Heartbeat => outlet.send(self.asked.framing.heartbeat()).await?,
                Woken::TimedOut | Woken::Stopped => return Ok(false),
            }
        }
    }

    async fn sleep(&mut self, etag: u64, quiet_since: Instant, outlet: &Outlet) -> Result<Woken, Ended> {
        let (until, at_end) = match self.asked.heartbeat {
            Some(period) => (Instant::now() + period, Woken::Heartbeat),
            None => (quiet_since + self.asked.timeout, Woken::TimedOut),
        };
        tokio::select! {
            biased;
            () = outlet.closed() => Err(Ended::Gone),
            () = signalled(&mut self.stopping) => Ok(Woken::Stopped),
            () = signalled(&mut self.closing) => Ok(Woken::Stopped),
            is_open = changed(&mut self.progress, etag, self.lull) => {
                Ok(if is_open { Woken::Changed } else { Woken::Stopped })
            }
            () = tokio::time::sleep_until(until) => Ok(at_end),
        }
    }

    fn is_told_to_stop(&self) -> bool {
        *self.stopping.borrow() || *self.closing.borrow()
    }

    /// Appends the end of the answer. After a limit it counts what lies beyond, up to as many rows again, or 1,000.
    async fn end(&self, mut bytes: Vec<u8>, position: Position, limit: u64) -> Result<Vec<u8>, Ended> {
        let reader = Arc::clone(&self.reader);
        let max = if limit == 0 { 0 } else { limit.clamp(1_000, 100_000) };
        let (last_seq, pending) = self.host.blocking(move || reader.end(position, max)).await?;
        self.asked.framing.end(last_seq, pending, &mut bytes);
        Ok(bytes)
    }
}

async fn read(
    host: &Host,
    reader: &Arc<Reader>,
    position: Position,
    room: u64,
    is_first: bool,
) -> Result<Batch, ApiError> {
    let reader = Arc::clone(reader);
    host.blocking(move || reader.read(position, room, is_first)).await
}
