//! The one home of RocksDB iterators: bounded, and checked for an error at the end.
//!
//! Next on the walk: `snapshot`.

use std::sync::Arc;

use rocksdb::{DBRawIteratorWithThreadMode, ReadOptions};

use super::StoreError;
use super::engine::{Db, Engine, View};
use super::keyspace::{Family, KeyRange};

/// Rows of a key range, as (key, value). An error ends the scan; the end of the range is told apart from a failed read.
pub struct Scan<'a> {
    // Declared before the view, so that it is dropped before the snapshot it reads.
    iterator: Option<DBRawIteratorWithThreadMode<'a, Db>>,
    direction: Direction,
    started: bool,
    failure: Option<StoreError>,
    _view: Option<Arc<View<'a>>>,
}

/// A row, lent: key and value.
pub type Row<'r> = (&'r [u8], &'r [u8]);

/// A row of one's own: key and value.
pub type OwnedRow = (Vec<u8>, Vec<u8>);

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Rising keys.
    #[default]
    Forward,
    /// Falling keys.
    Backward,
}

impl<'a> Scan<'a> {
    /// Prepares a scan over `view`, or over the present state. The first row is sought when it is asked for.
    pub(super) fn new(
        engine: &'a Engine,
        view: Option<Arc<View<'a>>>,
        family: Family,
        range: KeyRange,
        direction: Direction,
    ) -> Self {
        if range.before.as_ref().is_some_and(|before| *before <= range.from) {
            return Self { iterator: None, direction, started: false, failure: None, _view: None };
        }
        let mut options = ReadOptions::default();
        if let Some(view) = &view {
            options.set_snapshot(view);
        }
        options.set_iterate_lower_bound(range.from);
        if let Some(before) = range.before {
            options.set_iterate_upper_bound(before);
        }
        let (iterator, failure) = match engine.family(family) {
            Ok(family) => (Some(engine.db().raw_iterator_cf_opt(family, options)), None),
            Err(error) => (None, Some(error)),
        };
        Self { iterator, direction, started: false, failure, _view: view }
    }

    /// Moves to the next row and lends it: `None` at the end of the range.
    ///
    /// # Cost
    /// One seek for the first row, then one step for each.
    ///
    /// # Errors
    /// A read failed; the scan is over, and its end was not reached.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let Some(iterator) = &mut self.iterator else { return Ok(None) };
        match (self.started, self.direction) {
            (false, Direction::Forward) => iterator.seek_to_first(),
            (false, Direction::Backward) => iterator.seek_to_last(),
            (true, Direction::Forward) => iterator.next(),
            (true, Direction::Backward) => iterator.prev(),
        }
        self.started = true;
        if iterator.valid() {
            return Ok(self.iterator.as_ref().and_then(DBRawIteratorWithThreadMode::item));
        }
        let status = iterator.status();
        self.iterator = None;
        status.map(|()| None).map_err(StoreError::Storage)
    }
}

/// A place in a key range that can be moved about: one iterator for many small reads.
pub struct Cursor<'a> {
    // Declared before the view, so that it is dropped before the snapshot it reads.
    iterator: DBRawIteratorWithThreadMode<'a, Db>,
    _view: Arc<View<'a>>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        view: Arc<View<'a>>,
        family: Family,
        range: KeyRange,
    ) -> Result<Self, StoreError> {
        let mut options = ReadOptions::default();
        options.set_snapshot(&view);
        options.set_iterate_lower_bound(range.from);
        if let Some(before) = range.before {
            options.set_iterate_upper_bound(before);
        }
        Ok(Self { iterator: engine.db().raw_iterator_cf_opt(engine.family(family)?, options), _view: view })
    }

    /// Moves to the first row at or after `key` and lends it: `None` where the range has none.
    ///
    /// # Cost
    /// One seek.
    ///
    /// # Errors
    /// The read failed.
    pub fn seek(&mut self, key: &[u8]) -> Result<Option<Row<'_>>, StoreError> {
        self.iterator.seek(key);
        self.row()
    }

    /// Moves to the last row before `key` and lends it: `None` where the range has none.
    ///
    /// # Cost
    /// One seek, and one step where `key` itself is there.
    ///
    /// # Errors
    /// The read failed.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<Option<Row<'_>>, StoreError> {
        self.iterator.seek_for_prev(key);
        if self.iterator.key() == Some(key) {
            self.iterator.prev();
        }
        self.row()
    }

    /// Moves to the row after the one lent last; only after a row.
    ///
    /// # Errors
    /// The read failed.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        self.iterator.next();
        self.row()
    }

    fn row(&self) -> Result<Option<Row<'_>>, StoreError> {
        match self.iterator.item() {
            Some(row) => Ok(Some(row)),
            None => self.iterator.status().map(|()| None).map_err(StoreError::Storage),
        }
    }
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("direction", &self.direction).finish_non_exhaustive()
    }
}
