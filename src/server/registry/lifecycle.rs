//! Databases come and go while the server runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;

use super::open::{OpenDatabase, write_marker};
use super::{Databases, Entry, missing, name as names_of_databases};
use crate::backup::restore;
use crate::server::error::{ApiError, names};
use crate::server::files;
use crate::server::host::broken;
use crate::server::router::Shared;
use crate::server::wire::configuration::NameSettings;

impl Databases {
    /// Creates a database. Once polled it is finished even if the future is dropped.
    ///
    /// # Errors
    /// 400 for a bad name, 409 where there is one of that name.
    pub(crate) async fn create(host: &Shared, name: &str, naming: NameSettings) -> Result<(), ApiError> {
        Self::add(host, name, "created", move |databases, lower, name| databases.make(lower, name, &naming)).await
    }

    /// Makes a database of a backup. Once polled it is finished even if the future is dropped.
    ///
    /// # Errors
    /// 400 for a bad name, 409 where there is one of that name; the backup is damaged, or can't be copied.
    pub(crate) async fn restore(host: &Shared, name: &str, backup: PathBuf) -> Result<(), ApiError> {
        Self::add(host, name, "restored", move |databases, lower, name| {
            databases.make_from_backup(lower, name, &backup)
        })
        .await
    }

    /// Adds the database that `make` makes, given the lower-case name and the name.
    async fn add<F>(host: &Shared, name: &str, what: &'static str, make: F) -> Result<(), ApiError>
    where
        F: FnOnce(&Self, &str, &str) -> Result<OpenDatabase, ApiError> + Send + 'static,
    {
        names_of_databases::check(name)?;
        let lower = name.to_ascii_lowercase();
        {
            let mut entries = host.databases.entries.write();
            if entries.contains_key(&lower) {
                return Err(exists(name));
            }
            entries.insert(lower.clone(), Entry::Changing { name: name.to_owned(), what });
        }
        let (host, name) = (Arc::clone(host), name.to_owned());
        let task = tokio::spawn(async move {
            let worker = Arc::clone(&host);
            let (key, spelling) = (lower.clone(), name.clone());
            let made = host.blocking(move || make(&worker.databases, &key, &spelling)).await;
            let mut entries = host.databases.entries.write();
            match made {
                Ok(open) => {
                    tracing::info!(name: "database.added", database = %name, "a database was {what}");
                    let open = Arc::new(open);
                    entries.insert(lower, Entry::Open(Arc::clone(&open)));
                    drop(entries);
                    // Once more: the server-wide configuration may have changed before the database was listed.
                    host.databases.apply(&open)
                }
                Err(error) => {
                    entries.remove(&lower);
                    Err(error)
                }
            }
        });
        task.await.unwrap_or_else(|error| Err(broken(&error)))
    }

    /// Restores beside the databases and moves what is whole among them, so that a crash leaves no half of one.
    fn make_from_backup(&self, lower: &str, name: &str, backup: &Path) -> Result<OpenDatabase, ApiError> {
        let staging = self.staging(lower);
        let restored = self.move_restored(&staging, lower, name, backup);
        if restored.is_err()
            && let Err(error) = fs::remove_dir_all(&staging)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(name: "database.directory.left", path = %staging.display(), %error, "files of a database that could not be restored are left; the next start removes them");
        }
        restored?;
        let open = OpenDatabase::open(&self.root.join(lower), name, &self.settings)?;
        self.begin_naming(&open, &NameSettings::default())?;
        Ok(open)
    }

    fn move_restored(&self, staging: &Path, lower: &str, name: &str, backup: &Path) -> Result<(), ApiError> {
        restore(backup, staging)?;
        let directory = self.root.join(lower);
        let failed = |error: io::Error| {
            let place = directory.display();
            ApiError::internal(format!("The directory {place} of database '{name}' could not be made: {error}"))
        };
        if directory.exists() {
            return Err(failed(io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        write_marker(staging, name).map_err(failed)?;
        fs::rename(staging, &directory).map_err(failed)?;
        files::sync_parent(&directory).map_err(failed)
    }

    /// A path on the file system of the databases at which nothing is; what a crash leaves there the next start removes.
    pub(crate) fn staging(&self, lower: &str) -> PathBuf {
        self.removed.join(format!("{lower}.{}.deleted", uuid::Uuid::new_v4()))
    }

    fn make(&self, lower: &str, name: &str, naming: &NameSettings) -> Result<OpenDatabase, ApiError> {
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
        let opened = opened.and_then(|open| self.begin_naming(&open, naming).map(|()| open));
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
        while closing.join_next().await.is_some() {}
    }
}

fn exists(name: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, names::CONCURRENCY, format!("There is a database '{name}' already."))
}
