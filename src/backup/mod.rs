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

/// Lists the backups in `place`, oldest first; what is no backup is passed over. None where `place` does not exist.
///
/// # Errors
/// `place` can't be read, or a manifest in it is damaged.
pub fn list(place: &Path) -> Result<Vec<Listed>, BackupError> {
    let mut found = Vec::new();
    for directory in file::directories(place)? {
        if file::is_whole(&directory)
            && let Some(manifest) = Manifest::read(&directory)?
        {
            found.push(Listed { directory, manifest });
        }
    }
    found.sort_by(|a, b| a.directory.cmp(&b.directory));
    Ok(found)
}
