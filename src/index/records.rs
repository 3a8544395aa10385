//! What an index keeps: the values of its rows, and the names of its rows in `meta`.
//!
//! Only what follows from the documents and the definition stands in the rows of a generation: no time, no counter, no
//! order of arrival. That makes them the same, byte for byte, after any history.
//!
//! Next on the walk: `entry`, which compares what a document emits with what it emitted before.

use bincode::{Decode, Encode};

use super::status::{LockMode, Priority};
use crate::script::Fault;
use crate::store::keyspace::{Generation, GroupHash};
use crate::store::{StoreError, codec};

/// One entry as `map_documents` remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct EntryRecord {
    /// The hash of the reduce key.
    pub group: [u8; 16],
    /// The n-th entry of this document in this group, from 0.
    pub ordinal: u32,
    /// 128 bits of the value's hash: enough to know that a value has not changed.
    pub value_hash: [u8; 16],
}

impl EntryRecord {
    /// The group.
    pub(crate) fn group(&self) -> GroupHash {
        GroupHash(self.group)
    }
}

/// One entry of a map-only index as `map_documents` remembers it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub(crate) struct KeyedRecord {
    /// The ordered key, cut: what stands in the row's key.
    pub key: Vec<u8>,
    /// The n-th entry of this document under this key, from 0.
    pub ordinal: u32,
    /// 128 bits of the hash of the row's value.
    pub value_hash: [u8; 16],
}

/// The value of a `map_documents` row. A document that emits and loads nothing has no row.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum MapDocument {
    /// What it emitted, in the order of `emit`.
    Entries(Vec<EntryRecord>),
    /// Its map failed: it contributes nothing.
    Fault(Fault),
    /// The same for a map-only index, and for a document that has loaded others.
    Wide(WideDocument),
}

/// All that can be remembered of a document. Entries of one kind only; none where the map failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WideDocument {
    /// What it emitted, in the order of `emit`.
    pub entries: Vec<EntryRecord>,
    /// What it emitted in a map-only index, in the order of `emit`.
    pub keyed: Vec<KeyedRecord>,
    /// The lower-cased ids that it has loaded or looked for in vain, in order.
    pub loads: Vec<String>,
    /// Why its map failed.
    pub fault: Option<Fault>,
}

impl MapDocument {
    /// The one form in which something is remembered; `None` where there is nothing.
    pub(crate) fn narrowed(wide: WideDocument) -> Option<Self> {
        if !wide.keyed.is_empty() || !wide.loads.is_empty() {
            return Some(Self::Wide(wide));
        }
        match wide.fault {
            Some(fault) => Some(Self::Fault(fault)),
            None if wide.entries.is_empty() => None,
            None => Some(Self::Entries(wide.entries)),
        }
    }

    /// What is remembered, in the form that holds everything.
    pub(crate) fn widened(self) -> WideDocument {
        match self {
            Self::Entries(entries) => WideDocument { entries, ..WideDocument::default() },
            Self::Fault(fault) => WideDocument { fault: Some(fault), ..WideDocument::default() },
            Self::Wide(wide) => wide,
        }
    }
}

/// The value of a `map_keys` row.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct KeyedValue {
    /// The canonical key, where the row's key holds a part of it only.
    pub key: Option<Vec<u8>>,
    /// The value, canonically encoded.
    pub value: Vec<u8>,
}

/// The value of the `references` row of a group.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum ReferenceRecord {
    /// The id of the reference document that lists it.
    Id(String),
    /// Why it is listed nowhere.
    Fault(Fault),
}

/// The value of a `reduce_groups` row.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct GroupRecord {
    /// The canonical encoding of the reduce key.
    pub key: Vec<u8>,
    /// The number of entries. 0 only while a first build maps.
    pub count: u64,
    /// The levels of the reduce tree, 0 where the group is too small to have one.
    pub height: u8,
    /// What came of reducing.
    pub result: GroupResult,
}

/// What came of reducing a group.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum GroupResult {
    /// A first build has not come here yet.
    Pending,
    /// It stands in the artificial document.
    Document,
    /// The body, where there is no output collection.
    Body(String),
    /// `reduce` or `finish` gave `()`: no document.
    Nothing,
    /// A script failed: the document is withdrawn.
    Fault(Fault),
}

/// A definition as `meta` keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct DefinitionRecord {
    /// The index's number.
    pub number: u32,
    /// The number of this build.
    pub generation: u32,
    /// The name as its author spelled it.
    pub name: String,
    /// The map scripts.
    pub maps: Vec<String>,
    /// The reduce script, where it stands apart.
    pub reduce: Option<String>,
    /// The output collection, as the definition's JSON named it.
    pub output: Option<String>,
    /// The output collection that this index writes, from script or JSON.
    pub output_collection: Option<String>,
    /// Output collections that this index has written and no longer writes, still to be emptied and given up.
    pub former_outputs: Vec<String>,
    /// Whether the index is being deleted.
    pub deleting: bool,
    /// Whether too many faults stopped it.
    pub errored: bool,
    /// The pattern of reference documents, as the definition's JSON named it.
    pub reference_pattern: Option<String>,
    /// Their collection, as the definition's JSON named it.
    pub reference_name: Option<String>,
    /// The reference collection that this index writes, from script, JSON or by default.
    pub reference_collection: Option<String>,
}

/// Documents that are still to be mapped again because of one that they have loaded: the rest of a re-mapping.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RemapRecord {
    /// The lower-cased id of the loaded document.
    pub loaded: String,
    /// The lower-cased id of the last document that was mapped again.
    pub after: String,
}

/// How far a generation has come.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ProgressRecord {
    /// The generation this speaks of.
    pub generation: u32,
    /// The last etag written before this generation began.
    pub fresh_through: u64,
    /// The step of its life.
    pub phase: PhaseRecord,
    /// For each source feed, the etag through which it was taken in.
    pub watermarks: Vec<u64>,
    /// Entries now held.
    pub entries: u64,
    /// Groups now held.
    pub groups: u64,
    /// Map calls so far, and those that failed.
    pub map_attempts: u64,
    pub map_faults: u64,
    /// Reduce and finish calls so far, and those that failed.
    pub reduce_attempts: u64,
    pub reduce_faults: u64,
}

/// The step of a generation's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum PhaseRecord {
    /// The first build maps and does not reduce.
    Mapping,
    /// The first build reduces; slices of the hash space before this one are done.
    Sweeping { slice: u32 },
    /// Batches map and reduce.
    Live,
    /// All is mapped and reduced, and nothing more is taken in while the documents are made equal to the results; slices of the
    /// hash space before this one are done.
    Swapping { slice: u32 },
}

/// A recorded fault.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct FaultRow {
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// The document's id, or the reduce key as JSON.
    pub subject: String,
    /// What happened.
    pub fault: Fault,
}

/// What is set of an index besides its definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SettingsRecord {
    /// Whether its definition may change.
    pub lock: LockMode,
    /// How much it gives way to others.
    pub priority: Priority,
}

/// The counters behind index and generation numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Numbers {
    /// The last index number given.
    pub index: u32,
    /// The last generation number given.
    pub generation: u32,
}

/// The `meta` row with [`Numbers`].
pub(crate) const NUMBERS: &str = "index-numbers";

/// The prefix of the `meta` rows with definitions.
pub(crate) const DEFINITIONS: &str = "index-definition/";

/// The `meta` row with an index's definition.
pub(crate) fn definition_name(number: u32) -> String {
    format!("{DEFINITIONS}{number:010}")
}

/// The prefix of the `meta` rows with definitions that are to take an index's place.
pub(crate) const REPLACEMENTS: &str = "index-replacement/";

/// The `meta` row with the definition that is to take an index's place.
pub(crate) fn replacement_name(number: u32) -> String {
    format!("{REPLACEMENTS}{number:010}")
}

/// The `meta` row with the definition that an index had before its present one.
pub(crate) fn former_name(number: u32) -> String {
    format!("index-former/{number:010}")
}

/// The `meta` row that is there while an index is turned off.
pub(crate) fn disabled_name(number: u32) -> String {
    format!("index-disabled/{number:010}")
}

/// The `meta` row with a generation's unfinished re-mapping.
pub(crate) fn remap_name(generation: Generation) -> String {
    format!("generation-remap/{:010}", generation.0)
}

/// The `meta` row with the place up to which a generation's reference documents were made equal to its rows.
pub(crate) fn references_name(generation: Generation) -> String {
    format!("generation-references/{:010}", generation.0)
}

/// The `meta` row with an index's [`SettingsRecord`].
pub(crate) fn settings_name(number: u32) -> String {
    format!("index-settings/{number:010}")
}

/// The `meta` row that is there while an index is deleted whose documents are to stay.
pub(crate) fn keep_name(number: u32) -> String {
    format!("index-keep/{number:010}")
}

/// The `meta` row with a generation's progress.
pub(crate) fn progress_name(generation: Generation) -> String {
    format!("generation-progress/{:010}", generation.0)
}

/// The prefix of the `meta` rows with a generation's faults.
pub(crate) fn faults_prefix(generation: Generation) -> String {
    format!("generation-fault/{:010}/", generation.0)
}

/// The `meta` row with one fault of a generation.
pub(crate) fn fault_name(generation: Generation, fault: u64) -> String {
    format!("{}{fault:020}", faults_prefix(generation))
}

/// The prefix of the `meta` rows that name a generation's blocked groups.
pub(crate) fn blocked_prefix(generation: Generation) -> String {
    format!("generation-blocked/{:010}/", generation.0)
}

/// Encodes a row's value.
pub(crate) fn encode(record: &impl Encode) -> Vec<u8> {
    codec::encode(record)
}

/// Decodes a row's value; bytes that can't be read are damage.
pub(crate) fn decode<T: Decode<()>>(what: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    codec::decode(bytes).map_err(|error| StoreError::Corrupt {
        family: what,
        key: String::new(),
        detail: error.to_string(),
    })
}
