//! RocksDB: how it is opened, and the few things the store asks of it.
//!
//! Write-ahead log recovery is `TolerateCorruptedTailRecords`: a record cut short at the log's end is a write that nobody
//! was told of, and is dropped; damage anywhere else stands before writes that were acknowledged, and the database refuses
//! to open. (`PointInTime`, RocksDB's default, would drop those silently.)
//!
//! Next on the walk: `format`, what a data directory must hold.

use std::path::Path;

use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DBCompressionType, DBPinnableSlice, DBRecoveryMode,
    DBWithThreadMode, LogLevel, Options, SingleThreaded, SnapshotWithThreadMode, WriteBatch, WriteBufferManager,
    WriteOptions,
};

use super::StoreError;
use super::keyspace::Family;
use super::settings::StoreSettings;

/// The database type: families are fixed, so nothing needs a lock to find one.
pub(super) type Db = DBWithThreadMode<SingleThreaded>;
/// A RocksDB snapshot.
pub(super) type View<'a> = SnapshotWithThreadMode<'a, Db>;

/// Table files held open at most; their indexes and filters count against the block cache.
const OPEN_FILES_MAX: i32 = 512;
/// Bits of a Bloom filter for each key, in files (about 1 % false positives).
const BLOOM_BITS: f64 = 10.0;

/// Memory that several stores share: one budget for unflushed writes and one cache for blocks. Cheap to clone.
#[derive(Clone)]
pub struct Memory {
    buffers: WriteBufferManager,
    cache: Cache,
    write_buffer_bytes: usize,
}

impl Memory {
    /// Sets budgets, in bytes: for unflushed writes (a flush begins at 90 %) and for blocks read from disk.
    #[must_use]
    pub fn new(write_buffer_bytes: usize, block_cache_bytes: usize) -> Self {
        Self {
            buffers: WriteBufferManager::new_write_buffer_manager(write_buffer_bytes, false),
            cache: Cache::new_lru_cache(block_cache_bytes),
            write_buffer_bytes,
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("write_buffer_bytes", &self.write_buffer_bytes).finish_non_exhaustive()
    }
}

/// An open RocksDB with all families.
pub(super) struct Engine {
    db: Db,
    /// Kept for the counters in it.
    options: Options,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("path", &self.db.path()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the database, creating it and its families where there are none.
    pub(super) fn open(path: &Path, settings: &StoreSettings) -> Result<Self, StoreError> {
        let memory = match &settings.memory {
            Some(memory) => memory.clone(),
            None => Memory::new(settings.write_buffer_bytes, settings.block_cache_bytes),
        };
        create_directory(path)?;
        let options = database_options(&memory);
        check_families(path, &options)?;
        let families =
            Family::ALL.map(|family| ColumnFamilyDescriptor::new(family.name(), family_options(family, &memory)));
        let db = Db::open_cf_descriptors(&options, path, families).map_err(|error| {
            let message: &str = error.as_ref();
            if error.kind() == rocksdb::ErrorKind::IOError && message.contains("LOCK") {
                StoreError::InUse { path: path.display().to_string() }
            } else {
                StoreError::Storage(error)
            }
        })?;
        Ok(Self { db, options })
    }

    /// Opens a database that nobody writes to, for reading. RocksDB's notes go to `notes`.
    pub(super) fn open_to_read(path: &Path, notes: &Path) -> Result<Self, StoreError> {
        let memory = Memory::new(1 << 20, 8 << 20);
        let mut options = database_options(&memory);
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        options.set_db_log_dir(notes);
        check_families(path, &options)?;
        let families =
            Family::ALL.map(|family| ColumnFamilyDescriptor::new(family.name(), family_options(family, &memory)));
        let db = Db::open_cf_descriptors_read_only(&options, path, families, false).map_err(StoreError::Storage)?;
        Ok(Self { db, options })
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    pub(super) fn family(&self, family: Family) -> Result<&ColumnFamily, StoreError> {
        self.db.cf_handle(family.name()).ok_or_else(|| StoreError::corrupt(family, &[], "the family is missing"))
    }

    /// Reads the present value of a row.
    pub(super) fn get(&self, family: Family, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, StoreError> {
        self.db.get_pinned_cf(self.family(family)?, key).map_err(StoreError::Storage)
    }

    /// Writes a batch to the log and the memtables, without a sync.
    pub(super) fn write(&self, batch: WriteBatch) -> Result<(), StoreError> {
        self.db.write_opt(batch, &WriteOptions::default()).map_err(StoreError::Storage)
    }

    /// Syncs the log: everything written so far is durable after it.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.db.flush_wal(true).map_err(StoreError::Storage)
    }

    /// Syncs of the log so far, as RocksDB counts them.
    pub(super) fn wal_syncs(&self) -> u64 {
        self.ticker(Ticker::WalFileSynced)
    }

    /// One of RocksDB's own counters since it was opened.
    pub(super) fn ticker(&self, ticker: Ticker) -> u64 {
        self.options.get_ticker_count(ticker)
    }

    /// Bytes of the live table files and the logs.
    pub(super) fn size_on_disk(&self) -> Result<u64, StoreError> {
        let tables =
            self.db.live_files().map_err(StoreError::Storage)?.iter().map(|file| file.size as u64).sum::<u64>();
        let path = self.db.path();
        let failed = |source| StoreError::System { action: format!("listing '{}'", path.display()), source };
        let mut logs = 0;
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if Path::new(&entry.file_name()).extension().is_some_and(|extension| extension == "log") {
                // A log may be removed between the listing and the look at it.
                logs += entry.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        Ok(tables + logs)
    }
}

/// Creates the directory where it is missing, durably.
fn create_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let failed = |source| StoreError::System { action: format!("creating the directory '{}'", path.display()), source };
    std::fs::create_dir_all(path).map_err(failed)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => std::fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed),
        None => Ok(()),
    }
}

/// Refuses a database with families of which this version knows nothing: RocksDB would only complain.
fn check_families(path: &Path, options: &Options) -> Result<(), StoreError> {
    if !path.join("CURRENT").exists() {
        return Ok(());
    }
    let found = Db::list_cf(options, path).map_err(StoreError::Storage)?;
    let known = |name: &str| name == "default" || Family::ALL.iter().any(|family| family.name() == name);
    match found.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(unknown) => Err(StoreError::Format {
            path: path.display().to_string(),
            detail: format!(
                "it has a family '{unknown}' that this version does not know; open it with the version that wrote it"
            ),
        }),
    }
}

fn database_options(memory: &Memory) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_write_buffer_manager(&memory.buffers);
    options.set_max_total_wal_size(2 * memory.write_buffer_bytes as u64);
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_max_open_files(OPEN_FILES_MAX);
    let cores = std::thread::available_parallelism().map_or(2, |cores| i32::try_from(cores.get()).unwrap_or(8));
    options.set_max_background_jobs(cores.clamp(2, 8));
    options.set_bytes_per_sync(1 << 20);
    options.set_manifest_preallocation_size(64 << 10);
    options.set_log_level(LogLevel::Warn);
    options.set_max_log_file_size(1 << 20);
    options.set_keep_log_file_num(2);
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    options
}

fn family_options(family: Family, memory: &Memory) -> Options {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&memory.cache);
    tables.set_block_size(8 << 10);
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_cache_index_and_filter_blocks_with_high_priority(true);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size((memory.write_buffer_bytes / 4).max(1 << 20));
    // Writes wait for the flush when both are full: that bounds the memory of a store whose disk lags behind.
    options.set_max_write_buffer_number(2);
    options.set_arena_block_size(256 << 10);
    // Twice RocksDB's default: a first build writes much and reads little of it meanwhile.
    options.set_level_zero_file_num_compaction_trigger(8);
    options.set_level_zero_slowdown_writes_trigger(32);
    options.set_level_zero_stop_writes_trigger(48);
    match family {
        // Read by whole key, often in vain.
        Family::Documents | Family::Tombstones | Family::MapDocuments | Family::ReduceGroups => {
            tables.set_bloom_filter(BLOOM_BITS, false);
            tables.set_whole_key_filtering(true);
            options.set_memtable_prefix_bloom_ratio(0.05);
            options.set_memtable_whole_key_filtering(true);
        }
        // Every write of a document deletes its former row: files full of deletions are compacted early, so that scans
        // do not wade through them.
        Family::Changes | Family::Collections => {
            options.add_compact_on_deletion_collector_factory(32 << 10, 16 << 10, 0.5);
        }
        Family::MapEntries
        | Family::MapKeys
        | Family::ReduceNodes
        | Family::ReduceKeys
        | Family::Loads
        | Family::References
        | Family::Meta => {}
    }
    options.set_block_based_table_factory(&tables);
    options
}
