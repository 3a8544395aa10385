//! RavenDB's TCP protocol for subscriptions, on the port of HTTP: a connection whose first byte is `{`.
//!
//! Handshake, options, then batches: documents, `EndOfBatch`, the client's `Acknowledge`, the server's `Confirm`, which comes
//! when the acknowledgement is durable. While nothing is to be said a line break shows that the server is there.

use std::io;
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::sync::watch;
use tokio::time::Instant;

use super::messages::{Broken, Peer, Wire};
use super::reading::{self, Batch, Read};
use super::render;
use crate::access::Level;
use crate::server::access::{self, Need};
use crate::server::error::ApiError;
use crate::server::host::{Host, signalled};
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::wire::subscription::{ConnectionStatus, TcpHeader, TcpMessage, TcpOptions, TcpReply};
use crate::subscription::{End, Key, Opened, Part, Strategy, SubscriptionError, Worker, position};

/// The versions of the protocol that are spoken, the newest first. They differ in what is not used here.
const VERSIONS: [i64; 5] = [53_000, 51_000, 50_000, 41_400, 40];

/// What tells a client that its version, and all below, are not spoken.
const OUT_OF_RANGE: i64 = -1;

/// How often a silent server shows that it is there. Clients give up after 15 s at the soonest.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Versions that a client may propose.
const PROPOSALS_MAX: usize = 8;

/// Why a connection ends.
enum Over {
    /// There is nobody to talk to, or nothing more to say.
    Silently,
    /// With a last word.
    Saying(ConnectionStatus),
    /// With an error that has no status of its own.
    Failing(String),
}

/// What a worker's client did, or what else happened.
enum Event {
    Acknowledged(Option<String>),
    Stirred,
}

/// Serves one connection, of somebody who is known by a certificate or not at all.
pub(crate) async fn serve(host: Shared, wire: Box<dyn Wire>, shown: &access::Peer) {
    let mut peer = Peer::new(wire, host.settings.limits.unread_max);
    let over = match greet(&host, &mut peer, shown).await {
        Ok((lease, options)) => match begin(&host, &mut peer, lease, options).await {
            Ok(never) => match never {},
            Err(over) => over,
        },
        Err(over) => over,
    };
    let said = match over {
        Over::Silently => Ok(()),
        Over::Saying(status) => peer.say(&status).await,
        Over::Failing(reason) => {
            let error = serde_json::json!({ "Type": "Error", "Exception": reason, "Message": reason });
            peer.say(&error).await
        }
    };
    if let Err(error) = said {
        tracing::debug!(name: "subscription.connection.broken", %error, "a worker's connection broke");
    }
    peer.end().await;
}

/// Reads the header and the options.
async fn greet(host: &Host, peer: &mut Peer, shown: &access::Peer) -> Result<(Lease, TcpOptions), Over> {
    let deadline = Instant::now() + host.settings.limits.head_timeout;
    for _ in 0..PROPOSALS_MAX {
        let header: TcpHeader = next_by(peer, deadline).await?;
        if header.operation != "Subscription" {
            let message =
                format!("Treepie speaks this protocol for subscriptions only, not for '{}'", header.operation);
            refuse_version(peer, OUT_OF_RANGE, message).await?;
            return Err(Over::Silently);
        }
        let asked = header.operation_version;
        match VERSIONS.iter().find(|version| **version <= asked) {
            Some(version) if *version == asked => {
                let database = header.database_name.unwrap_or_default();
                admit(host, peer, shown, asked, &database).await?;
                let reply = TcpReply { status: "Ok", version: asked, message: None, licensed_features: None };
                peer.say(&reply).await?;
                let options = next_by(peer, deadline).await?;
                let lease = host.databases.lease(&database);
                let lease = lease.map_err(|error| Over::Failing(error.detail()))?;
                return Ok((lease, options));
            }
            Some(version) => {
                refuse_version(peer, *version, format!("version {asked} is not spoken, but {version} is")).await?;
            }
            None => {
                let message = format!("version {asked} is not spoken, and none below");
                refuse_version(peer, OUT_OF_RANGE, message).await?;
            }
        }
    }
    Err(Over::Silently)
}

/// Refuses a client that may not write in the database: what it acknowledges moves the subscription for everyone.
async fn admit(host: &Host, peer: &mut Peer, shown: &access::Peer, version: i64, database: &str) -> Result<(), Over> {
    let caller = access::recognise(host, shown, &HeaderMap::new());
    let Err(error) = access::check(&caller, &Need::In(database.to_owned(), Level::Write)) else { return Ok(()) };
    let message = Some(error.detail());
    peer.say(&TcpReply { status: "AuthorizationFailed", version, message, licensed_features: None }).await?;
    Err(Over::Silently)
}

async fn refuse_version(peer: &mut Peer, version: i64, message: String) -> io::Result<()> {
    let message = Some(message);
    peer.say(&TcpReply { status: "TcpVersionMismatch", version, message, licensed_features: None }).await
}

async fn next_by<T: serde::de::DeserializeOwned>(peer: &mut Peer, deadline: Instant) -> Result<T, Over> {
    match tokio::time::timeout_at(deadline, peer.next()).await {
        Ok(read) => Ok(read?),
        Err(_) => Err(Over::Silently),
    }
}

/// Opens the subscription, waiting for it where that is asked for, and serves batches until something ends it.
async fn begin(
    host: &Host,
    peer: &mut Peer,
    lease: Lease,
    options: TcpOptions,
) -> Result<std::convert::Infallible, Over> {
    let strategy = match &options.strategy {
        None => Strategy::OpenIfFree,
        Some(name) => Strategy::parse(name).ok_or_else(|| {
            let reason = format!("there is no strategy '{name}'");
            Over::Saying(ConnectionStatus::refused("Invalid", reason, false))
        })?,
    };
    let live = lease.subscriptions().find(Key::Name(&options.subscription_name)).map_err(|error| refused(&error))?;
    let (stopping, closing) = (host.stop_signal(), lease.stop_signal());
    let mut signals = Signals { stopping, closing };
    let worker_id = options.worker_id.as_deref().unwrap_or_default();
    let worker = loop {
        match reading::open(host, &live, strategy, worker_id).await.map_err(|error| failing(&error))? {
            Ok(Opened::Worker(worker)) => break worker,
            Ok(Opened::Wait(mut free)) => wait_for_room(peer, &mut signals, &mut free).await?,
            Err(error) => return Err(refused(&error)),
        }
    };
    peer.say(&ConnectionStatus::accepted(None)).await?;
    let documents_max = options.max_docs_per_batch.and_then(|max| u64::try_from(max).ok()).filter(|max| *max > 0);
    let batch = Batch::new(documents_max, false);
    let serving =
        Serving { host, signals, batch, closes_when_empty: options.close_when_no_docs_left == Some(true), last: None };
    serving.run(peer, worker).await
}

/// The signals that end a connection.
struct Signals {
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
}

impl Signals {
    async fn given(&mut self) {
        tokio::select! {
            () = signalled(&mut self.stopping) => {}
            () = signalled(&mut self.closing) => {}
        }
    }
}

async fn wait_for_room(peer: &mut Peer, signals: &mut Signals, free: &mut watch::Receiver<()>) -> Result<(), Over> {
    loop {
        tokio::select! {
            () = signals.given() => return Err(Over::Silently),
            changed = free.changed() => return changed.map_err(|_| Over::Silently),
            message = peer.next::<TcpMessage>() => { message?; }
            () = tokio::time::sleep(HEARTBEAT) => peer.send(b"\r\n").await?,
        }
    }
}

/// A worker's connection under way.
struct Serving<'h> {
    host: &'h Host,
    signals: Signals,
    batch: Batch,
    closes_when_empty: bool,
    /// The change vector of the last document of the batch in hand.
    last: Option<String>,
}

impl Serving<'_> {
    async fn run(mut self, peer: &mut Peer, mut worker: Box<Worker>) -> Result<std::convert::Infallible, Over> {
        loop {
            let Read { worker: back, part } = match reading::read(self.host, worker, &self.batch).await {
                Ok(read) => read.map_err(|error| refused(&error))?,
                Err(error) => return Err(failing(&error)),
            };
            worker = back;
            let is_caught_up = part.is_caught_up;
            self.send(peer, part).await?;
            if self.batch.documents > 0 && (is_caught_up || self.batch.is_full()) {
                peer.send(b"{\"Type\":\"EndOfBatch\"}").await?;
                self.acknowledge(peer, &mut worker).await?;
                self.batch.next();
            } else if is_caught_up {
                if self.closes_when_empty {
                    return Err(Over::Saying(ConnectionStatus::no_docs_left()));
                }
                self.wait(peer, &mut worker).await?;
            } else if *self.signals.stopping.borrow() || *self.signals.closing.borrow() {
                return Err(Over::Silently);
            }
        }
    }

    async fn send(&mut self, peer: &mut Peer, part: Part) -> Result<(), Over> {
        let mut bytes = Vec::new();
        for delivery in &part.deliveries {
            render::write_message(delivery, &mut bytes);
        }
        self.batch.add(&part, bytes.len());
        if let Some(last) = part.deliveries.last() {
            self.last = Some(last.change_vector.clone());
        }
        drop(part);
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(peer.send(&bytes).await?)
    }

    /// Waits for the acknowledgement of the batch, makes it durable and confirms it.
    async fn acknowledge(&mut self, peer: &mut Peer, worker: &mut Worker) -> Result<(), Over> {
        loop {
            let Event::Acknowledged(vector) = self.event(peer, worker).await? else { continue };
            let until = match vector {
                // Newer clients name nothing: they mean the whole batch.
                None => None,
                Some(vector) if vector.is_empty() || Some(&vector) == self.last.as_ref() => None,
                Some(vector) => Some(position(&vector, worker.store()).map_err(|error| refused(&error))?),
            };
            let written = worker.acknowledge(until).map_err(|error| refused(&error))?;
            written.await.map_err(|error| refused(&error))?;
            return Ok(peer.send(b"{\"Type\":\"Confirm\"}").await?);
        }
    }

    /// Waits until there may be something to read.
    async fn wait(&mut self, peer: &mut Peer, worker: &mut Worker) -> Result<(), Over> {
        loop {
            match self.event(peer, worker).await? {
                Event::Stirred => return Ok(()),
                // An acknowledgement of nothing.
                Event::Acknowledged(_) => {}
            }
        }
    }

    async fn event(&mut self, peer: &mut Peer, worker: &mut Worker) -> Result<Event, Over> {
        loop {
            tokio::select! {
                biased;
                () = self.signals.given() => return Err(Over::Silently),
                message = peer.next::<TcpMessage>() => {
                    let message = message?;
                    match message.r#type.as_str() {
                        "Acknowledge" => return Ok(Event::Acknowledged(message.change_vector)),
                        "DisposedNotification" => return Err(Over::Silently),
                        _ => {}
                    }
                }
                () = worker.stirred() => {
                    if let Some(end) = worker.ended() {
                        return Err(refused(&SubscriptionError::Ended(end)));
                    }
                    return Ok(Event::Stirred);
                }
                () = tokio::time::sleep(HEARTBEAT) => peer.send(b"\r\n").await?,
            }
        }
    }
}

/// What a client is told about an error.
fn refused(error: &SubscriptionError) -> Over {
    let (status, can_reconnect) = match error {
        SubscriptionError::Missing { .. } => ("NotFound", false),
        // Taken over is in use, as in RavenDB, whose clients then know not to come back.
        SubscriptionError::InUse(_) | SubscriptionError::Ended(End::TakenOver) => ("InUse", false),
        SubscriptionError::Disabled { .. } => ("Closed", false),
        SubscriptionError::Ended(end) => ("Closed", end.may_return()),
        SubscriptionError::Abandoned { .. }
        | SubscriptionError::NoWorker { .. }
        | SubscriptionError::Exists { .. }
        | SubscriptionError::Definition { .. }
        | SubscriptionError::Unsupported(_)
        | SubscriptionError::Script { .. }
        | SubscriptionError::Position(_) => ("Invalid", false),
        SubscriptionError::Store(error) => return Over::Failing(error.to_string()),
    };
    Over::Saying(ConnectionStatus::refused(status, error.to_string(), can_reconnect))
}

fn failing(error: &ApiError) -> Over {
    Over::Failing(error.detail())
}

impl From<io::Error> for Over {
    fn from(error: io::Error) -> Self {
        tracing::debug!(name: "subscription.connection.broken", %error, "a worker's connection broke");
        Self::Silently
    }
}

impl From<Broken> for Over {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Gone => Self::Silently,
            Broken::Malformed(reason) => Self::Failing(format!("the message can't be read: {reason}")),
        }
    }
}
