//! `treepie index status`: how indexes are doing, once or until they have caught up.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::show::absent;
use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::{Results, not_understood};
use crate::cli::output::{Output, OutputArgs, grouped};
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
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// An index's statistics, as far as they are shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Stats {
    name: String,
    state: String,
    status: String,
    is_stale: bool,
    #[serde(default)]
    collections: BTreeMap<String, CollectionStats>,
    #[serde(default)]
    entries_count: u64,
    #[serde(default)]
    errors_count: u64,
    #[serde(default)]
    mapped_per_second_rate: f64,
}

#[derive(Debug, Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct CollectionStats {
    last_processed_document_etag: u64,
    last_processed_tombstone_etag: u64,
    document_lag: u64,
    tombstone_lag: u64,
}

/// What one look at the indexes found.
struct Look {
    raw: Vec<String>,
    stats: Vec<Stats>,
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
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let look = if self.wait { self.wait(&api).await? } else { self.look(&api).await? };
        let mut out = Output::new(self.output);
        if out.for_people() {
            let rows: Vec<_> = look.stats.iter().map(Stats::row).collect();
            out.table(&["INDEX", "STATE", "LAG", "DOCS/S", "LEFT", "ENTRIES", "FAULTS"], &rows)?;
        } else {
            for stats in &look.raw {
                out.line(stats)?;
            }
        }
        out.flush()?;
        if self.wait {
            for stats in &look.stats {
                self.check(&api, stats).await?;
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
            if now.stats.iter().any(|stats| !stats.runs()) || (now.rests() && now.same_place(&before)) {
                bar.finish_and_clear();
                return Ok(now);
            }
            if self.timeout.is_some_and(|timeout| begin.elapsed() >= Duration::from_secs(timeout)) {
                bar.finish_and_clear();
                let stale: Vec<_> =
                    now.stats.iter().filter(|stats| stats.is_stale).map(|stats| stats.name.as_str()).collect();
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
        let request = api.request(Method::GET, "indexes/stats");
        let answer = match &self.name {
            Some(name) => api.text(request.query(&[("name", name)])).await?,
            None => api.text(request).await?,
        };
        let mut look = Look { raw: Vec::new(), stats: Vec::new() };
        for stats in Results::parse(&answer)?.results.into_iter().flatten() {
            look.stats.push(serde_json::from_str(stats.get()).map_err(|error| not_understood(&error))?);
            look.raw.push(stats.get().to_owned());
        }
        match &self.name {
            Some(name) if look.stats.is_empty() => Err(absent(name)),
            _ => Ok(look),
        }
    }

    /// A wait is in vain when an index gave up or was told to stop.
    async fn check(&self, api: &Api, stats: &Stats) -> Result<(), Failure> {
        if stats.runs() {
            return Ok(());
        }
        if stats.state != "Error" {
            let message = format!("index '{}' is {}, so it does not catch up", stats.name, stats.shown_state());
            return Err(Failure::failed(message).way_out("let it go on with POST …/admin/indexes/start?name=…"));
        }
        let answer = api.text(api.request(Method::GET, "indexes/errors").query(&[("name", &stats.name)])).await?;
        let mut message = format!("index '{}' is in error; its last faults:", stats.name);
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
}

impl Look {
    fn lag(&self) -> u64 {
        self.stats.iter().map(Stats::lag).sum()
    }

    fn rests(&self) -> bool {
        self.stats.iter().all(|stats| !stats.is_stale)
    }

    fn same_place(&self, other: &Self) -> bool {
        let place = |look: &Self| {
            look.stats.iter().map(|stats| (stats.name.clone(), stats.collections.clone())).collect::<Vec<_>>()
        };
        place(self) == place(other)
    }
}

impl Stats {
    fn lag(&self) -> u64 {
        self.collections.values().map(|collection| collection.document_lag + collection.tombstone_lag).sum()
    }

    /// Whether it goes on by itself.
    fn runs(&self) -> bool {
        self.state == "Normal" && (self.status == "Running" || self.status == "Pending")
    }

    fn shown_state(&self) -> String {
        match (self.state.as_str(), self.status.as_str()) {
            ("Normal", "Running" | "Pending") if self.is_stale => "working".to_owned(),
            ("Normal", "Running" | "Pending") => "current".to_owned(),
            ("Normal", status) => status.to_ascii_lowercase(),
            (state, _) => state.to_ascii_lowercase(),
        }
    }

    fn row(&self) -> Vec<String> {
        let lag = self.lag();
        let rate = self.mapped_per_second_rate;
        #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
        let left = if lag > 0 && rate >= 1.0 { format!("{:.0} s", (lag as f64 / rate).ceil()) } else { "-".to_owned() };
        let rate = if rate >= 1.0 { format!("{rate:.0}") } else { "-".to_owned() };
        vec![
            self.name.clone(),
            self.shown_state(),
            grouped(lag),
            rate,
            left,
            grouped(self.entries_count),
            grouped(self.errors_count),
        ]
    }
}

/// A bar on standard error; nothing where that is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = "{bar:30} {percent}%  {human_pos} of {human_len} changes  {per_sec}  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
