//! `treepie index status`: how indexes are doing, once or until they have caught up.

use std::fmt::Write;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::show::found;
use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::{Results, not_understood};
use crate::cli::output::{Output, OutputArgs, cut, grouped, width};
use crate::cli::{Failure, Target};

/// How often a waiting command looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Faults shown of an index that gave up.
const FAULTS_SHOWN: usize = 5;

/// Print state, lag, rate and estimate; --wait until nothing is stale
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Only this index
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Wait until nothing is stale; an index in error or paused ends it with exit code 1
    #[arg(long)]
    wait: bool,
    /// With --wait: give up after so long
    #[arg(long, requires = "wait", value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Print again whenever something moves, until interrupted
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// How far an index has come, as the server reports it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Progress {
    name: String,
    /// The index whose place this one is to take.
    replaces: Option<String>,
    state: String,
    status: String,
    phase: String,
    is_building: bool,
    is_stale: bool,
    /// Changes to go.
    lag: u64,
    documents_per_second: f64,
    seconds_left: Option<f64>,
    entries: u64,
    map_errors: u64,
    reduce_errors: u64,
    last_error: Option<LastError>,
    stuck_reason: Option<String>,
    sources: Vec<Source>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LastError {
    action: String,
    document: String,
    error: String,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
struct Source {
    watermark: u64,
}

/// What one look at the indexes found.
pub(super) struct Look {
    pub(super) raw: Vec<String>,
    pub(super) indexes: Vec<Progress>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Faults<'a> {
    #[serde(borrow, default)]
    errors: Vec<RecordedFault<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RecordedFault<'a> {
    error: String,
    #[serde(default)]
    document: Option<String>,
    #[serde(borrow, default)]
    action: Option<&'a RawValue>,
}

impl Status {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.watch {
            return super::follow::follow(&self.target, self.name.as_deref(), self.output).await;
        }
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let look = if self.wait { self.wait(&api).await? } else { self.look(&api).await? };
        let mut out = Output::new(self.output);
        if out.for_people() {
            look.print(&mut out)?;
        } else {
            for index in &look.raw {
                out.line(index)?;
            }
        }
        out.flush()?;
        if self.wait {
            for index in &look.indexes {
                check(&api, index).await?;
            }
        }
        Ok(())
    }

    /// Looks until nothing is stale and nothing moved since the look before: an index that feeds on another's output may
    /// have been looked at before that output was there.
    async fn wait(&self, api: &Api) -> Result<Look, Failure> {
        let begin = Instant::now();
        let bar = bar();
        let mut most = 0;
        let mut before = self.look(api).await?;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.look(api).await?;
            let lag = now.lag();
            most = most.max(lag);
            bar.set_length(most);
            bar.set_position(most - lag);
            bar.set_message(now.outlook());
            if now.indexes.iter().any(|index| now.is_stuck(index)) || (now.rests() && now.same_place(&before)) {
                bar.finish_and_clear();
                return Ok(now);
            }
            if self.timeout.is_some_and(|timeout| begin.elapsed() >= Duration::from_secs(timeout)) {
                bar.finish_and_clear();
                let stale: Vec<_> =
                    now.indexes.iter().filter(|index| index.is_stale).map(|index| index.name.as_str()).collect();
                let message = format!(
                    "after {} s still stale, {} changes to go: {}",
                    begin.elapsed().as_secs(),
                    grouped(lag),
                    stale.join(", ")
                );
                return Err(Failure::failed(message));
            }
            before = now;
        }
    }

    async fn look(&self, api: &Api) -> Result<Look, Failure> {
        let request = api.request(Method::GET, "indexes/progress");
        let request = request.query(&self.name.iter().map(|name| ("name", name)).collect::<Vec<_>>());
        let answer = found_indexes(self.name.as_deref(), api.text(request).await)?;
        Look::parse(&answer)
    }
}

/// An answer about one index or all, where a server that found nothing means that there is no such index.
pub(super) fn found_indexes<T>(name: Option<&str>, answer: Result<T, Failure>) -> Result<T, Failure> {
    match name {
        Some(name) => found(name, answer),
        None => answer,
    }
}

impl Look {
    /// Reads a report.
    pub(super) fn parse(answer: &str) -> Result<Self, Failure> {
        let mut look = Self { raw: Vec::new(), indexes: Vec::new() };
        for index in Results::parse(answer)?.results.into_iter().flatten() {
            look.indexes.push(serde_json::from_str(index.get()).map_err(|error| not_understood(&error))?);
            look.raw.push(index.get().to_owned());
        }
        Ok(look)
    }

    /// Prints a table with a line for each index.
    pub(super) fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let rows: Vec<_> = self.indexes.iter().map(Progress::row).collect();
        out.table(&["INDEX", "STATE", "LAG", "DOCS/S", "LEFT", "ENTRIES", "FAULTS"], &rows)?;
        for line in self.indexes.iter().flat_map(Progress::troubles) {
            out.line(&cut(&line, width()))?;
        }
        Ok(())
    }

    /// Lines that [`Look::print`] prints.
    pub(super) fn lines(&self) -> usize {
        1 + self.indexes.iter().map(|index| 1 + index.troubles().len()).sum::<usize>()
    }

    fn lag(&self) -> u64 {
        self.indexes.iter().map(|index| index.lag).sum()
    }

    /// How fast it goes and how long it may take, of all indexes together.
    fn outlook(&self) -> String {
        if self.lag() == 0 && self.indexes.iter().any(|index| index.is_building) {
            return "reducing".to_owned();
        }
        let rate: f64 = self.indexes.iter().map(|index| index.documents_per_second).sum();
        let left = self.indexes.iter().filter_map(|index| index.seconds_left).fold(0.0, f64::max);
        format!("{rate:.0}/s  {:.0} s left", left.ceil())
    }

    /// Whether an index does not run, nor is a changed definition on its way that might.
    fn is_stuck(&self, index: &Progress) -> bool {
        let is_replaced = |other: &Progress| other.replaces.as_ref() == Some(&index.name) && other.runs();
        !index.runs() && !self.indexes.iter().any(is_replaced)
    }

    fn rests(&self) -> bool {
        self.indexes.iter().all(|index| !index.is_stale)
    }

    fn same_place(&self, other: &Self) -> bool {
        let place =
            |index: &Progress| (index.name.clone(), index.sources.iter().map(|source| source.watermark).collect());
        let places = |look: &Self| -> Vec<(String, Vec<u64>)> { look.indexes.iter().map(place).collect() };
        places(self) == places(other)
    }
}

impl Progress {
    /// Whether it goes on by itself.
    fn runs(&self) -> bool {
        self.state == "Normal" && (self.status == "Running" || self.status == "Pending")
    }

    fn shown_state(&self) -> String {
        match (self.state.as_str(), self.runs()) {
            (_, true) if self.stuck_reason.is_some() => "stuck".to_owned(),
            (_, true) if self.phase == "Swapping" => "swapping".to_owned(),
            (_, true) if self.is_building => "building".to_owned(),
            (_, true) if self.is_stale => "working".to_owned(),
            (_, true) => "current".to_owned(),
            ("Normal", false) => self.status.to_ascii_lowercase(),
            (state, false) => state.to_ascii_lowercase(),
        }
    }

    /// What keeps it from moving, and what failed last.
    fn troubles(&self) -> Vec<String> {
        let stuck = self.stuck_reason.iter().map(|reason| format!("{}: it does not move: {reason}", self.name));
        let failed = self.last_error.iter().map(|LastError { action, document, error }| {
            format!("{}: failed last: {} of {document}: {error}", self.name, action.to_ascii_lowercase())
        });
        stuck.chain(failed).collect()
    }

    fn row(&self) -> Vec<String> {
        let rate = self.documents_per_second;
        vec![
            self.name.clone(),
            self.shown_state(),
            grouped(self.lag),
            if rate >= 0.5 { format!("{rate:.0}") } else { "-".to_owned() },
            self.seconds_left.filter(|_| self.is_stale).map_or("-".to_owned(), |left| format!("{:.0} s", left.ceil())),
            grouped(self.entries),
            grouped(self.map_errors + self.reduce_errors),
        ]
    }
}

/// A wait is in vain when an index gave up or was told to stop.
async fn check(api: &Api, index: &Progress) -> Result<(), Failure> {
    if index.runs() {
        return Ok(());
    }
    if index.state != "Error" {
        let message = format!("index '{}' is {}, so it does not catch up", index.name, index.shown_state());
        return Err(Failure::failed(message).way_out("POST …/admin/indexes/start lets it go on"));
    }
    let answer = api.text(api.request(Method::GET, "indexes/errors").query(&[("name", &index.name)])).await?;
    let mut message = format!("index '{}' is in error; its last faults:", index.name);
    for faults in Results::parse(&answer)?.results.into_iter().flatten() {
        let faults: Faults<'_> = serde_json::from_str(faults.get()).map_err(|error| not_understood(&error))?;
        for fault in faults.errors.iter().rev().take(FAULTS_SHOWN).rev() {
            let action = fault.action.map(|action| action.get().trim_matches('"')).unwrap_or_default();
            let document = fault.document.as_deref().unwrap_or_default();
            // Writing to a string does not fail.
            let _ = write!(message, "\n  {action} {document}: {}", fault.error);
        }
    }
    Err(Failure::failed(message).way_out("put a corrected script with `treepie index put`"))
}

/// A bar on standard error; nothing where that is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = "{bar:30} {percent}%  {human_pos} of {human_len} changes  {msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
