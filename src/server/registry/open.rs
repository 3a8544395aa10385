//! Databases on disk: a directory each, with a small file that keeps the name's spelling.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::naming::Own;
use super::{Databases, Entry, name};
use crate::database::{Database, DatabaseSettings};
use crate::server::error::ApiError;
use crate::server::files;
use crate::server::host::broken;

/// The file in a database's directory that keeps the name's spelling.
const MARKER: &str = "database.json";

/// An open database.
#[derive(Debug)]
pub(super) struct OpenDatabase {
    pub(super) name: String,
    pub(super) database: Database,
    /// Read by every lease; written once, to wait until there are none.
    pub(super) leases: Arc<tokio::sync::RwLock<()>>,
    pub(super) stop: watch::Sender<bool>,
    /// What it says about names.
    pub(super) own: RwLock<Own>,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    #[serde(rename = "DatabaseName")]
    name: String,
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
            match name.to_str().filter(|name| name::check(name).is_ok() && **name == name.to_ascii_lowercase()) {
                Some(lower) if entry.file_type()?.is_dir() => found.push(lower.to_owned()),
                _ => {
                    tracing::warn!(name: "database.directory.skipped", path = %entry.path().display(), "not a database's directory");
                }
            }
        }
        let entries = open_all(&root, found, &settings);
        let databases = Self {
            root,
            removed,
            settings,
            entries: RwLock::new(entries),
            server_wide: RwLock::new(Self::read_server_wide(data)?),
            naming: Mutex::new(()),
        };
        databases.apply_all();
        Ok(databases)
    }
}

impl OpenDatabase {
    pub(super) fn open(directory: &Path, name: &str, settings: &DatabaseSettings) -> Result<Self, ApiError> {
        let database = Database::open(directory, settings.clone())?;
        let own = match Own::load(&database) {
            Ok(own) => RwLock::new(own),
            Err(error) => {
                database.close()?;
                return Err(error);
            }
        };
        Ok(Self {
            name: name.to_owned(),
            database,
            leases: Arc::new(tokio::sync::RwLock::new(())),
            stop: watch::Sender::new(false),
            own,
        })
    }

    /// Tells streams to end, waits for the leases (no longer than `wait`), and closes.
    pub(super) async fn close(self: Arc<Self>, wait: Option<Duration>) {
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

pub(super) fn write_marker(directory: &Path, name: &str) -> io::Result<()> {
    files::write_durably(&directory.join(MARKER), &serde_json::to_vec(&Marker { name: name.to_owned() })?)?;
    files::sync_parent(directory)
}

/// Reads the name's spelling; a directory without a marker is named as it is.
fn read_marker(directory: &Path, lower: &str) -> String {
    let read = fs::read(directory.join(MARKER)).ok().and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok());
    read.map(|marker| marker.name).filter(|name| name.eq_ignore_ascii_case(lower)).unwrap_or_else(|| lower.to_owned())
}

fn open_all(root: &Path, found: Vec<String>, settings: &DatabaseSettings) -> BTreeMap<String, Entry> {
    let waiting = Mutex::new(found.into_iter());
    let opened = Mutex::new(BTreeMap::new());
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
