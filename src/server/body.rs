//! Request bodies: read whole, within a limit, a time, and a budget that all requests share.
//!
//! What is left of a body that was refused is read by `drain`.

use std::io::Read;
use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{ApiError, names};
use super::host::Host;
use super::settings::ServerLimits;

/// The unit in which the shared budget counts.
const BUDGET_UNIT: usize = 4 * 1024;

/// A limit with its words: what may be that long, and which setting says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit {
    /// `a document`, `a batch`.
    pub(crate) what: &'static str,
    /// Bytes, after decompression.
    pub(crate) bytes: usize,
    /// The setting's name.
    pub(crate) setting: &'static str,
}

/// A body, with its share of the budget.
#[derive(Debug)]
pub(crate) struct Payload {
    bytes: Vec<u8>,
    share: Share,
}

/// A part of the shared budget that grows with the body and is given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    units: usize,
}

impl Payload {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyLimit {
    /// The limit of one document.
    pub(crate) fn document(limits: &ServerLimits) -> Self {
        Self { what: "a document", bytes: limits.document_bytes_max, setting: "document_bytes_max" }
    }

    /// The limit of one batch.
    pub(crate) fn batch(limits: &ServerLimits) -> Self {
        Self { what: "a batch", bytes: limits.batch_bytes_max, setting: "batch_bytes_max" }
    }

    /// The limit of everything else.
    pub(crate) fn request(limits: &ServerLimits) -> Self {
        Self { what: "this request's body", bytes: limits.request_bytes_max, setting: "request_bytes_max" }
    }

    /// The refusal.
    pub(crate) fn exceeded(&self) -> ApiError {
        let Self { what, bytes, setting } = self;
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            names::BAD_REQUEST,
            format!("The limit of {what} is {bytes} bytes ({setting}); send less, or raise the setting."),
        )
    }
}

/// Makes the budget that all bodies share.
pub(crate) fn budget(limits: &ServerLimits) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(budget_bytes(limits) / BUDGET_UNIT))
}

/// The bytes of the budget, in whole units.
pub(crate) fn budget_bytes(limits: &ServerLimits) -> usize {
    (limits.bodies_bytes_max / BUDGET_UNIT).min(Semaphore::MAX_PERMITS) * BUDGET_UNIT
}

/// The bytes of the budget that no body holds.
pub(crate) fn budget_left(budget: &Semaphore) -> usize {
    budget.available_permits() * BUDGET_UNIT
}

/// Reads a body whole and decompresses it.
///
/// # Errors
/// 400 (cut off, not gzip), 408 (too slow), 413 (over `limit`), 415 (another encoding), 503 (the budget is spent).
pub(crate) async fn read(host: &Host, headers: &HeaderMap, body: Body, limit: BodyLimit) -> Result<Payload, ApiError> {
    let encoding = headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase());
    let gzip = match encoding.as_deref() {
        None | Some(b"" | b"identity") => false,
        Some(b"gzip" | b"x-gzip") => true,
        Some(other) => {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                names::NOT_SUPPORTED,
                format!(
                    "The Content-Encoding '{}' is not supported; send gzip or none.",
                    String::from_utf8_lossy(other)
                ),
            ));
        }
    };
    let deadline = Instant::now() + host.settings.limits.body_timeout;
    let mut reader = Reader { stream: body.into_data_stream(), host, deadline };
    let payload = reader.read_whole(headers, limit).await?;
    if !gzip {
        return Ok(payload);
    }
    host.blocking(move || decompress(&payload, limit)).await
}

struct Reader<'a> {
    stream: BodyDataStream,
    host: &'a Host,
    deadline: Instant,
}

impl Reader<'_> {
    async fn read_whole(&mut self, headers: &HeaderMap, limit: BodyLimit) -> Result<Payload, ApiError> {
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|length| length > limit.bytes) {
            return Err(limit.exceeded());
        }
        let mut share = Share::none(self.host);
        share.grow_to(declared.unwrap_or(0))?;
        let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(1 << 20));
        while let Some(chunk) = self.next().await? {
            if bytes.len() + chunk.len() > limit.bytes {
                return Err(limit.exceeded());
            }
            share.grow_to(bytes.len() + chunk.len())?;
            bytes.extend_from_slice(&chunk);
        }
        Ok(Payload { bytes, share })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let pause = self.host.settings.limits.body_pause_max;
        match timeout_at(self.deadline, timeout(pause, self.stream.next())).await {
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(Ok(chunk)))) => Ok(Some(chunk)),
            Ok(Ok(Some(Err(error)))) => Err(ApiError::data(format!("The request's body was cut off: {error}"))),
            Ok(Err(_)) | Err(_) => Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                names::TIMEOUT,
                format!(
                    "The request's body came too slowly: a pause may last {pause:?} (body_pause_max), all of it {:?} (body_timeout).",
                    self.host.settings.limits.body_timeout
                ),
            )),
        }
    }
}

impl Share {
    /// Takes no share yet.
    pub(crate) fn none(host: &Host) -> Self {
        Self { budget: Arc::clone(&host.bodies), permit: None, units: 0 }
    }

    /// Takes a share of at least so many bytes.
    ///
    /// # Errors
    /// 503 where the budget is spent.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let wanted = bytes.div_ceil(BUDGET_UNIT);
        let Some(more) = wanted.checked_sub(self.units).filter(|more| *more > 0) else { return Ok(()) };
        let permit =
            u32::try_from(more).ok().and_then(|more| Arc::clone(&self.budget).try_acquire_many_owned(more).ok());
        let Some(permit) = permit else {
            return Err(ApiError::busy(
                "The bodies of all requests in hand have reached bodies_bytes_max; try again, with smaller batches.",
            ));
        };
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
        self.units = wanted;
        Ok(())
    }
}

fn decompress(packed: &Payload, limit: BodyLimit) -> Result<Payload, ApiError> {
    let mut share = Share { budget: Arc::clone(&packed.share.budget), permit: None, units: 0 };
    let mut decoder = MultiGzDecoder::new(packed.bytes());
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let count =
            decoder.read(&mut chunk).map_err(|error| ApiError::data(format!("The body is not whole gzip: {error}")))?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else { break };
        if bytes.len() + count > limit.bytes {
            return Err(limit.exceeded());
        }
        share.grow_to(bytes.len() + count)?;
        bytes.extend_from_slice(read);
    }
    Ok(Payload { bytes, share })
}
