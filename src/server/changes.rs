//! `/_changes`: the change feed in CouchDB's shape, once, waiting, or without end.
//!
//! A task reads batches (`feed`) and passes them through a bounded channel, so a slow reader holds its feed back and
//! nobody else. A feed never goes past what is durable, ends when the server or the database stops, and its task ends
//! when its reader goes.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument;

use super::error::ApiError;
use super::feed::{Batch, Framing, Position, Reader};
use super::host::{Host, InHand, signalled};
use super::json;
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::settings::ServerLimits;
use super::stream::{self, Ended, Outlet, PIECE_BYTES};
use crate::id;
use crate::store::Progress;
use crate::store::changes::Feed;

/// How long a waiting feed stays open without a change where the caller names no time; CouchDB's default.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The shortest time between two heartbeats.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// When a feed comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// When it has everything that is durable now.
    Normal,
    /// With the first changes.
    LongPoll,
    /// When nothing has changed for `timeout`, or never with a heartbeat.
    Continuous,
}

/// What a caller asks of the feed.
#[derive(Debug)]
struct Asked {
    mode: Mode,
    framing: Framing,
    since: u64,
    limit: u64,
    descending: bool,
    heartbeat: Option<Duration>,
    timeout: Duration,
}

/// Why a wait is over.
enum Woken {
    Changed,
    Heartbeat,
    TimedOut,
    Stopped,
}

/// Answers with the feed.
pub(crate) async fn changes(
    State(host): State<Shared>,
    Extension(held): Extension<InHand>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    query.refuse(&["filter", "view", "doc_ids", "att_encoding_info", "attachments"], "_changes")?;
    let durable = lease.store().progress().durable;
    let asked = Asked::read(&query, &headers, durable, &host.settings.limits)?;
    let reader = Reader {
        include_docs: query.switch("include_docs", false)?,
        feed: query.text("collection").map_or(Feed::All, |name| Feed::Collection(name.to_owned())),
        prefix: query.text("prefix").map(id::lower),
        framing: asked.framing,
        node_tag: host.node.tag.clone(),
        lease,
    };
    let content_type = match asked.framing {
        Framing::Array => json::CONTENT_TYPE,
        Framing::Lines => HeaderValue::from_static("application/json"),
        Framing::Events => HeaderValue::from_static("text/event-stream"),
    };
    let (outlet, inlet) = stream::answer(host.settings.limits.unread_max);
    let task = async move {
        let _held = held;
        let stopping = host.stop_signal();
        let closing = reader.lease.stop_signal();
        let progress = reader.lease.store().watch_progress();
        let mut feed = Running { host, reader: Arc::new(reader), asked, stopping, closing, progress };
        match feed.run(durable, &outlet).await {
            // Where the reader has gone there is nobody to tell.
            Ok(tail) => drop(outlet.finish(tail).await),
            Err(ended) => outlet.fail(ended).await,
        }
    };
    tokio::spawn(task.in_current_span());
    inlet.into_live_response(content_type).await
}

impl Asked {
    fn read(query: &Query, headers: &HeaderMap, durable: u64, limits: &ServerLimits) -> Result<Self, ApiError> {
        let (mode, framing) = match query.text("feed").unwrap_or("normal") {
            "normal" => (Mode::Normal, Framing::Array),
            "longpoll" => (Mode::LongPoll, Framing::Array),
            "continuous" => (Mode::Continuous, Framing::Lines),
            "eventsource" => (Mode::Continuous, Framing::Events),
            other => return Err(bad("feed", other, "normal, longpoll, continuous or eventsource")),
        };
        let descending = query.switch("descending", false)?;
        if descending && mode != Mode::Normal {
            return Err(ApiError::argument(
                "descending=true goes with feed=normal only: a feed that waits goes forward.",
            ));
        }
        let last_event = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let since = last_event.filter(|_| framing == Framing::Events).or(query.text("since"));
        let mut heartbeat = heartbeat(query, limits)?;
        if framing == Framing::Events && heartbeat.is_none() {
            heartbeat = Some(TIMEOUT / 2);
        }
        let timeout = query.number("timeout")?.map_or(TIMEOUT, Duration::from_millis);
        Ok(Self {
            mode,
            framing,
            since: since_etag(since, durable)?,
            // As in CouchDB, 0 is 1.
            limit: query.number("limit")?.unwrap_or(u64::MAX).max(1),
            descending,
            heartbeat,
            timeout: timeout.min(limits.wait_max),
        })
    }
}

/// Reads `since`: an etag that the feed has reached, or `now`.
fn since_etag(since: Option<&str>, durable: u64) -> Result<u64, ApiError> {
    let Some(text) = since else { return Ok(0) };
    if text == "now" {
        return Ok(durable);
    }
    match text.parse::<u64>() {
        Ok(etag) if etag <= durable => Ok(etag),
        Ok(_) => Err(ApiError::argument(format!(
            "'since' is {text}, but the feed has only come to {durable}; was it taken from another database?"
        ))),
        Err(_) => Err(bad("since", text, "the 'seq' of a change, or now")),
    }
}

fn heartbeat(query: &Query, limits: &ServerLimits) -> Result<Option<Duration>, ApiError> {
    let period = match query.text("heartbeat") {
        None | Some("false") => return Ok(None),
        Some("true") => TIMEOUT,
        Some(text) => match text.parse::<u64>() {
            Ok(millis) if millis > 0 => Duration::from_millis(millis),
            _ => return Err(bad("heartbeat", text, "a number of milliseconds above 0, or true")),
        },
    };
    Ok(Some(period.clamp(HEARTBEAT_MIN, limits.wait_max.max(HEARTBEAT_MIN))))
}

/// A feed under way.
struct Running {
    host: Shared,
    reader: Arc<Reader>,
    asked: Asked,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
    progress: watch::Receiver<Progress>,
}

impl Running {
    /// Sends everything but the end of the answer, and returns that. `durable` is how far the feed had come when it was
    /// asked for.
    async fn run(&mut self, durable: u64, outlet: &Outlet) -> Result<Vec<u8>, Ended> {
        let mut position = if self.asked.descending {
            Position::Falling { after: self.asked.since, through: durable }
        } else {
            let until = (self.asked.mode == Mode::Normal).then_some(durable);
            Position::Rising { after: self.asked.since, until }
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
            changed = self.progress.wait_for(|progress| progress.durable > etag) => {
                Ok(if changed.is_ok() { Woken::Changed } else { Woken::Stopped })
            }
            () = tokio::time::sleep_until(until) => Ok(at_end),
        }
    }

    fn is_told_to_stop(&self) -> bool {
        *self.stopping.borrow() || *self.closing.borrow()
    }

    /// Appends the end of the answer. After a limit it counts what lies beyond, up to as many rows again, or 1,000.
    async fn end(&self, mut bytes: Vec<u8>, position: Position, limit: u64) -> Result<Vec<u8>, Ended> {
        let pending = if limit == 0 {
            0
        } else {
            let reader = Arc::clone(&self.reader);
            self.host.blocking(move || reader.count(position, limit.clamp(1_000, 100_000))).await?
        };
        self.asked.framing.end(position.last_seq(), pending, &mut bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_the_feed_has_not_reached_is_refused() {
        assert_eq!(since_etag(None, 12).unwrap(), 0);
        assert_eq!(since_etag(Some("now"), 12).unwrap(), 12);
        assert_eq!(since_etag(Some("12"), 12).unwrap(), 12);
        for bad in ["13", "x", "-1", "1.0", "12-abc", "99999999999999999999"] {
            assert_eq!(since_etag(Some(bad), 12).unwrap_err().status().as_u16(), 400, "{bad}");
        }
    }
}
