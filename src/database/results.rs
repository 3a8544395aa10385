//! The results of one index in key order, for programs that embed a database.

use std::ops::Bound;

use super::{Database, DatabaseError};
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::index::ordered_key::ordered_key;
use crate::index::read::{Group, InKeyOrder, KeyBounds, KeyedEntry};
use crate::index::records::GroupResult;
use crate::script::encoding::{encode_json, write_json};
use crate::store::StoreError;
use crate::store::scan::Direction;

/// Nesting of a bound.
const DEPTH_MAX: usize = 64;

/// Which results of an index: those whose keys lie in a range.
#[derive(Clone, Debug)]
pub struct ResultRange {
    /// The first key, as JSON. Keys are ordered as null, false, true, numbers by value, texts by code point, arrays, objects.
    pub from: Bound<String>,
    /// The last key, as JSON.
    pub to: Bound<String>,
    /// The order.
    pub direction: Direction,
    /// Results to pass over.
    pub skip: usize,
    /// Results to give at most.
    pub limit: usize,
}

/// One result: a group's, or in a map-only index an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexResult {
    /// The key, as JSON.
    pub key: String,
    /// The artificial document's body, or the entry's value, as JSON.
    pub value: String,
    /// The lower-cased id of the document that emitted the entry.
    pub source: Option<String>,
}

impl ResultRange {
    /// All keys, in rising order.
    #[must_use]
    pub fn all(limit: usize) -> Self {
        Self { from: Bound::Unbounded, to: Bound::Unbounded, direction: Direction::Forward, skip: 0, limit }
    }

    /// One key.
    #[must_use]
    pub fn equal(key: impl Into<String>, limit: usize) -> Self {
        let key = key.into();
        Self { from: Bound::Included(key.clone()), to: Bound::Included(key), ..Self::all(limit) }
    }

    fn bounds(&self) -> Result<KeyBounds, DatabaseError> {
        let ordered = |json: &String| {
            let mut canonical = Vec::new();
            match encode_json(json, DEPTH_MAX, &mut canonical) {
                Ok(()) => Ok(ordered_key(&canonical)),
                Err(error) => Err(StoreError::Condition(format!(
                    "the key {} can't be read: {error}; write it as JSON",
                    crate::id::cut(json)
                ))),
            }
        };
        let bound = |bound: &Bound<String>| {
            Ok::<_, StoreError>(match bound {
                Bound::Included(key) => Bound::Included(ordered(key)?),
                Bound::Excluded(key) => Bound::Excluded(ordered(key)?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        Ok(KeyBounds { from: bound(&self.from)?, to: bound(&self.to)? })
    }
}

impl Database {
    /// Reads an index's results in key order, all from one moment. Groups that have no result, or whose script fails, are not
    /// among them.
    ///
    /// # Errors
    /// [`DatabaseError::NoIndex`]; a bound is no JSON; the storage fails.
    ///
    /// # Cost
    /// One seek, then a few reads for each result and each that is passed over. Holds `limit` of them in memory.
    pub fn index_results(&self, name: &str, range: &ResultRange) -> Result<Vec<IndexResult>, DatabaseError> {
        let index = self.registry.get(name).ok_or_else(|| DatabaseError::NoIndex { name: name.to_owned() })?;
        let bounds = range.bounds()?;
        let snapshot = self.store.snapshot();
        let (generation, mut results) = (index.context.generation, Vec::new());
        let mut skip = range.skip;
        let mut take = |result: IndexResult| {
            if skip > 0 {
                skip -= 1;
            } else {
                results.push(result);
            }
            results.len() < range.limit
        };
        if range.limit == 0 {
            return Ok(results);
        }
        if !index.context.program.has_reduce {
            let mut entries = InKeyOrder::<KeyedEntry>::new(&snapshot, generation, bounds, range.direction);
            while let Some(entry) = entries.next()? {
                let (key, value) = (json(&entry.key), json(&entry.value));
                if !take(IndexResult { key, value, source: Some(entry.source) }) {
                    break;
                }
            }
            return Ok(results);
        }
        let mut groups = InKeyOrder::<Group>::new(&snapshot, generation, bounds, range.direction);
        while let Some(Group { hash, record }) = groups.next()? {
            let body = match (record.result, &index.context.output) {
                (GroupResult::Body(body), _) => Some(body),
                (GroupResult::Document, Some(output)) => {
                    let id = DocumentId::stored(&artificial_id(output, &hash));
                    snapshot.get(&id)?.map(|document| document.body)
                }
                _ => None,
            };
            if let Some(value) = body
                && !take(IndexResult { key: json(&record.key), value, source: None })
            {
                break;
            }
        }
        Ok(results)
    }
}

fn json(encoded: &[u8]) -> String {
    let mut text = String::new();
    write_json(encoded, &mut text);
    text
}
