//! Why a backup could not be taken or restored.

use std::io;
use std::path::Path;

use crate::store::{ErrorKind, StoreError};

/// Why a backup could not be taken or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The database or the copy of it could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file or a directory could not be read or written.
    #[error("{action} '{path}' failed: {source}")]
    File {
        /// What was being done.
        action: &'static str,
        /// The file or directory.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
    /// What should be a backup is none.
    #[error("'{path}' is no backup: {detail}")]
    NoBackup {
        /// The directory.
        path: String,
        /// What is missing or wrong.
        detail: String,
    },
    /// A backup is not what was written.
    #[error("the backup in '{path}' is damaged: {detail}; restore another one")]
    Damaged {
        /// The directory.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// Another backup goes to the same place now.
    #[error("a backup to '{path}' is being taken already; wait for it to end")]
    Busy {
        /// The place.
        path: String,
    },
}

impl BackupError {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::File { .. } => ErrorKind::Internal,
            Self::NoBackup { .. } => ErrorKind::Missing,
            Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::Busy { .. } => ErrorKind::Busy,
        }
    }

    pub(super) fn file<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + use<'p> {
        move |source| Self::File { action, path: path.display().to_string(), source }
    }
}
