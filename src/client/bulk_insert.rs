//! Bulk insert: many documents in one long request, with bounded memory. The server stores them while they come, in batches
//! that are each stored whole or not at all; the insert as a whole is not.
//!
//! Whoever stores waits while the server does not take more: pieces go through a short queue into the request's body. A pause
//! is filled with heartbeats, so that the server does not give the insert up.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::{Body, Method};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::batch::with_metadata;
use super::conventions::Document;
use super::error::ClientError;
use super::fields::Fields;
use super::held::{AnyEntity, Held, cut, mismatch};
use super::link::Link;
use super::operations;

/// A piece is sent when it has so many bytes.
const PIECE_BYTES: usize = 128 * 1024;

/// Pieces that wait to be sent.
const PIECES_WAITING_MAX: usize = 4;

/// The longest pause in which nothing is sent.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Stores many documents. Call [`BulkInsert::finish`]: where it is dropped before, the documents of the last batches are lost.
#[derive(Debug)]
#[must_use = "documents are stored only when it is finished"]
pub struct BulkInsert {
    link: Arc<Link>,
    /// Elements that are not sent yet.
    waiting: Vec<u8>,
    /// Documents that were given.
    count: u64,
    request: Option<Request>,
    /// It has failed, and takes no more.
    is_broken: bool,
}

/// The request under way.
#[derive(Debug)]
struct Request {
    /// Dropped first, so that a request that was not finished never looks like one that was.
    task: AbortOnDrop,
    pieces: mpsc::Sender<Piece>,
    operation: u64,
}

/// A task that ends with its owner.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<Result<(), ClientError>>);

#[derive(Debug)]
enum Piece {
    /// Elements with commas between them.
    Elements(Bytes),
    /// The array closes.
    End,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Element<'a> {
    id: &'a str,
    r#type: &'static str,
    document: Fields,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NextId {
    id: u64,
}

impl BulkInsert {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link, waiting: Vec::new(), count: 0, request: None, is_broken: false }
    }

    /// Stores an entity, and returns its id: the one in its id field, or one made by the conventions.
    ///
    /// # Errors
    /// The entity is no JSON object, no id can be made, or the server has refused a document before: nothing more is stored
    /// then.
    ///
    /// # Cancel safety
    /// Dropped on the way, it is not stored or waits for the next piece; others are not affected.
    pub async fn store<T: Document>(&mut self, entity: T) -> Result<String, ClientError> {
        let info = self.link.conventions.describe::<T>();
        let held = Held::new(entity, &info);
        let (id, _) = held.asked(&self.link, &info).await?;
        self.add(&held, info.collection.as_deref(), &id).await?;
        Ok(id)
    }

    /// Stores an entity under `id`, which may end in the separator: the server makes the rest.
    ///
    /// # Errors
    /// As [`BulkInsert::store`]; and an id that ends in `|`, because identities are too slow for many documents.
    ///
    /// # Cancel safety
    /// As [`BulkInsert::store`].
    pub async fn store_as<T: Document>(&mut self, entity: T, id: &str) -> Result<(), ClientError> {
        if id.ends_with('|') {
            return Err(ClientError::Usage(format!(
                "'{}' asks for an identity, which bulk insert does not make; use ids that you make yourself, or '{}'",
                cut(id),
                cut(&id.replace('|', "/"))
            )));
        }
        let info = self.link.conventions.describe::<T>();
        let held = Held::new(entity, &info);
        self.add(&held, info.collection.as_deref(), id).await
    }

    /// Waits until everything is stored, and says how many documents that were.
    ///
    /// # Errors
    /// A document was refused, or the server can't be reached. What was stored before stays stored; the error says how much
    /// that is.
    ///
    /// # Cancel safety
    /// Dropped on the way, some documents are not stored.
    pub async fn finish(mut self) -> Result<u64, ClientError> {
        self.send_waiting().await?;
        let Some(request) = self.request.take() else { return Ok(0) };
        // Where nobody takes it any more, the outcome says why.
        let _ = request.pieces.send(Piece::End).await;
        let link = Arc::clone(&self.link);
        let timeout = link.timeout();
        match tokio::time::timeout(timeout, request.outcome(&link)).await {
            Ok(outcome) => outcome.map(|()| self.count),
            Err(_) => Err(link.stalled(&format!("the bulk insert was not answered within {timeout:?}"))),
        }
    }

    /// Ends the insert. Batches that the server has stored stay stored.
    ///
    /// # Errors
    /// The server can't be reached; it gives the insert up by itself then.
    pub async fn abort(mut self) -> Result<(), ClientError> {
        let Some(request) = self.request.take() else { return Ok(()) };
        let call = self.link.call(Method::POST, "operations/kill").query("id", request.operation.to_string());
        self.link.send(call.repeatable(true)).await.map(|_| ())
    }

    async fn add<T: Document>(
        &mut self,
        held: &Held<T>,
        collection: Option<&str>,
        id: &str,
    ) -> Result<(), ClientError> {
        let written = held.fields().and_then(|fields| Ok((fields, held.metadata(collection)?)));
        let (fields, metadata) = written.map_err(|reason| mismatch::<T>(id, reason))?;
        let element = Element { id, r#type: "PUT", document: with_metadata(fields, &metadata)? };
        if self.waiting.len() >= PIECE_BYTES {
            self.send_waiting().await?;
        }
        let before = self.waiting.len();
        if before > 0 {
            self.waiting.push(b',');
        }
        if let Err(error) = serde_json::to_writer(&mut self.waiting, &element) {
            self.waiting.truncate(before);
            return Err(ClientError::Usage(error.to_string()));
        }
        self.count += 1;
        Ok(())
    }

    async fn send_waiting(&mut self) -> Result<(), ClientError> {
        if self.is_broken {
            let message = "a document of this bulk insert was refused, so it takes no more; begin another one";
            return Err(ClientError::Usage(message.to_owned()));
        }
        if self.waiting.is_empty() {
            return Ok(());
        }
        let request = match &mut self.request {
            Some(request) => request,
            none => none.insert(Request::begin(Arc::clone(&self.link)).await?),
        };
        let (timeout, pieces) = (self.link.timeout(), request.pieces.clone());
        // Reserved first: what is not sent stays waiting.
        match tokio::time::timeout(timeout, pieces.reserve()).await {
            Ok(Ok(room)) => {
                room.send(Piece::Elements(std::mem::take(&mut self.waiting).into()));
                return Ok(());
            }
            Ok(Err(_)) => {}
            Err(_) => {
                (self.is_broken, self.request) = (true, None);
                return Err(self.link.stalled(&format!("the server took nothing of the bulk insert for {timeout:?}")));
            }
        }
        // Nobody takes pieces any more: the request is over, and its answer says why.
        self.is_broken = true;
        if let Some(request) = self.request.take() {
            request.outcome(&self.link).await?;
        }
        Err(self.link.stalled("the server ended the bulk insert before its end"))
    }
}

impl Request {
    async fn begin(link: Arc<Link>) -> Result<Self, ClientError> {
        let next = link.send(link.call(Method::GET, "operations/next-operation-id")).await?;
        let NextId { id: operation } = next.json()?;
        let (pieces, taken) = mpsc::channel(PIECES_WAITING_MAX);
        let task = tokio::spawn(async move {
            let call = link.call(Method::POST, "bulk_insert").query("id", operation.to_string());
            link.send_stream(call, body(taken)).await.map(|_| ())
        });
        Ok(Self { task: AbortOnDrop(task), pieces, operation })
    }

    /// How the request ended.
    async fn outcome(mut self, link: &Link) -> Result<(), ClientError> {
        let outcome = (&mut self.task.0).await.unwrap_or_else(|error| {
            Err(ClientError::Usage(format!("the bulk insert was stopped with its runtime: {error}")))
        });
        match outcome {
            // The connection broke, perhaps because the server said no while it was being written to.
            Err(ClientError::Unanswered { url, reason }) => match operations::outcome(link, self.operation).await {
                Ok(Some(_)) => Ok(()),
                Err(refused @ ClientError::Refused(_)) => Err(refused),
                _ => Err(ClientError::Unanswered { url, reason }),
            },
            outcome => outcome,
        }
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The request's body: an array of the pieces' elements, and of heartbeats where none comes.
fn body(pieces: mpsc::Receiver<Piece>) -> Body {
    let next = async |(mut pieces, mut comma): (mpsc::Receiver<Piece>, &'static [u8])| {
        let piece = match tokio::time::timeout(HEARTBEAT, pieces.recv()).await {
            Ok(Some(Piece::Elements(elements))) => [comma, &elements].concat(),
            Err(_) => [comma, b"{\"Type\":\"HeartBeat\"}"].concat(),
            Ok(Some(Piece::End)) => {
                pieces.close();
                let end: &[u8] = if comma == b"[" { b"[]" } else { b"]" };
                return Some((Ok(Bytes::from_static(end)), (pieces, b"".as_slice())));
            }
            Ok(None) if comma.is_empty() => return None,
            Ok(None) => return Some((Err("the bulk insert was dropped before its end"), (pieces, b"".as_slice()))),
        };
        comma = b",";
        Some((Ok(Bytes::from(piece)), (pieces, comma)))
    };
    Body::wrap_stream(stream::unfold((pieces, b"[".as_slice()), next))
}
