//! Backups: copies of a database on disk, each a directory that is complete in itself.
//!
//! A backup is taken while the database is written to: the store makes a checkpoint (`store::backup`), whose files are then
//! brought to the place of backups. A table file never changes once it is written, so one that the former backup holds
//! already is linked and not copied: backups are incremental, and each can be deleted without harm to the others.
//! `backup.json` lists the files with their digests; it is written last, and a directory without it is no backup.
//!
//! `take` makes one, `restore` makes a database of one, `manifest` is what stands in `backup.json`.
//!
//! Next on the walk: `take`, then `store::backup`.

mod error;
mod file;
mod manifest;
mod restore;
mod take;

pub use error::BackupError;
pub use manifest::{Manifest, ManifestFile};
pub use restore::restore;
pub use take::{Taken, Taking, take};

use std::path::{Path, PathBuf};

/// A backup that was found.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its directory.
    pub directory: PathBuf,
    /// What it says about itself.
    pub manifest: Manifest,
}

/// Lists the backups in `place`, oldest first. What is no backup is passed over, and so is one whose manifest can't be read,
/// with a word in the log: it must not stand in the way of others. None where `place` does not exist.
///
/// # Errors
/// `place` or a file in it can't be read.
pub fn list(place: &Path) -> Result<Vec<Listed>, BackupError> {
    let mut found = Vec::new();
    for directory in file::directories(place)?.into_iter().filter(|directory| file::is_whole(directory)) {
        match Manifest::read(&directory) {
            Ok(Some(manifest)) => found.push(Listed { directory, manifest }),
            Ok(None) => {}
            Err(error @ (BackupError::Damaged { .. } | BackupError::NoBackup { .. })) => {
                tracing::error!(name: "backup.unreadable", %error, "a backup can't be read");
            }
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|a, b| a.directory.cmp(&b.directory));
    Ok(found)
}

/// Whether a directory is a backup.
#[must_use]
pub fn is_backup(directory: &Path) -> bool {
    file::is_whole(directory) && Manifest::path(directory).is_file()
}
