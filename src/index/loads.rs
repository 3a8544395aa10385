//! Documents that a map loads: where they are read, which rows remember them, and who is mapped again when one changes.
//!
//! A loaded collection has a feed and a watermark of its own, also where it is a source as well. Whoever loads a document reads it
//! from the run's snapshot; what is written later has a higher etag than that feed's watermark and comes by again.
//!
//! Next on the walk: `run`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::context::Context;
use super::records::{RemapRecord, decode, remap_name};
use crate::id::DocumentId;
use crate::script::{LoadedDocument, Loader, Runner};
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, Generation, KeyRange, decode_load, load, load_prefix};
use crate::store::scan::{Direction, Scan};
use crate::store::snapshot::{SharedSnapshot, Snapshot};

/// Reads the documents that scripts load from one snapshot.
#[derive(Debug)]
pub(crate) struct DocumentLoader {
    snapshot: SharedSnapshot,
    failure: RefCell<Option<StoreError>>,
}

impl DocumentLoader {
    /// Lets a runner load from a snapshot, which it holds until it is told to load from somewhere else, or nowhere.
    pub(crate) fn lend(snapshot: &SharedSnapshot, runner: &Runner) -> Rc<Self> {
        let loader = Rc::new(Self { snapshot: snapshot.clone(), failure: RefCell::default() });
        runner.load_from(Some(Rc::clone(&loader) as Rc<dyn Loader>));
        loader
    }

    /// Whether all reads since the last check went well.
    ///
    /// # Errors
    /// The one that failed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl Loader for DocumentLoader {
    fn load(&self, id: &DocumentId) -> Result<Option<LoadedDocument>, String> {
        match self.snapshot.get().get(id) {
            Ok(found) => Ok(found.map(|document| LoadedDocument {
                id: document.id,
                collection: document.collection,
                metadata: document.metadata,
                body: document.body,
            })),
            Err(error) => {
                let reason = error.to_string();
                self.failure.replace(Some(error));
                Err(reason)
            }
        }
    }
}

/// The changes of the `loads` rows of one document; both lists are sorted.
pub(crate) fn compare_loads(
    generation: Generation,
    lower_id: &str,
    before: &[String],
    now: &[String],
) -> Vec<RowChange> {
    if before == now {
        return Vec::new();
    }
    let (old, new): (BTreeSet<&String>, BTreeSet<&String>) = (before.iter().collect(), now.iter().collect());
    let (family, key) = (Family::Loads, |loaded: &str| load(generation, loaded, lower_id));
    let gone = old.difference(&new).map(|loaded| RowChange::Delete { family, key: key(loaded) });
    let come = new.difference(&old).map(|loaded| RowChange::Put { family, key: key(loaded), value: Vec::new() });
    gone.chain(come).collect()
}

/// The documents that have loaded one, in order of their lower-cased ids.
pub(crate) struct Dependents<'s> {
    prefix: Vec<u8>,
    rows: Scan<'s>,
}

impl<'s> Dependents<'s> {
    /// Those after `after`, exclusive.
    pub(crate) fn of(snapshot: &Snapshot<'s>, generation: Generation, lower_loaded: &str, after: Option<&str>) -> Self {
        let prefix = load_prefix(generation, lower_loaded);
        let mut range = KeyRange::prefix(&prefix);
        if let Some(after) = after {
            // Nothing stands between a key and the same with a zero behind it.
            range.from = [load(generation, lower_loaded, after).as_slice(), &[0]].concat();
        }
        Self { prefix, rows: snapshot.rows(Family::Loads, range, Direction::Forward) }
    }

    /// The next one's lower-cased id.
    pub(crate) fn next(&mut self) -> Result<Option<String>, StoreError> {
        while let Some((key, _)) = self.rows.next_row()? {
            if let Some(id) = decode_load(key, &self.prefix) {
                return Ok(Some(id.to_owned()));
            }
        }
        Ok(None)
    }
}

/// The re-mapping that an earlier run has left unfinished.
pub(crate) fn unfinished(context: &Context, snapshot: &Snapshot<'_>) -> Result<Option<RemapRecord>, StoreError> {
    if context.program.loads.is_empty() {
        return Ok(None);
    }
    let row = snapshot.row(Family::Meta, remap_name(context.generation).as_bytes())?;
    row.map(|bytes| decode("meta", &bytes)).transpose()
}
