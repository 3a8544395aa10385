//! The reduce tree: partial results over a group's entries, in a shape that depends on the set of entries alone.
//!
//! Entries are ordered by (source id, ordinal). The level of an entry is the number of trailing zero digits, in base
//! [`FANOUT`], of its hash. An entry of level ≥ L starts a node at every level 1..L, the first entry one at every level; the
//! root is the only node of the first level that has just one. A group of at most [`SMALL_GROUP_ENTRIES`] has no tree.
//!
//! `build` makes a tree from all entries in order, `update` changes one: both give the same rows for the same entries.
//!
//! Next on the walk: `update`.

mod build;
#[cfg(test)]
mod model;
mod update;

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

pub(crate) use build::{Built, TreeBuilder};
pub(crate) use update::{Change, Changes, Tree, Updated, update};

use crate::script::Fault;
use crate::store::StoreError;

use super::records::{decode, encode};

/// How many children a node has on average.
pub(crate) const FANOUT: u32 = 16;

/// Groups of at most this many entries have no tree and are reduced whole.
pub(crate) const SMALL_GROUP_ENTRIES: u64 = 32;

/// The key of the level hash, part of the format.
const LEVEL_KEY: &[u8; 16] = b"treepie/level/v1";

/// Returns the level of an entry, given as lower-cased source id ‖ 00 ‖ ordinal: 0 to 16.
pub(crate) fn level(entry: &[u8]) -> u8 {
    let mut hasher = SipHasher24::new_with_key(LEVEL_KEY);
    hasher.write(entry);
    let digits = hasher.finish().trailing_zeros() / FANOUT.trailing_zeros();
    u8::try_from(digits).unwrap_or(u8::MAX)
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Partial {
    /// A partial result, canonically encoded.
    Value(Vec<u8>),
    /// Its reduce failed, or that of a node below it.
    Fault(Fault),
}

/// The first byte of a stored fault; no encoded value begins with it.
const FAULT: u8 = 0;

impl Partial {
    /// The bytes of a `reduce_nodes` row.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Partial::Value(value) => value.clone(),
            Partial::Fault(fault) => [&[FAULT], encode(fault).as_slice()].concat(),
        }
    }

    /// Reads a `reduce_nodes` row.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        match bytes.split_first() {
            Some((&FAULT, fault)) => Ok(Partial::Fault(decode("reduce_nodes", fault)?)),
            _ => Ok(Partial::Value(bytes.to_vec())),
        }
    }
}

/// Why a tree could not be computed now. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A script was interrupted (wall time, a stop): to be tried again.
    #[error("interrupted: {0}")]
    Interrupted(Box<Fault>),
    /// The rows contradict each other.
    #[error("the reduce tree of a group is damaged")]
    Order,
}

/// Calls `reduce` on the encoded values of one group.
pub(crate) trait Reduce {
    /// Reduces values in canonical order; a fault is a result, an interruption is not.
    fn reduce(&mut self, values: &[&[u8]]) -> Result<Partial, TreeError>;
}

/// Encoded values of a node's children, one after the other.
#[derive(Default)]
struct Children {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Children {
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn values(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, &end)| self.bytes.get(start..end)).collect()
    }

    /// Computes the node over these children: the first fault among them, an only child itself, else what `reduce` gives. About one
    /// node in `FANOUT` has an only child, and saves the call.
    fn partial(&self, reduce: &mut dyn Reduce) -> Result<Partial, TreeError> {
        let values = self.values();
        let fault = values.iter().find(|value| value.first() == Some(&FAULT));
        match (fault, values.as_slice()) {
            (Some(stored), _) | (None, [stored]) => Ok(Partial::decode(stored)?),
            (None, values) => reduce.reduce(values),
        }
    }
}
