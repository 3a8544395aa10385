//! An answer that comes line by line.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::Failure;
use super::api::{Api, unanswered};

/// Bytes of one line.
const LINE_BYTES_MAX: usize = 256 << 20;

/// The lines of an answer.
pub(crate) struct Lines<'a> {
    api: &'a Api,
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    buffer: BytesMut,
}

impl<'a> Lines<'a> {
    /// Begins to read an answer.
    pub(crate) fn new(api: &'a Api, response: reqwest::Response) -> Self {
        Self { api, chunks: response.bytes_stream().boxed(), buffer: BytesMut::new() }
    }

    /// The next line, without its end; `None` at the end of the answer.
    ///
    /// # Errors
    /// The server went away, or a line is longer than 256 MiB.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Failure> {
        let mut looked_at = 0;
        loop {
            let fresh = self.buffer.get(looked_at..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(looked_at + end + 1);
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            looked_at = self.buffer.len();
            if looked_at > LINE_BYTES_MAX {
                return Err(Failure::failed(format!("a line of the answer is longer than {LINE_BYTES_MAX} bytes")));
            }
            match self.chunks.next().await {
                Some(chunk) => {
                    self.buffer.extend_from_slice(&chunk.map_err(|error| self.api.failure(unanswered(&error)))?);
                }
                None => return Ok(None),
            }
        }
    }
}
