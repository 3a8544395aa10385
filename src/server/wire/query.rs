//! The JSON of queries: what clients ask, and what stands around the rows of an answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::text::time_span;
use crate::query::Summary;

/// A query as clients send it. What else they send changes no answer.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Asked {
    pub(crate) query: Option<String>,
    pub(crate) query_parameters: Option<Box<RawValue>>,
    pub(crate) start: Option<i64>,
    pub(crate) page_size: Option<i64>,
    pub(crate) wait_for_non_stale_results: Option<bool>,
    pub(crate) wait_for_non_stale_results_timeout: Option<Span>,
    pub(crate) projection_behavior: Option<String>,
    pub(crate) skip_statistics: Option<bool>,
    /// Treepie's own: empty to begin, then the token of the page before.
    pub(crate) continuation: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Span {
    Millis(u64),
    Text(String),
}

impl Asked {
    /// How long the caller would wait. `Err`: what it wrote is no time span.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, String> {
        match &self.wait_for_non_stale_results_timeout {
            None => Ok(None),
            Some(Span::Millis(millis)) => Ok(Some(Duration::from_millis(*millis))),
            Some(Span::Text(text)) => time_span(text).map(Some).ok_or_else(|| text.clone()),
        }
    }
}

/// What stands behind the rows of an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Tail<'a> {
    /// -1 where nobody counted.
    pub(crate) total_results: i64,
    pub(crate) skipped_results: u64,
    pub(crate) scanned_results: u64,
    pub(crate) duration_in_ms: u64,
    pub(crate) included_paths: Option<Vec<String>>,
    pub(crate) index_name: &'a str,
    pub(crate) index_timestamp: &'a str,
    pub(crate) last_query_time: &'a str,
    pub(crate) is_stale: bool,
    pub(crate) result_etag: u64,
    pub(crate) node_tag: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) continuation: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timings: Option<Timings>,
}

/// `include timings()`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Timings {
    pub(crate) duration_in_ms: u64,
    pub(crate) timings: Option<Parts>,
}

/// The parts of the work.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Parts {
    /// For an index that lagged.
    pub(crate) wait: Box<Timings>,
    /// Reading, ordering and writing rows.
    pub(crate) query: Box<Timings>,
}

impl Timings {
    pub(crate) fn of(duration: Duration) -> Self {
        Self { duration_in_ms: millis(duration), timings: None }
    }

    pub(crate) fn parts(wait: Duration, query: Duration) -> Self {
        let parts = Parts { wait: Box::new(Self::of(wait)), query: Box::new(Self::of(query)) };
        Self { duration_in_ms: millis(wait + query), timings: Some(parts) }
    }
}

/// What stands before the rows of a stream.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Head<'a> {
    pub(crate) result_etag: u64,
    pub(crate) is_stale: bool,
    pub(crate) index_name: &'a str,
    /// -1 where the rows would have to be read first.
    pub(crate) total_results: i64,
    pub(crate) index_timestamp: &'a str,
}

/// How a query was run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Explained<'a> {
    pub(crate) plan: &'a str,
    pub(crate) rows_read: u64,
    pub(crate) rows_shown: u64,
    pub(crate) total_results: i64,
    pub(crate) duration_in_ms: u64,
    pub(crate) index_name: &'a str,
    pub(crate) is_stale: bool,
}

impl<'a> Explained<'a> {
    pub(crate) fn new(summary: &'a Summary, took: Duration, index_name: &'a str, is_stale: bool) -> Self {
        Self {
            plan: &summary.plan,
            rows_read: summary.read,
            rows_shown: summary.shown,
            total_results: total(summary.total),
            duration_in_ms: millis(took),
            index_name,
            is_stale,
        }
    }
}

/// A count as clients read it.
pub(crate) fn total(total: Option<u64>) -> i64 {
    total.and_then(|total| i64::try_from(total).ok()).unwrap_or(-1)
}

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
