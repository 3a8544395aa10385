//! The one home of RocksDB iterators: bounded, and checked for an error at the end.

use super::StoreError;

/// Rows of a key range, as (key, value). An error ends the scan; the end of the range is told apart from a failed read.
pub struct Scan<'a> {
    marker: std::marker::PhantomData<&'a ()>,
}

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Rising keys.
    #[default]
    Forward,
    /// Falling keys.
    Backward,
}

impl Scan<'_> {
    /// Moves to the next row and lends it: `None` at the end of the range.
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>, StoreError> {
        todo!()
    }
}
