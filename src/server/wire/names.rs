//! The JSON of HiLo ranges and identities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct HiloAnswer {
    /// What stands before the number in an id, separator included.
    pub(crate) prefix: String,
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) last_size: u64,
    /// What stands after the number, with `-` before it.
    pub(crate) server_tag: String,
    pub(crate) last_range_at: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NextIdentity {
    pub(crate) new_identity_value: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SeededIdentity {
    pub(crate) new_seed_value: u64,
}

/// Last numbers by name, `users|`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Identities(pub(crate) BTreeMap<String, u64>);

/// Last numbers to be set, and then those that hold.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct Seeds {
    pub(crate) identities: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) force: bool,
}
