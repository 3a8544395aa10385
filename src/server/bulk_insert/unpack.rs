//! Unpacks a body that arrives in pieces, so that each piece gives what is in it at once.

use std::io::{self, Write};

use axum::http::{HeaderMap, StatusCode, header};
use flate2::write::MultiGzDecoder;

use crate::server::error::ApiError;
use crate::server::error::names;

/// Packed bytes that are unpacked at once: bounds what a piece can grow to.
const STEP_BYTES: usize = 4 * 1024;

/// The logarithm of the longest window of a zstd body, and so of the memory for it: 16 MiB.
const WINDOW_LOG_MAX: u32 = 24;

/// Unpacks one body.
pub(crate) enum Unpacker {
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
}

impl Unpacker {
    /// Reads the body's encoding.
    ///
    /// # Errors
    /// 415 for another than gzip and zstd.
    pub(crate) fn new(headers: &HeaderMap) -> Result<Self, ApiError> {
        let encoding = headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase());
        match encoding.as_deref() {
            None | Some(b"" | b"identity") => Ok(Self::Plain),
            Some(b"gzip" | b"x-gzip") => Ok(Self::Gzip(MultiGzDecoder::new(Vec::new()))),
            Some(b"zstd") => {
                let failed = |error| ApiError::internal(format!("zstd can't be unpacked: {error}"));
                let mut decoder = zstd::stream::write::Decoder::new(Vec::new()).map_err(failed)?;
                decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
                Ok(Self::Zstd(decoder))
            }
            Some(other) => Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                names::NOT_SUPPORTED,
                format!(
                    "The Content-Encoding '{}' is not supported; send gzip, zstd or none.",
                    String::from_utf8_lossy(other)
                ),
            )),
        }
    }

    /// Unpacks a piece and hands what was in it to `take`, some at a time.
    ///
    /// # Errors
    /// It is not what the encoding says; those of `take`.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        if let Self::Plain = self {
            return take(piece);
        }
        for step in piece.chunks(STEP_BYTES) {
            let unpacked = match self {
                Self::Plain => Ok(step.to_vec()),
                Self::Gzip(decoder) => write(decoder, step).map(|()| std::mem::take(decoder.get_mut())),
                Self::Zstd(decoder) => write(decoder, step).map(|()| std::mem::take(decoder.get_mut())),
            };
            let unpacked = unpacked.map_err(|error| ApiError::data(format!("The body can't be unpacked: {error}")))?;
            take(&unpacked)?;
        }
        Ok(())
    }
}

fn write(decoder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    decoder.write_all(bytes)?;
    decoder.flush()
}
