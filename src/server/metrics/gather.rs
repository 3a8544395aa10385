//! Where each figure comes from.
//!
//! What can't be read of one database is left out of its figures and logged; the others are there all the same.

use super::counts::CLASSES;
use super::figures::{Figure, Figures};
use crate::database::Database;
use crate::index::IndexCounters;
use crate::index::status::{IndexState, IndexStatus};
use crate::server::host::Host;
use crate::server::registry::Lease;
use crate::store::{StorageFigures, StoreError};

/// Reads all figures. Blocking.
pub(super) fn gather(host: &Host) -> Figures {
    let mut figures = Figures::default();
    server(host, &mut figures);
    for lease in host.databases.lease_all() {
        if let Err(error) = database(&lease, &mut figures) {
            tracing::error!(name: "metrics.incomplete", database = %lease.name(), %error, "figures of a database can't be read");
        }
    }
    figures
}

fn server(host: &Host, figures: &mut Figures) {
    let version = env!("CARGO_PKG_VERSION");
    figures.add("build", "1, with the version of Treepie.", &[("version", version)], Figure::level(1));
    let uptime = host.started.elapsed().as_secs_f64();
    figures.add("uptime_seconds", "Time since the server was started.", &[], Figure::Level(uptime));
    let open = host.databases.names().len() - host.databases.failed().len();
    figures.add("databases", "Databases that are open.", &[], Figure::level(open as u64));
    let failed = host.databases.failed().len() as u64;
    figures.add("databases_failed", "Databases that could not be opened.", &[], Figure::level(failed));
    let counts = &host.counts;
    for (class, answers) in CLASSES.iter().zip(counts.answers()) {
        figures.add("http_answers", "Answers by class of status.", &[("status", class)], Figure::Count(answers));
    }
    let spread = Figure::SpreadMillionths(counts.answer_micros());
    figures.add("http_answer_seconds", "Time from the head of a request to that of its answer.", &[], spread);
    let refused = Figure::Count(counts.refused());
    figures.add("http_refused", "Requests without the credentials or the permission they need.", &[], refused);
    let connections = Figure::level(counts.connections());
    figures.add("http_connections", "Open connections.", &[], connections);
    let requests = Figure::level(host.requests_in_hand());
    figures.add("http_requests_in_hand", "Requests in hand, open feeds included.", &[], requests);
    let bodies = Figure::level(host.bodies_bytes_held());
    figures.add("http_bodies_bytes", "Memory held by bodies of requests.", &[], bodies);
}

fn database(lease: &Lease, figures: &mut Figures) -> Result<(), StoreError> {
    let name = lease.name();
    let label = [("database", name)];
    let store = lease.store();
    let count = store.snapshot().count()?;
    let progress = store.progress();
    let mut level = |name, help, value| figures.add(name, help, &label, Figure::level(value));
    level("documents", "Live documents.", count.documents);
    level("tombstones", "Tombstones that are kept.", count.tombstones);
    level("last_etag", "The last etag that was given out.", progress.written);
    level("durable_etag", "The etag through which writes survive a crash.", progress.durable);
    level("disk_bytes", "Live table files and logs on disk.", store.size_on_disk()?);
    level(
        "writable",
        "1 while writes are taken; 0 after a write or a sync has failed.",
        u64::from(store.refuses_writes().is_none()),
    );
    let (counters, spreads) = (store.counters(), store.commit_spreads());
    figures.add("commits", "Commits accepted, of users and of indexes.", &label, Figure::Count(counters.commits));
    figures.add("syncs", "Syncs of the write-ahead log.", &label, Figure::Count(counters.wal_syncs));
    let groups = Figure::Spread(spreads.group_commits);
    figures.add("group_commits", "Commits that were written and synced together.", &label, groups);
    let syncs = Figure::SpreadMillionths(spreads.sync_micros);
    figures.add("sync_seconds", "Time that one sync of the write-ahead log took.", &label, syncs);
    storage(&label, &store.storage_figures()?, figures);
    indexes(lease, name, figures)
}

fn storage(label: &[(&'static str, &str)], storage: &StorageFigures, figures: &mut Figures) {
    let mut level = |name, help, value| figures.add(name, help, label, Figure::level(value));
    level("rocksdb_table_bytes", "Live table files.", storage.table_bytes);
    level("rocksdb_memtable_bytes", "Unflushed writes in memory.", storage.memtable_bytes);
    level(
        "rocksdb_table_reader_bytes",
        "Parts of tables in memory beside the block cache.",
        storage.table_reader_bytes,
    );
    level(
        "rocksdb_pending_compaction_bytes",
        "What compactions have yet to rewrite.",
        storage.pending_compaction_bytes,
    );
    level("rocksdb_background_jobs", "Flushes and compactions that run.", storage.background_jobs);
    level("rocksdb_snapshots", "Snapshots that readers hold.", storage.snapshots);
    level("rocksdb_write_stopped", "1 while writers wait for compactions.", u64::from(storage.is_write_stopped));
    let mut count = |name, help, value| figures.add(name, help, label, Figure::Count(value));
    count("rocksdb_background_errors", "Flushes and compactions that failed.", storage.background_errors);
    count("rocksdb_block_cache_hits", "Blocks found in the cache.", storage.block_cache_hits);
    count("rocksdb_block_cache_misses", "Blocks read from disk.", storage.block_cache_misses);
    count("rocksdb_written_bytes", "Bytes given to RocksDB to write.", storage.written_bytes);
    count("rocksdb_flushed_bytes", "Bytes written by flushes.", storage.flushed_bytes);
    count("rocksdb_compacted_bytes", "Bytes written by compactions.", storage.compacted_bytes);
    let stalled = Figure::Millionths(storage.stall_micros);
    figures.add("rocksdb_stall_seconds", "Time that writers waited for flushes and compactions.", label, stalled);
}

fn indexes(database: &Database, name: &str, figures: &mut Figures) -> Result<(), StoreError> {
    let statuses = match database.index_status() {
        Ok(statuses) => statuses,
        Err(crate::database::DatabaseError::Store(error)) => return Err(error),
        Err(_) => return Ok(()),
    };
    for status in statuses {
        let label = [("database", name), ("index", status.name.as_str())];
        index(&label, &status, figures);
        if let Some(counters) = database.index_counters(&status.name) {
            work(&label, counters, figures);
        }
    }
    Ok(())
}

fn index(label: &[(&'static str, &str)], status: &IndexStatus, figures: &mut Figures) {
    let lag: u64 = status.sources.iter().map(|source| source.lag).sum();
    let mut level = |name, help, value| figures.add(name, help, label, Figure::level(value));
    level("index_lag_documents", "Documents and tombstones that the index has yet to take in.", lag);
    level("index_building", "1 while the index is first built.", u64::from(status.building));
    level("index_entries", "Map entries held.", status.entries);
    level("index_groups", "Groups held.", status.groups);
    level(
        "index_running",
        "1 while the index runs; 0 when paused, disabled or in error.",
        u64::from(status.state == IndexState::Normal),
    );
    level("index_error", "1 when the index was stopped for its faults.", u64::from(status.state == IndexState::Error));
    for (phase, attempts, faults) in
        [("map", status.map_attempts, status.map_faults), ("reduce", status.reduce_attempts, status.reduce_faults)]
    {
        let labels = [label, &[("phase", phase)]].concat();
        figures.add("index_attempts", "Calls of scripts by this build of the index.", &labels, Figure::Count(attempts));
        figures.add("index_faults", "Calls of scripts that failed.", &labels, Figure::Count(faults));
    }
    let rate = Figure::Level(status.documents_per_second);
    figures.add("index_documents_per_second", "Documents taken in a second of work.", label, rate);
}

fn work(label: &[(&'static str, &str)], counters: IndexCounters, figures: &mut Figures) {
    let mut count = |name, help, value| figures.add(name, help, label, Figure::Count(value));
    count("index_runs", "Runs that were committed.", counters.runs);
    count("index_map_calls", "Calls of map functions.", counters.map_calls);
    count("index_reduce_calls", "Calls of reduce.", counters.reduce_calls);
    count("index_values_reduced", "Values given to reduce.", counters.values_reduced);
    count("index_nodes_read", "Partial results read from disk.", counters.nodes_read);
    count("index_nodes_written", "Partial results written or deleted.", counters.nodes_written);
    count("index_entries_read", "Map entries read from disk.", counters.entries_read);
    count("index_outputs_written", "Artificial documents written or deleted.", counters.outputs_written);
}
