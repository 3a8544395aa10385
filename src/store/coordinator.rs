//! What has to be agreed on beyond one node: numbers of identities, configuration values. Here it is embedded in one store;
//! nodes of a cluster would ask an engine for consensus through the same trait.
//!
//! Invariant of the embedded counters: no number is given out before a ceiling at or above it is durable, so that none is
//! ever given out twice.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::StoreError;
use super::codec;
use super::commit::{Commit, Condition, RowChange, Shared, own_row};
use super::format;
use super::keyspace::{Family, KeyRange};
use super::meta;
use super::scan::{Direction, Scan};

/// Numbers that are made durable ahead of their use.
const AHEAD: u64 = 32;
/// Identities whose counters are kept in memory; beyond, their unused numbers are given back.
const COUNTERS_MAX: usize = 4_096;

/// Agrees on numbers and values. Calls may block on disk or network.
pub trait Coordinator: std::fmt::Debug + Send + Sync {
    /// Takes `count` successive numbers (1 or more) of the identity `key` (`users|`, lower-cased) above `above` and above all
    /// that were ever given out, and returns the first. Durable when it returns.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where agreement can't be reached now; no numbers left.
    fn next_identities(&self, key: &str, above: u64, count: u64) -> Result<u64, StoreError>;

    /// Sets the last number of an identity, without `force` never downwards, and returns the one it now has.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where agreement can't be reached now.
    fn seed_identity(&self, key: &str, value: u64, force: bool) -> Result<u64, StoreError>;

    /// Lists identities in the order of their keys, with their last numbers.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where agreement can't be reached now.
    fn list_identities(&self) -> Result<Vec<(String, u64)>, StoreError>;

    /// Reads a configuration value, as this node knows it: a database must open where agreement can't be reached.
    ///
    /// # Errors
    /// It can't be read.
    fn value(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Sets a configuration value (`None` removes it) where the present one is `expected`. `false`: it is another one, and
    /// nothing was done.
    ///
    /// # Errors
    /// [`StoreError::Busy`] where agreement can't be reached now.
    fn compare_and_set(
        &self,
        name: &str,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<bool, StoreError>;

    /// Gives back what was reserved and not used. Nothing is asked after it.
    ///
    /// # Errors
    /// It could not be given back; the numbers are lost, which does no harm.
    fn close(&self) -> Result<(), StoreError>;
}

/// Gives each store its coordinator.
pub trait Coordinators: std::fmt::Debug + Send + Sync {
    /// The coordinator of the store in `path`. `embedded` is the one of a store that stands alone: durable numbers and values
    /// of this node, to build upon.
    fn coordinator(&self, path: &Path, embedded: Arc<dyn Coordinator>) -> Arc<dyn Coordinator>;
}

/// The coordinator of a store that stands alone: counters in `meta`.
#[derive(Debug)]
pub(super) struct Embedded {
    shared: Arc<Shared>,
    counters: Mutex<HashMap<String, Arc<Mutex<Counter>>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counter {
    /// The last number given out.
    last: u64,
    /// What the row says: no number above it was given out.
    durable: u64,
}

impl Embedded {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, counters: Mutex::default() }
    }

    fn counter(&self, key: &str) -> Result<Arc<Mutex<Counter>>, StoreError> {
        let mut counters = self.counters.lock();
        if let Some(counter) = counters.get(key) {
            return Ok(Arc::clone(counter));
        }
        if counters.len() >= COUNTERS_MAX {
            // Counters in use are kept: somebody holds them, and would count on beside the row.
            let idle = |counter: &Arc<Mutex<Counter>>| Arc::strong_count(counter) == 1;
            let given_back = counters.iter().filter(|(_, counter)| idle(counter));
            self.give_back(given_back)?;
            counters.retain(|_, counter| !idle(counter));
        }
        let durable = format::read(&self.shared.engine, &meta::identity(key))?.unwrap_or(0);
        let counter = Arc::new(Mutex::new(Counter { last: durable, durable }));
        counters.insert(key.to_owned(), Arc::clone(&counter));
        Ok(counter)
    }

    fn give_back<'c>(
        &self,
        counters: impl Iterator<Item = (&'c String, &'c Arc<Mutex<Counter>>)>,
    ) -> Result<(), StoreError> {
        // All stay locked until the rows are written: no number may be taken in between.
        let mut unused = Vec::new();
        let mut rows = Vec::new();
        for (key, counter) in counters {
            let counter = counter.lock();
            if counter.last < counter.durable {
                rows.push(own_row(&meta::identity(key), codec::encode(&counter.last)));
                unused.push(counter);
            }
        }
        if !rows.is_empty() {
            self.write(rows)?;
        }
        for mut counter in unused {
            counter.durable = counter.last;
        }
        Ok(())
    }

    fn write(&self, rows: Vec<RowChange>) -> Result<(), StoreError> {
        self.shared.commit(Commit { rows, ..Commit::default() }, true).map(|_| ())
    }

    fn make_durable(&self, key: &str, counter: &mut Counter, durable: u64) -> Result<(), StoreError> {
        self.write(vec![own_row(&meta::identity(key), codec::encode(&durable))])?;
        counter.durable = durable;
        Ok(())
    }
}

impl Coordinator for Embedded {
    fn next_identities(&self, key: &str, above: u64, count: u64) -> Result<u64, StoreError> {
        let counter = self.counter(key)?;
        let mut counter = counter.lock();
        let before = counter.last.max(above);
        let last = before.checked_add(count).ok_or_else(|| {
            StoreError::Condition(format!("identity '{key}' has no {count} numbers left above {before}; seed it lower"))
        })?;
        if last > counter.durable {
            self.make_durable(key, &mut counter, last.max(before.saturating_add(AHEAD)))?;
        }
        counter.last = last;
        Ok(before + 1)
    }

    fn seed_identity(&self, key: &str, value: u64, force: bool) -> Result<u64, StoreError> {
        let counter = self.counter(key)?;
        let mut counter = counter.lock();
        if value > counter.last || (force && value != counter.last) {
            self.make_durable(key, &mut counter, value)?;
            counter.last = value;
        }
        Ok(counter.last)
    }

    fn list_identities(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let counters = self.counters.lock();
        let mut identities = BTreeMap::new();
        let range = KeyRange::prefix(meta::IDENTITY.as_bytes());
        let mut scan = Scan::new(&self.shared.engine, None, Family::Meta, range, Direction::Forward);
        while let Some((key, value)) = scan.next_row()? {
            let name = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(meta::IDENTITY));
            let name = name.ok_or_else(|| StoreError::corrupt(Family::Meta, key, "the key is no identity's"))?;
            let last = codec::decode(value).map_err(|error| StoreError::corrupt(Family::Meta, key, error))?;
            identities.insert(name.to_owned(), last);
        }
        for (key, counter) in counters.iter() {
            if let Some(last) = identities.get_mut(key) {
                *last = counter.lock().last;
            }
        }
        Ok(identities.into_iter().collect())
    }

    fn value(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let row = self.shared.engine.get(Family::Meta, meta::configuration(name).as_bytes())?;
        Ok(row.map(|value| value.to_vec()))
    }

    fn compare_and_set(
        &self,
        name: &str,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let row = meta::configuration(name);
        let change = match value {
            Some(value) => own_row(&row, value),
            None => RowChange::Delete { family: Family::Meta, key: row.as_bytes().to_vec() },
        };
        let condition = Condition::MetaIs { name: row, value: expected };
        let commit = Commit { rows: vec![change], conditions: vec![condition], ..Commit::default() };
        match self.shared.commit(commit, true) {
            Ok(_) => Ok(true),
            Err(StoreError::Condition(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        let counters = self.counters.lock();
        self.give_back(counters.iter())
    }
}
