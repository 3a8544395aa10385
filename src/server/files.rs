//! Small files of the server that must survive a crash whole, and the one that keeps other servers out.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file so that after a crash either the former content or all of `bytes` is there.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_parent(path)
}

/// Takes a data directory for as long as the file is open; the system lets go of it however the process ends.
pub(crate) fn lock(data: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(data.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let reason = "another server uses this data directory; stop that one first, or choose another directory";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, reason))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Makes the entry of `path` in its directory durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
