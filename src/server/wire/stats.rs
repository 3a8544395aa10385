//! The JSON of `/stats` and `/collections/stats`.
//!
//! Counts of what Treepie does not have are zero; clients require the fields.

use std::collections::BTreeMap;

use serde::Serialize;

use super::definition::{lock_name, priority_name};
use super::node::Metadata;
use super::text::{humane_size, time};
use crate::index::status::{IndexState, IndexStatus};
use crate::store::Progress;
use crate::store::snapshot::{CollectionCount, DatabaseCount};

/// What the statistics are made of.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) tag: String,
    pub(crate) incarnation: String,
    pub(crate) progress: Progress,
    pub(crate) count: DatabaseCount,
    /// With the kind of each.
    pub(crate) indexes: Vec<(IndexStatus, &'static str)>,
    pub(crate) bytes_on_disk: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DatabaseStats {
    #[serde(rename = "@metadata")]
    metadata: Metadata,
    count_of_indexes: usize,
    count_of_documents: u64,
    count_of_revision_documents: u64,
    count_of_tombstones: u64,
    count_of_documents_conflicts: u64,
    count_of_conflicts: u64,
    count_of_attachments: u64,
    count_of_counter_entries: u64,
    count_of_time_series_segments: u64,
    indexes: Vec<IndexLine>,
    count_of_unique_attachments: u64,
    database_change_vector: String,
    database_id: String,
    number_of_transaction_merger_queue_operations: u64,
    is64_bit: bool,
    pager: &'static str,
    last_doc_etag: u64,
    last_database_etag: u64,
    last_indexing_time: Option<String>,
    size_on_disk: Size,
    temp_buffers_size_on_disk: Size,
}

#[derive(Debug, Serialize)]
pub(crate) struct DetailedStats {
    #[serde(flatten)]
    stats: DatabaseStats,
    #[serde(rename = "CountOfIdentities")]
    identities: usize,
    #[serde(rename = "CountOfCompareExchange")]
    compare_exchange: u64,
    #[serde(rename = "CountOfCompareExchangeTombstones")]
    compare_exchange_tombstones: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct IndexLine {
    name: String,
    is_stale: bool,
    state: &'static str,
    lock_mode: &'static str,
    priority: &'static str,
    #[serde(rename = "Type")]
    kind: &'static str,
    last_indexing_time: Option<String>,
    source_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    humane_size: String,
    size_in_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CollectionStats {
    count_of_documents: u64,
    count_of_documents_conflicts: u64,
    count_of_conflicts: u64,
    count_of_revision_documents: u64,
    count_of_tombstones: u64,
    count_of_time_series_deleted_ranges: u64,
    count_of_attachments: u64,
    count_of_counter_entries: u64,
    count_of_time_series_segments: u64,
    collections: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DetailedCollectionStats {
    count_of_documents: u64,
    count_of_conflicts: u64,
    collections: BTreeMap<String, DetailedCollection>,
}

/// Sizes by collection are not kept; clients accept empty objects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DetailedCollection {
    name: String,
    count_of_documents: u64,
    size: Unknown,
    documents_size: Unknown,
    tombstones_size: Unknown,
    revisions_size: Unknown,
}

#[derive(Debug, Default, Serialize)]
struct Unknown {}

impl DatabaseStats {
    pub(crate) fn new(metadata: Metadata, facts: Facts) -> Self {
        let Facts { tag, incarnation, progress, count, indexes, bytes_on_disk } = facts;
        let vector = match progress.durable {
            0 => String::new(),
            etag => format!("{tag}:{etag}-{incarnation}"),
        };
        Self {
            metadata,
            count_of_indexes: indexes.len(),
            count_of_documents: count.documents,
            count_of_revision_documents: 0,
            count_of_tombstones: count.tombstones,
            count_of_documents_conflicts: 0,
            count_of_conflicts: 0,
            count_of_attachments: 0,
            count_of_counter_entries: 0,
            count_of_time_series_segments: 0,
            count_of_unique_attachments: 0,
            database_change_vector: vector,
            database_id: incarnation,
            number_of_transaction_merger_queue_operations: 0,
            is64_bit: cfg!(target_pointer_width = "64"),
            pager: "RocksDB",
            last_doc_etag: count.last_etag.min(progress.durable),
            last_database_etag: progress.durable,
            last_indexing_time: indexes.iter().filter_map(|(status, _)| status.last_run_micros).max().map(time),
            indexes: indexes.into_iter().map(|(status, kind)| IndexLine::new(status, kind)).collect(),
            size_on_disk: Size::new(bytes_on_disk),
            temp_buffers_size_on_disk: Size::new(0),
        }
    }
}

impl DetailedStats {
    pub(crate) fn new(stats: DatabaseStats, identities: usize) -> Self {
        Self { stats, identities, compare_exchange: 0, compare_exchange_tombstones: 0 }
    }
}

impl IndexLine {
    fn new(status: IndexStatus, kind: &'static str) -> Self {
        Self {
            is_stale: status.stale,
            state: state(status.state),
            lock_mode: lock_name(status.lock),
            priority: priority_name(status.priority),
            kind,
            last_indexing_time: status.last_run_micros.map(time),
            source_type: "Documents",
            name: status.name,
        }
    }
}

impl Size {
    fn new(bytes: u64) -> Self {
        Self { humane_size: humane_size(bytes), size_in_bytes: bytes }
    }
}

impl CollectionStats {
    pub(crate) fn new(total: &DatabaseCount, counts: &[CollectionCount]) -> Self {
        Self {
            count_of_documents: total.documents,
            count_of_documents_conflicts: 0,
            count_of_conflicts: 0,
            count_of_revision_documents: 0,
            count_of_tombstones: total.tombstones,
            count_of_time_series_deleted_ranges: 0,
            count_of_attachments: 0,
            count_of_counter_entries: 0,
            count_of_time_series_segments: 0,
            collections: alive(counts).map(|count| (count.name.clone(), count.documents)).collect(),
        }
    }
}

impl DetailedCollectionStats {
    pub(crate) fn new(total: &DatabaseCount, counts: &[CollectionCount]) -> Self {
        let line = |count: &CollectionCount| DetailedCollection {
            name: count.name.clone(),
            count_of_documents: count.documents,
            size: Unknown {},
            documents_size: Unknown {},
            tombstones_size: Unknown {},
            revisions_size: Unknown {},
        };
        Self {
            count_of_documents: total.documents,
            count_of_conflicts: 0,
            collections: alive(counts).map(|count| (count.name.clone(), line(count))).collect(),
        }
    }
}

fn alive(counts: &[CollectionCount]) -> impl Iterator<Item = &CollectionCount> {
    counts.iter().filter(|count| count.documents > 0)
}

/// The name of an index's state: a pause is no state for RavenDB.
pub(crate) fn state(state: IndexState) -> &'static str {
    match state {
        IndexState::Normal | IndexState::Paused => "Normal",
        IndexState::Disabled => "Disabled",
        IndexState::Error => "Error",
    }
}

/// Whether an index runs, in RavenDB's words: an index with too many faults is paused.
pub(crate) fn running_status(state: IndexState) -> &'static str {
    match state {
        IndexState::Normal => "Running",
        IndexState::Paused | IndexState::Error => "Paused",
        IndexState::Disabled => "Disabled",
    }
}
