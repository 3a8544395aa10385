//! Long answers: pieces through a bounded channel, so that a slow reader holds its writer back.
//!
//! An answer that ends within its first piece is sent whole, with its length, and an error before the first piece is an
//! ordinary error answer. After that an error can only break the connection off: a stream that was cut must never look
//! like one that is complete.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tracing::Span;

use super::error::ApiError;
use super::host::Host;
use crate::query::QueryError;
use crate::store::StoreError;

/// Bytes gathered before a piece is sent.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Pieces on their way to one reader.
const PIECES_MAX: usize = 4;

/// A part of an answer.
#[derive(Debug)]
enum Piece {
    More(Vec<u8>),
    Last(Vec<u8>),
    Failed(ApiError),
}

/// Why an answer ends early.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The reader has gone, or has read nothing for `unread_max`.
    Gone,
    /// The server failed.
    Failed(ApiError),
}

/// The writing end, for tasks.
#[derive(Debug)]
pub(crate) struct Outlet {
    sender: mpsc::Sender<Piece>,
    unread_max: Duration,
}

/// The writing end, for threads that may block: gathers pieces.
#[derive(Debug)]
pub(crate) struct Sink {
    outlet: Outlet,
    runtime: Handle,
    /// What is not yet sent.
    pub(crate) buffer: Vec<u8>,
}

/// Marks an answer whose pieces must not wait for each other: one that follows what happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live;

/// The reading end.
#[derive(Debug)]
pub(crate) struct Inlet {
    receiver: mpsc::Receiver<Piece>,
}

/// Makes the two ends of an answer.
pub(crate) fn answer(unread_max: Duration) -> (Outlet, Inlet) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    (Outlet { sender, unread_max }, Inlet { receiver })
}

impl Outlet {
    /// Sends a part of the answer; an empty one sends the head of the answer at once.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Ended> {
        self.pass(Piece::More(bytes)).await
    }

    /// Sends the last part.
    pub(crate) async fn finish(self, bytes: Vec<u8>) -> Result<(), Ended> {
        self.pass(Piece::Last(bytes)).await
    }

    /// Ends the answer as the outcome of its writer says.
    pub(crate) async fn fail(self, ended: Ended) {
        if let Ended::Failed(error) = ended {
            // Where this fails the reader has gone too.
            let _ = self.pass(Piece::Failed(error)).await;
        }
    }

    /// Completes when the reader has gone.
    pub(crate) async fn closed(&self) {
        self.sender.closed().await;
    }

    async fn pass(&self, piece: Piece) -> Result<(), Ended> {
        match tokio::time::timeout(self.unread_max, self.sender.send(piece)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Ended::Gone),
            Err(_) => {
                tracing::info!(name: "http.answer.unread", "a client left an answer unread for too long and is cut off");
                Err(Ended::Gone)
            }
        }
    }
}

impl Sink {
    /// Tells whether the reader has gone, for work that sends nothing for a while.
    pub(crate) fn watch_reader(&self) -> impl Fn() -> bool + use<> {
        let sender = self.outlet.sender.clone();
        move || sender.is_closed()
    }

    /// Sends what has gathered, when there is enough of it.
    pub(crate) fn send_if_full(&mut self) -> Result<(), Ended> {
        if self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4));
        self.runtime.block_on(self.outlet.send(piece))
    }

    /// Sends what has gathered, however little.
    pub(crate) fn send(&mut self) -> Result<(), Ended> {
        self.runtime.block_on(self.outlet.send(std::mem::take(&mut self.buffer)))
    }

    fn finish(self, outcome: Result<(), Ended>) {
        match outcome {
            // Where the reader has gone there is nobody to tell.
            Ok(()) => drop(self.runtime.block_on(self.outlet.finish(self.buffer))),
            Err(ended) => self.runtime.block_on(self.outlet.fail(ended)),
        }
    }
}

impl Inlet {
    /// Makes the answer, as soon as its first piece is there.
    ///
    /// # Errors
    /// What the writer failed with before it had sent anything.
    pub(crate) async fn into_response(mut self, content_type: HeaderValue) -> Result<Response, ApiError> {
        let body = match self.receiver.recv().await {
            Some(Piece::Last(bytes)) => Body::from(bytes),
            Some(Piece::More(bytes)) => self.stream(bytes),
            Some(Piece::Failed(error)) => return Err(error),
            None => return Err(ApiError::internal("The answer broke off before it began.")),
        };
        Ok((StatusCode::OK, [(header::CONTENT_TYPE, content_type)], body).into_response())
    }

    /// The same for an answer that follows what happens; it is never compressed, which would hold pieces back.
    pub(crate) async fn into_live_response(self, content_type: HeaderValue) -> Result<Response, ApiError> {
        let mut response = self.into_response(content_type).await?;
        response.extensions_mut().insert(Live);
        Ok(response)
    }

    fn stream(self, first: Vec<u8>) -> Body {
        let state = (self.receiver, Some(Piece::More(first)), false);
        // Fused: whoever compresses an answer asks once more after its end.
        let pieces = stream::unfold(state, |(mut receiver, mut first, ended)| async move {
            if ended {
                return None;
            }
            loop {
                let piece = match first.take() {
                    Some(piece) => Some(piece),
                    None => receiver.recv().await,
                };
                let (part, ended) = match piece {
                    // An empty chunk would end a chunked body.
                    Some(Piece::More(bytes)) if bytes.is_empty() => continue,
                    Some(Piece::More(bytes)) => (Ok(Bytes::from(bytes)), false),
                    Some(Piece::Last(bytes)) if bytes.is_empty() => return None,
                    Some(Piece::Last(bytes)) => (Ok(Bytes::from(bytes)), true),
                    Some(Piece::Failed(error)) => (Err(broken_off(&error)), true),
                    None => (Err(io::Error::other("the answer broke off")), true),
                };
                return Some((part, (receiver, first, ended)));
            }
        });
        Body::from_stream(pieces.fuse())
    }
}

/// Answers with what `produce` writes, on a thread that may block.
///
/// # Errors
/// What `produce` fails with before its first piece is full.
pub(crate) async fn listing<F>(host: &Host, content_type: HeaderValue, produce: F) -> Result<Response, ApiError>
where
    F: FnOnce(&mut Sink) -> Result<(), Ended> + Send + 'static,
{
    begin(host, produce).await?.into_response(content_type).await
}

/// The same where the pieces tell what happens and must not wait for each other.
///
/// # Errors
/// Those of [`listing`].
pub(crate) async fn report<F>(host: &Host, content_type: HeaderValue, produce: F) -> Result<Response, ApiError>
where
    F: FnOnce(&mut Sink) -> Result<(), Ended> + Send + 'static,
{
    begin(host, produce).await?.into_live_response(content_type).await
}

async fn begin<F>(host: &Host, produce: F) -> Result<Inlet, ApiError>
where
    F: FnOnce(&mut Sink) -> Result<(), Ended> + Send + 'static,
{
    let Ok(permit) = std::sync::Arc::clone(&host.listings).acquire_owned().await else {
        return Err(ApiError::busy("The server is stopping."));
    };
    let (outlet, inlet) = answer(host.settings.limits.unread_max);
    let (span, runtime) = (Span::current(), Handle::current());
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        span.in_scope(|| {
            let mut sink = Sink { outlet, runtime, buffer: Vec::new() };
            let outcome = produce(&mut sink);
            sink.finish(outcome);
        });
    });
    Ok(inlet)
}

fn broken_off(error: &ApiError) -> io::Error {
    tracing::error!(name: "http.answer.broken", error = %error.detail(), "an answer was broken off by an error of the server");
    io::Error::other(error.message().to_owned())
}

impl From<ApiError> for Ended {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<QueryError> for Ended {
    fn from(error: QueryError) -> Self {
        Self::Failed(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    async fn read(response: Response) -> Result<Vec<u8>, axum::Error> {
        axum::body::to_bytes(response.into_body(), usize::MAX).await.map(|bytes| bytes.to_vec())
    }

    fn text() -> HeaderValue {
        HeaderValue::from_static("text/plain")
    }

    #[tokio::test]
    async fn pieces_arrive_in_order_and_empty_ones_end_nothing() {
        let (outlet, inlet) = answer(PATIENCE);
        tokio::spawn(async move {
            for piece in ["", "a", "", "b"] {
                outlet.send(piece.into()).await.unwrap();
            }
            outlet.finish("c".into()).await.unwrap();
        });
        assert_eq!(read(inlet.into_response(text()).await.unwrap()).await.unwrap(), b"abc");
    }

    #[tokio::test]
    async fn an_answer_of_one_piece_has_its_length() {
        let (outlet, inlet) = answer(PATIENCE);
        outlet.finish("whole".into()).await.unwrap();
        let response = inlet.into_response(text()).await.unwrap();
        assert_eq!(axum::body::HttpBody::size_hint(response.body()).exact(), Some(5));
    }

    #[tokio::test]
    async fn an_error_before_anything_is_an_error_answer() {
        let (outlet, inlet) = answer(PATIENCE);
        outlet.fail(ApiError::argument("no").into()).await;
        assert_eq!(inlet.into_response(text()).await.unwrap_err().message(), "no");
    }

    #[tokio::test]
    async fn an_error_in_the_middle_breaks_the_answer_off() {
        let (outlet, inlet) = answer(PATIENCE);
        outlet.send("part".into()).await.unwrap();
        outlet.fail(ApiError::internal("disk").into()).await;
        assert!(read(inlet.into_response(text()).await.unwrap()).await.is_err());
    }

    #[tokio::test]
    async fn a_writer_that_dies_breaks_the_answer_off() {
        let (outlet, inlet) = answer(PATIENCE);
        outlet.send("part".into()).await.unwrap();
        drop(outlet);
        assert!(read(inlet.into_response(text()).await.unwrap()).await.is_err());
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_holds_its_writer_back_and_is_given_up() {
        let (outlet, inlet) = answer(Duration::from_millis(1));
        for _ in 0..PIECES_MAX {
            outlet.send("part".into()).await.unwrap();
        }
        assert!(matches!(outlet.send("more".into()).await, Err(Ended::Gone)));
        drop(inlet);
    }
}
