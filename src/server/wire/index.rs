//! The JSON of index definitions and of how indexes are doing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::definition::{lock_name, priority_name};
use super::fault::phase_name;
use super::node::{Empty, Metadata};
use super::stats::{running_status, state};
use super::text::time;
use crate::index::definition::IndexDefinition;
use crate::index::status::{FaultRecord, IndexState, IndexStatus, SourceStatus};
use crate::script::Fault;
use crate::server::json_body::BodyShape;

/// The body of `PUT …/indexes`.
#[derive(Debug, Deserialize)]
pub(crate) struct Definitions {
    #[serde(rename = "Indexes")]
    pub(crate) indexes: Vec<Map<String, Value>>,
}

impl BodyShape for Definitions {
    const WHAT: &'static str = "an object with \"Indexes\": [{…}]";
}

/// The body of `POST …/indexes/has-changed`.
#[derive(Debug, Deserialize)]
pub(crate) struct DefinitionBody(pub(crate) Map<String, Value>);

impl BodyShape for DefinitionBody {
    const WHAT: &'static str = "an index definition";
}

/// The body of `POST …/indexes/set-lock`.
#[derive(Debug, Deserialize)]
pub(crate) struct Locks {
    #[serde(rename = "IndexNames")]
    pub(crate) names: Vec<String>,
    #[serde(rename = "Mode")]
    pub(crate) mode: String,
}

impl BodyShape for Locks {
    const WHAT: &'static str = "an object with \"IndexNames\" and \"Mode\"";
}

/// The body of `POST …/indexes/set-priority`.
#[derive(Debug, Deserialize)]
pub(crate) struct Priorities {
    #[serde(rename = "IndexNames")]
    pub(crate) names: Vec<String>,
    #[serde(rename = "Priority")]
    pub(crate) priority: String,
}

impl BodyShape for Priorities {
    const WHAT: &'static str = "an object with \"IndexNames\" and \"Priority\"";
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct HasChanged {
    pub(crate) changed: bool,
}

/// Answers that are lists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Results<T> {
    #[serde(rename = "@metadata", skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata>,
    pub(crate) results: Vec<T>,
}

/// What became of one definition.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PutIndex {
    pub(crate) index: String,
    pub(crate) raft_command_index: u64,
    /// Whether the definition is new or differs from the one that was there.
    pub(crate) changed: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Definition {
    name: String,
    source_type: &'static str,
    #[serde(rename = "Type")]
    kind: &'static str,
    lock_mode: &'static str,
    archived_data_processing_behavior: Option<&'static str>,
    priority: &'static str,
    state: &'static str,
    output_reduce_to_collection: Option<String>,
    deployment_mode: Option<&'static str>,
    reduce_output_index: Option<u64>,
    pattern_for_output_reduce_to_collection_references: Option<String>,
    pattern_references_collection_name: Option<String>,
    configuration: Empty,
    additional_sources: Empty,
    additional_assemblies: [&'static str; 0],
    reduce: Option<String>,
    maps: Vec<String>,
    fields: Empty,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IndexStats {
    name: String,
    map_attempts: u64,
    map_successes: u64,
    map_errors: u64,
    map_reference_attempts: Option<u64>,
    map_reference_successes: Option<u64>,
    map_reference_errors: Option<u64>,
    reduce_attempts: u64,
    reduce_successes: u64,
    reduce_errors: u64,
    reduce_output_collection: Option<String>,
    reduce_output_reference_pattern: Option<String>,
    pattern_references_collection_name: Option<String>,
    mapped_per_second_rate: f64,
    reduced_per_second_rate: f64,
    max_number_of_outputs_per_document: u64,
    collections: BTreeMap<String, CollectionProgress>,
    last_querying_time: Option<String>,
    state: &'static str,
    priority: &'static str,
    created_timestamp: Option<String>,
    last_indexing_time: Option<String>,
    is_stale: bool,
    lock_mode: &'static str,
    #[serde(rename = "Type")]
    kind: &'static str,
    search_engine_type: &'static str,
    archived_data_processing_behavior: Option<&'static str>,
    status: &'static str,
    entries_count: u64,
    errors_count: u64,
    source_type: &'static str,
    referenced_collections: Vec<String>,
    is_invalid_index: bool,
    memory: Option<u64>,
    last_batch_stats: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CollectionProgress {
    last_processed_document_etag: u64,
    last_processed_tombstone_etag: u64,
    last_processed_time_series_deleted_range_etag: u64,
    document_lag: u64,
    tombstone_lag: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IndexErrors {
    pub(crate) name: String,
    pub(crate) errors: Vec<IndexError>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IndexError {
    timestamp: String,
    document: String,
    action: &'static str,
    error: String,
    script: String,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<String>,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IndexingStatus {
    status: &'static str,
    indexes: Vec<IndexRunning>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct IndexRunning {
    name: String,
    status: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Staleness {
    is_stale: bool,
    staleness_reasons: Vec<String>,
}

/// The kind of an index. A script says it by having a `reduce`.
pub(crate) fn kind_of(status: &IndexStatus) -> &'static str {
    if status.is_map_reduce { "MapReduce" } else { "Map" }
}

impl<T> Results<T> {
    pub(crate) fn plain(results: Vec<T>) -> Self {
        Self { metadata: None, results }
    }
}

impl Definition {
    pub(crate) fn new(definition: IndexDefinition, status: &IndexStatus) -> Self {
        let reference = status.reference.as_ref();
        Self {
            kind: kind_of(status),
            source_type: "Documents",
            lock_mode: lock_name(status.lock),
            archived_data_processing_behavior: None,
            priority: priority_name(status.priority),
            state: state(status.state),
            output_reduce_to_collection: status.output.clone().or(definition.output),
            deployment_mode: None,
            reduce_output_index: None,
            pattern_for_output_reduce_to_collection_references: reference.map(|reference| reference.pattern.clone()),
            pattern_references_collection_name: reference.map(|reference| reference.collection.clone()),
            configuration: Empty {},
            additional_sources: Empty {},
            additional_assemblies: [],
            reduce: definition.texts.reduce,
            maps: definition.texts.maps,
            fields: Empty {},
            name: definition.name,
        }
    }
}

impl IndexStats {
    pub(crate) fn new(status: IndexStatus) -> Self {
        Self {
            map_attempts: status.map_attempts,
            map_successes: status.map_attempts.saturating_sub(status.map_faults),
            map_errors: status.map_faults,
            map_reference_attempts: None,
            map_reference_successes: None,
            map_reference_errors: None,
            reduce_attempts: status.reduce_attempts,
            reduce_successes: status.reduce_attempts.saturating_sub(status.reduce_faults),
            reduce_errors: status.reduce_faults,
            kind: kind_of(&status),
            reduce_output_collection: status.output,
            reduce_output_reference_pattern: status.reference.as_ref().map(|reference| reference.pattern.clone()),
            pattern_references_collection_name: status.reference.map(|reference| reference.collection),
            mapped_per_second_rate: status.documents_per_second,
            reduced_per_second_rate: 0.0,
            max_number_of_outputs_per_document: 0,
            collections: status.sources.iter().map(CollectionProgress::new).collect(),
            last_querying_time: None,
            state: state(status.state),
            priority: priority_name(status.priority),
            created_timestamp: None,
            last_indexing_time: status.last_run_micros.map(time),
            is_stale: status.stale,
            lock_mode: lock_name(status.lock),
            search_engine_type: "None",
            archived_data_processing_behavior: None,
            status: running_status(status.state),
            entries_count: status.entries,
            errors_count: status.map_faults.saturating_add(status.reduce_faults),
            source_type: "Documents",
            referenced_collections: status.loads,
            is_invalid_index: status.state == IndexState::Error,
            memory: None,
            last_batch_stats: None,
            name: status.name,
        }
    }
}

impl CollectionProgress {
    fn new(source: &SourceStatus) -> (String, Self) {
        let progress = Self {
            last_processed_document_etag: source.watermark,
            last_processed_tombstone_etag: source.watermark,
            last_processed_time_series_deleted_range_etag: 0,
            document_lag: source.lag,
            tombstone_lag: 0,
        };
        (source.collection.clone().unwrap_or_else(|| "@all_docs".to_owned()), progress)
    }
}

impl IndexError {
    pub(crate) fn new(record: FaultRecord) -> Self {
        let (action, error) = (phase_name(record.fault.phase), record.fault.to_string());
        let Fault { script, line, column, function, message, hint, .. } = record.fault;
        let (timestamp, document) = (time(record.at_micros), record.subject);
        Self { timestamp, document, action, error, script, line, column, function, message, hint }
    }
}

impl IndexingStatus {
    pub(crate) fn new(statuses: Vec<IndexStatus>) -> Self {
        let all_paused = !statuses.is_empty() && statuses.iter().all(|status| status.state == IndexState::Paused);
        let lines = statuses.into_iter().map(|it| IndexRunning { status: running_status(it.state), name: it.name });
        Self { status: if all_paused { "Paused" } else { "Running" }, indexes: lines.collect() }
    }
}

impl Staleness {
    pub(crate) fn new(status: &IndexStatus) -> Self {
        let behind = status.sources.iter().filter(|source| source.lag > 0);
        let reasons = behind.map(|source| {
            let (name, lag) = (source.collection.as_deref().unwrap_or("@all_docs"), source.lag);
            format!("{lag} changes of collection '{name}' after etag {} are not taken in yet.", source.watermark)
        });
        Self { is_stale: status.stale, staleness_reasons: reasons.collect() }
    }
}
