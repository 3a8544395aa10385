//! Makes a database of a backup.

use std::fs;
use std::path::Path;

use super::file::{self, sync_directory};
use super::{BackupError, Manifest};
use crate::store::backup::renew;

/// Copies the backup in `from` into `to`, which must not exist, and makes it a database of its own: with a new incarnation,
/// and with etags that go on far above those it holds. Blocking. Returns what was restored.
///
/// # Cost
/// One copy of all its files.
///
/// # Errors
/// `from` is no backup; a file of it is missing or not what was written; a file can't be written; the copy can't be opened.
/// What was copied is left in `to` then.
pub fn restore(from: &Path, to: &Path) -> Result<Manifest, BackupError> {
    let manifest = Manifest::read(from)?.ok_or_else(|| BackupError::NoBackup {
        path: from.display().to_string(),
        detail: "it has no backup.json".to_owned(),
    })?;
    let damaged = |detail: String| BackupError::Damaged { path: from.display().to_string(), detail };
    fs::create_dir(to).map_err(BackupError::file("making", to))?;
    for wanted in &manifest.files {
        let path = from.join(&wanted.name);
        let facts = file::facts(&path).map_err(|error| damaged(error.to_string()))?;
        if facts.bytes != wanted.bytes {
            let (name, bytes) = (&wanted.name, wanted.bytes);
            return Err(damaged(format!("'{name}' has {} bytes, and {bytes} were written", facts.bytes)));
        }
        if file::copy(&path, &to.join(&wanted.name))? != wanted.sha256 {
            return Err(damaged(format!("'{}' does not hold what was written", wanted.name)));
        }
    }
    sync_directory(to)?;
    let found = renew(to)?;
    if (found.last_etag, &found.incarnation) != (manifest.last_etag, &manifest.incarnation) {
        return Err(damaged(format!("it ends with etag {}, not {}", found.last_etag, manifest.last_etag)));
    }
    Ok(manifest)
}
