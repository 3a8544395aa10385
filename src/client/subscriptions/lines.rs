//! A long answer, line by line, with a bound on how long the server may be silent.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use crate::client::error::ClientError;

/// Bytes of one line: the largest document twice, with its former version.
const LINE_BYTES_MAX: usize = 256 << 20;

/// The lines of an answer.
#[derive(Debug)]
pub(super) struct Lines {
    response: Response,
    buffer: BytesMut,
    /// Bytes of the buffer in which no line end was found.
    searched: usize,
    silence_max: Duration,
}

impl Lines {
    pub(super) fn new(response: Response, silence_max: Duration) -> Self {
        Self { response, buffer: BytesMut::new(), searched: 0, silence_max }
    }

    /// The next line that is not empty; `None` where the server has ended the answer.
    ///
    /// # Errors
    /// The connection broke, the server was silent for too long, or a line is too long.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                if line.len() > 1 {
                    return Ok(Some(line));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_BYTES_MAX {
                return Err(self.broken(format!("a line is longer than {LINE_BYTES_MAX} bytes")));
            }
            match tokio::time::timeout(self.silence_max, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => self.buffer.extend_from_slice(&chunk),
                Ok(Ok(None)) => return Ok(None),
                Ok(Err(error)) => return Err(self.broken(error.to_string())),
                Err(_) => return Err(self.broken(format!("it was silent for {:?}", self.silence_max))),
            }
        }
    }

    fn broken(&self, reason: String) -> ClientError {
        ClientError::Unanswered { url: self.response.url().origin().ascii_serialization(), reason }
    }
}
