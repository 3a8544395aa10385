//! Commits that may have to be tried again: numbers of identities can turn out to be taken, and a patched document can change
//! between its reading and the commit.
//!
//! A commit is made from what was read, with the expectation that it still is so; the committer refuses it whole where it is
//! not, and it is made anew. Numbers whose ids are free are kept from one try to the next, so that each try has fewer to find.
//!
//! Next on the walk: `store::commit`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hasher;

use parking_lot::{Mutex, MutexGuard};
use siphasher::sip::SipHasher24;

use super::requests::{Outcome, Requests};
use super::{Database, DatabaseError};
use crate::id::DocumentId;
use crate::id::identity::free_number;
use crate::store::commit::{Committed, Expected};
use crate::store::document::Document;
use crate::store::{Store, StoreError};

/// How often a commit is made anew.
const TRIES_MAX: usize = 64;
/// How often an identity is asked for a number that is free. Each time the numbers rise above a taken one.
const NUMBERS_MAX: usize = 1_024;
/// Callers of one process who patch one document wait in one of these lines, instead of colliding in the committer.
const LINES: usize = 64;

/// Where those who patch wait for each other.
#[derive(Debug)]
pub(super) struct Lines([Mutex<()>; LINES]);

/// What a write did, and what its patches made.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) committed: Committed,
    /// The patched documents, by operation; patches that only test made none.
    pub(crate) patched: HashMap<usize, Document>,
}

impl Default for Lines {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Lines {
    /// Takes the turns for some documents. In the order of the lines, so that no two callers wait for each other.
    fn take(&self, documents: &BTreeSet<String>) -> Vec<MutexGuard<'_, ()>> {
        let line = |id: &String| {
            let mut hasher = SipHasher24::new();
            hasher.write(id.as_bytes());
            usize::try_from(hasher.finish() % LINES as u64).unwrap_or(0)
        };
        let lines: BTreeSet<usize> = documents.iter().map(line).collect();
        lines.into_iter().filter_map(|line| self.0.get(line).map(Mutex::lock)).collect()
    }
}

impl Database {
    /// Takes numbers, applies patches and commits, until nothing has changed in between.
    pub(super) fn attempt(&self, requests: &Requests) -> Result<Done, DatabaseError> {
        let _turns = self.lines.take(&requests.patched);
        let named = requests.named();
        let mut numbers: Vec<Option<u64>> = vec![None; requests.identities.len()];
        let mut changing = String::new();
        for _ in 0..TRIES_MAX {
            for ((operation, name), number) in requests.identities.iter().zip(&mut numbers) {
                if number.is_none() {
                    let found = next_free(&self.store, requests, name, &named)?;
                    *number = Some(found.ok_or_else(|| no_number(*operation, &name.key()))?);
                }
            }
            let taken: Vec<u64> = numbers.iter().flatten().copied().collect();
            let outcomes = requests.patch(&self.store.snapshot())?;
            match self.store.commit(requests.clone().into_commit(&taken, outcomes.clone())?) {
                Err(StoreError::Taken { operation, id }) => {
                    let at = requests.identities.iter().position(|(at, _)| *at == operation);
                    if let Some(number) = at.and_then(|at| numbers.get_mut(at)) {
                        *number = None;
                    }
                    changing = id;
                }
                Err(StoreError::Concurrency { id, expected, .. }) if is_assumed(&outcomes, &expected) => changing = id,
                result => {
                    let made = outcomes.into_iter().filter_map(|(at, outcome)| Some((at, outcome.document?)));
                    return Ok(Done { committed: result?, patched: made.collect() });
                }
            }
        }
        let changing = crate::id::cut(&changing);
        Err(StoreError::Busy(format!("'{changing}' changes too fast for this write; send it again")).into())
    }
}

/// Takes the identity's next number whose id is free, in the database and among the ids that the writes name. `None`: there
/// is none.
fn next_free(
    store: &Store,
    requests: &Requests,
    name: &crate::id::IdentityName,
    named: &HashSet<&str>,
) -> Result<Option<u64>, DatabaseError> {
    let snapshot = store.snapshot();
    let is_taken = |number: u64| -> Result<bool, StoreError> {
        let id: DocumentId = name.finish(number, &requests.rules)?;
        Ok(named.contains(id.lower()) || snapshot.exists(&id)?)
    };
    let mut above = 0;
    for _ in 0..NUMBERS_MAX {
        let Some(number) = store.next_identities(name, above, 1)?.pop() else { return Ok(None) };
        if !is_taken(number)? {
            return Ok(Some(number));
        }
        match free_number(number, is_taken)? {
            Some(free) => above = free - 1,
            None => return Ok(None),
        }
    }
    Err(StoreError::Busy(format!("the numbers of '{}' are taken as fast as they are given out", name.key())).into())
}

/// Whether a version that was expected is one that a patch was made from, not one that the caller asked for.
fn is_assumed(outcomes: &HashMap<usize, Outcome>, expected: &str) -> bool {
    outcomes.values().any(|outcome| matches!(&outcome.base, Expected::ChangeVector(base) if base == expected))
}

fn no_number(operation: usize, key: &str) -> DatabaseError {
    let reason = format!("identity '{key}' has no free number left; use another name");
    DatabaseError::Write { operation, reason }
}
