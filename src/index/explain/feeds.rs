//! What a document feeds: the groups it contributes to, and what their artificial documents feed in turn.
//!
//! A document may feed thousands of groups on each level, so one answer stops after a number of groups and bytes, and says so.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::context::same_name;
use super::super::live::Index;
use super::super::loads::Dependents;
use super::super::read::{Keyed, KeyedEntry};
use super::super::records::{EntryRecord, GroupRecord, GroupResult, KeyedRecord, MapDocument, WideDocument, decode};
use super::{BYTES_MAX, FedGroup, Feeding, Indexes, LoadedBy, json};
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::store::StoreError;
use crate::store::changes::Feed;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, map_document, map_entry, map_key, reduce_group};
use crate::store::snapshot::Snapshot;

/// Groups of one answer, on all levels together.
const GROUPS_MAX: usize = 1_000;

/// Groups of one document and index.
const GROUPS_OF_ONE_MAX: usize = 100;

/// A walk up through the indexes.
pub(super) struct Walk<'a, 's> {
    snapshot: &'a Snapshot<'s>,
    indexes: &'a Indexes,
    groups: usize,
    bytes: usize,
    /// Whether something was left out.
    pub(super) is_cut: bool,
}

impl<'a, 's> Walk<'a, 's> {
    pub(super) fn new(snapshot: &'a Snapshot<'s>, indexes: &'a Indexes) -> Self {
        Self { snapshot, indexes, groups: 0, bytes: 0, is_cut: false }
    }

    /// What a document feeds; of one that is gone, what indexes still hold of it. Definitions refuse loops, so this ends.
    pub(super) fn document(
        &mut self,
        lower_id: &str,
        document: Option<&StoredDocument>,
    ) -> Result<Vec<Feeding>, StoreError> {
        let mut feeds = Vec::new();
        let indexes = self.indexes;
        for (index, watermarks) in &indexes.all {
            let row = map_document(index.context.generation, lower_id);
            let kept = self.snapshot.row(Family::MapDocuments, &row)?;
            let kept: Option<MapDocument> = kept.map(|bytes| decode("map_documents", &bytes)).transpose()?;
            let takes = |document: &StoredDocument| index.context.sources_of(&document.collection).next().is_some();
            if kept.is_some() || document.is_some_and(takes) {
                let is_current = is_current(index, watermarks, document, kept.is_some());
                feeds.push(self.feeding(index, lower_id, kept, is_current)?);
            }
        }
        Ok(feeds)
    }

    fn feeding(
        &mut self,
        index: &Arc<Index>,
        lower_id: &str,
        kept: Option<MapDocument>,
        is_current: bool,
    ) -> Result<Feeding, StoreError> {
        let WideDocument { entries, keyed, fault, .. } = kept.map(MapDocument::widened).unwrap_or_default();
        let shown = self.keyed(index, lower_id, &keyed)?;
        let (order, by_group) = grouped(&entries);
        let mut groups = Vec::new();
        for hash in order.iter().take(GROUPS_OF_ONE_MAX) {
            if self.groups >= GROUPS_MAX || self.bytes >= BYTES_MAX {
                break;
            }
            self.groups += 1;
            let ordinals = by_group.get(hash).map(Vec::as_slice).unwrap_or_default();
            groups.push(self.group(index, lower_id, hash, ordinals)?);
        }
        self.is_cut |= groups.len() < order.len();
        let total = order.len() + keyed.len();
        Ok(Feeding { index: index.context.name.to_string(), is_current, fault, total, groups, entries: shown })
    }

    /// The entries of a map-only index.
    fn keyed(
        &mut self,
        index: &Arc<Index>,
        lower_id: &str,
        records: &[KeyedRecord],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let generation = index.context.generation;
        let mut entries = Vec::new();
        for record in records.iter().take(GROUPS_OF_ONE_MAX) {
            if self.bytes >= BYTES_MAX {
                break;
            }
            let key = map_key(generation, &record.key, lower_id, record.ordinal);
            if let Some(value) = self.snapshot.row(Family::MapKeys, &key)?
                && let Some(entry) = KeyedEntry::read(self.snapshot, generation, &key, &value)?
            {
                self.bytes += entry.key.len() + entry.value.len();
                entries.push((json(&entry.key), json(&entry.value)));
            }
        }
        self.is_cut |= entries.len() < records.len();
        Ok(entries)
    }

    /// Who has loaded a document.
    pub(super) fn loaded_by(&self, lower_id: &str) -> Result<Vec<LoadedBy>, StoreError> {
        let mut all = Vec::new();
        for (index, _) in self.indexes.all.iter().filter(|(index, _)| !index.context.program.loads.is_empty()) {
            let mut dependents = Dependents::of(self.snapshot, index.context.generation, lower_id, None);
            let mut ids = Vec::new();
            while ids.len() <= GROUPS_OF_ONE_MAX
                && let Some(id) = dependents.next()?
            {
                ids.push(id);
            }
            let is_cut = ids.len() > GROUPS_OF_ONE_MAX;
            ids.truncate(GROUPS_OF_ONE_MAX);
            if !ids.is_empty() {
                all.push(LoadedBy { index: index.context.name.to_string(), ids, is_cut });
            }
        }
        Ok(all)
    }

    fn group(
        &mut self,
        index: &Arc<Index>,
        lower_id: &str,
        hash: &GroupHash,
        ordinals: &[u32],
    ) -> Result<FedGroup, StoreError> {
        let generation = index.context.generation;
        let row = self.snapshot.row(Family::ReduceGroups, &reduce_group(generation, hash))?;
        let record: Option<GroupRecord> = row.map(|bytes| decode("reduce_groups", &bytes)).transpose()?;
        let mut values = Vec::new();
        for ordinal in ordinals {
            if self.bytes >= BYTES_MAX {
                self.is_cut = true;
                break;
            }
            let row = map_entry(generation, hash, lower_id, *ordinal);
            if let Some(value) = self.snapshot.row(Family::MapEntries, &row)? {
                self.bytes += value.len();
                values.push(json(&value));
            }
        }
        let key = record.as_ref().map(|record| json(&record.key)).unwrap_or_default();
        self.bytes += key.len();
        let id = index.context.output.as_ref().map(|output| DocumentId::stored(&artificial_id(output, hash)));
        let document = match &id {
            Some(id) => self.snapshot.get(id)?.filter(|document| document.flags.artificial),
            None => None,
        };
        let has_body = record.is_some_and(|record| matches!(record.result, GroupResult::Body(_)));
        let feeds = match (&id, &document) {
            (Some(id), Some(_)) => self.document(id.lower(), document.as_ref())?,
            _ => Vec::new(),
        };
        let id = id.map(|id| document.as_ref().map_or_else(|| id.as_str().to_owned(), |document| document.id.clone()));
        Ok(FedGroup { key, id, exists: document.is_some() || has_body, values, feeds })
    }
}

/// Whether an index has taken in a document as it is now; of one that is gone it must hold nothing any more.
fn is_current(index: &Index, watermarks: &[u64], document: Option<&StoredDocument>, is_kept: bool) -> bool {
    let Some(document) = document else { return !is_kept };
    let mut feeds = index.context.feeds.iter().zip(watermarks).take(index.context.source_feeds());
    let of_document = feeds.find(|(feed, _)| match feed {
        Feed::All => true,
        Feed::Collection(name) => same_name(name, &document.collection),
    });
    of_document.map_or(!is_kept, |(_, watermark)| *watermark >= document.etag)
}

/// The groups of entries, in the order in which they first come, with the ordinals in each.
fn grouped(entries: &[EntryRecord]) -> (Vec<GroupHash>, HashMap<GroupHash, Vec<u32>>) {
    let (mut order, mut ordinals) = (Vec::new(), HashMap::<GroupHash, Vec<u32>>::new());
    for entry in entries {
        let of_group = ordinals.entry(entry.group()).or_default();
        if of_group.is_empty() {
            order.push(entry.group());
        }
        of_group.push(entry.ordinal);
    }
    (order, ordinals)
}
