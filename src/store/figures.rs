//! What RocksDB itself says about one database, for those who operate it.

use rocksdb::properties;
use rocksdb::statistics::Ticker;

use super::keyspace::Family;
use super::{Store, StoreError};

/// What RocksDB says about one database at one moment. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StorageFigures {
    /// Live table files, all families together.
    pub table_bytes: u64,
    /// Unflushed writes in memory.
    pub memtable_bytes: u64,
    /// Indexes and filters of tables outside the block cache.
    pub table_reader_bytes: u64,
    /// What compactions still have to rewrite, by RocksDB's estimate.
    pub pending_compaction_bytes: u64,
    /// Flushes and compactions that run.
    pub background_jobs: u64,
    /// Errors of flushes and compactions since it was opened.
    pub background_errors: u64,
    /// Snapshots that are held.
    pub snapshots: u64,
    /// Whether RocksDB makes writers wait until compactions have caught up.
    pub is_write_stopped: bool,
    /// Blocks found in the cache since it was opened.
    pub block_cache_hits: u64,
    /// Blocks that had to be read from disk.
    pub block_cache_misses: u64,
    /// Bytes written by users of RocksDB.
    pub written_bytes: u64,
    /// Bytes written by flushes.
    pub flushed_bytes: u64,
    /// Bytes written by compactions.
    pub compacted_bytes: u64,
    /// Microseconds that writers had to wait for flushes and compactions.
    pub stall_micros: u64,
}

impl Store {
    /// Asks RocksDB how it is doing.
    ///
    /// # Cost
    /// A hundred property reads; no disk.
    ///
    /// # Errors
    /// A property can't be read.
    pub fn storage_figures(&self) -> Result<StorageFigures, StoreError> {
        let engine = &self.inner.shared.engine;
        let db = engine.db();
        let whole = |name| db.property_int_value(name).map(Option::unwrap_or_default).map_err(StoreError::Storage);
        let over_families = |name| {
            Family::ALL.iter().try_fold(0_u64, |sum, family| {
                let value = db.property_int_value_cf(&engine.family(*family)?, name).map_err(StoreError::Storage)?;
                Ok::<_, StoreError>(sum + value.unwrap_or_default())
            })
        };
        Ok(StorageFigures {
            table_bytes: over_families(properties::LIVE_SST_FILES_SIZE)?,
            memtable_bytes: over_families(properties::CUR_SIZE_ALL_MEM_TABLES)?,
            table_reader_bytes: over_families(properties::ESTIMATE_TABLE_READERS_MEM)?,
            pending_compaction_bytes: over_families(properties::ESTIMATE_PENDING_COMPACTION_BYTES)?,
            background_jobs: whole(properties::NUM_RUNNING_FLUSHES)? + whole(properties::NUM_RUNNING_COMPACTIONS)?,
            background_errors: whole(properties::BACKGROUND_ERRORS)?,
            snapshots: whole(properties::NUM_SNAPSHOTS)?,
            is_write_stopped: whole(properties::IS_WRITE_STOPPED)? > 0,
            block_cache_hits: engine.ticker(Ticker::BlockCacheHit),
            block_cache_misses: engine.ticker(Ticker::BlockCacheMiss),
            written_bytes: engine.ticker(Ticker::BytesWritten),
            flushed_bytes: engine.ticker(Ticker::FlushWriteBytes),
            compacted_bytes: engine.ticker(Ticker::CompactWriteBytes),
            stall_micros: engine.ticker(Ticker::StallMicros),
        })
    }
}
