//! Takes a backup of a database in use.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::file::{self, Facts, sync_directory};
use super::{BackupError, Listed, Manifest, ManifestFile, list};
use crate::store::Store;
use crate::store::backup::{inspect, inspect_all};

/// Held while a backup goes to a place.
const LOCK: &str = "lock";

/// What backup is to be taken.
#[derive(Clone, Copy, Debug)]
pub struct Taking<'a> {
    /// The database's name as created.
    pub database: &'a str,
    /// Where the backups of this database are, one directory each; created where there is none.
    pub place: &'a Path,
    /// A directory that does not exist, best on the file system of the database: its files are linked there for a while.
    pub staging: &'a Path,
    /// Older backups are deleted, all but so many; `None` keeps all. The new one counts and is kept always.
    pub keep: Option<usize>,
    /// Whether every document of the backup is looked at.
    pub check_all: bool,
}

/// A backup that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The backup.
    pub backup: Listed,
    /// Bytes that had to be copied; the others were there already.
    pub copied_bytes: u64,
    /// Older backups that were deleted.
    pub deleted: Vec<PathBuf>,
}

/// Takes a backup of a database in use. Blocking. It holds everything that was answered before the call, and was opened
/// before it counts.
///
/// # Cost
/// Copies the table files that the former backup does not hold, and reads them once more where `check_all`.
///
/// # Errors
/// Another backup goes to the same place; a file can't be read or written; what was written is not what it should be.
pub fn take(store: &Store, taking: &Taking<'_>) -> Result<Taken, BackupError> {
    let place = taking.place;
    fs::create_dir_all(place).map_err(BackupError::file("making", place))?;
    let _lock = lock(place)?;
    for directory in file::directories(place)?.iter().filter(|directory| !file::is_whole(directory)) {
        fs::remove_dir_all(directory).map_err(BackupError::file("removing", directory))?;
    }
    let staged = Staged(taking.staging);
    let found = store.checkpoint(taking.staging)?;
    let now = jiff::Timestamp::now();
    let directory = place.join(format!("{}-{}", now.strftime("%Y%m%dT%H%M%S%6fZ"), found.last_etag));
    let part = file::part_of(&directory);
    let outcome = write(taking, Manifest::new(taking.database, now.to_string(), found), &part);
    drop(staged);
    let (manifest, copied_bytes) = match outcome {
        Ok(written) => written,
        Err(error) => {
            // What is left is removed by the next backup.
            let _ = fs::remove_dir_all(&part);
            return Err(error);
        }
    };
    fs::rename(&part, &directory).map_err(BackupError::file("renaming", &part))?;
    sync_directory(place)?;
    let deleted = match taking.keep {
        Some(keep) => delete_older(place, keep.max(1))?,
        None => Vec::new(),
    };
    Ok(Taken { backup: Listed { directory, manifest }, copied_bytes, deleted })
}

/// Writes the files of a backup, the manifest last, and opens what was written.
fn write(taking: &Taking<'_>, mut manifest: Manifest, part: &Path) -> Result<(Manifest, u64), BackupError> {
    fs::create_dir(part).map_err(BackupError::file("making", part))?;
    let former = Former::find(taking.place, &manifest.incarnation)?;
    let mut copied_bytes = 0;
    for name in names(taking.staging)? {
        let (from, to) = (taking.staging.join(&name), part.join(&name));
        let facts = file::facts(&from)?;
        let sha256 = match former.link(&name, facts, &to) {
            Some(sha256) => sha256,
            None => {
                copied_bytes += facts.bytes;
                file::copy(&from, &to)?
            }
        };
        let Facts { bytes, modified_nanos } = facts;
        manifest.files.push(ManifestFile { name, bytes, modified_nanos, sha256 });
    }
    let findings = if taking.check_all { inspect_all(part, taking.staging)?.1 } else { Vec::new() };
    let opened = inspect(part, taking.staging)?;
    let damaged = |detail: String| BackupError::Damaged { path: part.display().to_string(), detail };
    if let Some(finding) = findings.first() {
        return Err(damaged(finding.clone()));
    }
    if (opened.last_etag, &opened.incarnation) != (manifest.last_etag, &manifest.incarnation) {
        return Err(damaged(format!("it ends with etag {}, not {}", opened.last_etag, manifest.last_etag)));
    }
    manifest.write(part)?;
    sync_directory(part)?;
    Ok((manifest, copied_bytes))
}

/// Whether a file of a checkpoint is part of the database, and not one of RocksDB's notes.
fn is_part(name: &str) -> bool {
    const ENDINGS: [&str; 3] = [".sst", ".blob", ".log"];
    const BEGINNINGS: [&str; 2] = ["MANIFEST-", "OPTIONS-"];
    name == "CURRENT"
        || name == "IDENTITY"
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The files of a checkpoint that make the database.
fn names(staging: &Path) -> Result<Vec<String>, BackupError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(staging).map_err(BackupError::file("listing", staging))? {
        let name = entry.map_err(BackupError::file("listing", staging))?.file_name();
        if let Some(name) = name.to_str().filter(|name| is_part(name)) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The newest backup of the same database, where there is one.
struct Former {
    directory: PathBuf,
    files: HashMap<String, ManifestFile>,
}

impl Former {
    fn find(place: &Path, incarnation: &str) -> Result<Self, BackupError> {
        let newest = list(place)?.into_iter().rev().find(|it| it.manifest.incarnation == incarnation);
        let Some(Listed { directory, manifest }) = newest else {
            return Ok(Self { directory: PathBuf::new(), files: HashMap::new() });
        };
        Ok(Self { directory, files: manifest.files.into_iter().map(|file| (file.name.clone(), file)).collect() })
    }

    /// Links a table file that is there already; returns its digest. Where it can't be linked it is copied.
    fn link(&self, name: &str, facts: Facts, to: &Path) -> Option<String> {
        let is_table = Path::new(name).extension().is_some_and(|ending| ending == "sst");
        let file = self.files.get(name).filter(|_| is_table)?;
        if (file.bytes, file.modified_nanos) != (facts.bytes, facts.modified_nanos) {
            return None;
        }
        fs::hard_link(self.directory.join(name), to).ok()?;
        // A file that was cut or changed since is not taken over.
        if file::facts(to).is_ok_and(|linked| linked.bytes == facts.bytes) {
            return Some(file.sha256.clone());
        }
        let _ = fs::remove_file(to);
        None
    }
}

fn delete_older(place: &Path, keep: usize) -> Result<Vec<PathBuf>, BackupError> {
    let mut all: Vec<PathBuf> = list(place)?.into_iter().map(|backup| backup.directory).collect();
    all.truncate(all.len().saturating_sub(keep));
    for directory in &all {
        // Renamed first: half a backup must not look like one.
        let part = file::part_of(directory);
        fs::rename(directory, &part).map_err(BackupError::file("renaming", directory))?;
        fs::remove_dir_all(&part).map_err(BackupError::file("removing", &part))?;
    }
    Ok(all)
}

fn lock(place: &Path) -> Result<File, BackupError> {
    let path = place.join(LOCK);
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(BackupError::file("opening", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackupError::Busy { path: place.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(BackupError::file("locking", &path)(error)),
    }
}

/// The directory of a checkpoint; removed when it is no longer needed, however that ends.
struct Staged<'a>(&'a Path);

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(name: "backup.staging.left", path = %self.0.display(), %error, "files of a backup are left; remove them");
        }
    }
}
