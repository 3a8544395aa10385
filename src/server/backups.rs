//! `/admin/backup`, `/admin/backups` and `/admin/restore`: copies of databases, made and brought back by the server.
//!
//! They go to, and come from, the one directory that the server's settings name: a caller names a backup, never a path.
//!
//! Next on the walk: [`crate::backup`].

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
use super::json::json;
use super::query::{Query, bad};
use super::registry::{Databases, Lease};
use super::router::Shared;
use super::wire::backup::{Backup, Backups, NewBackup, Restored};
use crate::backup::{self, Taking};

/// Takes a backup of a database and answers when it is on disk and was opened. It is finished even if the caller goes away.
pub(crate) async fn take(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let keep = query.number("keep")?.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
    if keep == Some(0) {
        return Err(bad("keep", "0", "1 or more: the new backup is kept"));
    }
    let check_all = match query.text("verify").unwrap_or("open") {
        "open" => false,
        "all" => true,
        other => return Err(bad("verify", other, "open or all")),
    };
    let worker = Arc::clone(&host);
    let work = host.blocking(move || {
        let lower = lease.name().to_ascii_lowercase();
        let taken = backup::take(
            lease.store(),
            &Taking {
                database: lease.name(),
                place: &worker.settings.backups().join(&lower),
                staging: &worker.databases.staging(&lower),
                keep,
                check_all,
            },
        )?;
        tracing::info!(name: "backup.taken", database = %lease.name(), directory = %taken.backup.directory.display(), "a backup was taken");
        Ok(taken)
    });
    Ok(json(StatusCode::CREATED, &NewBackup::from(work.await?)))
}

/// Lists the backups of a database.
pub(crate) async fn list(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let place = host.settings.backups().join(lease.name().to_ascii_lowercase());
    let found = host.blocking(move || Ok(backup::list(&place)?)).await?;
    Ok(json(StatusCode::OK, &Backups { backups: found.into_iter().map(Backup::from).collect() }))
}

/// Lists all backups, also those of databases that are gone.
pub(crate) async fn list_all(State(host): State<Shared>) -> Result<Response, ApiError> {
    let root = host.settings.backups();
    let work = host.blocking(move || {
        let mut found = Vec::new();
        for place in places(&root)? {
            found.extend(backup::list(&place)?);
        }
        Ok(found)
    });
    let backups = work.await?.into_iter().map(Backup::from).collect();
    Ok(json(StatusCode::OK, &Backups { backups }))
}

/// Makes a new database of a backup.
pub(crate) async fn restore(State(host): State<Shared>, query: Query) -> Result<Response, ApiError> {
    let (name, backup) = (query.required("name")?.to_owned(), query.required("backup")?.to_owned());
    let parts: Vec<&str> = backup.split('/').collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.starts_with('.') && !part.contains('\\');
    let [database, which] = parts.as_slice() else { return Err(unknown(&backup)) };
    if !is_plain(database) || !is_plain(which) {
        return Err(unknown(&backup));
    }
    let place = host.settings.backups().join(database.to_ascii_lowercase());
    let directory = find(&host, place, which).await?.ok_or_else(|| unknown(&backup))?;
    Databases::restore(&host, &name, directory).await?;
    Ok(json(StatusCode::CREATED, &Restored { name, backup }))
}

/// The directory of a backup by its name, or of the newest.
async fn find(host: &Shared, place: PathBuf, which: &str) -> Result<Option<PathBuf>, ApiError> {
    if which != "latest" {
        let directory = place.join(which);
        return host.blocking(move || Ok(backup::is_backup(&directory).then_some(directory))).await;
    }
    let found = host.blocking(move || Ok(backup::list(&place)?)).await?;
    Ok(found.into_iter().next_back().map(|newest| newest.directory))
}

fn places(root: &std::path::Path) -> Result<Vec<PathBuf>, ApiError> {
    let failed = |error| ApiError::internal(format!("The backups in {} can't be listed: {error}", root.display()));
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut places = entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect::<Result<Vec<_>, ApiError>>()?;
    places.retain(|place| place.is_dir());
    places.sort_unstable();
    Ok(places)
}

fn unknown(backup: &str) -> ApiError {
    let shown: String = backup.chars().take(200).collect();
    ApiError::new(
        StatusCode::NOT_FOUND,
        super::error::names::ARGUMENT,
        format!(
            "There is no backup '{shown}'; GET /admin/backups lists them by name: main/20261130T201105000000Z-42, or \
             main/latest for the newest."
        ),
    )
}
