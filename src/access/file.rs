//! `access.json`: the credentials of a data directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, Grants};

/// The file's name in the data directory.
const FILE: &str = "access.json";
/// The version of what stands in it.
const VERSION: u32 = 1;

/// Why the credentials can't be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{path} does not hold credentials: {detail}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// A rule is broken.
    #[error("{0}")]
    Rule(String),
}

/// What opens the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// An API key.
    Key,
    /// A client certificate.
    Certificate,
}

/// A credential and what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Credential {
    /// What people call it; unique without regard to case.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The digest of the key, or of the certificate's bytes (DER).
    #[serde(rename = "Sha256")]
    pub digest: Digest,
    /// What it may do.
    pub allow: Grants,
    /// When it was added.
    pub created: Timestamp,
    /// From when it counts; `None`: from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Timestamp>,
    /// Until when it counts; `None`: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

impl Credential {
    /// Whether it counts at a moment.
    #[must_use]
    pub fn counts_at(&self, now: Timestamp) -> bool {
        self.begins.is_none_or(|begins| begins <= now) && self.expires.is_none_or(|expires| now < expires)
    }
}

/// The credentials of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct AccessFile {
    version: u32,
    credentials: Vec<Credential>,
}

impl AccessFile {
    /// Where the file of a data directory is.
    #[must_use]
    pub fn path(data: &Path) -> PathBuf {
        data.join(FILE)
    }

    /// Reads the file; `None` where there is none.
    ///
    /// # Errors
    /// It can't be read, or holds something else.
    pub fn read(path: &Path) -> Result<Option<Self>, AccessError> {
        let shown = || path.display().to_string();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(AccessError::File { path: shown(), source }),
        };
        let format = |detail: String| AccessError::Format { path: shown(), detail };
        let file: Self = serde_json::from_slice(&bytes).map_err(|error| format(error.to_string()))?;
        match file.version {
            VERSION => Ok(Some(file)),
            other => Err(format(format!("it has version {other}, and this version of Treepie reads {VERSION}"))),
        }
    }

    /// Changes the file of a data directory, which is made where there is none. One change at a time, also of several
    /// processes; a crash leaves the former file or the new one.
    ///
    /// # Errors
    /// It can't be read or written; what `change` refuses.
    pub fn change<T>(data: &Path, change: impl FnOnce(&mut Self) -> Result<T, AccessError>) -> Result<T, AccessError> {
        let path = Self::path(data);
        let failed = |source| AccessError::File { path: path.display().to_string(), source };
        fs::create_dir_all(data).map_err(failed)?;
        let lock = secret(&path.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut file = Self::read(&path)?.unwrap_or(Self { version: VERSION, credentials: Vec::new() });
        let outcome = change(&mut file)?;
        let text = serde_json::to_vec_pretty(&file).map_err(|error| failed(error.into()))?;
        let temporary = path.with_extension("new");
        let written = secret(&temporary).and_then(|mut new| {
            new.write_all(&text)?;
            new.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(data)?.sync_all()
        });
        written.map_err(failed)?;
        Ok(outcome)
    }

    /// The credentials, in the order in which they were added.
    #[must_use]
    pub fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    pub(super) fn into_credentials(self) -> Vec<Arc<Credential>> {
        self.credentials.into_iter().map(Arc::new).collect()
    }

    /// Adds a credential.
    ///
    /// # Errors
    /// Its name is empty, too long or taken, or what opens the door is there already.
    pub fn add(&mut self, credential: Credential) -> Result<(), AccessError> {
        const NAME_MAX: usize = 128;
        let name = &credential.name;
        if name.trim().is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
            let rule = format!("A name has 1 to {NAME_MAX} bytes and no control characters.");
            return Err(AccessError::Rule(rule));
        }
        if self.credentials.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
            return Err(AccessError::Rule(format!(
                "There is a credential '{name}' already; delete it, or choose another name."
            )));
        }
        if let Some(other) = self.credentials.iter().find(|other| other.digest == credential.digest) {
            return Err(AccessError::Rule(format!("The same is there already, as '{}'.", other.name)));
        }
        self.credentials.push(credential);
        Ok(())
    }

    /// Takes a credential away. `false`: there is none of that kind and name.
    pub fn remove(&mut self, kind: Kind, name: &str) -> bool {
        let before = self.credentials.len();
        self.credentials.retain(|it| it.kind != kind || !it.name.eq_ignore_ascii_case(name));
        self.credentials.len() < before
    }
}

/// Opens a file that only its owner may read, for writing anew.
fn secret(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
}
