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

/// The value of a `map_documents` row. A document that emits nothing has no row.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum MapDocument {
    /// What it emitted, in the order of `emit`.
    Entries(Vec<EntryRecord>),
    /// Its map failed: it contributes nothing.
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

/// The `meta` row with the definition that is to take an index's place.
pub(crate) fn replacement_name(number: u32) -> String {
    format!("index-replacement/{number:010}")
}

/// The `meta` row with the definition that an index had before its present one.
pub(crate) fn former_name(number: u32) -> String {
    format!("index-former/{number:010}")
}

/// The `meta` row that is there while an index is turned off.
pub(crate) fn disabled_name(number: u32) -> String {
    format!("index-disabled/{number:010}")
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
