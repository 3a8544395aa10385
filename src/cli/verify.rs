//! `treepie verify`: everything is computed again and compared with what is stored, while the server serves.

use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use reqwest::Method;
use serde::Deserialize;

use super::api::Api;
use super::document::not_understood;
use super::failure::Exit;
use super::lines::Lines;
use super::output::{Output, OutputArgs, grouped};
use super::{Failure, Target};

/// How long a server may be silent: it tells twice a second how far it has come, but a scan of all documents may take longer.
const SILENCE: Duration = Duration::from_secs(900);

/// Compute everything again and compare it with what is stored
#[derive(Debug, Args)]
#[command(after_help = "\
Without INDEX: documents, feeds and counts, and all indexes. Every document is mapped again, every group reduced again, and
every row and artificial document compared byte for byte. The server goes on serving; what it takes in meanwhile is not looked
at. --repair writes artificial documents again, and builds an index anew whose own rows differ.
The exit code is 1 where a difference is left.")]
pub(crate) struct Verify {
    /// Only this index
    #[arg(value_name = "INDEX")]
    index: Option<String>,
    /// Mend what differs
    #[arg(long)]
    repair: bool,
    /// How many differences to name
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: u64,
    /// How long to wait for an index that is being built
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(tag = "Event", rename_all_fields = "PascalCase")]
enum Line {
    Progress(Verified),
    Difference { index: Option<String>, kind: String, family: String, place: String, detail: String },
    Verified(Verified),
    Mended { index: Option<String>, done: bool, what: String },
    Done { differences: u64, not_named: u64 },
    Failed { message: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Verified {
    index: String,
    through_etag: u64,
    documents: u64,
    documents_waiting: u64,
    entries: u64,
    groups: u64,
    artificial_documents: u64,
    interrupted: u64,
    rows_differ: u64,
    artificial_documents_differ: u64,
    seconds: f64,
}

impl Verify {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, SILENCE)?;
        let method = if self.repair { Method::POST } else { Method::GET };
        let timeout = (self.timeout.saturating_mul(1000)).to_string();
        let mut query = vec![("limit", self.limit.to_string()), ("timeout", timeout)];
        query.extend(self.index.map(|index| ("name", index)));
        let response = api.send(api.request(method, "indexes/verify").query(&query)).await;
        let mut lines = Lines::new(&api, response.map_err(|error| api.failure(error))?);
        let mut out = Output::new(self.output);
        let bar = ProgressBar::new_spinner();
        let mut last = None;
        while let Some(text) = lines.next().await? {
            if text.is_empty() {
                continue;
            }
            let line: Line = serde_json::from_str(&text).map_err(|error| not_understood(&error))?;
            if let Line::Progress(found) = &line {
                bar.set_message(format!("{}: {} documents", found.index, grouped(found.documents)));
                continue;
            }
            bar.suspend(|| if out.for_people() { line.print(&mut out) } else { out.line(&text) })?;
            out.flush()?;
            last = Some(line);
        }
        bar.finish_and_clear();
        match last {
            Some(Line::Done { differences: 0, .. }) => Ok(()),
            Some(Line::Done { differences, .. }) => {
                let failure = Failure::failed(format!("{} differences are left", grouped(differences)));
                Err(if self.repair { failure } else { failure.way_out("--repair mends what can be mended") })
            }
            Some(Line::Failed { message }) => Err(Failure::failed(message)),
            _ => Err(Failure::new(Exit::Unreachable, "the server broke off before the end")),
        }
    }
}

impl Line {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let of = |index: &Option<String>| index.as_ref().map(|index| format!("{index}: ")).unwrap_or_default();
        match self {
            Self::Progress(_) | Self::Failed { .. } | Self::Done { not_named: 0, .. } => Ok(()),
            Self::Difference { index, kind, family, place, detail } => {
                out.line(&format!("{}{} in {family}: {place}: {detail}", of(index), kind.to_ascii_lowercase()))
            }
            Self::Mended { index, done: true, what } => out.line(&format!("{}mended: {what}", of(index))),
            Self::Mended { index, done: false, what } => out.line(&format!("{}not mended: {what}", of(index))),
            Self::Verified(found) => out.line(&found.sentence()),
            Self::Done { not_named, .. } => out.line(&format!("and {} differences more", grouped(*not_named))),
        }
    }
}

impl Verified {
    fn sentence(&self) -> String {
        let differences = match self.rows_differ + self.artificial_documents_differ {
            0 => "all as it should be".to_owned(),
            1 => "1 difference".to_owned(),
            more => format!("{} differences", grouped(more)),
        };
        let count_of = |count: u64, what: &str| match count {
            0 => String::new(),
            count => format!("; {} {what}", grouped(count)),
        };
        format!(
            "{}: {differences}; {} documents, {} entries, {} groups, {} artificial documents, through etag {}, in {:.1} s{}{}",
            self.index,
            grouped(self.documents),
            grouped(self.entries),
            grouped(self.groups),
            grouped(self.artificial_documents),
            self.through_etag,
            self.seconds,
            count_of(self.documents_waiting, "documents wait to be taken in"),
            count_of(self.interrupted, "scripts were interrupted")
        )
    }
}
