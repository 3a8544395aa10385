//! A worker: takes batches of a subscription, one after the other, and comes back when the connection breaks.
//!
//! A batch that was not acknowledged is delivered again, after a break as after a failure of the worker. So what a worker
//! does with a batch should either do no harm twice, or remember [`Batch::through`] together with its work.

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::lines::Lines;
use crate::client::error::{ClientError, ErrorKind};
use crate::client::retry::{RetryPolicy, chance};
use crate::client::store::DocumentStore;

/// How long a server may be silent; it shows every few seconds that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What a worker does about others that have the subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// It is refused while another has it.
    #[default]
    OpenIfFree,
    /// It waits until the subscription is free.
    WaitForFree,
    /// It ends the other worker.
    TakeOver,
    /// It shares the subscription with others of its kind; a document is in one worker's hands at a time.
    Concurrent,
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// What it does about others. Default [`Strategy::OpenIfFree`].
    pub strategy: Strategy,
    /// Changes of one batch; it may have more where a run of an index would be cut. 1 to 16,384. Default 1,024.
    pub batch_changes: u32,
    /// Whether it ends when everything was delivered. Default: it waits for more.
    pub ends_when_empty: bool,
    /// How it comes back after the connection broke.
    pub retry: RetryPolicy,
    /// How long the server may stay away before the worker gives up. Default 5 min.
    pub away_max: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            batch_changes: 1_024,
            ends_when_empty: false,
            retry: RetryPolicy::default(),
            away_max: Duration::from_secs(300),
        }
    }
}

/// A batch of changes in etag order. The runs of an index are in it whole, where they fit into 32,768 changes.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The changes, at least one.
    pub changes: Vec<Change>,
    /// The etag through which the feed has been delivered with this batch.
    pub through: u64,
    /// Whether nothing was left behind it: what was applied so far equals the collection as it was then.
    pub is_caught_up: bool,
    /// Where nothing was left, of an output collection: the etag of the index's sources through which it is complete.
    pub complete_through: Option<u64>,
    worker: String,
}

/// One change.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Change {
    /// The document.
    pub id: String,
    /// Its collection.
    pub collection: String,
    /// The etag of the write or deletion.
    pub etag: u64,
    /// Its change vector.
    pub change_vector: String,
    /// The run of the index that made it: all changes of one run became visible together.
    #[serde(default)]
    pub run: Option<u64>,
    /// The etag of the index's sources through which the results are complete with this run.
    #[serde(default)]
    pub complete_through: Option<u64>,
    /// Whether the document was deleted.
    #[serde(default)]
    pub deleted: bool,
    /// The document, or what the script made of it; `None` where it was deleted or the script failed.
    #[serde(default)]
    pub document: Option<Box<RawValue>>,
    /// The version that the subscription delivered before, where it was asked for and there was one.
    #[serde(default)]
    pub previous: Option<Box<RawValue>>,
    /// Why the subscription's script failed on the document.
    #[serde(default)]
    pub exception: Option<String>,
}

impl Change {
    /// Reads the document as a Rust value.
    ///
    /// # Errors
    /// There is none, or it is no such value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        let type_name = std::any::type_name::<T>();
        let failed = |reason: String| ClientError::Document { id: self.id.clone(), type_name, reason };
        let Some(document) = &self.document else {
            return Err(failed(self.exception.clone().unwrap_or_else(|| "it was deleted".to_owned())));
        };
        serde_json::from_str(document.get()).map_err(|error| failed(error.to_string()))
    }
}

/// Takes the batches of one subscription.
#[derive(Debug)]
pub struct SubscriptionWorker {
    store: DocumentStore,
    name: String,
    options: WorkerOptions,
    open: Option<Open>,
    /// Attempts since the server was last there, and when that was.
    attempts: u32,
    away_since: Option<std::time::Instant>,
}

#[derive(Debug)]
struct Open {
    lines: Lines,
    worker: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Kind<'a> {
    #[serde(borrow, rename = "Type")]
    kind: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EndOfBatch {
    through: u64,
    is_caught_up: bool,
    complete_through: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Status {
    status: String,
    #[serde(default)]
    worker: Option<String>,
    #[serde(default)]
    data: Option<Closing>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Closing {
    can_reconnect: bool,
    #[serde(default)]
    no_docs_left: bool,
}

/// What came of reading on.
enum Came {
    Batch(Batch),
    /// Everything was delivered, and the worker was to end then.
    Empty,
    /// The connection is over, and may be made anew.
    Over,
}

impl SubscriptionWorker {
    pub(super) fn new(store: DocumentStore, name: String, options: WorkerOptions) -> Self {
        Self { store, name, options, open: None, attempts: 0, away_since: None }
    }

    /// Waits for the next batch; connects, also again, where need be. `None`: everything was delivered, and the worker was to
    /// end then.
    ///
    /// # Errors
    /// The subscription is missing, in use, deleted or turned off, another worker took over, or the server stayed away for
    /// too long.
    ///
    /// # Cancel safety
    /// Dropped on the way, it is asked for the same batch again: the next call makes a new connection.
    pub async fn next(&mut self) -> Result<Option<Batch>, ClientError> {
        loop {
            // Taken out, so that a dropped future leaves no half-read batch behind.
            let open = match self.open.take() {
                Some(open) => Ok(open),
                None => self.connect().await,
            };
            let came = match open {
                Ok(mut open) => {
                    let came = self.read(&mut open).await;
                    if matches!(came, Ok(Came::Batch(_))) {
                        self.open = Some(open);
                    }
                    came
                }
                Err(error) => Err(error),
            };
            match came {
                Ok(Came::Batch(batch)) => return Ok(Some(batch)),
                Ok(Came::Empty) => return Ok(None),
                Ok(Came::Over) => self.pause(None).await?,
                Err(error) => self.pause(Some(error)).await?,
            }
        }
    }

    /// Acknowledges a batch: it will not be delivered again. `false`: the connection broke meanwhile, and the batch will come
    /// again.
    ///
    /// # Errors
    /// The server refuses it for another reason, or can't be reached.
    pub async fn acknowledge(&mut self, batch: &Batch) -> Result<bool, ClientError> {
        let link = self.store.link();
        let call = link
            .call(Method::POST, "subscriptions/ack")
            .query("name", &self.name)
            .query("worker", &batch.worker)
            .query("through", batch.through.to_string());
        match link.send(call.repeatable(true)).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unreachable | ErrorKind::Busy) => {
                tracing::debug!(name: "client.subscription.lost", %error, "a batch was not acknowledged and will come again");
                self.open = None;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Hands each batch to `work` and acknowledges it when that succeeds. Ends with the error of `work`, which leaves its batch
    /// unacknowledged, or when everything was delivered and the worker was to end then.
    ///
    /// # Errors
    /// Those of [`SubscriptionWorker::next`], and those of `work`.
    ///
    /// # Cancel safety
    /// Dropped on the way, the batch in hand is not acknowledged.
    pub async fn run<E: From<ClientError>>(
        &mut self,
        mut work: impl AsyncFnMut(&Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(batch) = self.next().await? {
            work(&batch).await?;
            self.acknowledge(&batch).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Open, ClientError> {
        let link = self.store.link();
        let strategy = match self.options.strategy {
            Strategy::OpenIfFree => "OpenIfFree",
            Strategy::WaitForFree => "WaitForFree",
            Strategy::TakeOver => "TakeOver",
            Strategy::Concurrent => "Concurrent",
        };
        // Chosen here, so that no acknowledgement of this worker is ever taken for another's.
        let worker = crate::id::guid::guid(false);
        let call = link
            .call(Method::GET, "subscriptions/stream")
            .query("name", &self.name)
            .query("strategy", strategy)
            .query("worker", &worker)
            .query("batch", self.options.batch_changes.to_string())
            .query("closeWhenNoDocsLeft", self.options.ends_when_empty.to_string());
        Ok(Open { lines: Lines::new(link.stream(call).await?, SILENCE_MAX), worker })
    }

    /// Reads on to the end of a batch.
    async fn read(&mut self, open: &mut Open) -> Result<Came, ClientError> {
        let mut changes = Vec::new();
        while let Some(line) = open.lines.next().await? {
            self.attempts = 0;
            self.away_since = None;
            match from_line::<Kind<'_>>(&line)?.kind.as_ref() {
                "Data" => changes.push(from_line(&line)?),
                "EndOfBatch" => {
                    let EndOfBatch { through, is_caught_up, complete_through } = from_line(&line)?;
                    let worker = open.worker.clone();
                    return Ok(Came::Batch(Batch { changes, through, is_caught_up, complete_through, worker }));
                }
                _ => {
                    let status: Status = from_line(&line)?;
                    match (status.status.as_str(), status.data) {
                        ("Accepted", _) => open.worker = status.worker.unwrap_or_default(),
                        (_, Some(Closing { can_reconnect: true, .. })) => return Ok(Came::Over),
                        (_, Some(Closing { no_docs_left: true, .. })) if self.options.ends_when_empty => {
                            return Ok(Came::Empty);
                        }
                        (other, _) => {
                            return Err(ClientError::Usage(status.message.unwrap_or_else(|| other.to_owned())));
                        }
                    }
                }
            }
        }
        Ok(Came::Over)
    }

    /// Waits before the next attempt, where another one makes sense.
    async fn pause(&mut self, error: Option<ClientError>) -> Result<(), ClientError> {
        let since = *self.away_since.get_or_insert_with(std::time::Instant::now);
        if let Some(error) = error {
            let may_help = matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Busy);
            if !may_help || since.elapsed() >= self.options.away_max {
                return Err(error);
            }
            tracing::debug!(name: "client.subscription.retry", %error, "a subscription is opened again");
        }
        self.attempts = self.attempts.saturating_add(1);
        tokio::time::sleep(self.options.retry.pause(self.attempts, None, chance())).await;
        Ok(())
    }
}

fn from_line<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, ClientError> {
    serde_json::from_slice(line).map_err(|error| ClientError::Answer {
        request: "GET subscriptions/stream".to_owned(),
        reason: error.to_string(),
    })
}
