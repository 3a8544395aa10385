//! How an index is doing.

use crate::script::Fault;

/// Whether an index runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It runs.
    Normal,
    /// It was paused, until resumed or restarted.
    Paused,
    /// It was turned off.
    Disabled,
    /// Too many faults; it stays readable and stops.
    Error,
}

/// The step of a generation's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPhase {
    /// The first build maps documents.
    Mapping,
    /// The first build reduces groups.
    Reducing,
    /// Its results are whole, and the artificial documents are being made equal to them.
    Swapping,
    /// It takes in changes as they come.
    Live,
}

/// Whether an index's definition may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum LockMode {
    /// It may.
    #[default]
    Unlock,
    /// Another definition is passed over without a word.
    LockedIgnore,
    /// Another definition is refused.
    LockedError,
}

/// How much an index gives way to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Priority {
    /// It rests as long as it works.
    Low,
    /// It works while there is something to do.
    #[default]
    Normal,
    /// As normal: what others leave, it takes anyway.
    High,
}

/// How an index is doing at one moment.
#[derive(Clone, Debug)]
pub struct IndexStatus {
    /// The index's name.
    pub name: String,
    /// Its number, never reused.
    pub number: u32,
    /// The index that this one is to take the place of; its name is then `ReplacementOf/` and that index's.
    pub replaces: Option<String>,
    /// Whether it runs.
    pub state: IndexState,
    /// The step of its life.
    pub phase: IndexPhase,
    /// Whether its definition may change.
    pub lock: LockMode,
    /// How much it gives way to others.
    pub priority: Priority,
    /// Still in its first build: outputs are incomplete, or, of a replacement, those of the index before.
    pub building: bool,
    /// Whether there is anything it has not taken in.
    pub stale: bool,
    /// The output collection as spelled in the definition.
    pub output: Option<String>,
    /// Whether it reduces; a map-only index has entries in key order instead of groups.
    pub is_map_reduce: bool,
    /// The collections that its maps load from.
    pub loads: Vec<String>,
    /// The reference documents that it writes.
    pub reference: Option<ReferenceStatus>,
    /// One for each source collection, then one for each that it loads from.
    pub sources: Vec<SourceStatus>,
    /// Map entries now held.
    pub entries: u64,
    /// Groups now held.
    pub groups: u64,
    /// Map calls of this generation.
    pub map_attempts: u64,
    /// Map calls that failed.
    pub map_faults: u64,
    /// Reduce and finish calls of this generation.
    pub reduce_attempts: u64,
    /// Reduce and finish calls that failed.
    pub reduce_faults: u64,
    /// Documents a second, over the last seconds of work; 0 when idle.
    pub documents_per_second: f64,
    /// Seconds until it is current at that rate, where known.
    pub seconds_left: Option<f64>,
    /// When it last committed a run, microseconds since 1970.
    pub last_run_micros: Option<i64>,
}

/// The reference documents of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceStatus {
    /// The pattern of their ids.
    pub pattern: String,
    /// Their collection.
    pub collection: String,
}

/// How far an index has come in one source collection.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// The collection; `None` for all documents.
    pub collection: Option<String>,
    /// The etag through which it was processed.
    pub watermark: u64,
    /// Documents and tombstones still to do.
    pub lag: u64,
}

/// A recorded fault.
#[derive(Clone, Debug)]
pub struct FaultRecord {
    /// When, microseconds since 1970.
    pub at_micros: i64,
    /// The source document (map) or the reduce key as JSON (reduce, finish).
    pub subject: String,
    /// What happened.
    pub fault: Fault,
}
