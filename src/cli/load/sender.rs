//! Batches on their way to the server: a few at a time, in an order that nobody can tell from one at a time.
//!
//! A refused batch leaves no trace, so it is halved until the refused document stands alone and can be named. A batch is
//! sent again only where that can't store a document twice: when it was not carried out, or when all its ids are finished.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesOrdered;
use reqwest::{Method, StatusCode};

use super::batch::Batch;
use super::reader::BadLine;
use crate::cli::Failure;
use crate::cli::api::{Api, CallError};
use crate::cli::output::notice;

/// Requests under way at a time.
const IN_FLIGHT_MAX: usize = 4;

/// Times that one request is sent before giving up; the pauses between them add up to about 25 seconds.
const ATTEMPTS_MAX: u32 = 9;

const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Documents that are stored.
    pub(super) stored: u64,
    /// Documents that were refused; at most one unless bad ones are skipped.
    pub(super) bad: Vec<BadLine>,
    /// Why the rest of the batch was not stored, or may not have been.
    pub(super) failure: Option<Failure>,
}

/// Sends batches.
pub(super) struct Sender {
    api: Api,
    skip_bad: bool,
    /// Whether it was said that the server does not answer.
    said: Arc<AtomicBool>,
    under_way: FuturesOrdered<BoxFuture<'static, Outcome>>,
    batches: VecDeque<Arc<Batch>>,
}

impl Sender {
    pub(super) fn new(api: Api, skip_bad: bool) -> Self {
        Self {
            api,
            skip_bad,
            said: Arc::new(AtomicBool::new(false)),
            under_way: FuturesOrdered::new(),
            batches: VecDeque::new(),
        }
    }

    /// Whether `batch` must wait for the [`Sender::next`] outcome.
    pub(super) fn must_wait(&self, batch: &Batch) -> bool {
        self.batches.len() >= IN_FLIGHT_MAX || self.batches.iter().any(|other| other.must_not_overlap(batch))
    }

    /// Begins to send a batch.
    pub(super) fn send(&mut self, batch: Batch) {
        let batch = Arc::new(batch);
        let sending = store(self.api.clone(), Arc::clone(&batch), self.skip_bad, Arc::clone(&self.said));
        // A task of its own goes on while the next batch is waited for.
        let task =
            tokio::spawn(sending).map(|outcome| outcome.unwrap_or_else(|error| Outcome::failed(error.to_string())));
        self.under_way.push_back(task.boxed());
        self.batches.push_back(batch);
    }

    /// Waits for the oldest batch under way; `None` when there is none.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Outcome> {
        let outcome = self.under_way.next().await?;
        self.batches.pop_front();
        Some(outcome)
    }
}

impl Outcome {
    fn failed(message: String) -> Self {
        Self { failure: Some(Failure::failed(message)), ..Self::default() }
    }
}

/// Stores a batch, its documents in order, and finds the ones that are refused.
async fn store(api: Api, batch: Arc<Batch>, skip_bad: bool, said: Arc<AtomicBool>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut parts = VecDeque::new();
    parts.push_back(0..batch.len());
    while let Some(part) = parts.pop_front() {
        match send(&api, &batch, &part, &said).await {
            Ok(()) => outcome.stored += part.len() as u64,
            Err(CallError::Refused(refusal)) if blames_a_document(refusal.status) => {
                if part.len() > 1 {
                    let middle = part.start + part.len() / 2;
                    parts.push_front(middle..part.end);
                    parts.push_front(part.start..middle);
                    continue;
                }
                let line = batch.line(part.start);
                outcome.bad.push(BadLine { file: Arc::clone(&batch.file), line, reason: reason(&refusal.message) });
                if !skip_bad {
                    break;
                }
            }
            Err(error) => {
                outcome.failure = Some(lost(&api, &batch, &part, error));
                break;
            }
        }
    }
    outcome
}

/// Statuses by which a server refuses what is in the batch, and not the request as such.
fn blames_a_document(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// What a server says of the only document of a batch, without where in the batch it is.
fn reason(message: &str) -> String {
    let about = message.strip_prefix("Nothing was written: command 0, counted from 0").and_then(|rest| {
        let end = if rest.starts_with(" (") { "'): " } else { ": " };
        rest.split_once(end)
    });
    about.map_or(message, |(_, reason)| reason).to_owned()
}

/// Sends a part of a batch, again where that can do no harm; the first pause of a load is told to the user.
async fn send(api: &Api, batch: &Batch, part: &Range<usize>, said: &AtomicBool) -> Result<(), CallError> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        let request = api.request(Method::POST, "bulk_docs").body(batch.request(part.clone()));
        let error = match api.send(request).await {
            // The rest of the answer is read so that the connection can be used again.
            Ok(response) => match response.bytes().await {
                Ok(_) => return Ok(()),
                Err(error) => CallError::Unanswered(error.to_string()),
            },
            Err(error) => error,
        };
        let may_repeat = match &error {
            CallError::NotSent(_) => true,
            CallError::Unanswered(_) => batch.repeatable,
            CallError::Refused(refusal) => {
                refusal.status == StatusCode::SERVICE_UNAVAILABLE && !refusal.database_missing
            }
        };
        if !may_repeat || attempt == ATTEMPTS_MAX {
            return Err(error);
        }
        if !said.swap(true, Ordering::Relaxed) {
            notice("the server does not take more; trying again for about 25 seconds");
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
        attempt += 1;
    }
}

fn lost(api: &Api, batch: &Batch, part: &Range<usize>, error: CallError) -> Failure {
    let (first, last) = (batch.line(part.start), batch.line(part.end.saturating_sub(1)));
    let unknown = matches!(error, CallError::Unanswered(_));
    let mut failure = api.failure(error);
    let lines = format!("{}: lines {first} to {last}", batch.file);
    failure.message = format!("{lines} were not stored: {}", failure.message);
    if unknown {
        failure.message = failure.message.replace("were not stored", "may have been stored or not");
        if !batch.repeatable {
            failure.way_out = Some(
                "look before you load them again: their ids are made by the server, so they could be stored twice"
                    .to_owned(),
            );
        }
    }
    failure
}
