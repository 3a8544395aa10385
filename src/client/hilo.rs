//! Ids from reserved ranges: `users/33-A`. One generator for each database, collection and separator of a store.
//!
//! A range is fetched when the last one is used up, by one of those who wait for it. Nothing is handed out twice: a number
//! leaves the range under a lock, and a range that is lost on its way is never used by anybody.
//!
//! Next on the walk: `session`.

use std::ops::RangeInclusive;

use parking_lot::Mutex;
use reqwest::Method;
use serde::Deserialize;

use super::error::ClientError;
use super::http::Call;
use super::link::Link;

/// When a generator that has had no range says it got its last one.
const NEVER: &str = "0001-01-01T00:00:00.0000000Z";

/// Makes the ids of one collection.
#[derive(Debug)]
pub(super) struct Generator {
    tag: String,
    separator: char,
    state: Mutex<State>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    /// What is left of the range.
    left: Option<RangeInclusive<u64>>,
    /// The last number of the range, also when nothing is left of it.
    high: u64,
    prefix: String,
    server_tag: String,
    last_size: u64,
    last_range_at: String,
}

/// A range, as the server answers it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Range {
    prefix: String,
    low: u64,
    high: u64,
    last_size: u64,
    server_tag: String,
    last_range_at: String,
}

impl Generator {
    pub(super) fn new(tag: String, separator: char) -> Self {
        let state = State {
            left: None,
            high: 0,
            prefix: String::new(),
            server_tag: String::new(),
            last_size: 0,
            last_range_at: NEVER.to_owned(),
        };
        Self { tag, separator, state: Mutex::new(state), fetching: tokio::sync::Mutex::default() }
    }

    /// Makes the next id.
    ///
    /// # Cancel safety
    /// At worst the numbers of a range that was being fetched are never used.
    pub(super) async fn next(&self, link: &Link) -> Result<String, ClientError> {
        loop {
            if let Some(id) = self.state.lock().take() {
                return Ok(id);
            }
            let _one = self.fetching.lock().await;
            if let Some(id) = self.state.lock().take() {
                return Ok(id);
            }
            let answer = link.send(self.ask(link)).await?;
            let range: Range = answer.json()?;
            if range.low == 0 || range.low > range.high {
                return Err(answer.wrong(format!("{} to {} is no range of numbers", range.low, range.high)));
            }
            self.state.lock().begin(range);
        }
    }

    /// The request that gives back what is left, which is not used from now on.
    pub(super) fn give_back(&self, link: &Link) -> Option<Call> {
        let mut state = self.state.lock();
        let left = state.left.take()?;
        let call = link.call(Method::PUT, "hilo/return").query("tag", self.tag.clone());
        Some(call.query("end", state.high.to_string()).query("last", (left.start() - 1).to_string()))
    }

    fn ask(&self, link: &Link) -> Call {
        let state = self.state.lock();
        link.call(Method::GET, "hilo/next")
            .query("tag", self.tag.clone())
            .query("lastBatchSize", state.last_size.to_string())
            .query("lastRangeAt", state.last_range_at.clone())
            .query("identityPartsSeparator", self.separator.to_string())
            .query("lastMax", state.high.to_string())
    }
}

impl State {
    fn take(&mut self) -> Option<String> {
        let number = self.left.as_mut()?.next();
        if number.is_none() || self.left.as_ref().is_some_and(RangeInclusive::is_empty) {
            self.left = None;
        }
        number.map(|number| format!("{}{number}-{}", self.prefix, self.server_tag))
    }

    fn begin(&mut self, range: Range) {
        *self = Self {
            left: Some(range.low..=range.high),
            high: range.high,
            prefix: range.prefix,
            server_tag: range.server_tag,
            last_size: range.last_size,
            last_range_at: range.last_range_at,
        };
    }
}
