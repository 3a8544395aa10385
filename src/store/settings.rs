//! What a store can be told: budgets, durability, ids.

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
    /// Bytes of memory for unflushed writes, all families together. Default 64 MiB.
    pub write_buffer_bytes: usize,
    /// Bytes of memory for blocks read from disk, all families together. Default 64 MiB.
    pub block_cache_bytes: usize,
    /// How ids are read.
    pub id_rules: IdRules,
}
