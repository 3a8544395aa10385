//! The JSON of `/indexes/progress`: Treepie's own fields, and beside them those of RavenDB.

use std::collections::BTreeMap;

use serde::Serialize;

use super::index::{IndexError, kind_of};
use super::stats::{running_status, state};
use super::text::time;
use crate::index::progress::IndexProgress;
use crate::index::pulse::Stuck;
use crate::index::status::{IndexPhase, IndexStatus, SourceStatus};

/// How far an index has come, and when it will be there.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Progress {
    name: String,
    /// The index whose place this one is to take.
    replaces: Option<String>,
    state: &'static str,
    status: &'static str,
    /// `Mapping`, `Reducing`, `Swapping` or `Live`.
    phase: &'static str,
    is_building: bool,
    is_stale: bool,
    /// Changes to take in, and those taken in.
    lag: u64,
    done: u64,
    /// The part of the groups that a first build has reduced.
    reduced_percent: Option<f64>,
    documents_per_second: f64,
    seconds_left: Option<f64>,
    entries: u64,
    groups: u64,
    map_errors: u64,
    reduce_errors: u64,
    last_error: Option<IndexError>,
    is_stuck: bool,
    stuck_reason: Option<String>,
    stuck_since: Option<String>,
    last_run: Option<String>,
    sources: Vec<SourceProgress>,
    #[serde(rename = "Type")]
    kind: &'static str,
    source_type: &'static str,
    index_running_status: &'static str,
    processed_per_second: f64,
    average_processed_per_second: f64,
    collections: BTreeMap<String, CollectionProgress>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SourceProgress {
    collection: Option<String>,
    watermark: u64,
    lag: u64,
    done: u64,
}

/// RavenDB counts documents and tombstones apart; here both are changes of one feed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CollectionProgress {
    last_processed_item_etag: u64,
    number_of_items_to_process: u64,
    total_number_of_items: u64,
    last_processed_tombstone_etag: u64,
    number_of_tombstones_to_process: u64,
    total_number_of_tombstones: u64,
}

impl Progress {
    pub(crate) fn new(progress: IndexProgress) -> Self {
        let (lag, done) = (progress.to_do(), progress.done());
        let IndexProgress { status, totals, reduced, last_fault, stuck } = progress;
        let (stuck_reason, stuck_since) =
            stuck.map(|Stuck { reason, since_micros }| (reason, time(since_micros))).unzip();
        Self {
            replaces: status.replaces.clone(),
            state: state(status.state),
            status: running_status(status.state),
            phase: match status.phase {
                IndexPhase::Mapping => "Mapping",
                IndexPhase::Reducing => "Reducing",
                IndexPhase::Swapping => "Swapping",
                IndexPhase::Live => "Live",
            },
            is_building: status.building,
            is_stale: status.stale,
            lag,
            done,
            reduced_percent: reduced.map(|share| share * 100.0),
            documents_per_second: status.documents_per_second,
            seconds_left: status.seconds_left,
            entries: status.entries,
            groups: status.groups,
            map_errors: status.map_faults,
            reduce_errors: status.reduce_faults,
            last_error: last_fault.map(IndexError::new),
            is_stuck: stuck_reason.is_some(),
            stuck_reason,
            stuck_since,
            last_run: status.last_run_micros.map(time),
            kind: kind_of(&status),
            source_type: "Documents",
            index_running_status: running_status(status.state),
            processed_per_second: status.documents_per_second,
            average_processed_per_second: status.documents_per_second,
            collections: collections(&status, &totals),
            sources: status.sources.into_iter().zip(totals).map(SourceProgress::new).collect(),
            name: status.name,
        }
    }
}

impl SourceProgress {
    fn new((source, total): (SourceStatus, u64)) -> Self {
        let SourceStatus { collection, watermark, lag } = source;
        Self { collection, watermark, lag, done: total.saturating_sub(lag) }
    }
}

fn collections(status: &IndexStatus, totals: &[u64]) -> BTreeMap<String, CollectionProgress> {
    let collection = |(source, total): (&SourceStatus, &u64)| {
        let progress = CollectionProgress {
            last_processed_item_etag: source.watermark,
            number_of_items_to_process: source.lag,
            total_number_of_items: *total,
            last_processed_tombstone_etag: source.watermark,
            number_of_tombstones_to_process: 0,
            total_number_of_tombstones: 0,
        };
        (source.collection.clone().unwrap_or_else(|| "@all_docs".to_owned()), progress)
    };
    status.sources.iter().zip(totals).map(collection).collect()
}
