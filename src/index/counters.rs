//! What an index has done since it was opened, counted so that tests and operators can see what a change costs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::pulse::Pulse;
use crate::store::keyspace::Family;

/// Work of one index since its database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounters {
    /// Calls of map functions.
    pub map_calls: u64,
    /// Calls of `reduce`.
    pub reduce_calls: u64,
    /// Values given to `reduce`.
    pub values_reduced: u64,
    /// Partial results read from disk.
    pub nodes_read: u64,
    /// Partial results written or deleted.
    pub nodes_written: u64,
    /// Map entries read from disk.
    pub entries_read: u64,
    /// Artificial documents written or deleted.
    pub outputs_written: u64,
    /// Committed runs.
    pub runs: u64,
}

/// The live counters behind [`IndexCounters`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub map_calls: AtomicU64,
    pub reduce_calls: AtomicU64,
    pub values_reduced: AtomicU64,
    pub nodes_read: AtomicU64,
    pub nodes_written: AtomicU64,
    pub entries_read: AtomicU64,
    pub outputs_written: AtomicU64,
    pub runs: AtomicU64,
    /// When the index last moved, and what keeps it from moving.
    pub pulse: Pulse,
}

impl Counters {
    /// Counts a row read from one of the tree's families.
    pub(crate) fn read(&self, family: Family) {
        match family {
            Family::MapEntries => add(&self.entries_read, 1),
            Family::ReduceNodes => add(&self.nodes_read, 1),
            _ => {}
        }
    }

    /// The present counts.
    pub(crate) fn get(&self) -> IndexCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IndexCounters {
            map_calls: read(&self.map_calls),
            reduce_calls: read(&self.reduce_calls),
            values_reduced: read(&self.values_reduced),
            nodes_read: read(&self.nodes_read),
            nodes_written: read(&self.nodes_written),
            entries_read: read(&self.entries_read),
            outputs_written: read(&self.outputs_written),
            runs: read(&self.runs),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}
