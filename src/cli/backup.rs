//! `treepie backup` and `treepie restore`: the server copies a database and makes one of a copy.

use std::time::Duration;

use clap::Args;
use reqwest::Method;
use serde::Deserialize;

use super::api::Api;
use super::document::not_understood;
use super::output::{Output, OutputArgs, grouped};
use super::{Failure, Target};

/// How long a server may copy before it answers.
const COPYING: Duration = Duration::from_secs(24 * 3_600);

/// Take a backup of a database, while it is in use
#[derive(Debug, Args)]
#[command(after_help = "\
The server copies the database into its directory of backups (`serve --backups`), each backup a directory of its own. Files
that an earlier backup holds already are linked, not copied. A backup counts when it is whole and was opened.")]
pub(crate) struct Backup {
    /// Only list the backups of all databases
    #[arg(long, conflicts_with_all = ["keep", "verify_all"])]
    list: bool,
    /// Delete older backups of the database afterwards, all but N; the new one counts
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// Look at every document of the backup before it counts
    #[arg(long)]
    verify_all: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// Make a new database of a backup
#[derive(Debug, Args)]
#[command(after_help = "\
The new database is one of its own: what it writes has other versions (change vectors) and higher etags than what the former
one wrote, so nothing that remembers those is led astray. Index results come along. `treepie backup --list` lists backups.")]
pub(crate) struct Restore {
    /// The backup, by the name that `treepie backup` printed; main/latest is the newest of main
    #[arg(value_name = "BACKUP")]
    backup: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Shown {
    name: String,
    taken: String,
    last_etag: u64,
    documents: u64,
    bytes: u64,
    #[serde(default)]
    copied_bytes: u64,
    #[serde(default)]
    deleted: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct List {
    backups: Vec<serde_json::Value>,
}

impl Backup {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, COPYING)?;
        let mut out = Output::new(self.output);
        if self.list {
            return list(&api, &mut out).await;
        }
        let mut request = api.request(Method::POST, "admin/backup");
        if let Some(keep) = self.keep {
            request = request.query(&[("keep", keep)]);
        }
        if self.verify_all {
            request = request.query(&[("verify", "all")]);
        }
        let answer = api.text(request).await?;
        if !out.for_people() {
            out.line(answer.trim_end())?;
            return out.flush();
        }
        let taken: Shown = serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
        let Shown { name, documents, bytes, copied_bytes, deleted, .. } = taken;
        let s = if documents == 1 { "" } else { "s" };
        let (documents, bytes, copied) = (grouped(documents), grouped(bytes), grouped(copied_bytes));
        out.line(&format!("backup {name}: {documents} document{s}, {bytes} bytes, {copied} of them copied"))?;
        for deleted in deleted {
            out.line(&format!("deleted {deleted}"))?;
        }
        out.flush()
    }
}

async fn list(api: &Api, out: &mut Output) -> Result<(), Failure> {
    let answer = api.text(api.server_request(Method::GET, "admin/backups")).await?;
    let list: List = serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
    if !out.for_people() {
        for backup in list.backups {
            out.line(&backup.to_string())?;
        }
        return out.flush();
    }
    let mut rows = Vec::new();
    for backup in list.backups {
        let Shown { name, taken, last_etag, documents, bytes, .. } =
            serde_json::from_value(backup).map_err(|error| not_understood(&error))?;
        rows.push(vec![name, taken, grouped(documents), grouped(last_etag), grouped(bytes)]);
    }
    out.table(&["BACKUP", "TAKEN", "DOCUMENTS", "LAST ETAG", "BYTES"], &rows)?;
    out.flush()
}

impl Restore {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, COPYING)?;
        let name = &self.target.database;
        let query = [("name", name.as_str()), ("backup", self.backup.as_str())];
        let answer = api.text(api.server_request(Method::POST, "admin/restore").query(&query)).await?;
        let mut out = Output::new(self.output);
        if out.for_people() {
            out.line(&format!("restored {name} from {}", self.backup))?;
        } else {
            out.line(answer.trim_end())?;
        }
        out.flush()
    }
}
