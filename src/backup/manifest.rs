//! `backup.json`: what a backup holds, written when everything else is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::BackupError;

/// The file's name.
const FILE: &str = "backup.json";
/// The version of what stands in it.
const VERSION: u32 = 1;

/// What a backup says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Manifest {
    version: u32,
    /// The database's name as created.
    pub database: String,
    /// When it was taken, RFC 3339.
    pub taken: String,
    /// The incarnation of the database it was taken from.
    pub incarnation: String,
    /// The last etag in it.
    pub last_etag: u64,
    /// Live documents in it.
    pub documents: u64,
    /// Its files.
    pub files: Vec<ManifestFile>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ManifestFile {
    /// Its name, without a directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When the database last changed it, nanoseconds since 1970.
    pub modified_nanos: u64,
    /// Its SHA-256 digest in hex.
    pub sha256: String,
}

impl Manifest {
    pub(super) fn new(database: &str, taken: String, found: crate::store::backup::Inspected) -> Self {
        let crate::store::backup::Inspected { incarnation, last_etag, documents } = found;
        Self {
            version: VERSION,
            database: database.to_owned(),
            taken,
            incarnation,
            last_etag,
            documents,
            files: vec![],
        }
    }

    /// Where the manifest of a backup is.
    pub(super) fn path(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Reads the manifest of a backup; `None` where there is none.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>, BackupError> {
        let path = Self::path(directory);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BackupError::file("reading", &path)(error)),
        };
        let damaged = |detail: String| BackupError::Damaged { path: directory.display().to_string(), detail };
        let manifest: Self =
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("{FILE} can't be read: {error}")))?;
        if manifest.version != VERSION {
            return Err(BackupError::NoBackup {
                path: directory.display().to_string(),
                detail: format!(
                    "{FILE} has version {}, and this version of Treepie reads version {VERSION}; \
                     restore it with the version that wrote it",
                    manifest.version
                ),
            });
        }
        match manifest.files.iter().find(|file| file.name.contains('/') || file.name.starts_with('.')) {
            Some(file) => Err(damaged(format!("{FILE} names a file '{}', which can't be one of a backup", file.name))),
            None => Ok(Some(manifest)),
        }
    }

    /// Writes the manifest durably.
    pub(super) fn write(&self, directory: &Path) -> Result<(), BackupError> {
        let path = Self::path(directory);
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        let written = bytes.and_then(|bytes| {
            fs::write(&path, bytes)?;
            fs::File::open(&path)?.sync_all()
        });
        written.map_err(BackupError::file("writing", &path))
    }
}
