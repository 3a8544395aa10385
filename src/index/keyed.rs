//! A document's entries in a map-only index: rows in key order, instead of entries of groups.
//!
//! Entries under one key are numbered in the order of `emit`, so that equal ones are kept apart. Where keys are cut the number
//! counts those that look alike, and the row's value holds the whole key.
//!
//! Next on the walk: `read`, which finds them again.

use std::collections::{BTreeMap, HashMap};

use super::entry::value_hash;
use super::ordered_key::{CUT_BYTES, cut, ordered_key};
use super::records::{KeyedRecord, KeyedValue, encode};
use crate::script::Emitted;
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, Generation, map_key};

/// One entry of a map-only index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyedEntry {
    /// What `map_documents` remembers of it.
    pub record: KeyedRecord,
    /// The row's value.
    pub value: Vec<u8>,
}

/// What changes in `map_keys`.
#[derive(Debug, Default)]
pub(crate) struct KeyedChanges {
    pub rows: Vec<RowChange>,
    /// How the number of entries changes.
    pub entries: i64,
}

/// Numbers the emitted entries of one document under their keys, in the order of `emit`.
pub(crate) fn keyed(emitted: Vec<Emitted>) -> Vec<KeyedEntry> {
    let mut next: HashMap<Vec<u8>, u32> = HashMap::with_capacity(emitted.len());
    emitted
        .into_iter()
        .map(|Emitted { key: canonical, value }| {
            let whole = ordered_key(&canonical);
            let key = cut(&whole).to_vec();
            let counter = next.entry(key.clone()).or_default();
            let ordinal = *counter;
            *counter += 1;
            let is_cut = whole.len() > CUT_BYTES;
            let value = encode(&KeyedValue { key: is_cut.then_some(canonical), value });
            KeyedEntry { record: KeyedRecord { key, ordinal, value_hash: value_hash(&value) }, value }
        })
        .collect()
}

/// Compares what a document emitted before with what it emits now; only real differences come out.
pub(crate) fn compare_keyed(
    generation: Generation,
    lower_id: &str,
    before: &[KeyedRecord],
    now: Vec<KeyedEntry>,
) -> KeyedChanges {
    let family = Family::MapKeys;
    let row = |key: &[u8], ordinal| map_key(generation, key, lower_id, ordinal);
    let place = |record: &KeyedRecord| (record.key.clone(), record.ordinal);
    let mut old: BTreeMap<(Vec<u8>, u32), [u8; 16]> =
        before.iter().map(|record| (place(record), record.value_hash)).collect();
    let mut changes = KeyedChanges::default();
    for KeyedEntry { record, value } in now {
        match old.remove(&place(&record)) {
            Some(hash) if hash == record.value_hash => continue,
            Some(_) => {}
            None => changes.entries += 1,
        }
        changes.rows.push(RowChange::Put { family, key: row(&record.key, record.ordinal), value });
    }
    for (key, ordinal) in old.into_keys() {
        changes.entries -= 1;
        changes.rows.push(RowChange::Delete { family, key: row(&key, ordinal) });
    }
    changes
}
