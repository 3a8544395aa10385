//! Who gets in: API keys and client certificates, and what each may do.
//!
//! They stand in one file of the data directory, `access.json`, which `treepie key` and `treepie cert` write and a running
//! server reads again within a second. A key is kept as its digest only: it has 256 random bits, so nothing can be guessed
//! from that. A certificate is known by the digest of its bytes; who issued it does not matter.
//!
//! Where the file exists, every request needs credentials, also when no credential is left in it. Comparisons take the same
//! time whatever is compared.
//!
//! Next on the walk: `grants`, `file`.

mod certificate;
mod file;
mod grants;
mod key;

pub use certificate::{Certificate, CertificateError, Issued, Issuer};
pub use file::{AccessError, AccessFile, Credential, Kind};
pub use grants::{EVERYTHING, Grants, Level};
pub use key::{ApiKey, Digest};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::RwLock;
use subtle::ConstantTimeEq as _;

/// The credentials of a data directory, as a server holds them.
#[derive(Debug)]
pub struct Access {
    path: PathBuf,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    /// `None`: there is no file, and nobody needs credentials.
    credentials: Option<Vec<Arc<Credential>>>,
    /// By which a changed file is known.
    seen: Option<(SystemTime, u64)>,
}

/// What a caller has shown.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// An API key, as it was sent.
    Key(&'a str),
    /// The digest of a certificate whose private key the caller has.
    Certificate(&'a Digest),
}

/// What is known about a caller.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Nobody needs credentials here.
    Anyone,
    /// Holds this credential.
    Known(Arc<Credential>),
    /// Has shown nothing.
    Stranger,
    /// Has shown what does not count; why not.
    Refused(&'static str),
}

impl Caller {
    /// Whether the caller may do what needs `level` in a database; `None` for the server as a whole.
    #[must_use]
    pub fn may(&self, level: Level, database: Option<&str>) -> bool {
        match self {
            Self::Anyone => true,
            Self::Known(credential) => credential.allow.permits(level, database),
            Self::Stranger | Self::Refused(_) => false,
        }
    }
}

impl Access {
    /// Reads the credentials of a data directory.
    ///
    /// # Errors
    /// The file is there and can't be read.
    pub fn open(data: &Path) -> Result<Self, AccessError> {
        let path = AccessFile::path(data);
        let seen = look(&path);
        let credentials = AccessFile::read(&path)?.map(AccessFile::into_credentials);
        Ok(Self { path, state: RwLock::new(State { credentials, seen }) })
    }

    /// Whether every request needs credentials.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.state.read().credentials.is_some()
    }

    /// Reads the file again where it has changed. A file that has gone leaves nobody in, rather than everybody: whoever wants
    /// that starts the server again. Blocking. `true`: it was read.
    ///
    /// # Errors
    /// It can't be read; what was read before holds.
    pub fn refresh(&self) -> Result<bool, AccessError> {
        let seen = look(&self.path);
        if self.state.read().seen == seen {
            return Ok(false);
        }
        let read = AccessFile::read(&self.path)?.map(AccessFile::into_credentials);
        let mut state = self.state.write();
        let was_required = state.credentials.is_some();
        state.credentials = match read {
            None if was_required => Some(Vec::new()),
            read => read,
        };
        state.seen = seen;
        Ok(true)
    }

    /// Tells who a caller is by what it has shown; the first that counts.
    #[must_use]
    pub fn recognise(&self, shown: &[Shown<'_>]) -> Caller {
        let state = self.state.read();
        let Some(credentials) = &state.credentials else { return Caller::Anyone };
        let mut caller = Caller::Stranger;
        for shown in shown {
            let (kind, digest) = match shown {
                Shown::Key(key) => (Kind::Key, Digest::of(key.as_bytes())),
                Shown::Certificate(digest) => (Kind::Certificate, (*digest).clone()),
            };
            // All are looked at, so that the time says nothing about which one it is.
            let mut found = None;
            for credential in credentials {
                let is_this = credential.digest.bytes().ct_eq(digest.bytes());
                if bool::from(is_this) && credential.kind == kind {
                    found = Some(credential);
                }
            }
            match found {
                Some(credential) if credential.counts_at(jiff::Timestamp::now()) => {
                    return Caller::Known(Arc::clone(credential));
                }
                Some(_) => caller = Caller::Refused("it has expired, or does not count yet"),
                None if matches!(caller, Caller::Stranger) => caller = Caller::Refused("it is not known here"),
                None => {}
            }
        }
        caller
    }
}

fn look(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
