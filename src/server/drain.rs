//! Request bodies that a handler gave up: read on and thrown away, for a while.
//!
//! A connection that is closed over unread bytes is reset, and the caller, still sending, never sees why it was refused.
//! So what is left of a body is read by a task of its own while the answer goes out.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::http::{Request, header};
use futures_util::{Stream, StreamExt};

/// How long a caller may go on sending what nobody wants.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The same for bulk inserts: the Node.js client never ends its requests, and goes on only when the connection closes.
const INSERT_TIME_MAX: Duration = Duration::from_millis(500);

/// How many bytes are thrown away; a caller that sends more is cut off.
const BYTES_MAX: usize = 512 * 1024 * 1024;

/// A body that is read to its end even when it is dropped before.
struct Drained {
    stream: Option<BodyDataStream>,
    time_max: Duration,
}

/// Makes a request's body one that is read to its end.
pub(crate) fn drained(request: Request<Body>) -> Request<Body> {
    // A caller that waits for leave to send its body is better not given it.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return request;
    }
    let time_max = if request.uri().path().ends_with("/bulk_insert") { INSERT_TIME_MAX } else { TIME_MAX };
    request.map(|body| Body::from_stream(Drained { stream: Some(body.into_data_stream()), time_max }))
}

impl Stream for Drained {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let next = stream.poll_next_unpin(context);
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            self.stream = None;
        }
        next
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        if let (Some(stream), Ok(runtime)) = (self.stream.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(self.time_max, read_on(stream)));
        }
    }
}

async fn read_on(mut stream: BodyDataStream) {
    let mut left = BYTES_MAX;
    while let Some(Ok(chunk)) = stream.next().await {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
}
