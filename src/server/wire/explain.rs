//! The JSON of `/explain`. Keys, values and bodies stand in it as they are, digit by digit.

use serde::Serialize;
use serde_json::value::RawValue;

use super::fault::FaultBody;
use super::text::raw;
use crate::index::explain::{Contributed, ExplainedGroup, Explanation, FedGroup, Feeding, LoadedBy, Outcome};

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExplanationBody {
    id: Option<String>,
    collection: Option<String>,
    etag: Option<u64>,
    group: Option<GroupBody>,
    feeds: Vec<FeedingBody>,
    loaded_by: Vec<LoadedByBody>,
    is_cut: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct LoadedByBody {
    index: String,
    ids: Vec<String>,
    is_cut: bool,
}

/// An entry of a map-only index.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct EntryBody {
    key: Box<RawValue>,
    value: Box<RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct GroupBody {
    index: String,
    key: Box<RawValue>,
    entries: u64,
    state: &'static str,
    body: Option<Box<RawValue>>,
    fault: Option<FaultBody>,
    contributions: Vec<ContributedBody>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ContributedBody {
    id: String,
    collection: Option<String>,
    ordinal: u32,
    value: Box<RawValue>,
    is_artificial: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FeedingBody {
    index: String,
    is_current: bool,
    fault: Option<FaultBody>,
    /// Groups, or in a map-only index entries.
    total_groups: usize,
    groups: Vec<FedGroupBody>,
    entries: Vec<EntryBody>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FedGroupBody {
    id: Option<String>,
    key: Box<RawValue>,
    exists: bool,
    values: Vec<Box<RawValue>>,
    feeds: Vec<FeedingBody>,
}

impl ExplanationBody {
    pub(crate) fn new(explanation: Explanation) -> Self {
        let Explanation { id, document, group, feeds, loaded_by, is_cut } = explanation;
        let (collection, etag) = document.unzip();
        let feeds = feeds.into_iter().map(FeedingBody::new).collect();
        let loaded_by =
            loaded_by.into_iter().map(|LoadedBy { index, ids, is_cut }| LoadedByBody { index, ids, is_cut });
        let group = group.map(GroupBody::new);
        Self { id, collection, etag, group, feeds, loaded_by: loaded_by.collect(), is_cut }
    }
}

impl GroupBody {
    fn new(group: ExplainedGroup) -> Self {
        let (state, body, fault) = match group.outcome {
            Outcome::Body(body) => ("Document", Some(raw(body)), None),
            Outcome::Nothing => ("Nothing", None, None),
            Outcome::Pending => ("Pending", None, None),
            Outcome::Fault(fault) => ("Fault", None, Some(FaultBody::new(fault))),
        };
        Self {
            index: group.index,
            key: raw(group.key),
            entries: group.entries,
            state,
            body,
            fault,
            contributions: group.contributions.into_iter().map(ContributedBody::new).collect(),
            next: group.next,
        }
    }
}

impl ContributedBody {
    fn new(entry: Contributed) -> Self {
        let Contributed { id, collection, ordinal, value, is_artificial } = entry;
        Self { id, collection, ordinal, value: raw(value), is_artificial }
    }
}

impl FeedingBody {
    fn new(feeding: Feeding) -> Self {
        Self {
            index: feeding.index,
            is_current: feeding.is_current,
            fault: feeding.fault.map(FaultBody::new),
            total_groups: feeding.total,
            groups: feeding.groups.into_iter().map(FedGroupBody::new).collect(),
            entries: feeding
                .entries
                .into_iter()
                .map(|(key, value)| EntryBody { key: raw(key), value: raw(value) })
                .collect(),
        }
    }
}

impl FedGroupBody {
    fn new(group: FedGroup) -> Self {
        let FedGroup { key, id, exists, values, feeds } = group;
        let values = values.into_iter().map(raw).collect();
        let feeds = feeds.into_iter().map(FeedingBody::new).collect();
        Self { id, key: raw(key), exists, values, feeds }
    }
}
