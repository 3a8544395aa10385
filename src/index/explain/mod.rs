//! Why a value is what it is: the documents behind a group with what each contributed, and the groups that a document feeds,
//! upwards through indexes that feed on indexes.
//!
//! All of an answer comes from one snapshot and is bounded: contributions are paged, what is fed is cut with a word about it.
//!
//! Next on the walk: `group`, then `feeds`.

mod feeds;
mod group;

use std::sync::Arc;

use super::live::Index;
use super::registry::Registry;
use crate::id::DocumentId;
use crate::id::artificial::{artificial_id, artificial_parts, group_hash};
use crate::script::Fault;
use crate::script::encoding::{encode_json, write_json};
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// Contributions of one page.
pub const CONTRIBUTIONS_MAX: usize = 1_000;

/// Bytes of keys and values in one answer; a page may be cut short by it.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Nesting of a reduce key that is asked for.
const KEY_DEPTH_MAX: usize = 64;

/// Which contributions of a group to show.
#[derive(Clone, Debug)]
pub struct Page {
    /// How many, at most [`CONTRIBUTIONS_MAX`].
    pub size: usize,
    /// Go on where the page before ended: its [`ExplainedGroup::next`].
    pub after: Option<String>,
}

/// Why a document is what it is, and what it does.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The id as stored; as asked for, where there is no such document. `None`: a group without an output collection.
    pub id: Option<String>,
    /// The document's collection and etag, where there is one.
    pub document: Option<(String, u64)>,
    /// The group that it is the result of.
    pub group: Option<ExplainedGroup>,
    /// What it feeds, one for each index that takes it.
    pub feeds: Vec<Feeding>,
    /// Who has loaded it, one for each index.
    pub loaded_by: Vec<LoadedBy>,
    /// Whether `feeds` leaves something out, because it is too much for one answer.
    pub is_cut: bool,
}

/// A group and what it was made of.
#[derive(Clone, Debug)]
pub struct ExplainedGroup {
    /// The index.
    pub index: String,
    /// The reduce key as JSON.
    pub key: String,
    /// The number of its entries.
    pub entries: u64,
    /// What came of reducing them.
    pub outcome: Outcome,
    /// One page of its entries, in the order in which they are reduced.
    pub contributions: Vec<Contributed>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// What came of reducing a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its document's body, or, without an output collection, what would be.
    Body(String),
    /// The script gave `()`: no document.
    Nothing,
    /// The index is being built and has not come here yet.
    Pending,
    /// A script failed: the document is withdrawn.
    Fault(Fault),
}

/// One entry of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributed {
    /// The source document.
    pub id: String,
    /// Its collection; `None` where it has been deleted since, which the index has yet to take in.
    pub collection: Option<String>,
    /// The n-th entry of this document in this group, from 0.
    pub ordinal: u32,
    /// The value as JSON.
    pub value: String,
    /// Whether the document is itself the result of an index, and can be asked about in turn.
    pub is_artificial: bool,
}

/// What a document gives to one index.
#[derive(Clone, Debug)]
pub struct Feeding {
    /// The index.
    pub index: String,
    /// Whether the index has taken in the document as it is now.
    pub is_current: bool,
    /// Why it contributes nothing.
    pub fault: Option<Fault>,
    /// The number of groups that it contributes to.
    pub total: usize,
    /// Those groups, cut where they are too many.
    pub groups: Vec<FedGroup>,
    /// Of a map-only index: the entries, key and value as JSON, cut where they are too many; `total` counts them.
    pub entries: Vec<(String, String)>,
}

/// Who has loaded a document, and is mapped again when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedBy {
    /// The index.
    pub index: String,
    /// The lower-cased ids of the documents, at most 100.
    pub ids: Vec<String>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// A group that a document contributes to.
#[derive(Clone, Debug)]
pub struct FedGroup {
    /// The reduce key as JSON.
    pub key: String,
    /// The artificial document's id, where the index has an output collection.
    pub id: Option<String>,
    /// Whether that document is there.
    pub exists: bool,
    /// The values it contributes, as JSON.
    pub values: Vec<String>,
    /// What the artificial document feeds in turn.
    pub feeds: Vec<Feeding>,
}

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is neither such a document nor such a group.
    #[error("{0}")]
    Missing(String),
    /// What was asked can't be read.
    #[error("{0}")]
    Refused(String),
}

/// Indexes with the etags through which each has taken in its feeds, read before the snapshot was taken.
struct Indexes {
    all: Vec<(Arc<Index>, Vec<u64>)>,
}

impl Indexes {
    fn of(registry: &Registry) -> Self {
        let with_watermarks = |index: Arc<Index>| {
            let watermarks = index.progress.lock().watermarks.clone();
            (index, watermarks)
        };
        Self { all: registry.all().into_iter().map(with_watermarks).collect() }
    }

    /// The index that owns a collection.
    fn owner(&self, snapshot: &Snapshot<'_>, collection: &str) -> Result<Option<&Arc<Index>>, StoreError> {
        let Some(claim) = snapshot.claim(collection)? else { return Ok(None) };
        Ok(self.all.iter().map(|(index, _)| index).find(|index| index.context.number == claim.owner))
    }
}

/// Explains a document by its id.
pub(crate) fn document(
    store: &Store,
    registry: &Registry,
    id: &DocumentId,
    page: &Page,
) -> Result<Explanation, ExplainError> {
    let indexes = Indexes::of(registry);
    let snapshot = store.snapshot();
    let found = snapshot.get(id)?;
    let mut group = None;
    if let Some((collection, hash)) = artificial_parts(id.lower())
        && found.as_ref().is_none_or(|found| found.flags.artificial)
        && let Some(index) = indexes.owner(&snapshot, collection)?
    {
        group = group::explain(&snapshot, index, hash, page)?;
    }
    let is_known = found.is_some() || group.is_some();
    let mut walk = feeds::Walk::new(&snapshot, &indexes);
    let feeds = walk.document(id.lower(), found.as_ref())?;
    let loaded_by = walk.loaded_by(id.lower())?;
    if !is_known && feeds.is_empty() && loaded_by.is_empty() {
        return Err(ExplainError::Missing(format!("there is no document '{}'", id.as_str())));
    }
    let (id, document) = match found {
        Some(found) => (found.id, Some((found.collection, found.etag))),
        None => (id.as_str().to_owned(), None),
    };
    Ok(Explanation { id: Some(id), document, group, feeds, loaded_by, is_cut: walk.is_cut })
}

/// Explains the group of an index that has a reduce key, given as JSON.
pub(crate) fn key(
    store: &Store,
    registry: &Registry,
    index: &Index,
    key: &str,
    page: &Page,
) -> Result<Explanation, ExplainError> {
    let mut encoded = Vec::new();
    encode_json(key, KEY_DEPTH_MAX, &mut encoded)
        .map_err(|error| ExplainError::Refused(format!("the key {} is no reduce key: {error}", shown(key))))?;
    let hash = group_hash(&encoded);
    if let Some(output) = &index.context.output {
        let id = DocumentId::stored(&artificial_id(output, &hash));
        return document(store, registry, &id, page).map_err(|error| match error {
            ExplainError::Missing(_) => no_group(index, key),
            other => other,
        });
    }
    let group = group::explain(&store.snapshot(), index, hash, page)?.ok_or_else(|| no_group(index, key))?;
    Ok(Explanation {
        id: None,
        document: None,
        group: Some(group),
        feeds: Vec::new(),
        loaded_by: Vec::new(),
        is_cut: false,
    })
}

fn no_group(index: &Index, key: &str) -> ExplainError {
    ExplainError::Missing(format!("index '{}' has no group with the key {}", index.context.name, shown(key)))
}

fn shown(key: &str) -> String {
    key.chars().take(200).collect()
}

/// An encoded value as JSON.
pub(super) fn json(encoded: &[u8]) -> String {
    let mut text = String::new();
    write_json(encoded, &mut text);
    text
}
