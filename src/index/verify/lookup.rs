//! Rows that documents account for, looked up many at a time.
//!
//! Next on the walk: `groups`.

use super::super::entry::value_hash;
use super::super::explain::json;
use super::documents::cut;
use super::{DifferenceKind, Verification, VerifyError};
use crate::store::keyspace::Family;

/// Rows that are compared with one batched read, and the bytes of their values.
const ROWS_AT_ONCE: usize = 1_024;
const BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// The families whose rows belong to single documents, beside `map_documents`.
pub(super) const OF_DOCUMENTS: [Family; 3] = [Family::MapEntries, Family::MapKeys, Family::Loads];

/// What the value of a row must be.
pub(super) enum Wanted {
    Value(Vec<u8>),
    Hash([u8; 16]),
}

/// How many rows were found that documents account for, right or changed; by the place in [`OF_DOCUMENTS`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accounted([u64; OF_DOCUMENTS.len()]);

/// Rows to be looked up, by the place of their family.
#[derive(Default)]
pub(super) struct Batch {
    keys: [Vec<Vec<u8>>; OF_DOCUMENTS.len()],
    wanted: [Vec<(Wanted, String)>; OF_DOCUMENTS.len()],
    rows: usize,
    bytes: usize,
    pub(super) accounted: Accounted,
}

impl Accounted {
    /// The rows of each family.
    pub(super) fn each(&self) -> impl Iterator<Item = (Family, u64)> {
        OF_DOCUMENTS.into_iter().zip(self.0)
    }
}

impl Verification<'_, '_> {
    /// Adds a row that must be there, and looks up what has gathered when it is enough.
    pub(super) fn want(
        &mut self,
        batch: &mut Batch,
        family: Family,
        key: Vec<u8>,
        wanted: Wanted,
        place: String,
    ) -> Result<(), VerifyError> {
        let at = OF_DOCUMENTS.iter().position(|known| *known == family);
        if let Some(at) = at
            && let (Some(keys), Some(all)) = (batch.keys.get_mut(at), batch.wanted.get_mut(at))
        {
            batch.rows += 1;
            batch.bytes += if let Wanted::Value(value) = &wanted { value.len() } else { 0 };
            keys.push(key);
            all.push((wanted, place));
        }
        if batch.rows >= ROWS_AT_ONCE || batch.bytes >= BYTES_AT_ONCE { self.look_up(batch) } else { Ok(()) }
    }

    /// Reads the rows of a batch and compares them.
    pub(super) fn look_up(&mut self, batch: &mut Batch) -> Result<(), VerifyError> {
        (batch.rows, batch.bytes) = (0, 0);
        let gathered = batch.keys.iter_mut().zip(&mut batch.wanted).zip(&mut batch.accounted.0);
        for (family, ((keys, wanted), accounted)) in OF_DOCUMENTS.into_iter().zip(gathered) {
            let (keys, wanted) = (std::mem::take(keys), std::mem::take(wanted));
            for (row, (wanted, place)) in self.snapshot.rows_many(family, &keys)?.into_iter().zip(wanted) {
                self.report.found.entries += u64::from(family != Family::Loads);
                match row {
                    None => {
                        let detail = "a document accounts for it, and it is not there".to_owned();
                        self.report.row(DifferenceKind::Missing, family, place, detail)?;
                    }
                    Some(row) => {
                        *accounted += 1;
                        self.compare_value(family, place, &wanted, &row)?;
                    }
                }
            }
        }
        self.report.beat()
    }

    fn compare_value(&mut self, family: Family, place: String, wanted: &Wanted, row: &[u8]) -> Result<(), VerifyError> {
        let is_right = match wanted {
            Wanted::Value(value) => value == row,
            Wanted::Hash(hash) => *hash == value_hash(row),
        };
        if is_right {
            return Ok(());
        }
        let detail = match (family, wanted) {
            (Family::MapEntries, Wanted::Value(value)) => {
                format!("should be {}, is {}", cut(&json(value)), cut(&json(row)))
            }
            _ => "it has another value".to_owned(),
        };
        self.report.row(DifferenceKind::Changed, family, place, detail)
    }
}
