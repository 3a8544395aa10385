//! The JSON of backups.

use serde::Serialize;

use crate::backup::{Listed, Taken};

/// A backup.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Backup {
    /// By which it can be restored: `main/20261130T201105000000Z-42`.
    name: String,
    database: String,
    directory: String,
    taken: String,
    last_etag: u64,
    documents: u64,
    files: usize,
    bytes: u64,
}

/// Backups, oldest first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Backups {
    pub(crate) backups: Vec<Backup>,
}

/// A backup that was taken.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NewBackup {
    #[serde(flatten)]
    backup: Backup,
    copied_bytes: u64,
    /// Names of older backups that were deleted.
    deleted: Vec<String>,
}

/// A database that was made of a backup.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Restored {
    /// The database.
    pub(crate) name: String,
    /// The backup.
    pub(crate) backup: String,
}

impl From<Listed> for Backup {
    fn from(backup: Listed) -> Self {
        let Listed { directory, manifest } = backup;
        Self {
            name: name(&directory),
            bytes: manifest.bytes(),
            files: manifest.files.len(),
            directory: directory.display().to_string(),
            database: manifest.database,
            taken: manifest.taken,
            last_etag: manifest.last_etag,
            documents: manifest.documents,
        }
    }
}

impl From<Taken> for NewBackup {
    fn from(taken: Taken) -> Self {
        let Taken { backup, copied_bytes, deleted } = taken;
        Self { backup: backup.into(), copied_bytes, deleted: deleted.iter().map(|it| name(it)).collect() }
    }
}

/// The last two parts of a path: the database and the backup.
fn name(directory: &std::path::Path) -> String {
    let part = |path: Option<&std::path::Path>| {
        path.and_then(std::path::Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    format!("{}/{}", part(directory.parent()), part(Some(directory)))
}
