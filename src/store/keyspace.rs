//! Every key of the database, and nothing else about bytes: families, their numbers, and how keys are laid out.
//!
//! Format version 1. Keys are big-endian so that RocksDB's byte order is the order we mean; an id inside a key
//! ends in 0x00, which no id can contain, so that `a` sorts before `a/b` and the end of an id can be found.
//! The golden bytes in the tests below pin this file: a change here is a new format version.
//!
//! Next on the walk: `codec`, the values behind these keys.

pub use crate::id::artificial::GroupHash;

/// The version of everything this file and `codec` say; written to `meta` when a database is created.
pub const FORMAT_VERSION: u32 = 1;

/// The kind of a row of `references`, behind the generation: where a group is listed.
pub const REFERENCE_OF_GROUP: u8 = 1;
/// A member of a reference document.
pub const REFERENCE_MEMBER: u8 = 2;
/// A reference document that is still to be written.
pub const REFERENCE_OPEN: u8 = 3;

/// A column family of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    /// lower-cased id → document record.
    Documents = 0,
    /// etag → change of the whole database.
    Changes = 1,
    /// collection ‖ etag → change of one collection.
    Collections = 2,
    /// collection ‖ id → etag of the tombstone.
    Tombstones = 3,
    /// generation ‖ source id → what this document emitted.
    MapDocuments = 4,
    /// generation ‖ group hash ‖ source id ‖ ordinal → emitted value.
    MapEntries = 5,
    /// generation ‖ ordered key ‖ source id ‖ ordinal → value, for map-only indexes.
    MapKeys = 6,
    /// generation ‖ group hash ‖ level ‖ start → partial result.
    ReduceNodes = 7,
    /// generation ‖ group hash → canonical key, count, result or fault.
    ReduceGroups = 8,
    /// generation ‖ ordered key ‖ group hash → ().
    ReduceKeys = 9,
    /// generation ‖ loaded id ‖ source id → ().
    Loads = 10,
    /// generation ‖ 01 ‖ group hash → reference id; 02 ‖ reference id ‖ group hash → its spelling; 03 ‖ reference id → ().
    References = 11,
    /// name → value.
    Meta = 12,
}

impl Family {
    /// Every family, in the order of its number.
    pub const ALL: [Family; 13] = [
        Family::Documents,
        Family::Changes,
        Family::Collections,
        Family::Tombstones,
        Family::MapDocuments,
        Family::MapEntries,
        Family::MapKeys,
        Family::ReduceNodes,
        Family::ReduceGroups,
        Family::ReduceKeys,
        Family::Loads,
        Family::References,
        Family::Meta,
    ];

    /// The families whose keys begin with a generation.
    pub const OF_GENERATIONS: [Family; 8] = [
        Family::MapDocuments,
        Family::MapEntries,
        Family::MapKeys,
        Family::ReduceNodes,
        Family::ReduceGroups,
        Family::ReduceKeys,
        Family::Loads,
        Family::References,
    ];

    /// The family's name in RocksDB.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Documents => "documents",
            Family::Changes => "changes",
            Family::Collections => "collections",
            Family::Tombstones => "tombstones",
            Family::MapDocuments => "map_documents",
            Family::MapEntries => "map_entries",
            Family::MapKeys => "map_keys",
            Family::ReduceNodes => "reduce_nodes",
            Family::ReduceGroups => "reduce_groups",
            Family::ReduceKeys => "reduce_keys",
            Family::Loads => "loads",
            Family::References => "references",
            Family::Meta => "meta",
        }
    }
}

/// The number of a collection, given once and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionNumber(pub u32);

/// The number of one build of an index definition, given once and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u32);

/// A half-open range of keys, `from` inclusive, `before` exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key of the range, where it exists.
    pub from: Vec<u8>,
    /// The first key after the range; `None` is the end of the family.
    pub before: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys of a family.
    #[must_use]
    pub fn all() -> Self {
        Self { from: Vec::new(), before: None }
    }

    /// The keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { from: prefix.to_vec(), before: after_prefix(prefix) }
    }

    /// Tells whether `key` is in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.before.as_ref().is_none_or(|before| key < before.as_slice())
    }
}

/// Returns the first key that is greater than every key beginning with `prefix`; `None` where there is none.
#[must_use]
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last == u8::MAX {
            end.pop();
        } else {
            *last += 1;
            return Some(end);
        }
    }
    None
}

/// `changes`: etag.
#[must_use]
pub fn change(etag: u64) -> [u8; 8] {
    etag.to_be_bytes()
}

/// Reads the etag out of a `changes` key.
#[must_use]
pub fn decode_change(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.try_into().ok()?))
}

/// `collections`: collection ‖ etag.
#[must_use]
pub fn collection_change(collection: CollectionNumber, etag: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&collection.0.to_be_bytes());
    key[4..].copy_from_slice(&etag.to_be_bytes());
    key
}

/// Reads the etag out of a `collections` key.
#[must_use]
pub fn decode_collection_change(key: &[u8]) -> Option<(CollectionNumber, u64)> {
    let (collection, etag) = key.split_at_checked(4)?;
    let collection = u32::from_be_bytes(collection.try_into().ok()?);
    Some((CollectionNumber(collection), u64::from_be_bytes(etag.try_into().ok()?)))
}

/// `tombstones`: collection ‖ lower-cased id ‖ 00.
#[must_use]
pub fn tombstone(collection: CollectionNumber, lower_id: &str) -> Vec<u8> {
    numbered(collection.0, &[], lower_id, None)
}

/// Reads collection and lower-cased id out of a `tombstones` key.
#[must_use]
pub fn decode_tombstone(key: &[u8]) -> Option<(CollectionNumber, &str)> {
    let (collection, id) = key.split_at_checked(4)?;
    let (&end, id) = id.split_last()?;
    let collection = CollectionNumber(u32::from_be_bytes(collection.try_into().ok()?));
    (end == 0).then(|| std::str::from_utf8(id).ok().map(|id| (collection, id))).flatten()
}

/// `map_documents`: generation ‖ lower-cased source id ‖ 00.
#[must_use]
pub fn map_document(generation: Generation, lower_id: &str) -> Vec<u8> {
    numbered(generation.0, &[], lower_id, None)
}

/// `map_entries`: generation ‖ group hash ‖ lower-cased source id ‖ 00 ‖ ordinal.
#[must_use]
pub fn map_entry(generation: Generation, group: &GroupHash, lower_id: &str, ordinal: u32) -> Vec<u8> {
    numbered(generation.0, &group.0, lower_id, Some(ordinal))
}

/// `reduce_nodes`: generation ‖ group hash ‖ level ‖ the start's lower-cased source id ‖ 00 ‖ ordinal.
#[must_use]
pub fn reduce_node(generation: Generation, group: &GroupHash, level: u8, lower_id: &str, ordinal: u32) -> Vec<u8> {
    let mut prefix = [0; 17];
    prefix[..16].copy_from_slice(&group.0);
    prefix[16] = level;
    numbered(generation.0, &prefix, lower_id, Some(ordinal))
}

/// `reduce_groups`: generation ‖ group hash.
#[must_use]
pub fn reduce_group(generation: Generation, group: &GroupHash) -> Vec<u8> {
    group_prefix(generation, group)
}

/// `reduce_keys`: generation ‖ ordered key, cut ‖ group hash.
pub fn reduce_key(generation: Generation, cut_key: &[u8], group: &GroupHash) -> Vec<u8> {
    [generation.0.to_be_bytes().as_slice(), cut_key, &group.0].concat()
}

/// Reads ordered key, cut, and group hash out of a `reduce_keys` key.
pub fn decode_reduce_key(key: &[u8]) -> Option<(&[u8], GroupHash)> {
    let (cut_key, group) = key.get(4..)?.split_last_chunk::<16>()?;
    Some((cut_key, GroupHash(*group)))
}

/// `map_keys`: generation ‖ ordered key, cut ‖ lower-cased source id ‖ 00 ‖ ordinal.
pub fn map_key(generation: Generation, cut_key: &[u8], lower_id: &str, ordinal: u32) -> Vec<u8> {
    numbered(generation.0, cut_key, lower_id, Some(ordinal))
}

/// `loads`: generation ‖ lower-cased loaded id ‖ 00 ‖ lower-cased source id ‖ 00.
pub fn load(generation: Generation, lower_loaded: &str, lower_id: &str) -> Vec<u8> {
    let mut key = load_prefix(generation, lower_loaded);
    push_entry(&mut key, lower_id, None);
    key
}

/// The beginning of the `loads` keys of one loaded document.
pub fn load_prefix(generation: Generation, lower_loaded: &str) -> Vec<u8> {
    numbered(generation.0, &[], lower_loaded, None)
}

/// `references`: generation ‖ 01 ‖ group hash.
pub fn reference(generation: Generation, group: &GroupHash) -> Vec<u8> {
    [generation.0.to_be_bytes().as_slice(), &[REFERENCE_OF_GROUP], &group.0].concat()
}

/// `references`: generation ‖ 02 ‖ lower-cased reference id ‖ 00 ‖ group hash.
pub fn reference_member(generation: Generation, lower_id: &str, group: &GroupHash) -> Vec<u8> {
    [reference_members(generation, lower_id).as_slice(), &group.0].concat()
}

/// The beginning of the keys of the members of one reference document.
pub fn reference_members(generation: Generation, lower_id: &str) -> Vec<u8> {
    numbered(generation.0, &[REFERENCE_MEMBER], lower_id, None)
}

/// Reads the lower-cased reference id and the group hash out of the key of a member.
pub fn decode_reference_member(key: &[u8]) -> Option<(&str, GroupHash)> {
    let (id, group) = key.get(5..)?.split_last_chunk::<16>()?;
    let (&end, id) = id.split_last()?;
    (end == 0).then(|| std::str::from_utf8(id).ok().map(|id| (id, GroupHash(*group)))).flatten()
}

/// `references`: generation ‖ 03 ‖ lower-cased id of a reference document that is still to be written ‖ 00.
pub fn reference_open(generation: Generation, lower_id: &str) -> Vec<u8> {
    numbered(generation.0, &[REFERENCE_OPEN], lower_id, None)
}

/// All keys of one kind in `references`: [`REFERENCE_MEMBER`] in order of the reference ids, or [`REFERENCE_OPEN`].
pub fn references_of_kind(generation: Generation, kind: u8) -> KeyRange {
    KeyRange::prefix(&[generation.0.to_be_bytes().as_slice(), &[kind]].concat())
}

/// Reads the lower-cased id out of the key of a reference document that is still to be written.
pub fn decode_reference_open(key: &[u8]) -> Option<&str> {
    let (&end, id) = key.get(5..)?.split_last()?;
    (end == 0).then(|| std::str::from_utf8(id).ok()).flatten()
}

/// The beginning of every `map_entries`, `reduce_nodes` and `reduce_groups` key of one group.
#[must_use]
pub fn group_prefix(generation: Generation, group: &GroupHash) -> Vec<u8> {
    let mut key = Vec::with_capacity(20);
    key.extend_from_slice(&generation.0.to_be_bytes());
    key.extend_from_slice(&group.0);
    key
}

/// The beginning of the `reduce_nodes` keys of one level of a group.
#[must_use]
pub fn level_prefix(generation: Generation, group: &GroupHash, level: u8) -> Vec<u8> {
    let mut key = group_prefix(generation, group);
    key.push(level);
    key
}

/// All keys of one generation, in any of [`Family::OF_GENERATIONS`].
#[must_use]
pub fn generation_range(generation: Generation) -> KeyRange {
    KeyRange::prefix(&generation.0.to_be_bytes())
}

/// Reads the group hash out of a `map_entries`, `reduce_nodes` or `reduce_groups` key.
#[must_use]
pub fn decode_group(key: &[u8]) -> Option<GroupHash> {
    Some(GroupHash(key.get(4..20)?.try_into().ok()?))
}

/// Reads source id and ordinal out of a `map_entries` key.
#[must_use]
pub fn decode_map_entry(key: &[u8]) -> Option<(&str, u32)> {
    decode_entry(key.get(20..)?)
}

/// Reads the source id out of a `loads` key of a document whose [`load_prefix`] is `prefix`.
pub fn decode_load<'k>(key: &'k [u8], prefix: &[u8]) -> Option<&'k str> {
    let (&end, id) = key.strip_prefix(prefix)?.split_last()?;
    (end == 0).then(|| std::str::from_utf8(id).ok()).flatten()
}

/// Reads the start of a node, source id and ordinal, out of a `reduce_nodes` key.
#[must_use]
pub fn decode_reduce_node(key: &[u8]) -> Option<(&str, u32)> {
    decode_entry(key.get(21..)?)
}

/// Reads the source id out of a `map_documents` key.
#[must_use]
pub fn decode_map_document(key: &[u8]) -> Option<&str> {
    let (&end, id) = key.get(4..)?.split_last()?;
    (end == 0).then(|| std::str::from_utf8(id).ok()).flatten()
}

/// Lays out the identity of an entry, as it stands in keys and as its level is hashed: lower-cased source id ‖ 00 ‖ ordinal.
#[must_use]
pub fn entry(lower_id: &str, ordinal: u32) -> Vec<u8> {
    let mut key = Vec::with_capacity(lower_id.len() + 5);
    push_entry(&mut key, lower_id, Some(ordinal));
    key
}

/// Reads source id and ordinal at the end of a key, as [`entry`] lays them out.
#[must_use]
pub fn decode_entry(bytes: &[u8]) -> Option<(&str, u32)> {
    let (id, ordinal) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    let (&end, id) = id.split_last()?;
    let ordinal = u32::from_be_bytes(ordinal.try_into().ok()?);
    (end == 0).then(|| std::str::from_utf8(id).ok().map(|id| (id, ordinal))).flatten()
}

fn numbered(number: u32, prefix: &[u8], lower_id: &str, ordinal: Option<u32>) -> Vec<u8> {
    let mut key = Vec::with_capacity(4 + prefix.len() + lower_id.len() + 5);
    key.extend_from_slice(&number.to_be_bytes());
    key.extend_from_slice(prefix);
    push_entry(&mut key, lower_id, ordinal);
    key
}

fn push_entry(key: &mut Vec<u8>, lower_id: &str, ordinal: Option<u32>) {
    key.extend_from_slice(lower_id.as_bytes());
    key.push(0);
    if let Some(ordinal) = ordinal {
        key.extend_from_slice(&ordinal.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATION: Generation = Generation(0x0102_0304);
    const GROUP: GroupHash = GroupHash(*b"0123456789abcdef");

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;

        bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    #[test]
    fn families_keep_their_numbers_and_names() {
        let names = Family::ALL.map(Family::name);
        let golden = [
            "documents",
            "changes",
            "collections",
            "tombstones",
            "map_documents",
            "map_entries",
            "map_keys",
            "reduce_nodes",
            "reduce_groups",
            "reduce_keys",
            "loads",
            "references",
            "meta",
        ];
        assert_eq!(names, golden);
        for (number, family) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family as usize, number);
        }
        assert_eq!(FORMAT_VERSION, 1);
    }

    #[test]
    fn keys_are_these_bytes() {
        let group = "30313233343536373839616263646566";
        for (key, golden) in [
            (change(0x0A0B).to_vec(), "0000000000000a0b".to_owned()),
            (collection_change(CollectionNumber(7), 0x0A0B).to_vec(), "000000070000000000000a0b".to_owned()),
            (tombstone(CollectionNumber(7), "a/b"), "00000007612f6200".to_owned()),
            (map_document(GENERATION, "ü"), "01020304c3bc00".to_owned()),
            (map_entry(GENERATION, &GROUP, "a", 5), format!("01020304{group}610000000005")),
            (reduce_node(GENERATION, &GROUP, 2, "a", 5), format!("01020304{group}02610000000005")),
            (reduce_group(GENERATION, &GROUP), format!("01020304{group}")),
            (group_prefix(GENERATION, &GROUP), format!("01020304{group}")),
            (level_prefix(GENERATION, &GROUP, 2), format!("01020304{group}02")),
            (entry("a", 5), "610000000005".to_owned()),
            (reduce_key(GENERATION, &[5], &GROUP), format!("0102030405{group}")),
            (map_key(GENERATION, &[5], "a", 5), "0102030405610000000005".to_owned()),
            (load(GENERATION, "a/b", "c"), "01020304612f62006300".to_owned()),
            (reference(GENERATION, &GROUP), format!("0102030401{group}")),
            (reference_member(GENERATION, "a", &GROUP), format!("01020304026100{group}")),
            (reference_open(GENERATION, "a"), "01020304036100".to_owned()),
        ] {
            assert_eq!(hex(&key), golden);
        }
    }

    #[test]
    fn what_was_put_into_a_key_is_read_out_again() {
        assert_eq!(decode_change(&change(9)), Some(9));
        let collection = CollectionNumber(7);
        assert_eq!(decode_collection_change(&collection_change(collection, 9)), Some((collection, 9)));
        assert_eq!(decode_tombstone(&tombstone(collection, "ü/1")), Some((collection, "ü/1")));
        assert_eq!(decode_map_document(&map_document(GENERATION, "ü/1")), Some("ü/1"));
        let entry_key = map_entry(GENERATION, &GROUP, "ü/1", 300);
        assert_eq!((decode_group(&entry_key), decode_map_entry(&entry_key)), (Some(GROUP), Some(("ü/1", 300))));
        let node = reduce_node(GENERATION, &GROUP, 1, "ü/1", 300);
        assert_eq!((decode_group(&node), decode_reduce_node(&node)), (Some(GROUP), Some(("ü/1", 300))));
        assert_eq!(decode_reduce_key(&reduce_key(GENERATION, b"key", &GROUP)), Some((&b"key"[..], GROUP)));
        assert_eq!(decode_entry(&map_key(GENERATION, b"key", "ü/1", 300)[7..]), Some(("ü/1", 300)));
        let loaded = load(GENERATION, "ü", "ü/1");
        assert_eq!(decode_load(&loaded, &load_prefix(GENERATION, "ü")), Some("ü/1"));
        let member = reference_member(GENERATION, "ü/1", &GROUP);
        assert_eq!(decode_reference_member(&member), Some(("ü/1", GROUP)));
        assert_eq!(decode_reference_open(&reference_open(GENERATION, "ü/1")), Some("ü/1"));
        for cut in 0..5 {
            assert_eq!(decode_map_entry(&entry_key[..20 + cut]), None);
            assert_eq!(decode_tombstone(&entry_key[..cut]), None);
        }
    }

    #[test]
    fn an_id_sorts_before_the_ids_that_it_begins() {
        assert!(tombstone(CollectionNumber(1), "a") < tombstone(CollectionNumber(1), "a/b"));
        assert!(map_entry(GENERATION, &GROUP, "a", u32::MAX) < map_entry(GENERATION, &GROUP, "a ", 0));
    }

    #[test]
    fn a_prefix_ends_before_the_next_greater_key() {
        for (prefix, end) in [
            (&b"a"[..], Some(&b"b"[..])),
            (b"a\xff", Some(b"b")),
            (b"\xff\xff", None),
            (b"", None),
            ("\u{7f}".as_bytes(), Some(b"\x80")),
            ("\u{10ffff}".as_bytes(), Some(b"\xf4\x8f\xbf\xc0")),
        ] {
            assert_eq!(after_prefix(prefix).as_deref(), end);
            let range = KeyRange::prefix(prefix);
            assert!(range.contains(prefix) && range.contains(&[prefix, &[0xFF; 3]].concat()));
            assert!(end.is_none_or(|end| !range.contains(end)));
        }
        let generation = generation_range(Generation(u32::MAX - 1));
        assert_eq!(generation.before, Some(u32::MAX.to_be_bytes().to_vec()));
    }
}
