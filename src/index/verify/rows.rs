//! A scan of rows that can be looked at before it moves on.

use crate::store::StoreError;
use crate::store::keyspace::{GroupHash, decode_group};
use crate::store::scan::Scan;

/// Rows of one key range, in order.
pub(super) struct Rows<'s> {
    scan: Scan<'s>,
    row: Option<(Vec<u8>, Vec<u8>)>,
    /// Rows passed so far, the present one included.
    pub(super) count: u64,
}

impl<'s> Rows<'s> {
    /// Moves to the first row.
    pub(super) fn new(scan: Scan<'s>) -> Result<Self, StoreError> {
        let mut rows = Self { scan, row: Some((Vec::new(), Vec::new())), count: 0 };
        rows.advance()?;
        Ok(rows)
    }

    /// Moves to the next row.
    pub(super) fn advance(&mut self) -> Result<(), StoreError> {
        let Some((own_key, own_value)) = &mut self.row else { return Ok(()) };
        match self.scan.next_row()? {
            Some((key, value)) => {
                own_key.clear();
                own_key.extend_from_slice(key);
                own_value.clear();
                own_value.extend_from_slice(value);
                self.count += 1;
            }
            None => self.row = None,
        }
        Ok(())
    }

    /// The present row, key and value; `None` after the last.
    pub(super) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.row.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// The present row's group; `None` after the last row.
    pub(super) fn group(&self) -> Option<GroupHash> {
        self.row().and_then(|(key, _)| decode_group(key))
    }

    /// The present row, where it is of this group.
    pub(super) fn of_group(&self, group: &GroupHash) -> Option<(&[u8], &[u8])> {
        self.row().filter(|(key, _)| decode_group(key).is_some_and(|at| at == *group))
    }
}
