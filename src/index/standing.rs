//! How current an index is, with all that it feeds on, for those who query it.

use std::sync::Arc;

use super::live::Index;
use super::records::progress_name;
use super::registry::Registry;
use crate::store::StoreError;
use crate::store::keyspace::Family;
use crate::store::snapshot::Snapshot;

/// How an index stands, for an answer that is made of its results.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Whether it, or an index it feeds on, has not taken in everything that was written.
    pub is_stale: bool,
    /// When it last committed a run, microseconds since 1970.
    pub last_run_micros: Option<i64>,
    /// Changes with each of its commits.
    pub version: Vec<u8>,
}

impl Registry {
    /// How an index stands. `None`: there is none.
    ///
    /// The snapshot is one of its own: an answer read from a later one holds at least what this tells.
    ///
    /// # Errors
    /// A read failed.
    ///
    /// # Cost
    /// Reads at most 2,000 feed rows for each source of an index that lags.
    pub(crate) fn standing(&self, name: &str, snapshot: &Snapshot<'_>) -> Result<Option<Standing>, StoreError> {
        let Some(index) = self.get(name) else { return Ok(None) };
        let chain = self.chain(index);
        let (mut is_stale, mut last_run_micros, mut version) = (false, None, Vec::new());
        for (position, index) in chain.iter().enumerate() {
            let status = index.status(snapshot)?;
            is_stale |= status.stale;
            if position == 0 {
                last_run_micros = status.last_run_micros;
                let row = progress_name(index.context.generation);
                version = snapshot.row(Family::Meta, row.as_bytes())?.unwrap_or_default();
            }
        }
        Ok(Some(Standing { is_stale, last_run_micros, version }))
    }

    /// An index and all that it feeds on, itself first.
    fn chain(&self, index: Arc<Index>) -> Vec<Arc<Index>> {
        let all = self.all();
        let mut chain = vec![index];
        let mut at = 0;
        while let Some(reader) = chain.get(at).cloned() {
            for feeder in &all {
                let output = feeder.context.output.as_deref();
                let feeds = output.is_some_and(|output| reader.context.sources_of(output).next().is_some());
                if feeds && !chain.iter().any(|known| Arc::ptr_eq(known, feeder)) {
                    chain.push(Arc::clone(feeder));
                }
            }
            at += 1;
        }
        chain
    }
}
