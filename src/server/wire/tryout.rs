//! The JSON of `/indexes/test`, and of `treepie index test`, which prints the same.

use serde::Serialize;
use serde_json::value::RawValue;

use super::fault::{FaultBody, phase_name};
use super::text::raw;
use crate::index::tryout::{Cost, TriedDocument, TriedGroup, TryOut};
use crate::script::UnknownField;

/// What came of trying an index out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TryOutBody {
    documents: Vec<DocumentBody>,
    groups: Vec<TriedGroupBody>,
    unknown_fields: Vec<UnknownFieldBody>,
    not_taken: u64,
    map: CostBody,
    reduce: CostBody,
    finish: CostBody,
    cut_short: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DocumentBody {
    id: String,
    collection: String,
    entries: Vec<EntryBody>,
    fault: Option<FaultBody>,
    cost: CostBody,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct EntryBody {
    key: Box<RawValue>,
    value: Box<RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TriedGroupBody {
    key: Box<RawValue>,
    id: Option<String>,
    entries: u64,
    result: Option<Box<RawValue>>,
    fault: Option<FaultBody>,
    reduce: CostBody,
    finish: CostBody,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct UnknownFieldBody {
    phase: &'static str,
    field: String,
    reads: u64,
}

/// Times are in microseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CostBody {
    calls: u64,
    faults: u64,
    operations: u64,
    operations_most: u64,
    micros: u64,
    micros_most: u64,
}

impl TryOutBody {
    /// Puts the result of a trial into JSON's words.
    #[must_use]
    pub fn new(tried: TryOut) -> Self {
        Self {
            documents: tried.documents.into_iter().map(DocumentBody::new).collect(),
            groups: tried.groups.into_iter().map(TriedGroupBody::new).collect(),
            unknown_fields: tried.unknown_fields.into_iter().map(UnknownFieldBody::new).collect(),
            not_taken: tried.not_taken,
            map: CostBody::new(&tried.map),
            reduce: CostBody::new(&tried.reduce),
            finish: CostBody::new(&tried.finish),
            cut_short: tried.cut_short,
        }
    }
}

impl DocumentBody {
    fn new(document: TriedDocument) -> Self {
        let TriedDocument { id, collection, entries, fault, cost } = document;
        let entry = |(key, value)| EntryBody { key: raw(key), value: raw(value) };
        let entries = entries.into_iter().map(entry).collect();
        Self { id, collection, entries, fault: fault.map(FaultBody::new), cost: CostBody::new(&cost) }
    }
}

impl TriedGroupBody {
    fn new(group: TriedGroup) -> Self {
        let (result, fault) = match group.result {
            Ok(body) => (body.map(raw), None),
            Err(fault) => (None, Some(FaultBody::new(fault))),
        };
        let (reduce, finish) = (CostBody::new(&group.reduce), CostBody::new(&group.finish));
        Self { key: raw(group.key), id: group.id, entries: group.entries, result, fault, reduce, finish }
    }
}

impl UnknownFieldBody {
    fn new(field: UnknownField) -> Self {
        Self { phase: phase_name(field.phase), field: field.path, reads: field.reads }
    }
}

impl CostBody {
    fn new(cost: &Cost) -> Self {
        let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            calls: cost.calls,
            faults: cost.faults,
            operations: cost.operations,
            operations_most: cost.operations_most,
            micros: micros(cost.time),
            micros_most: micros(cost.time_most),
        }
    }
}
