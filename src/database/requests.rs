//! Reads the ids that a user's writes ask for, and makes one commit of them.
//!
//! Next on the walk: `store::commit`.

use std::sync::Arc;

use super::{DatabaseError, Write};
use crate::id::{DocumentId, IdRequest, IdRules, IdentityName};
use crate::store::commit::{Commit, Expected, Operation, PutId};
use crate::store::document::DocumentFlags;
use crate::store::{Store, StoreError};

/// A user's writes with their ids read.
#[derive(Clone)]
pub(super) struct Requests {
    writes: Vec<(Write, Option<IdRequest>)>,
    /// By which the ids were read, and are finished.
    pub(super) rules: Arc<IdRules>,
    /// Operations whose id is an identity.
    pub(super) identities: Vec<(usize, IdentityName)>,
}

impl Requests {
    pub(super) fn read(store: &Store, writes: Vec<Write>) -> Result<Self, DatabaseError> {
        let rules = store.id_rules();
        let mut requests =
            Self { writes: Vec::with_capacity(writes.len()), rules: Arc::clone(&rules), identities: Vec::new() };
        for (operation, write) in writes.into_iter().enumerate() {
            let refused = |reason: String| DatabaseError::Write { operation, reason };
            let request = match &write {
                Write::Put { id, expected, .. } => {
                    let request =
                        IdRequest::parse(id.as_deref(), &rules).map_err(|error| refused(error.to_string()))?;
                    if let IdRequest::Identity(name) = &request {
                        if matches!(expected, Expected::ChangeVector(_)) {
                            return Err(refused(format!(
                                "'{}' asks for a new number, so no change vector can be expected; leave it out",
                                id.as_deref().unwrap_or_default()
                            )));
                        }
                        requests.identities.push((operation, name.clone()));
                    }
                    Some(request)
                }
                Write::Delete { .. } => None,
            };
            requests.writes.push((write, request));
        }
        Ok(requests)
    }

    /// The commit, with `numbers` for the identities.
    pub(super) fn into_commit(self, numbers: &[u64]) -> Result<Commit, DatabaseError> {
        let mut numbers = numbers.iter();
        let mut operations = Vec::with_capacity(self.writes.len());
        for (write, request) in self.writes {
            operations.push(match (write, request) {
                (Write::Put { document, expected, .. }, Some(request)) => {
                    let id = match request {
                        IdRequest::Given(id) => PutId::Given(id),
                        IdRequest::ServerSide(prefix) => PutId::ServerSide(prefix),
                        IdRequest::Identity(name) => {
                            let number = numbers.next().copied().unwrap_or_default();
                            PutId::MustBeNew(name.finish(number, &self.rules).map_err(StoreError::from)?)
                        }
                    };
                    Operation::Put { id, document, flags: DocumentFlags::default(), expected }
                }
                (Write::Delete { id, expected }, _) => {
                    let id = DocumentId::existing(&id).map_err(StoreError::from)?;
                    Operation::Delete { id, expected }
                }
                (Write::Put { .. }, None) => continue,
            });
        }
        Ok(Commit { operations, ..Commit::default() })
    }
}
