//! The databases of a server, leased to requests by name.
//!
//! A request holds a [`Lease`] for as long as it touches the database, streams included. Deleting takes the name away,
//! tells streams to end, waits for the leases, and only then closes and moves the directory: RocksDB names its files by
//! path, so an old instance must be gone before a new database can take its place.
//!
//! `open` opens what is there at the start, `lifecycle` creates and deletes, `name` says what a database may be called,
//! `naming` how it names documents.
//!
//! Next on the walk: `observe`.

mod lifecycle;
mod name;
mod naming;
mod open;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{OwnedRwLockReadGuard, watch};

use super::error::{ApiError, names};
use super::router::Shared;
use super::wire::configuration::Versioned;
use crate::database::{Database, DatabaseSettings};
pub(crate) use naming::read_names;
use open::OpenDatabase;

/// All databases of a server, by lower-case name.
#[derive(Debug)]
pub(crate) struct Databases {
    /// `<data>/databases`.
    root: PathBuf,
    /// `<data>/removed`: directories on their way out, and those that a soft deletion keeps.
    removed: PathBuf,
    settings: DatabaseSettings,
    entries: RwLock<BTreeMap<String, Entry>>,
    server_wide: RwLock<Versioned>,
    /// Held while what says how documents are named changes.
    naming: Mutex<()>,
}

#[derive(Clone, Debug)]
enum Entry {
    /// Being created or deleted.
    Changing {
        name: String,
        what: &'static str,
    },
    Open(Arc<OpenDatabase>),
    Failed {
        name: String,
        error: String,
    },
}

/// A database in use by a request.
#[derive(Debug)]
pub(crate) struct Lease {
    open: Arc<OpenDatabase>,
    _held: OwnedRwLockReadGuard<()>,
}

impl Lease {
    /// The database's name as created.
    pub(crate) fn name(&self) -> &str {
        &self.open.name
    }

    /// Follows the signal that the database is being deleted.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.open.stop.subscribe()
    }
}

impl std::ops::Deref for Lease {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.open.database
    }
}

impl FromRequestParts<Shared> for Lease {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, host: &Shared) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, host)
            .await
            .map_err(|error| ApiError::argument(format!("The path can't be decoded: {error}.")))?;
        let name = params.iter().find(|(key, _)| *key == "db").map(|(_, value)| value);
        host.databases.lease(name.unwrap_or_default())
    }
}

impl Databases {
    /// Leases a database to a request.
    ///
    /// # Errors
    /// 503 with `Database-Missing` where there is none: 404 would mean to clients that a document is missing.
    pub(crate) fn lease(&self, name: &str) -> Result<Lease, ApiError> {
        // Under the lock, so that no request leases what a deletion has taken away.
        let entries = self.entries.read();
        match entries.get(&name.to_ascii_lowercase()) {
            None => Err(missing(name)),
            Some(Entry::Changing { name, what }) => {
                Err(ApiError::busy(format!("Database '{name}' is being {what}; try again in a moment.")))
            }
            Some(Entry::Failed { name, error }) => Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                names::DATABASE_FAILED,
                format!("Database '{name}' could not be opened when the server started: {error}"),
            )),
            Some(Entry::Open(open)) => match Arc::clone(&open.leases).try_read_owned() {
                Ok(held) => Ok(Lease { open: Arc::clone(open), _held: held }),
                Err(_) => Err(ApiError::busy(format!("Database '{name}' is closing."))),
            },
        }
    }

    /// Leases every database that is open.
    pub(crate) fn lease_all(&self) -> Vec<Lease> {
        self.names().iter().filter_map(|name| self.lease(name).ok()).collect()
    }

    /// The name as created and why it could not be opened, where it could not; `None` where there is no such database.
    pub(crate) fn find(&self, name: &str) -> Option<(String, Option<String>)> {
        match self.entries.read().get(&name.to_ascii_lowercase())? {
            Entry::Open(open) => Some((open.name.clone(), None)),
            Entry::Changing { .. } => None,
            Entry::Failed { name, error } => Some((name.clone(), Some(error.clone()))),
        }
    }

    /// The names as created, in order without regard to case.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = self.entries.read();
        entries
            .values()
            .filter_map(|entry| match entry {
                Entry::Open(open) => Some(open.name.clone()),
                Entry::Failed { name, .. } => Some(name.clone()),
                Entry::Changing { .. } => None,
            })
            .collect()
    }

    /// The databases that are open and take no writes, with the reason.
    pub(crate) fn refusing_writes(&self) -> Vec<(String, String)> {
        let refusing = |lease: Lease| Some((lease.name().to_owned(), lease.store().refuses_writes()?));
        self.lease_all().into_iter().filter_map(refusing).collect()
    }

    /// The names of the databases that could not be opened.
    pub(crate) fn failed(&self) -> Vec<String> {
        let entries = self.entries.read();
        entries
            .values()
            .filter_map(|entry| match entry {
                Entry::Failed { name, .. } => Some(name.clone()),
                Entry::Open(_) | Entry::Changing { .. } => None,
            })
            .collect()
    }
}

fn missing(name: &str) -> ApiError {
    let shown: String = name.chars().take(80).collect();
    let error = ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        names::DATABASE_MISSING,
        format!("There is no database '{shown}'; create it with PUT /admin/databases?name={shown}."),
    );
    match HeaderValue::from_str(name) {
        Ok(value) => error.with_header(HeaderName::from_static("database-missing"), value),
        Err(_) => error,
    }
}
