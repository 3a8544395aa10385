//! The databases of a server: opened at start, created and deleted by name, leased to requests.
//!
//! A request holds a [`Lease`] for as long as it touches the database, streams included. Deleting takes the name away,
//! tells streams to end, waits for the leases, and only then closes and moves the directory: RocksDB names its files by
//! path, so an old instance must be gone before a new database can take its place.
//!
//! Next on the walk: `observe`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedRwLockReadGuard, watch};

use super::error::{ApiError, names};
use super::files;
use super::host::broken;
use super::router::Shared;
use crate::database::{Database, DatabaseSettings};

/// The file in a database's directory that keeps the name's spelling.
const MARKER: &str = "database.json";

/// The most bytes of a database's name.
const NAME_BYTES_MAX: usize = 128;

/// All databases of a server, by lower-case name.
#[derive(Debug)]
pub(crate) struct Databases {
    /// `<data>/databases`.
    root: PathBuf,
    /// `<data>/removed`: directories on their way out, and those that a soft deletion keeps.
    removed: PathBuf,
    settings: DatabaseSettings,
    entries: RwLock<BTreeMap<String, Entry>>,
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

/// An open database.
#[derive(Debug)]
struct OpenDatabase {
    name: String,
    database: Database,
    /// Read by every lease; written once, to wait until there are none.
    leases: Arc<tokio::sync::RwLock<()>>,
    stop: watch::Sender<bool>,
}

/// A database in use by a request.
#[derive(Debug)]
pub(crate) struct Lease {
    open: Arc<OpenDatabase>,
    _held: OwnedRwLockReadGuard<()>,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    #[serde(rename = "DatabaseName")]
    name: String,
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
    /// Opens every database under `data`, several at once. Blocking. One that fails does not stop the others.
    pub(crate) fn open(data: &Path, settings: DatabaseSettings) -> io::Result<Self> {
        let (root, removed) = (data.join("databases"), data.join("removed"));
        fs::create_dir_all(&root)?;
        fs::create_dir_all(&removed)?;
        remove_leftovers(&removed)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&root)? {
            let entry = entry?;
            let name = entry.file_name();
            match name.to_str().filter(|name| check_name(name).is_ok() && **name == name.to_ascii_lowercase()) {
                Some(lower) if entry.file_type()?.is_dir() => found.push(lower.to_owned()),
                _ => {
                    tracing::warn!(name: "database.directory.skipped", path = %entry.path().display(), "not a database's directory")
                }
            }
        }
        let entries = open_all(&root, found, &settings);
        Ok(Self { root, removed, settings, entries: RwLock::new(entries) })
    }

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

    /// Creates a database. Once polled it is finished even if the future is dropped.
    ///
    /// # Errors
    /// 400 for a bad name, 409 where there is one of that name.
    pub(crate) async fn create(host: &Shared, name: &str) -> Result<(), ApiError> {
        check_name(name)?;
        let lower = name.to_ascii_lowercase();
        {
            let mut entries = host.databases.entries.write();
            if entries.contains_key(&lower) {
                return Err(exists(name));
            }
            entries.insert(lower.clone(), Entry::Changing { name: name.to_owned(), what: "created" });
        }
        let (host, name) = (Arc::clone(host), name.to_owned());
        let task = tokio::spawn(async move {
            let worker = Arc::clone(&host);
            let (key, spelling) = (lower.clone(), name.clone());
            let made = host.blocking(move || worker.databases.make(&key, &spelling)).await;
            let mut entries = host.databases.entries.write();
            match made {
                Ok(open) => {
                    tracing::info!(name: "database.created", database = %name, "a database was created");
                    entries.insert(lower, Entry::Open(Arc::new(open)));
                    Ok(())
                }
                Err(error) => {
                    entries.remove(&lower);
                    Err(error)
                }
            }
        });
        task.await.unwrap_or_else(|error| Err(broken(&error)))
    }

    fn make(&self, lower: &str, name: &str) -> Result<OpenDatabase, ApiError> {
        let directory = self.root.join(lower);
        let failed = |error: io::Error| {
            let place = directory.display();
            ApiError::internal(format!("The directory {place} of database '{name}' could not be made: {error}"))
        };
        fs::create_dir(&directory).map_err(failed)?;
        let opened = match write_marker(&directory, name) {
            Ok(()) => OpenDatabase::open(&directory, name, &self.settings),
            Err(error) => Err(failed(error)),
        };
        if opened.is_err()
            && let Err(error) = fs::remove_dir_all(&directory)
        {
            tracing::warn!(name: "database.directory.left", path = %directory.display(), %error, "a directory of a database that could not be created is left");
        }
        opened
    }

    /// Deletes a database: at the latest when its last request ends. Once polled it is finished even if the future is
    /// dropped. `false`: `wait` is over and the deletion goes on. With `keep_files` the directory is only moved away.
    pub(crate) async fn delete(host: &Shared, name: &str, keep_files: bool, wait: Duration) -> Result<bool, ApiError> {
        let lower = name.to_ascii_lowercase();
        let taken = {
            let mut entries = host.databases.entries.write();
            match entries.get(&lower).cloned() {
                None => return Err(missing(name)),
                Some(Entry::Changing { what, .. }) => {
                    return Err(ApiError::busy(format!("Database '{name}' is being {what} already.")));
                }
                Some(taken) => {
                    entries.insert(lower.clone(), Entry::Changing { name: name.to_owned(), what: "deleted" });
                    taken
                }
            }
        };
        let host = Arc::clone(host);
        let task = tokio::spawn(async move {
            if let Entry::Open(open) = taken {
                open.close(None).await;
            }
            let (worker, key) = (Arc::clone(&host), lower.clone());
            let done = host.blocking(move || worker.databases.put_aside(&key, keep_files)).await;
            host.databases.entries.write().remove(&lower);
            done
        });
        match tokio::time::timeout(wait, task).await {
            Ok(done) => done.unwrap_or_else(|error| Err(broken(&error))).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn put_aside(&self, lower: &str, keep_files: bool) -> Result<(), ApiError> {
        let directory = self.root.join(lower);
        let ending = if keep_files { "kept" } else { "deleted" };
        let aside = self.removed.join(format!("{lower}.{}.{ending}", uuid::Uuid::new_v4()));
        let failed = |error: io::Error| {
            ApiError::internal(format!("The directory {} could not be moved away: {error}", directory.display()))
        };
        match fs::rename(&directory, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved.map_err(failed)?,
        }
        files::sync_parent(&directory).map_err(failed)?;
        if keep_files {
            tracing::info!(name: "database.detached", database = lower, path = %aside.display(), "a database was taken off the server; its files are kept");
            return Ok(());
        }
        tracing::info!(name: "database.deleted", database = lower, "a database was deleted");
        if let Err(error) = fs::remove_dir_all(&aside) {
            tracing::warn!(name: "database.directory.left", path = %aside.display(), %error, "files of a deleted database are left; the next start removes them");
        }
        Ok(())
    }

    /// Closes every database, each when its last request ends, at the latest after `wait`.
    pub(crate) async fn close_all(&self, wait: Duration) {
        let taken = std::mem::take(&mut *self.entries.write());
        let mut closing = tokio::task::JoinSet::new();
        for entry in taken.into_values() {
            if let Entry::Open(open) = entry {
                closing.spawn(async move { open.close(Some(wait)).await });
            }
        }
        closing.join_all().await;
    }
}

impl OpenDatabase {
    fn open(directory: &Path, name: &str, settings: &DatabaseSettings) -> Result<Self, ApiError> {
        let database = Database::open(directory, settings.clone())?;
        Ok(Self {
            name: name.to_owned(),
            database,
            leases: Arc::new(tokio::sync::RwLock::new(())),
            stop: watch::Sender::new(false),
        })
    }

    /// Tells streams to end, waits for the leases (no longer than `wait`), and closes.
    async fn close(self: Arc<Self>, wait: Option<Duration>) {
        self.stop.send_replace(true);
        let free = Arc::clone(&self.leases).write_owned();
        let _last = match wait {
            None => Some(free.await),
            Some(wait) => tokio::time::timeout(wait, free).await.ok(),
        };
        let name = self.name.clone();
        let closed = tokio::task::spawn_blocking(move || {
            let closed = self.database.close().map_err(|error| error.to_string());
            drop(self);
            closed
        });
        match closed.await {
            Ok(Ok(())) => tracing::info!(name: "database.closed", database = %name, "a database was closed"),
            Ok(Err(error)) => {
                tracing::error!(name: "database.close.failed", database = %name, %error, "a database did not close cleanly");
            }
            Err(error) => {
                broken(&error);
            }
        }
    }
}

/// Checks the name of a database.
pub(crate) fn check_name(name: &str) -> Result<(), ApiError> {
    let shown: String = name.chars().take(80).collect();
    let refused = |rule: &str| {
        Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            names::BAD_REQUEST,
            format!("'{shown}' can't name a database: {rule}."),
        ))
    };
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return refused("a name has 1 to 128 bytes");
    }
    if name == "." || name == ".." {
        return refused("it names a directory of the file system");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')) {
        return refused("only letters A to Z, digits, '_', '-' and '.' are allowed");
    }
    Ok(())
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

fn exists(name: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, names::CONCURRENCY, format!("There is a database '{name}' already."))
}

fn write_marker(directory: &Path, name: &str) -> io::Result<()> {
    files::write_durably(&directory.join(MARKER), &serde_json::to_vec(&Marker { name: name.to_owned() })?)?;
    files::sync_parent(directory)
}

/// Reads the name's spelling; a directory without a marker is named as it is.
fn read_marker(directory: &Path, lower: &str) -> String {
    let read = fs::read(directory.join(MARKER)).ok().and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok());
    read.map(|marker| marker.name).filter(|name| name.eq_ignore_ascii_case(lower)).unwrap_or_else(|| lower.to_owned())
}

fn open_all(root: &Path, found: Vec<String>, settings: &DatabaseSettings) -> BTreeMap<String, Entry> {
    let waiting = parking_lot::Mutex::new(found.into_iter());
    let opened = parking_lot::Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(lower) = waiting.lock().next() else { break };
                    let entry = open_one(root, &lower, settings);
                    opened.lock().insert(lower, entry);
                }
            });
        }
    });
    opened.into_inner()
}

fn open_one(root: &Path, lower: &str, settings: &DatabaseSettings) -> Entry {
    let directory = root.join(lower);
    let name = read_marker(&directory, lower);
    match OpenDatabase::open(&directory, &name, settings) {
        Ok(open) => {
            tracing::info!(name: "database.opened", database = %name, "a database was opened");
            Entry::Open(Arc::new(open))
        }
        Err(error) => {
            tracing::error!(name: "database.open.failed", database = %name, error = %error.detail(), "a database can't be opened; the others are served");
            Entry::Failed { name, error: error.message().to_owned() }
        }
    }
}

/// Removes what a crash left of deleted databases.
fn remove_leftovers(removed: &Path) -> io::Result<()> {
    for entry in fs::read_dir(removed)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "deleted") {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["a", "Demo", "my-data_1.0", ".hidden", &"x".repeat(128)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "ü", "We*ird", &"x".repeat(129)] {
            assert_eq!(check_name(bad).unwrap_err().status(), StatusCode::BAD_REQUEST, "{bad}");
        }
    }
}
