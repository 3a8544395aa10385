//! What a store can be told: budgets, durability, ids, a probe for tests.

use std::sync::Arc;

use super::coordinator::Coordinators;
use super::engine::Memory;
use super::probe::Probe;
use crate::id::IdRules;

/// When a write is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Users' writes are synced before they are answered; index runs at the latest 2 ms after.
    #[default]
    Strict,
    /// One sync a second; what is written counts as durable.
    Relaxed,
}

/// The settings of one store.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// When a write is on disk.
    pub durability: Durability,
    /// Bytes of memory for unflushed writes, all families together. Default 32 MiB. Unused where `memory` is given.
    pub write_buffer_bytes: usize,
    /// Bytes of memory for blocks read from disk, all families together. Default 32 MiB. Unused where `memory` is given.
    pub block_cache_bytes: usize,
    /// The budgets that this store shares with other stores; `None` gives it budgets of its own.
    pub memory: Option<Memory>,
    /// How ids are read.
    pub id_rules: IdRules,
    /// Who agrees with other nodes on numbers of identities and configuration values; `None` for a store that stands alone.
    pub coordinators: Option<Arc<dyn Coordinators>>,
    /// Told of every step of the committer; for crash tests.
    pub probe: Option<Arc<dyn Probe>>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            write_buffer_bytes: 64 << 20,
            block_cache_bytes: 32 << 20,
            memory: None,
            id_rules: IdRules::default(),
            coordinators: None,
            probe: None,
        }
    }
}
