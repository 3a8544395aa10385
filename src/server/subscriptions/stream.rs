//! `/subscriptions/stream` and `/subscriptions/ack`: a subscription for everything that speaks HTTP.
//!
//! The stream is lines of JSON, or server-sent events; after each batch it waits until a second request acknowledges it. An
//! acknowledgement by position needs no open stream.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use tokio::sync::watch;
use tracing::Instrument;

use super::reading::{self, Batch, Read};
use super::render;
use crate::server::error::ApiError;
use crate::server::host::{InHand, signalled};
use crate::server::query::{Query, bad};
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::stream::{self, Ended, Outlet};
use crate::server::wire::subscription::ConnectionStatus;
use crate::server::wire::text::{write_number, write_string};
use crate::subscription::{Key, Opened, Part, Strategy, SubscriptionError, Worker, change_vector, position};

/// How often a silent stream shows that it is there, where the caller names no time.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The shortest time between two heartbeats.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// How messages are strung together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Lines,
    Events,
}

/// What a caller asks for.
struct Asked {
    strategy: Strategy,
    worker_id: String,
    batch: Batch,
    framing: Framing,
    heartbeat: Duration,
    closes_when_empty: bool,
}

/// Streams a subscription.
pub(crate) async fn stream(
    State(host): State<Shared>,
    Extension(held): Extension<InHand>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = Asked::read(&query, &headers, &host)?;
    let live = lease.subscriptions().find(Key::Name(query.required("name")?))?;
    let content_type = match asked.framing {
        Framing::Lines => HeaderValue::from_static("application/x-ndjson; charset=utf-8"),
        Framing::Events => HeaderValue::from_static("text/event-stream"),
    };
    // Opened before the head of the answer, so that a refusal has a status of its own.
    let opened = reading::open(&host, &live, asked.strategy, &asked.worker_id).await??;
    let (outlet, inlet) = stream::answer(host.settings.limits.unread_max);
    let task = async move {
        let _held = held;
        let (stopping, closing) = (host.stop_signal(), lease.stop_signal());
        let mut serving = Serving { host, asked, stopping, closing, outlet };
        let outcome = match serving.admitted(&live, opened).await {
            Ok(worker) => serving.run(worker).await,
            Err(over) => Err(over),
        };
        // The lease goes last: nothing may hold the database when it counts as free.
        drop(live);
        drop(lease);
        let Serving { asked, outlet, .. } = serving;
        match outcome {
            Ok(()) => drop(outlet.finish(Vec::new()).await),
            Err(Over::Saying(status)) => drop(outlet.finish(asked.framing.status(&status)).await),
            Err(Over::Ended(ended)) => outlet.fail(ended).await,
        }
    };
    tokio::spawn(task.in_current_span());
    inlet.into_live_response(content_type).await
}

/// Acknowledges: what a worker holds (`worker`, through `through` or all), or everything through a position.
pub(crate) async fn acknowledge(lease: Lease, query: Query) -> Result<StatusCode, ApiError> {
    let live = lease.subscriptions().find(Key::Name(query.required("name")?))?;
    let through = query.text("through").map(|text| position(text, lease.store())).transpose()?;
    match (query.text("worker"), through) {
        (Some(worker), through) => live.acknowledge_of(worker, through)?.await?,
        (None, Some(through)) => live.acknowledge_through(through)?.await?,
        (None, None) => {
            return Err(ApiError::argument(
                "An acknowledgement says how far: add &through=… with the ChangeVector or Etag of the last thing done, or &worker=….",
            ));
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

impl Asked {
    fn read(query: &Query, headers: &HeaderMap, host: &Shared) -> Result<Self, ApiError> {
        let strategy = match query.text("strategy") {
            None => Strategy::OpenIfFree,
            Some(name) => Strategy::parse(name)
                .ok_or_else(|| bad("strategy", name, "OpenIfFree, WaitForFree, TakeOver or Concurrent"))?,
        };
        let accepts_events = headers
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/event-stream"));
        let framing = match query.text("format") {
            None if accepts_events => Framing::Events,
            None | Some("jsonl") => Framing::Lines,
            Some("events") => Framing::Events,
            Some(other) => return Err(bad("format", other, "jsonl or events")),
        };
        let heartbeat = query.number("heartbeat")?.map_or(HEARTBEAT, Duration::from_millis);
        Ok(Self {
            strategy,
            worker_id: query.text("worker").unwrap_or_default().to_owned(),
            batch: Batch::new(query.number("batch")?.filter(|max| *max > 0), query.switch("wholeRuns", true)?),
            framing,
            heartbeat: heartbeat.clamp(HEARTBEAT_MIN, host.settings.limits.wait_max.max(HEARTBEAT_MIN)),
            closes_when_empty: query.switch("closeWhenNoDocsLeft", false)?,
        })
    }
}

impl Framing {
    fn heartbeat(self) -> Vec<u8> {
        match self {
            Self::Lines => b"\n".to_vec(),
            Self::Events => b": heartbeat\n\n".to_vec(),
        }
    }

    fn delivery(self, etag: u64, line: &[u8], into: &mut Vec<u8>) {
        match self {
            Self::Lines => {
                into.extend_from_slice(line);
                into.push(b'\n');
            }
            Self::Events => {
                into.extend_from_slice(b"data: ");
                into.extend_from_slice(line);
                into.extend_from_slice(b"\nid: ");
                write_number(etag, into);
                into.extend_from_slice(b"\n\n");
            }
        }
    }

    fn other(self, event: &str, line: &[u8]) -> Vec<u8> {
        match self {
            Self::Lines => [line, b"\n"].concat(),
            Self::Events => [b"event: ", event.as_bytes(), b"\ndata: ", line, b"\n\n"].concat(),
        }
    }

    fn status(self, status: &impl Serialize) -> Vec<u8> {
        self.other("status", &serde_json::to_vec(status).unwrap_or_default())
    }
}

/// Why a stream ends.
enum Over {
    /// With a last word.
    Saying(ConnectionStatus),
    /// The reader has gone, or the server failed.
    Ended(Ended),
}

/// A stream under way.
struct Serving {
    host: Shared,
    asked: Asked,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
    outlet: Outlet,
}

/// Why a wait is over.
enum Woken {
    Stirred,
    Heartbeat,
    Stopped,
}

impl Serving {
    /// The worker, where need be when the subscription has become free.
    async fn admitted(
        &mut self,
        live: &std::sync::Arc<crate::subscription::Live>,
        mut opened: Opened,
    ) -> Result<Option<Box<Worker>>, Over> {
        loop {
            let mut free = match opened {
                Opened::Worker(worker) => {
                    let status = ConnectionStatus::accepted(Some(worker.id().to_owned()));
                    self.outlet.send(self.asked.framing.status(&status)).await?;
                    return Ok(Some(worker));
                }
                Opened::Wait(free) => free,
            };
            self.outlet.send(Vec::new()).await?;
            loop {
                let woken = tokio::select! {
                    () = self.outlet.closed() => return Err(Over::Ended(Ended::Gone)),
                    () = signalled(&mut self.stopping) => Woken::Stopped,
                    () = signalled(&mut self.closing) => Woken::Stopped,
                    _ = free.changed() => Woken::Stirred,
                    () = tokio::time::sleep(self.asked.heartbeat) => Woken::Heartbeat,
                };
                match woken {
                    Woken::Stirred => break,
                    Woken::Stopped => return Ok(None),
                    Woken::Heartbeat => self.outlet.send(self.asked.framing.heartbeat()).await?,
                }
            }
            opened = reading::open(&self.host, live, self.asked.strategy, &self.asked.worker_id)
                .await
                .map_err(|error| Over::Ended(Ended::Failed(error)))?
                .map_err(refused)?;
        }
    }

    async fn run(&mut self, worker: Option<Box<Worker>>) -> Result<(), Over> {
        let Some(mut worker) = worker else { return Ok(()) };
        loop {
            let Read { worker: back, part } = match reading::read(&self.host, worker, &self.asked.batch).await {
                Ok(read) => read.map_err(refused)?,
                Err(error) => return Err(Over::Ended(Ended::Failed(error))),
            };
            worker = back;
            let (is_caught_up, through, complete) = (part.is_caught_up, part.through, part.complete_through);
            self.send(part).await?;
            if self.asked.batch.documents > 0 && (is_caught_up || self.asked.batch.is_full()) {
                let end = end_of_batch(&worker, through, is_caught_up, complete);
                self.outlet.send(self.asked.framing.other("batch", &end)).await?;
                while !worker.is_settled() {
                    if !self.wait(&mut worker).await? {
                        return Ok(());
                    }
                }
                self.asked.batch.next();
            } else if is_caught_up {
                if self.asked.closes_when_empty {
                    return Err(Over::Saying(ConnectionStatus::no_docs_left()));
                }
                if !self.wait(&mut worker).await? {
                    return Ok(());
                }
            } else if *self.stopping.borrow() || *self.closing.borrow() {
                return Ok(());
            }
        }
    }

    async fn send(&mut self, part: Part) -> Result<(), Over> {
        let (mut bytes, mut line) = (Vec::new(), Vec::new());
        for delivery in &part.deliveries {
            line.clear();
            render::write_line(delivery, &mut line);
            self.asked.framing.delivery(delivery.etag, &line, &mut bytes);
        }
        self.asked.batch.add(&part, bytes.len());
        drop(part);
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.outlet.send(bytes).await?)
    }

    /// Waits until something may have changed, with heartbeats. `false`: the server or the database stops.
    async fn wait(&mut self, worker: &mut Worker) -> Result<bool, Over> {
        loop {
            let woken = tokio::select! {
                biased;
                () = self.outlet.closed() => return Err(Over::Ended(Ended::Gone)),
                () = signalled(&mut self.stopping) => Woken::Stopped,
                () = signalled(&mut self.closing) => Woken::Stopped,
                () = worker.stirred() => Woken::Stirred,
                () = tokio::time::sleep(self.asked.heartbeat) => Woken::Heartbeat,
            };
            match woken {
                Woken::Stopped => return Ok(false),
                Woken::Heartbeat => self.outlet.send(self.asked.framing.heartbeat()).await?,
                Woken::Stirred => {
                    return match worker.ended() {
                        Some(end) => Err(refused(SubscriptionError::Ended(end))),
                        None => Ok(true),
                    };
                }
            }
        }
    }
}

/// The line after a batch: how far it goes, and how to acknowledge it.
fn end_of_batch(worker: &Worker, through: u64, is_caught_up: bool, complete: Option<u64>) -> Vec<u8> {
    let mut line = b"{\"Type\":\"EndOfBatch\",\"Worker\":".to_vec();
    write_string(worker.id(), &mut line);
    line.extend_from_slice(b",\"Through\":");
    write_number(through, &mut line);
    line.extend_from_slice(b",\"ChangeVector\":");
    write_string(&change_vector(worker.store(), through), &mut line);
    line.extend_from_slice(b",\"IsCaughtUp\":");
    line.extend_from_slice(if is_caught_up { b"true" } else { b"false" });
    line.extend_from_slice(b",\"CompleteThrough\":");
    render::write_optional(complete, &mut line);
    line.push(b'}');
    line
}

fn refused(error: SubscriptionError) -> Over {
    match error {
        SubscriptionError::Ended(end) => {
            Over::Saying(ConnectionStatus::refused("Closed", end.to_string(), end.may_return()))
        }
        other => Over::Ended(Ended::Failed(other.into())),
    }
}

impl From<Ended> for Over {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}
