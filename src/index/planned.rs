//! What a run would change, before anything is committed.
//!
//! Next on the walk: `publish`.

use std::collections::HashSet;

use super::faults::Subject;
use super::reference::Moved;
use super::tree::TreeError;
use crate::script::Fault;
use crate::store::commit::{Operation, RowChange};
use crate::store::keyspace::GroupHash;

/// What a run would change.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Index rows.
    pub rows: Vec<RowChange>,
    /// Artificial documents.
    pub operations: Vec<Operation>,
    /// For each feed, the etag through which it is taken in.
    pub watermarks: Vec<u64>,
    /// Whether nothing was left in any feed.
    pub is_complete: bool,
    /// Whether something is left to do that the watermarks cover already; it is noted in the rows.
    pub is_open: bool,
    /// Documents looked at.
    pub documents: usize,
    /// Calls, and those that failed.
    pub map_attempts: u64,
    pub map_faults: u64,
    pub reduce_attempts: u64,
    pub reduce_faults: u64,
    /// Changes of the number of entries and of groups.
    pub entries: i64,
    pub groups: i64,
    /// Groups that come to be listed, or cease to be, by a reference document.
    pub references: Vec<Moved>,
    /// Faults to record, by subject; `None` clears what was recorded of it.
    pub faults: Vec<(Subject, Option<Fault>)>,
    /// Groups whose id a foreign document has taken.
    pub blocked: Vec<GroupHash>,
}

impl Run {
    /// Takes in what another part of the same run would change.
    pub(crate) fn absorb(&mut self, part: Run) {
        self.rows.extend(part.rows);
        self.operations.extend(part.operations);
        self.reduce_attempts += part.reduce_attempts;
        self.reduce_faults += part.reduce_faults;
        self.groups += part.groups;
        self.faults.extend(part.faults);
        self.references.extend(part.references);
        self.blocked.extend(part.blocked);
    }
}

/// Subjects (document ids, or groups in hex) whose interruption is recorded as a fault, because trying again did not help.
pub(crate) type GivenUp = HashSet<String>;

/// An interruption and whose it was.
#[derive(Debug)]
pub(crate) struct Interrupted {
    pub subject: String,
    pub error: TreeError,
}
