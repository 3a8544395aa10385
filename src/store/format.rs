//! What a data directory must hold before it is used: format version, incarnation, and the mark of a clean stop.
//!
//! Invariant: no etag ever means two things. After an unclean stop the counter goes on [`UNSYNCED_ETAGS_MAX`] above the
//! highest etag found (or above what was reserved), because that many may have been seen by readers and lost.
//!
//! Next on the walk: `commit`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rocksdb::WriteBatch;

use super::StoreError;
use super::codec::{self, Decode, TotalsRecord};
use super::engine::Engine;
use super::keyspace::{self, FORMAT_VERSION, Family, KeyRange};
use super::meta;
use super::scan::{Direction, Scan};

/// Etags that may have been published and not yet synced.
pub(super) const UNSYNCED_ETAGS_MAX: u64 = 65_536;

/// What the directory says about itself.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) incarnation: String,
    pub(super) totals: TotalsRecord,
}

/// Checks the format, makes a new database where the directory is empty, takes the mark of a clean stop away and moves the
/// etag counter on where there was none.
pub(super) fn begin(engine: &Engine, path: &Path) -> Result<Identity, StoreError> {
    match read::<u32>(engine, meta::FORMAT)? {
        None => create(engine, path),
        Some(FORMAT_VERSION) => resume(engine),
        Some(version) => Err(unknown_version(path, version)),
    }
}

/// Checks that a directory holds a database of this format.
pub(super) fn check(engine: &Engine, path: &Path) -> Result<(), StoreError> {
    match read::<u32>(engine, meta::FORMAT)? {
        Some(FORMAT_VERSION) => Ok(()),
        Some(version) => Err(unknown_version(path, version)),
        None => Err(StoreError::Format {
            path: path.display().to_string(),
            detail: "no format version is written in it, so it is no database of Treepie".to_owned(),
        }),
    }
}

fn unknown_version(path: &Path, version: u32) -> StoreError {
    StoreError::Format {
        path: path.display().to_string(),
        detail: format!(
            "it has format version {version}, and this version of Treepie reads version {FORMAT_VERSION}; \
             open it with the version that wrote it"
        ),
    }
}

/// Marks the stop as clean, durably. Nothing may be written after it.
pub(super) fn end(engine: &Engine) -> Result<(), StoreError> {
    let mut batch = WriteBatch::default();
    batch.put_cf(engine.family(Family::Meta)?, meta::CLEAN, []);
    engine.write(batch)?;
    engine.sync()
}

/// Reads and decodes a row of `meta`.
pub(super) fn read<T: Decode<()>>(engine: &Engine, name: &str) -> Result<Option<T>, StoreError> {
    match engine.get(Family::Meta, name.as_bytes())? {
        None => Ok(None),
        Some(bytes) => {
            codec::decode(&bytes).map(Some).map_err(|error| StoreError::corrupt(Family::Meta, name.as_bytes(), error))
        }
    }
}

fn create(engine: &Engine, path: &Path) -> Result<Identity, StoreError> {
    for family in Family::ALL {
        if Scan::new(engine, None, family, KeyRange::all(), Direction::Forward).next_row()?.is_some() {
            return Err(StoreError::Format {
                path: path.display().to_string(),
                detail: format!(
                    "its family '{}' has rows, but no format version is written; restore it from a backup",
                    family.name()
                ),
            });
        }
    }
    let incarnation = new_incarnation()?;
    let family = engine.family(Family::Meta)?;
    let mut batch = WriteBatch::default();
    batch.put_cf(family, meta::FORMAT, codec::encode(&FORMAT_VERSION));
    batch.put_cf(family, meta::INCARNATION, codec::encode(&incarnation));
    engine.write(batch)?;
    engine.sync()?;
    Ok(Identity { incarnation, totals: TotalsRecord::default() })
}

/// Makes an incarnation: 22 characters of random base64.
pub(super) fn new_incarnation() -> Result<String, StoreError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| StoreError::System {
        action: "taking random bytes for the incarnation".to_owned(),
        source: error
            .raw_os_error()
            .map_or_else(|| std::io::Error::other(error.to_string()), std::io::Error::from_raw_os_error),
    })?;
    Ok(STANDARD_NO_PAD.encode(random))
}

fn resume(engine: &Engine) -> Result<Identity, StoreError> {
    let incarnation = read::<String>(engine, meta::INCARNATION)?
        .ok_or_else(|| StoreError::corrupt(Family::Meta, meta::INCARNATION.as_bytes(), "it is missing"))?;
    let mut totals = read::<TotalsRecord>(engine, meta::TOTALS)?.unwrap_or_default();
    let family = engine.family(Family::Meta)?;
    let mut batch = WriteBatch::default();
    if engine.get(Family::Meta, meta::CLEAN.as_bytes())?.is_none() {
        let found = totals.last_etag.max(last_change(engine)?);
        let reserved = read::<u64>(engine, meta::RESERVED)?.unwrap_or(0);
        totals.last_etag = found.saturating_add(UNSYNCED_ETAGS_MAX).max(reserved);
        batch.put_cf(family, meta::TOTALS, codec::encode(&totals));
    }
    batch.delete_cf(family, meta::CLEAN);
    engine.write(batch)?;
    engine.sync()?;
    Ok(Identity { incarnation, totals })
}

/// The highest etag of the feed.
pub(super) fn last_change(engine: &Engine) -> Result<u64, StoreError> {
    let mut scan = Scan::new(engine, None, Family::Changes, KeyRange::all(), Direction::Backward);
    match scan.next_row()? {
        None => Ok(0),
        Some((key, _)) => {
            keyspace::decode_change(key).ok_or_else(|| StoreError::corrupt(Family::Changes, key, "the key is no etag"))
        }
    }
}
