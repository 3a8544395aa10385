//! What a subscription keeps in `meta`: its definition, where it stands, its last faults. All names begin with `subscription/`.
//!
//! The encodings are pinned by the golden bytes below, as the store's own are in `store::codec`.

use crate::script::Fault;
use crate::store::StoreError;
use crate::store::codec::{self, Decode, Encode};
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, KeyRange};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// The number that was given out last, u64.
pub(super) const LAST: &str = "subscription/last";
/// Before the numbers of definitions.
const DEFINITION: &str = "subscription/definition/";
/// Before the numbers of cursors.
const CURSOR: &str = "subscription/cursor/";
/// Before the numbers of fault lists.
const FAULTS: &str = "subscription/faults/";

/// What a subscription delivers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct DefinitionRecord {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) query: String,
    pub(crate) script: Option<String>,
    pub(crate) include_deletes: bool,
    pub(crate) include_previous: bool,
    pub(crate) is_disabled: bool,
    pub(crate) created_micros: i64,
}

/// How far a subscription has come.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub(crate) struct CursorRecord {
    /// Everything through this etag is acknowledged.
    pub(crate) through: u64,
    /// Ranges above it, exclusive and inclusive, that are acknowledged too: concurrent workers do not end in order.
    pub(crate) above: Vec<(u64, u64)>,
    /// Where the subscription was started from the beginning: what was durable then. What was deleted before was never seen,
    /// so tombstones through this etag are not needed.
    pub(crate) seen_from: u64,
    pub(crate) acknowledged_micros: Option<i64>,
    pub(crate) connected_micros: Option<i64>,
    /// When somebody last created, moved, opened or acknowledged it.
    pub(crate) touched_micros: i64,
    /// Documents and deletions acknowledged.
    pub(crate) delivered: u64,
    /// Documents whose script failed.
    pub(crate) faults: u64,
}

/// A script's failure on one document.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct FaultRow {
    pub(crate) at_micros: i64,
    pub(crate) id: String,
    pub(crate) etag: u64,
    pub(crate) fault: Fault,
}

/// The row of a definition.
pub(super) fn definition(number: u64) -> String {
    format!("{DEFINITION}{number:010}")
}

/// The row of a cursor.
pub(super) fn cursor(number: u64) -> String {
    format!("{CURSOR}{number:010}")
}

/// The row of a fault list.
pub(super) fn faults(number: u64) -> String {
    format!("{FAULTS}{number:010}")
}

/// Makes a row.
pub(super) fn put(name: String, record: &impl Encode) -> RowChange {
    RowChange::Put { family: Family::Meta, key: name.into_bytes(), value: codec::encode(record) }
}

/// Removes a row.
pub(super) fn delete(name: String) -> RowChange {
    RowChange::Delete { family: Family::Meta, key: name.into_bytes() }
}

/// Reads one row; `None` where there is none.
pub(super) fn read<T: Decode<()>>(snapshot: &Snapshot<'_>, name: &str) -> Result<Option<T>, StoreError> {
    let row = snapshot.row(Family::Meta, name.as_bytes())?;
    row.map(|bytes| decode(name.as_bytes(), &bytes)).transpose()
}

/// Reads all definitions, by number.
pub(super) fn read_definitions(snapshot: &Snapshot<'_>) -> Result<Vec<DefinitionRecord>, StoreError> {
    let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(DEFINITION.as_bytes()), Direction::Forward);
    let mut definitions = Vec::new();
    while let Some((key, value)) = scan.next_row()? {
        definitions.push(decode(key, value)?);
    }
    Ok(definitions)
}

fn decode<T: Decode<()>>(key: &[u8], bytes: &[u8]) -> Result<T, StoreError> {
    codec::decode(bytes).map_err(|error| StoreError::corrupt(Family::Meta, key, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;

        bytes.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    #[test]
    fn rows_are_these_bytes() {
        let definition = DefinitionRecord {
            number: 3,
            name: "a".into(),
            query: "from A".into(),
            script: None,
            include_deletes: true,
            include_previous: false,
            is_disabled: false,
            created_micros: 1,
        };
        assert_eq!(hex(&codec::encode(&definition)), "0301610666726f6d204100010000".to_owned() + "02");
        let cursor = CursorRecord {
            through: 7,
            above: vec![(9, 12)],
            seen_from: 5,
            acknowledged_micros: Some(1),
            connected_micros: None,
            touched_micros: 2,
            delivered: 4,
            faults: 1,
        };
        assert_eq!(hex(&codec::encode(&cursor)), "0701090c05010200040401");
        assert_eq!(super::definition(7), "subscription/definition/0000000007");
        assert_eq!(super::cursor(7), "subscription/cursor/0000000007");
        assert_eq!(faults(7), "subscription/faults/0000000007");
    }
}
