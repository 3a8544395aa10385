//! The files of backups: copied with a digest, made durable, compared with what was written.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use super::BackupError;

/// The ending of a directory that is being written.
const PART: &str = "part";
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// What the file system says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) bytes: u64,
    /// The time of its last change, nanoseconds since 1970.
    pub(super) modified_nanos: u64,
}

/// The name that a directory has until it is whole.
pub(super) fn part_of(directory: &Path) -> PathBuf {
    directory.with_extension(PART)
}

/// Whether a directory is not one that is being written.
pub(super) fn is_whole(directory: &Path) -> bool {
    directory.extension().is_none_or(|ending| ending != PART)
}

/// The directories in `place`; none where it does not exist.
pub(super) fn directories(place: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BackupError::file("listing", place)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(BackupError::file("listing", place))?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}

pub(super) fn facts(path: &Path) -> Result<Facts, BackupError> {
    let metadata = fs::metadata(path).map_err(BackupError::file("looking at", path))?;
    let modified = metadata.modified().map_err(BackupError::file("looking at", path))?;
    let nanos = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Ok(Facts { bytes: metadata.len(), modified_nanos: u64::try_from(nanos).unwrap_or(u64::MAX) })
}

/// Copies a file durably and returns the digest of what was copied, in hex.
pub(super) fn copy(from: &Path, to: &Path) -> Result<String, BackupError> {
    let mut source = File::open(from).map_err(BackupError::file("reading", from))?;
    let mut target = File::create_new(to).map_err(BackupError::file("writing", to))?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = source.read(&mut piece).map_err(BackupError::file("reading", from))?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        digest.update(bytes);
        target.write_all(bytes).map_err(BackupError::file("writing", to))?;
    }
    target.sync_all().map_err(BackupError::file("writing", to))?;
    Ok(hex(&digest.finalize()))
}

/// Makes the entries of a directory durable.
pub(super) fn sync_directory(directory: &Path) -> Result<(), BackupError> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(BackupError::file("writing", directory))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
