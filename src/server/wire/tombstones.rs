//! The JSON of `/admin/tombstones`.

use serde::Serialize;

use crate::database::TombstoneStatus;

/// How many tombstones were removed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CleanedUp {
    pub(crate) value: u64,
}

/// The tombstones of one collection.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Tombstones {
    collection: String,
    tombstones: u64,
    purged_through: u64,
    removable_through: u64,
    held_by: Option<String>,
}

impl Tombstones {
    pub(crate) fn new(status: TombstoneStatus) -> Self {
        let TombstoneStatus { collection, tombstones, purged_through, removable_through, held_by } = status;
        Self { collection, tombstones, purged_through, removable_through, held_by }
    }
}
