//! Small files of the server that must survive a crash whole.

use std::fs::{self, File};
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

/// Makes the entry of `path` in its directory durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
