//! A copy of a database as it is at one moment: taken while it is written to, looked into, and made a database of its own.
//!
//! A checkpoint is RocksDB's: all families at one sequence number, its table files hard links where the file system allows.
//! So the documents, the rows of indexes and their watermarks in it belong together.
//!
//! Invariant: no etag or change vector means two things. A copy that becomes a database gets an incarnation of its own, and
//! its etags go on [`RENEWED_ETAGS`] above those it holds: the database it was taken from may have given out the next ones.

use std::path::Path;

use parking_lot::RwLock;
use rocksdb::WriteBatch;
use rocksdb::checkpoint::Checkpoint;

use super::codec::{self, TotalsRecord};
use super::collections::{Collections, Names};
use super::engine::Engine;
use super::keyspace::Family;
use super::settings::StoreSettings;
use super::snapshot::Snapshot;
use super::{Progress, Store, StoreError, format, meta};

/// Etags that a database leaves out when it is made from a copy.
pub const RENEWED_ETAGS: u64 = 1 << 32;

/// What a copy of a database holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// The incarnation of the database it was taken from.
    pub incarnation: String,
    /// The last etag in it.
    pub last_etag: u64,
    /// Live documents.
    pub documents: u64,
}

impl Store {
    /// Writes a copy of the database as it is now into `directory`, which must not exist; its parent must. Blocking. Writes go
    /// on meanwhile. Everything that was answered before the call is in it.
    ///
    /// # Cost
    /// One flush; table files are linked where `directory` is on the same file system, and copied where not.
    ///
    /// # Errors
    /// The copy can't be written, or what was written lacks something that it must hold.
    pub fn checkpoint(&self, directory: &Path) -> Result<Inspected, StoreError> {
        let durable = self.progress().durable;
        let checkpoint = Checkpoint::new(self.inner.shared.engine.db()).map_err(StoreError::Storage)?;
        checkpoint.create_checkpoint(directory).map_err(StoreError::Storage)?;
        let found = inspect(directory, directory)?;
        if found.last_etag < durable || found.incarnation != *self.incarnation() {
            return Err(StoreError::Format {
                path: directory.display().to_string(),
                detail: format!(
                    "it is a copy that ends with etag {}, and {durable} was durable before it was taken; take it again",
                    found.last_etag
                ),
            });
        }
        Ok(found)
    }
}

/// Opens a copy of a database for reading and tells what it holds. RocksDB's notes about that go to `notes`, a directory.
///
/// # Errors
/// It can't be opened, or has another format version.
pub fn inspect(directory: &Path, notes: &Path) -> Result<Inspected, StoreError> {
    look_into(&Engine::open_to_read(directory, notes)?, directory)
}

/// The same, and checks documents, feed and counts row by row, as [`Snapshot::verify`] does; returns also what is wrong.
///
/// # Cost
/// Reads everything but the index rows.
///
/// # Errors
/// It can't be opened, has another format version, or has a damaged row.
pub fn inspect_all(directory: &Path, notes: &Path) -> Result<(Inspected, Vec<String>), StoreError> {
    let engine = Engine::open_to_read(directory, notes)?;
    let inspected = look_into(&engine, directory)?;
    let names = RwLock::new(Names::default());
    Collections::load(&engine)?.publish(&names);
    let progress = Progress { written: inspected.last_etag, durable: inspected.last_etag };
    let findings = Snapshot::new(&engine, &names, progress).verify()?;
    Ok((inspected, findings))
}

/// Makes a copy of a database one of its own: a new incarnation, and etags that the former one has not given out.
///
/// # Errors
/// It can't be opened or written, or has another format version.
pub fn renew(directory: &Path) -> Result<Inspected, StoreError> {
    let engine = Engine::open(directory, &StoreSettings::default())?;
    let found = look_into(&engine, directory)?;
    let family = engine.family(Family::Meta)?;
    let mut batch = WriteBatch::default();
    let reserved = found.last_etag.saturating_add(RENEWED_ETAGS);
    batch.put_cf(family, meta::INCARNATION, codec::encode(&format::new_incarnation()?));
    batch.put_cf(family, meta::RESERVED, codec::encode(&reserved));
    // Without the mark of a clean stop the counter goes on above what is reserved.
    batch.delete_cf(family, meta::CLEAN);
    engine.write(batch)?;
    engine.sync()?;
    Ok(found)
}

fn look_into(engine: &Engine, directory: &Path) -> Result<Inspected, StoreError> {
    format::check(engine, directory)?;
    let incarnation = format::read::<String>(engine, meta::INCARNATION)?
        .ok_or_else(|| StoreError::corrupt(Family::Meta, meta::INCARNATION.as_bytes(), "it is missing"))?;
    let totals = format::read::<TotalsRecord>(engine, meta::TOTALS)?.unwrap_or_default();
    let last_etag = totals.last_etag.max(format::last_change(engine)?);
    Ok(Inspected { incarnation, last_etag, documents: totals.documents })
}
