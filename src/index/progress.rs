//! How far an index has come, beyond its status: done and to do, what failed last, whether it is stuck.

use super::live::Index;
use super::pulse::Stuck;
use super::records::PhaseRecord;
use super::status::{FaultRecord, IndexState, IndexStatus};
use crate::store::StoreError;
use crate::store::snapshot::Snapshot;

/// How far an index has come.
#[derive(Clone, Debug)]
pub struct IndexProgress {
    /// How it is doing.
    pub status: IndexStatus,
    /// For each source of the status, the changes it has in all: documents and tombstones.
    pub totals: Vec<u64>,
    /// Which part of its groups a first build has reduced, from 0 to 1; `None` while it maps, and afterwards.
    pub reduced: Option<f64>,
    /// What failed last and has not been mended.
    pub last_fault: Option<FaultRecord>,
    /// Why it does not move though it should.
    pub stuck: Option<Stuck>,
}

impl IndexProgress {
    /// Changes that are still to be taken in.
    #[must_use]
    pub fn to_do(&self) -> u64 {
        self.status.sources.iter().map(|source| source.lag).fold(0, u64::saturating_add)
    }

    /// Changes that are taken in.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.totals.iter().copied().fold(0, u64::saturating_add).saturating_sub(self.to_do())
    }
}

/// Slices of the hash space in which a first build reduces.
const SLICES: f64 = super::first_build::SLICES as f64;

/// Looks at one index of that status; at `None`, whose stored script is refused, there is little to see.
pub(crate) fn progress(
    index: Option<&Index>,
    status: IndexStatus,
    snapshot: &Snapshot<'_>,
) -> Result<IndexProgress, StoreError> {
    let mut totals = Vec::with_capacity(status.sources.len());
    for source in &status.sources {
        totals.push(match &source.collection {
            Some(name) => snapshot.collection(name)?.map_or(0, |count| count.documents + count.tombstones),
            None => snapshot.count().map(|count| count.documents + count.tombstones)?,
        });
    }
    let reduced = match index.map(Index::phase) {
        Some(PhaseRecord::Sweeping { slice }) => Some(f64::from(slice) / SLICES),
        _ => None,
    };
    let stuck = match (status.state, index) {
        (IndexState::Normal, Some(index)) if status.stale => index.context.counters.pulse.stuck(),
        (IndexState::Error, _) => Some(Stuck {
            reason: match index {
                Some(_) => {
                    "too many of its calls failed; put a corrected script, or let it go on with resume".to_owned()
                }
                None => "its stored script is refused by this version; put a corrected one".to_owned(),
            },
            since_micros: status.last_run_micros.unwrap_or_default(),
        }),
        _ => None,
    };
    let last_fault = index.and_then(|index| index.fault_records().pop());
    Ok(IndexProgress { status, totals, reduced, last_fault, stuck })
}
