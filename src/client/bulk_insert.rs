//! Bulk insert: many documents, as fast as the server takes them, with bounded memory. Each batch is stored whole or not at
//! all; the insert as a whole is not.
//!
//! Whoever stores waits while too many batches are under way. Two batches with one id never are at the same time, so that
//! the document that was stored last is the one that stays.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use reqwest::Method;
use tokio::task::JoinHandle;

use super::batch::{BatchBody, Command, is_unfinished, read_results, with_metadata};
use super::conventions::Document;
use super::error::ClientError;
use super::held::{AnyEntity, Held, cut, mismatch};
use super::link::Link;
use crate::id::lower;

/// A batch is sent when it has so many documents.
const BATCH_DOCUMENTS_MAX: usize = 4_096;

/// A batch is sent when its documents have so many bytes.
const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Batches under way at a time.
const IN_FLIGHT_MAX: usize = 4;

/// Stores many documents. What was stored since the last batch is lost when it is dropped: call [`BulkInsert::finish`].
#[derive(Debug)]
#[must_use = "documents are stored only when it is finished"]
pub struct BulkInsert {
    link: Arc<Link>,
    waiting: Batch,
    in_flight: VecDeque<InFlight>,
    stored: u64,
    /// A batch failed.
    is_broken: bool,
}

#[derive(Debug, Default)]
struct Batch {
    body: BatchBody,
    /// The finished ids, in lower case.
    ids: HashSet<String>,
    repeatable: bool,
}

#[derive(Debug)]
struct InFlight {
    ids: HashSet<String>,
    count: u64,
    task: AbortOnDrop,
}

/// A task that ends with its owner.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<Result<(), ClientError>>);

impl BulkInsert {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link, waiting: Batch::new(), in_flight: VecDeque::new(), stored: 0, is_broken: false }
    }

    /// Stores an entity, and returns its id: the one in its id field, or one made by the conventions.
    ///
    /// # Errors
    /// The entity is no JSON object, no id can be made, or an earlier batch failed: nothing more is stored then.
    ///
    /// # Cancel safety
    /// Dropped on the way, it is not stored or waits for the next batch; others are not affected.
    pub async fn store<T: Document>(&mut self, entity: T) -> Result<String, ClientError> {
        let info = self.link.conventions.describe::<T>();
        let held = Held::new(entity, &info);
        let (id, _) = held.asked(&self.link, &info).await?;
        self.add(&held, info.collection.as_deref(), &id).await?;
        Ok(id)
    }

    /// Stores an entity under `id`, which may end in the separator: the server makes the rest.
    ///
    /// # Errors
    /// As [`BulkInsert::store`]; and an id that ends in `|`, because identities are too slow for many documents.
    ///
    /// # Cancel safety
    /// As [`BulkInsert::store`].
    pub async fn store_as<T: Document>(&mut self, entity: T, id: &str) -> Result<(), ClientError> {
        if id.ends_with('|') {
            return Err(ClientError::Usage(format!(
                "'{}' asks for an identity, which bulk insert does not make; use ids that you make yourself, or '{}'",
                cut(id),
                cut(&id.replace('|', "/"))
            )));
        }
        let info = self.link.conventions.describe::<T>();
        let held = Held::new(entity, &info);
        self.add(&held, info.collection.as_deref(), id).await
    }

    /// Waits until everything is stored, and says how many documents that were.
    ///
    /// # Errors
    /// A batch was refused, or the server can't be reached. Batches that were stored before stay stored.
    ///
    /// # Cancel safety
    /// Dropped on the way, batches that were not sent yet are not stored.
    pub async fn finish(mut self) -> Result<u64, ClientError> {
        self.send_waiting().await?;
        while !self.in_flight.is_empty() {
            self.settle_one().await?;
        }
        Ok(self.stored)
    }

    /// How many documents are stored for certain by now.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.stored
    }

    async fn add<T: Document>(
        &mut self,
        held: &Held<T>,
        collection: Option<&str>,
        id: &str,
    ) -> Result<(), ClientError> {
        let separator = self.link.separator().await?;
        let written = held.fields().and_then(|fields| Ok((fields, held.metadata(collection)?)));
        let (fields, metadata) = written.map_err(|reason| mismatch::<T>(id, reason))?;
        let document = with_metadata(fields, &metadata)?;
        if self.waiting.is_full() {
            self.send_waiting().await?;
        }
        self.waiting.body.add(&Command::Put { id, change_vector: None, document })?;
        if is_unfinished(id, separator) {
            self.waiting.repeatable = false;
        } else {
            self.waiting.ids.insert(lower(id));
        }
        Ok(())
    }

    async fn send_waiting(&mut self) -> Result<(), ClientError> {
        if self.is_broken {
            let message = "a batch of this bulk insert failed, so it takes no more; begin another one";
            return Err(ClientError::Usage(message.to_owned()));
        }
        if self.waiting.body.count() == 0 {
            return Ok(());
        }
        while self.in_flight.len() >= IN_FLIGHT_MAX || self.in_flight.iter().any(|it| it.overlaps(&self.waiting)) {
            self.settle_one().await?;
        }
        let batch = std::mem::replace(&mut self.waiting, Batch::new());
        let (count, ids, repeatable) = (batch.body.count(), batch.ids, batch.repeatable);
        let body = batch.body.finish();
        let link = Arc::clone(&self.link);
        // A task of its own goes on while the next batch is filled.
        let task = tokio::spawn(async move {
            let call = link.call(Method::POST, "bulk_docs").body(body).repeatable(repeatable);
            let answer = link.send(call).await?;
            read_results(&answer, count).map(|_| ())
        });
        self.in_flight.push_back(InFlight { ids, count: count as u64, task: AbortOnDrop(task) });
        Ok(())
    }

    async fn settle_one(&mut self) -> Result<(), ClientError> {
        let Some(oldest) = self.in_flight.front_mut() else { return Ok(()) };
        let outcome = (&mut oldest.task.0).await;
        let count = self.in_flight.pop_front().map_or(0, |oldest| oldest.count);
        let outcome = outcome.unwrap_or_else(|error| {
            Err(ClientError::Usage(format!("a batch of the bulk insert was stopped with its runtime: {error}")))
        });
        match outcome {
            Ok(()) => self.stored += count,
            Err(_) => self.is_broken = true,
        }
        outcome
    }
}

impl Batch {
    fn new() -> Self {
        Self { repeatable: true, ..Self::default() }
    }

    fn is_full(&self) -> bool {
        self.body.count() >= BATCH_DOCUMENTS_MAX || self.body.bytes() >= BATCH_BYTES_MAX
    }
}

impl InFlight {
    fn overlaps(&self, batch: &Batch) -> bool {
        let (fewer, more) =
            if self.ids.len() < batch.ids.len() { (&self.ids, &batch.ids) } else { (&batch.ids, &self.ids) };
        fewer.iter().any(|id| more.contains(id))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
