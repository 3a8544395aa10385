//! Subscriptions: what changes in a collection, delivered at least once and in order, deletions too.
//!
//! ```no_run
//! # use treepie::client::{ClientError, DocumentStore, SubscriptionDefinition, WorkerOptions};
//! # async fn example(store: DocumentStore) -> Result<(), ClientError> {
//! let subscriptions = store.subscriptions();
//! let totals = SubscriptionDefinition { include_deletes: true, ..SubscriptionDefinition::new("totals", "from CarrierMonths") };
//! subscriptions.create(&totals).await?;
//! let mut worker = subscriptions.worker("totals", WorkerOptions::default());
//! while let Some(batch) = worker.next().await? {
//!     for change in &batch.changes {
//!         println!("{} {:?}", change.id, change.document);
//!     }
//!     worker.acknowledge(&batch).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Next on the walk: `worker`.

mod lines;
mod worker;

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::error::ClientError;
use super::store::DocumentStore;
pub use worker::{Batch, Change, Strategy, SubscriptionWorker, WorkerOptions};

/// The subscriptions of a database.
#[derive(Clone, Debug)]
pub struct Subscriptions {
    store: DocumentStore,
}

/// What a subscription delivers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct SubscriptionDefinition {
    /// Its name; `None` lets the server make one.
    pub name: Option<String>,
    /// `from Orders`, or `from @all_docs`.
    pub query: String,
    /// A Rhai script with `fn filter(doc)`, which returns whether a document is delivered, or `fn project(doc)`, which
    /// returns what of it, or both.
    pub script: Option<String>,
    /// Whether deletions are delivered.
    pub include_deletes: bool,
    /// Whether the version that the subscription delivered before comes beside the new one.
    pub include_previous: bool,
    /// Where it begins: `None` with the first document, `LastDocument` after what is there, or after a change vector.
    pub change_vector: Option<String>,
}

/// How a subscription is doing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SubscriptionState {
    /// Its number.
    pub subscription_id: u64,
    /// Its name.
    pub subscription_name: String,
    /// What it reads.
    pub query: String,
    /// Whether deletions are delivered.
    pub include_deletes: bool,
    /// Whether it is turned off.
    pub disabled: bool,
    /// The change vector through which everything is acknowledged; `None` at the beginning.
    pub change_vector_for_next_batch_starting_point: Option<String>,
    /// Changes acknowledged so far.
    pub delivered: u64,
    /// Documents on which its script failed.
    pub faults: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Results {
    results: Vec<SubscriptionState>,
}

impl SubscriptionDefinition {
    /// Names a subscription and what it reads.
    pub fn new(name: &str, query: &str) -> Self {
        Self { name: Some(name.to_owned()), query: query.to_owned(), ..Self::default() }
    }
}

impl Subscriptions {
    pub(in crate::client) fn new(store: DocumentStore) -> Self {
        Self { store }
    }

    /// Creates a subscription; returns its name.
    ///
    /// # Errors
    /// The definition breaks a rule, the name is taken, or the server can't be reached.
    pub async fn create(&self, definition: &SubscriptionDefinition) -> Result<String, ClientError> {
        let link = self.store.link();
        let body = serde_json::to_vec(definition)
            .map_err(|error| ClientError::Usage(format!("the definition can't be written: {error}")))?;
        // A name that the server makes would be another one the second time.
        let call = link.call(Method::PUT, "subscriptions").body(body).repeatable(false);
        Ok(link.send(call).await?.json::<Named>()?.name)
    }

    /// Creates a subscription where there is none of its name.
    ///
    /// # Errors
    /// The definition breaks a rule, or the server can't be reached.
    pub async fn create_if_missing(&self, definition: &SubscriptionDefinition) -> Result<(), ClientError> {
        if let Some(name) = &definition.name
            && self.state(name).await?.is_some()
        {
            return Ok(());
        }
        match self.create(definition).await {
            Err(error) if error.is_conflict() => Ok(()),
            created => created.map(|_| ()),
        }
    }

    /// How a subscription is doing; `None` where there is none.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn state(&self, name: &str) -> Result<Option<SubscriptionState>, ClientError> {
        let link = self.store.link();
        match link.send(link.call(Method::GET, "subscriptions/state").query("name", name)).await {
            Ok(answer) => answer.json().map(Some),
            Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists all subscriptions, by name.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn list(&self) -> Result<Vec<SubscriptionState>, ClientError> {
        let link = self.store.link();
        Ok(link.send(link.call(Method::GET, "subscriptions")).await?.json::<Results>()?.results)
    }

    /// Acknowledges everything through a change vector or etag, whether it was delivered or not.
    ///
    /// # Errors
    /// There is no such subscription, the position lies ahead of the feed, concurrent workers share it, or the server can't be
    /// reached.
    pub async fn acknowledge(&self, name: &str, through: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        let call = link.call(Method::POST, "subscriptions/ack").query("name", name).query("through", through);
        link.send(call.repeatable(true)).await.map(|_| ())
    }

    /// Deletes a subscription; a missing one is no error.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn delete(&self, name: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        link.send(link.call(Method::DELETE, "subscriptions").query("taskName", name)).await.map(|_| ())
    }

    /// Prepares a worker; it connects when it is asked for the first batch.
    #[must_use]
    pub fn worker(&self, name: &str, options: WorkerOptions) -> SubscriptionWorker {
        SubscriptionWorker::new(self.store.clone(), name.to_owned(), options)
    }
}
