//! JSON values that follow each other on a socket, without separators: read one by one, within a bound.

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes of one message of a client.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// What is spoken over: TCP, or TLS on it.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Wire for S {}

/// A connection that speaks in JSON values.
pub(super) struct Peer {
    wire: Box<dyn Wire>,
    buffer: BytesMut,
    unread_max: Duration,
}

/// Why a message could not be read.
#[derive(Debug)]
pub(super) enum Broken {
    /// The other side has closed, or the connection failed.
    Gone,
    /// It is no JSON, or too long, or not what is expected here.
    Malformed(String),
}

impl Peer {
    /// Takes a connection over; a client that reads nothing for `unread_max` is given up.
    pub(super) fn new(wire: Box<dyn Wire>, unread_max: Duration) -> Self {
        Self { wire, buffer: BytesMut::new(), unread_max }
    }

    /// Reads the next message.
    ///
    /// # Cancel safety
    /// What was read so far stays in the buffer.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, Broken> {
        loop {
            if let Some(message) = self.parse()? {
                return Ok(message);
            }
            if self.buffer.len() > MESSAGE_BYTES_MAX {
                return Err(Broken::Malformed(format!("a message is longer than {MESSAGE_BYTES_MAX} bytes")));
            }
            match self.wire.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(Broken::Gone),
                Ok(_) => {}
            }
        }
    }

    /// Takes a message from the buffer, where there is a whole one.
    fn parse<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Broken> {
        let mut values = serde_json::Deserializer::from_slice(&self.buffer).into_iter::<T>();
        match values.next() {
            None => Ok(None),
            Some(Ok(message)) => {
                let read = values.byte_offset();
                self.buffer.advance(read);
                Ok(Some(message))
            }
            Some(Err(error)) if error.is_eof() => Ok(None),
            Some(Err(error)) => Err(Broken::Malformed(error.to_string())),
        }
    }

    /// Sends one message.
    pub(super) async fn say(&mut self, message: &impl Serialize) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        self.send(&bytes).await
    }

    /// Sends bytes.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = tokio::time::timeout(self.unread_max, async {
            self.wire.write_all(bytes).await?;
            // TLS may keep the end back until it is told.
            self.wire.flush().await
        });
        let sent = sent.await;
        sent.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing"))?
    }

    /// Ends the connection in good order.
    pub(super) async fn end(mut self) {
        // Where this fails it has ended already.
        let _ = self.wire.shutdown().await;
    }
}
