//! One open changes socket, from its first command to its end.
//!
//! It ends when the client goes or answers no ping, reads nothing for `unread_max`, the server stops or the database closes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message as Frame, Utf8Bytes, WebSocket, close_code};
use futures_util::SinkExt;
use tokio::sync::watch;
use tokio::time::Instant;

use super::watches::Watches;
use crate::database::index_news::{IndexNews, News};
use crate::server::host::signalled;
use crate::server::lull::{Lull, changed};
use crate::server::operations::Progress as OperationProgress;
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::wire::changes::{Command, DocumentChange, IndexChange, Message, OperationChange};
use crate::server::wire::operation::State;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::scan::Direction;
use crate::store::{Progress, StoreError};

/// The time between two pings.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a client may be silent; a living one answers pings.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// Changes of the feed that are looked at in one go.
const LOOKED_AT_MAX: usize = 1_024;

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The client has gone, or is told nothing any more because it does not read.
    Gone,
    /// The server ends it, and says why.
    Told(u16, String),
}

/// What woke a connection.
enum Woken {
    Said(Option<Result<Frame, axum::Error>>),
    Documents(Feed),
    Index(News),
    Operations,
    Ping,
    End(&'static str),
}

/// An open socket.
pub(super) struct Connection {
    host: Shared,
    lease: Arc<Lease>,
    socket: WebSocket,
    watches: Watches,
    /// The etag through which documents were told, while some are watched.
    after: u64,
    progress: watch::Receiver<Progress>,
    indexes: IndexNews,
    operations: watch::Receiver<u64>,
    /// How operations stood when they were last told, by number.
    told: BTreeMap<u64, String>,
    heard: Instant,
    next_ping: Instant,
    lull: Lull,
}

impl Connection {
    pub(super) fn new(host: Shared, lease: Lease, socket: WebSocket) -> Self {
        let (progress, indexes) = (lease.store().watch_progress(), lease.index_news());
        let operations = host.operations.follow();
        let heard = Instant::now();
        Self {
            host,
            lease: Arc::new(lease),
            socket,
            watches: Watches::default(),
            after: 0,
            progress,
            indexes,
            operations,
            told: BTreeMap::new(),
            heard,
            next_ping: heard + PING_EVERY,
            lull: Lull::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let (mut stopping, mut closing) = (self.host.stop_signal(), self.lease.stop_signal());
        let end = loop {
            let woken = self.wait(&mut stopping, &mut closing).await;
            if let Err(end) = self.answer(woken).await {
                break end;
            }
        };
        if let End::Told(code, reason) = end {
            tracing::debug!(name: "changes.ended", reason, "a changes socket was ended");
            let frame = Frame::Close(Some(CloseFrame { code, reason: Utf8Bytes::from(reason) }));
            // A client that does not read this has gone.
            drop(tokio::time::timeout(self.host.settings.limits.unread_max, self.socket.send(frame)).await);
        }
    }

    async fn wait(&mut self, stopping: &mut watch::Receiver<bool>, closing: &mut watch::Receiver<bool>) -> Woken {
        let (feed, after) = (self.watches.feed(), self.after);
        let (has_indexes, has_operations) = (self.watches.has_indexes(), self.watches.has_operations());
        tokio::select! {
            biased;
            () = signalled(stopping) => Woken::End("the server stops"),
            () = signalled(closing) => Woken::End("the database closes"),
            said = self.socket.recv() => Woken::Said(said),
            news = self.indexes.next(), if has_indexes => Woken::Index(news),
            changed = self.operations.changed(), if has_operations => match changed {
                Ok(()) => Woken::Operations,
                Err(_) => Woken::End("the server stops"),
            },
            is_open = changed(&mut self.progress, after, self.lull), if feed.is_some() => {
                match (is_open, feed) {
                    (true, Some(feed)) => Woken::Documents(feed),
                    _ => Woken::End("the database closes"),
                }
            }
            () = tokio::time::sleep_until(self.next_ping) => Woken::Ping,
        }
    }

    async fn answer(&mut self, woken: Woken) -> Result<(), End> {
        match woken {
            Woken::Said(said) => self.hear(said).await,
            Woken::Documents(feed) => self.tell_documents(feed).await,
            Woken::Index(news) => self.tell_index(news).await,
            Woken::Operations => self.tell_operations().await,
            Woken::Ping if self.heard.elapsed() > SILENCE_MAX => Err(End::Gone),
            Woken::Ping => {
                self.next_ping = Instant::now() + PING_EVERY;
                self.send(vec![Frame::Ping(axum::body::Bytes::new())]).await
            }
            Woken::End(reason) => Err(End::Told(close_code::AWAY, reason.to_owned())),
        }
    }

    async fn hear(&mut self, said: Option<Result<Frame, axum::Error>>) -> Result<(), End> {
        self.heard = Instant::now();
        match said {
            Some(Ok(Frame::Text(text))) => self.obey(text.as_bytes()).await,
            Some(Ok(Frame::Binary(bytes))) => self.obey(&bytes).await,
            Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => Ok(()),
            Some(Ok(Frame::Close(_))) | None => Err(End::Gone),
            Some(Err(error)) => {
                tracing::debug!(name: "changes.broken", %error, "a changes socket broke");
                Err(End::Gone)
            }
        }
    }

    async fn obey(&mut self, bytes: &[u8]) -> Result<(), End> {
        let command: Command = match serde_json::from_slice(bytes) {
            Ok(command) => command,
            Err(error) => {
                let reason = format!("What came is no command: {error}.");
                return self.tell([Message::Error { exception: reason, command_id: 0 }]).await;
            }
        };
        let command_id = command.command_id;
        let had = (self.watches.feed().is_some(), self.watches.has_operations());
        if let Err(exception) = self.watches.apply(&command) {
            // Confirmed all the same: clients wait for that before they listen to why nothing will come.
            return self.tell([Message::Confirm { command_id }, Message::Error { exception, command_id }]).await;
        }
        if !had.0 {
            // Whoever begins to watch is told of what is written from now on.
            self.after = self.progress.borrow().durable;
        }
        if !had.1 {
            self.told = self.operations_now().map(|(id, state)| (id, state_text(&state))).collect();
        }
        self.tell([Message::Confirm { command_id }]).await
    }

    async fn tell_documents(&mut self, feed: Feed) -> Result<(), End> {
        let (lease, watches, after) = (Arc::clone(&self.lease), self.watches.clone(), self.after);
        let tag = self.host.node.tag.clone();
        let read = move || {
            let read = read(&lease, &watches, &feed, after, &tag);
            read.map_err(Into::into)
        };
        let (messages, through) = self.host.blocking(read).await.map_err(|error| {
            tracing::error!(name: "changes.failed", error = %error.detail(), "the feed can't be read");
            End::Told(close_code::ERROR, error.message().chars().take(100).collect())
        })?;
        self.after = through;
        self.lull.looked(!messages.is_empty());
        self.tell(messages).await
    }

    async fn tell_index(&mut self, news: News) -> Result<(), End> {
        let (name, kind) = match news {
            News::Index { name, kind } => (name, kind),
            News::Missed => {
                let reason = "news of indexes came faster than they were read; connect again".to_owned();
                return Err(End::Told(close_code::POLICY, reason));
            }
        };
        if !self.watches.wants_index(&name) {
            return Ok(());
        }
        // What an index wrote can be seen before it is durable.
        let written = self.progress.borrow().written;
        drop(self.progress.wait_for(|progress| progress.durable >= written).await);
        self.tell([Message::IndexChange { value: IndexChange { r#type: kind, name } }]).await
    }

    async fn tell_operations(&mut self) -> Result<(), End> {
        self.operations.borrow_and_update();
        let mut changed = Vec::new();
        let now: BTreeMap<u64, OperationProgress> = self.operations_now().collect();
        self.told.retain(|id, _| now.contains_key(id));
        for (operation_id, progress) in now {
            let text = state_text(&progress);
            if self.told.get(&operation_id) == Some(&text) {
                continue;
            }
            self.told.insert(operation_id, text);
            if self.watches.wants_operation(operation_id) {
                let value = OperationChange { operation_id, state: State::new(&progress) };
                changed.push(Message::OperationStatusChange { value });
            }
        }
        self.tell(changed).await
    }

    fn operations_now(&self) -> impl Iterator<Item = (u64, OperationProgress)> + use<> {
        self.host.operations.of_database(self.lease.name()).into_iter()
    }

    async fn tell(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), End> {
        let frames = messages.into_iter().map(|message| Frame::Text(Utf8Bytes::from(message.frame()))).collect();
        self.send(frames).await
    }

    /// Sends frames; a client that has not taken them within `unread_max` is cut off.
    async fn send(&mut self, frames: Vec<Frame>) -> Result<(), End> {
        let socket = &mut self.socket;
        let sending = async {
            for frame in frames {
                socket.feed(frame).await?;
            }
            socket.flush().await
        };
        match tokio::time::timeout(self.host.settings.limits.unread_max, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => {
                tracing::info!(name: "changes.unread", "a client left its changes unread for too long and is cut off");
                Err(End::Gone)
            }
        }
    }
}

/// Reads what is watched of the next changes; returns it and how far that is.
fn read(
    lease: &Lease,
    watches: &Watches,
    feed: &Feed,
    after: u64,
    node_tag: &str,
) -> Result<(Vec<Message>, u64), StoreError> {
    let snapshot = lease.store().snapshot();
    let durable = snapshot.progress().durable;
    let (mut messages, mut looked_at) = (Vec::new(), 0);
    for change in snapshot.changes(feed, after, durable, Direction::Forward) {
        let change = change?;
        looked_at += 1;
        let etag = change.etag;
        if watches.wants_document(&change) {
            let kind = if change.kind == ChangeKind::Put { "Put" } else { "Delete" };
            // What was written since this process began has this form.
            let change_vector = format!("{node_tag}:{etag}-{}", lease.store().incarnation());
            let (id, collection_name) = (change.id, change.collection);
            messages.push(Message::DocumentChange {
                value: DocumentChange { r#type: kind, id, collection_name, change_vector },
            });
        }
        if looked_at >= LOOKED_AT_MAX {
            return Ok((messages, etag));
        }
    }
    Ok((messages, durable.max(after)))
}

fn state_text(progress: &OperationProgress) -> String {
    serde_json::to_string(&State::new(progress)).unwrap_or_default()
}
