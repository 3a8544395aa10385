//! An answer that comes line by line.

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::Response;

use super::Failure;
use super::api::{Api, unanswered};

/// The lines of an answer, as they come.
pub(crate) struct Lines {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    buffer: BytesMut,
    /// Bytes of the buffer that hold no end of a line.
    searched: usize,
    line_bytes_max: usize,
}

impl Lines {
    pub(crate) fn new(response: Response, line_bytes_max: usize) -> Self {
        Self { chunks: response.bytes_stream().boxed(), buffer: BytesMut::new(), searched: 0, line_bytes_max }
    }

    /// The next line that is not empty; `None` at the end.
    ///
    /// # Errors
    /// The server broke off, or a line is too long.
    pub(crate) async fn next(&mut self, api: &Api) -> Result<Option<String>, Failure> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if !line.is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.searched > self.line_bytes_max {
                return Err(Failure::failed(format!("a row is longer than {} bytes", self.line_bytes_max)));
            }
            match self.chunks.try_next().await.map_err(|error| api.failure(unanswered(&error)))? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Failure::failed("the server's answer ends in the middle of a row")),
            }
        }
    }
}
