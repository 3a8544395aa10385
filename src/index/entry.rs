//! A document's entries: numbering them, and comparing them with what the same document emitted before.
//!
//! Pure: data in, data out. Retraction works by document: what `map_documents` remembers is taken back unless it is
//! emitted again with the same value.
//!
//! Next on the walk: `tree`, which takes the differences into a group's partial results.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use super::records::EntryRecord;
use crate::id::artificial::group_hash;
use crate::script::Emitted;
use crate::store::keyspace::GroupHash;

/// The key of the value hash, part of the format.
const VALUE_KEY: &[u8; 16] = b"treepie/value/v1";

/// One entry of a document, numbered within its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub group: GroupHash,
    pub ordinal: u32,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub value_hash: [u8; 16],
}

impl Entry {
    /// What `map_documents` remembers of it.
    pub(crate) fn record(&self) -> EntryRecord {
        EntryRecord { group: self.group.0, ordinal: self.ordinal, value_hash: self.value_hash }
    }
}

/// A change of one entry of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryChange {
    pub group: GroupHash,
    pub ordinal: u32,
    pub kind: EntryChangeKind,
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryChangeKind {
    /// It is new; the canonical key comes along since the group may be new too.
    Added { key: Vec<u8>, value: Vec<u8> },
    /// It has another value.
    Replaced { value: Vec<u8> },
    /// It is gone.
    Removed,
}

/// Numbers the emitted entries of one document within their groups, in the order of `emit`.
pub(crate) fn number(emitted: Vec<Emitted>) -> Vec<Entry> {
    let mut next: HashMap<GroupHash, u32> = HashMap::with_capacity(emitted.len());
    emitted
        .into_iter()
        .map(|Emitted { key, value }| {
            let group = group_hash(&key);
            let counter = next.entry(group).or_default();
            let ordinal = *counter;
            *counter += 1;
            let value_hash = value_hash(&value);
            Entry { group, ordinal, key, value, value_hash }
        })
        .collect()
}

/// Compares what a document emitted before with what it emits now; only real differences come out, in order of group and ordinal.
pub(crate) fn compare(before: &[EntryRecord], now: Vec<Entry>) -> Vec<EntryChange> {
    let mut old: BTreeMap<(GroupHash, u32), [u8; 16]> =
        before.iter().map(|entry| ((entry.group(), entry.ordinal), entry.value_hash)).collect();
    let mut changes = Vec::new();
    for Entry { group, ordinal, key, value, value_hash } in now {
        let kind = match old.remove(&(group, ordinal)) {
            Some(hash) if hash == value_hash => continue,
            Some(_) => EntryChangeKind::Replaced { value },
            None => EntryChangeKind::Added { key, value },
        };
        changes.push(EntryChange { group, ordinal, kind });
    }
    let removed = |(group, ordinal)| EntryChange { group, ordinal, kind: EntryChangeKind::Removed };
    changes.extend(old.into_keys().map(removed));
    changes.sort_by_key(|change| (change.group, change.ordinal));
    changes
}

/// Hashes an encoded value: 128 bits of SipHash-2-4.
pub(crate) fn value_hash(value: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(VALUE_KEY);
    hasher.write(value);
    hasher.finish128().as_u128().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(pairs: &[(&str, &str)]) -> Vec<Emitted> {
        pairs.iter().map(|(k, v)| Emitted { key: k.as_bytes().to_vec(), value: v.as_bytes().to_vec() }).collect()
    }

    fn records(pairs: &[(&str, &str)]) -> Vec<EntryRecord> {
        number(emitted(pairs)).iter().map(Entry::record).collect()
    }

    #[test]
    fn entries_with_one_key_are_numbered_within_their_group() {
        let entries = number(emitted(&[("a", "1"), ("b", "2"), ("a", "3")]));
        assert_eq!(entries.iter().map(|e| e.ordinal).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(entries[0].group, entries[2].group);
    }

    #[test]
    fn an_unchanged_document_makes_no_changes() {
        let pairs = [("a", "1"), ("b", "2"), ("a", "3")];
        assert_eq!(compare(&records(&pairs), number(emitted(&pairs))), []);
    }

    #[test]
    fn what_is_not_emitted_again_is_removed() {
        let changes = compare(&records(&[("a", "1"), ("a", "2"), ("b", "3")]), number(emitted(&[("a", "1")])));
        assert_eq!(changes.len(), 2);
        assert!(changes.iter().all(|change| change.kind == EntryChangeKind::Removed));
    }

    #[test]
    fn a_new_value_replaces_and_a_new_key_is_added() {
        let changes = compare(&records(&[("a", "1")]), number(emitted(&[("a", "2"), ("c", "9")])));
        let kinds: Vec<_> = changes.into_iter().map(|change| change.kind).collect();
        assert!(kinds.contains(&EntryChangeKind::Replaced { value: b"2".to_vec() }));
        assert!(kinds.contains(&EntryChangeKind::Added { key: b"c".to_vec(), value: b"9".to_vec() }));
    }
}
