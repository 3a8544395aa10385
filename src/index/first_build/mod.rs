//! The first build of a generation, in two phases on all cores.
//!
//! `mapping` maps in feed order, in committed chunks, without reducing; new writes simply move to the end of the feed. When the
//! lag is small, `sweep` reduces the groups in hash order, slice by slice, and compares with the artificial documents that stand
//! there already: equal ones stay, vanished groups lose theirs. Then the index is live. Beside a generation that serves the
//! build touches no document; when it has caught up, `merge` compares results with documents, the same way.
//! Both are restartable anywhere and hold no snapshot for long.
//!
//! Next on the walk: `mapping`.

mod mapping;
mod merge;
mod sweep;

pub(crate) use mapping::{MapPool, MappedChunk};
pub(crate) use sweep::{SLICES, SweepPool, SweptPart, Work};

use crate::script::Fault;
use crate::store::StoreError;

/// How many threads build beside the index's own.
pub(crate) fn helpers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// Why a step of a build did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A script was interrupted: to be tried again.
    #[error("{subject} was interrupted: {fault}")]
    Interrupted { subject: String, fault: Box<Fault> },
    /// A thread of the build ended early.
    #[error("a build thread ended early")]
    Thread,
}
