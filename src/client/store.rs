//! The document store: one for a program, shared by all of its sessions.
//!
//! Next on the walk: `link`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::bulk_insert::BulkInsert;
use super::configuration::Configuration;
use super::conventions::{Conventions, Document};
use super::credentials::Credentials;
use super::databases::Databases;
use super::error::ClientError;
use super::http::{Answer, Call, Transport};
use super::identities::Identities;
use super::indexes::Indexes;
use super::link::Link;
use super::query::Query;
use super::retry::RetryPolicy;
use super::session::Session;
use super::subscriptions::Subscriptions;

/// How a store talks to its servers.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// What the client takes for granted.
    pub conventions: Conventions,
    /// When requests are sent again.
    pub retry: RetryPolicy,
    /// What it shows the servers.
    pub credentials: Credentials,
    /// How long one request may take, from its first byte to the last of its answer. Default 60 s.
    pub timeout: Duration,
    /// Whether sessions refuse to overwrite what others wrote since it was loaded. Default false.
    pub optimistic_concurrency: bool,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            conventions: Conventions::default(),
            retry: RetryPolicy::default(),
            credentials: Credentials::default(),
            timeout: Duration::from_secs(60),
            optimistic_concurrency: false,
        }
    }
}

/// A database of a server, as a program sees it. Cheap to clone: all clones share connections, configuration and id ranges.
#[derive(Clone, Debug)]
pub struct DocumentStore {
    shared: Arc<Shared>,
    link: Arc<Link>,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<Transport>,
    conventions: Arc<Conventions>,
    optimistic_concurrency: bool,
    /// The databases in use, by lower-case name.
    links: Mutex<HashMap<String, Arc<Link>>>,
}

impl DocumentStore {
    /// Opens a store with the default settings. Nothing is sent yet.
    ///
    /// # Errors
    /// A URL is none.
    pub fn new(url: &str, database: &str) -> Result<Self, ClientError> {
        Self::with_settings(&[url.to_owned()], database, StoreSettings::default())
    }

    /// Opens a store on servers that stand for each other: where one can't be reached, the next is tried. Nothing is sent yet.
    ///
    /// # Errors
    /// There is no URL, or one is none; the database has no name; the separator is `|`.
    pub fn with_settings(urls: &[String], database: &str, settings: StoreSettings) -> Result<Self, ClientError> {
        if settings.conventions.own_separator() == '|' {
            let message = "the separator can't be '|', which asks for identities; choose another character";
            return Err(ClientError::Usage(message.to_owned()));
        }
        check_name(database)?;
        let transport = Arc::new(Transport::new(urls, settings.retry, settings.timeout, &settings.credentials)?);
        let conventions = Arc::new(settings.conventions);
        let link = Arc::new(Link::new(Arc::clone(&transport), database.to_owned(), Arc::clone(&conventions)));
        let links = Mutex::new(HashMap::from([(crate::id::lower(database), Arc::clone(&link))]));
        let optimistic_concurrency = settings.optimistic_concurrency;
        Ok(Self { shared: Arc::new(Shared { transport, conventions, optimistic_concurrency, links }), link })
    }

    /// The same store for another database of the same servers.
    ///
    /// # Errors
    /// The database has no name.
    pub fn for_database(&self, name: &str) -> Result<Self, ClientError> {
        check_name(name)?;
        let make = || {
            let conventions = Arc::clone(&self.shared.conventions);
            Arc::new(Link::new(Arc::clone(&self.shared.transport), name.to_owned(), conventions))
        };
        let link = Arc::clone(self.shared.links.lock().entry(crate::id::lower(name)).or_insert_with(make));
        Ok(Self { shared: Arc::clone(&self.shared), link })
    }

    /// The name of the database.
    #[must_use]
    pub fn database(&self) -> &str {
        self.link.database()
    }

    /// Opens a session: one unit of work.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.link), self.shared.optimistic_concurrency)
    }

    /// Begins a query in RQL; it is asked by [`Query::stream`], [`Query::all`] or [`Query::count`].
    ///
    /// ```no_run
    /// # use futures_util::TryStreamExt;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Order { total: f64 }
    /// # async fn example(store: treepie::client::DocumentStore) -> Result<(), treepie::client::ClientError> {
    /// let large = store.query::<Order>("from Orders where total > $min order by total desc").parameter("min", 100);
    /// let mut rows = std::pin::pin!(large.stream());
    /// while let Some(order) = rows.try_next().await? {
    ///     assert!(order.total > 100.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query<T: Document>(&self, text: &str) -> Query<T> {
        Query::new(Arc::clone(&self.link), text)
    }

    /// Begins to store many documents.
    pub fn bulk_insert(&self) -> BulkInsert {
        BulkInsert::new(Arc::clone(&self.link))
    }

    /// The indexes of the database.
    #[must_use]
    pub fn indexes(&self) -> Indexes {
        Indexes::new(self.clone())
    }

    /// The identities of the database.
    #[must_use]
    pub fn identities(&self) -> Identities {
        Identities::new(self.clone())
    }

    /// The subscriptions of the database.
    #[must_use]
    pub fn subscriptions(&self) -> Subscriptions {
        Subscriptions::new(self.clone())
    }

    /// What clients are told.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        Configuration::new(self.clone())
    }

    /// The databases of the server.
    #[must_use]
    pub fn databases(&self) -> Databases {
        Databases::new(self.clone())
    }

    /// Gives unused ids back and closes the store with all of its clones; requests from now on are refused. A store that is
    /// dropped instead leaves a gap in the ids, and no other harm.
    ///
    /// # Errors
    /// A range can't be given back; the store is closed all the same.
    ///
    /// # Cancel safety
    /// Dropped on the way, it has closed the store, and some ids are left unused.
    pub async fn close(&self) -> Result<(), ClientError> {
        if self.shared.transport.close() {
            return Ok(());
        }
        let links: Vec<Arc<Link>> = self.shared.links.lock().values().cloned().collect();
        let mut outcome = Ok(());
        for link in links {
            outcome = outcome.and(link.give_back().await);
        }
        outcome
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a request that is about no database.
    pub(super) async fn send(&self, call: Call) -> Result<Answer, ClientError> {
        self.shared.transport.send(call).await
    }
}

fn check_name(database: &str) -> Result<(), ClientError> {
    if database.trim().is_empty() {
        return Err(ClientError::Usage("a document store needs the name of a database".to_owned()));
    }
    Ok(())
}
