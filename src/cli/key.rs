//! `treepie key`: API keys of a data directory.
//!
//! The commands change the file of credentials; a server that runs takes it up within a second.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use treepie::access::{AccessError, AccessFile, ApiKey, Credential, Grants, Kind};

use super::Failure;
use super::failure::Exit;
use super::output::{Output, OutputArgs, notice};

/// Make, list and delete API keys
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key and print it, once; the server keeps only a digest of it
    Create(Create),
    /// List keys and what they may do
    List(List),
    /// Delete a key; it no longer opens anything within a second
    Delete(Delete),
}

/// Which data directory.
#[derive(Clone, Debug, Args)]
pub(crate) struct Data {
    /// The server's data directory
    #[arg(long, env = "TREEPIE_DATA", default_value = "./treepie-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
}

/// What a credential may do, and for how long.
#[derive(Clone, Debug, Args)]
pub(crate) struct Allowed {
    /// What it may do, by database: main=read, logs=write,main=admin; * stands for all databases and the server itself
    #[arg(long, value_name = "DATABASE=LEVEL")]
    pub(crate) allow: Grants,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What people call it
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    allowed: Allowed,
    /// It counts for so many days
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    data: Data,
}

impl Key {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(Kind::Key),
            Self::Delete(delete) => delete.run(Kind::Key),
        }
    }
}

impl Create {
    fn run(self) -> Result<(), Failure> {
        let key = ApiKey::new().map_err(|error| Failure::failed(format!("no random bytes: {error}")))?;
        let created = Timestamp::now();
        let expires = self.days.map(|days| created.saturating_add(SignedDuration::from_hours(24 * i64::from(days))));
        let credential = Credential {
            name: self.name.clone(),
            kind: Kind::Key,
            digest: key.digest(),
            allow: self.allowed.allow,
            created,
            begins: None,
            expires: expires.transpose().map_err(|error| Failure::usage(format!("--days: {error}")))?,
        };
        AccessFile::change(&self.data.data, |file| file.add(credential)).map_err(failure)?;
        notice("the key is shown this once; from now on every request to this server needs credentials");
        let mut out = Output::new(self.output);
        if out.for_people() {
            out.line(key.expose())?;
        } else {
            out.line(&serde_json::json!({ "name": self.name, "key": key.expose() }).to_string())?;
        }
        out.flush()
    }
}

impl List {
    pub(crate) fn run(self, kind: Kind) -> Result<(), Failure> {
        let read = AccessFile::read(&AccessFile::path(&self.data.data)).map_err(failure)?;
        let mut out = Output::new(self.output);
        let credentials = read.iter().flat_map(AccessFile::credentials).filter(|it| it.kind == kind);
        if !out.for_people() {
            for credential in credentials {
                let line = serde_json::json!({
                    "name": credential.name, "allow": credential.allow, "created": credential.created,
                    "expires": credential.expires, "sha256": credential.digest,
                });
                out.line(&line.to_string())?;
            }
            return out.flush();
        }
        let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
        let rows: Vec<_> = credentials
            .map(|it| {
                let expires = it.expires.map_or_else(|| "never".to_owned(), day);
                vec![it.name.clone(), it.allow.to_string(), day(it.created), expires]
            })
            .collect();
        out.table(&["NAME", "ALLOW", "CREATED", "EXPIRES"], &rows)?;
        out.flush()
    }
}

impl Delete {
    pub(crate) fn run(self, kind: Kind) -> Result<(), Failure> {
        let removed = AccessFile::change(&self.data.data, |file| Ok(file.remove(kind, &self.name))).map_err(failure)?;
        if !removed {
            let what = if kind == Kind::Key { "key" } else { "certificate" };
            let message = format!("there is no {what} '{}' in {}", self.name, self.data.data.display());
            return Err(Failure::new(Exit::NotFound, message));
        }
        notice(&format!("deleted {}", self.name));
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn failure(error: AccessError) -> Failure {
    match &error {
        AccessError::Rule(rule) => Failure::failed(rule.clone()),
        _ => Failure::failed(error.to_string()),
    }
}
