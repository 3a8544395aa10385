//! Reads what a user's writes ask for, and makes one commit of them.
//!
//! Next on the walk: `attempts`, where a commit needs more than the writes say; else `store::commit`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{DatabaseError, JsonPatch, Write};
use crate::id::{DocumentId, IdRequest, IdRules, IdentityName, lower};
use crate::store::commit::{Commit, Expected, Operation, PutId};
use crate::store::document::{Document, DocumentFlags};
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// A user's writes with their ids read.
#[derive(Clone)]
pub(super) struct Requests {
    asked: Vec<Asked>,
    /// By which the ids were read, and are finished.
    pub(super) rules: Arc<IdRules>,
    /// Operations whose id is an identity.
    pub(super) identities: Vec<(usize, IdentityName)>,
    /// The documents that are patched, lower-cased.
    pub(super) patched: BTreeSet<String>,
}

/// One write with its id read.
#[derive(Clone)]
enum Asked {
    Put { id: IdRequest, document: Document, expected: Expected },
    Delete { id: DocumentId, expected: Expected },
    Patch { id: DocumentId, patch: JsonPatch, expected: Expected },
    Check { id: DocumentId, expected: Expected },
}

/// What a patch comes to, on the documents as they are at a moment.
#[derive(Clone)]
pub(super) struct Outcome {
    /// The document, in its present spelling.
    id: DocumentId,
    /// What is to be written; `None` where the patch only tests.
    pub(super) document: Option<Document>,
    /// The version it was made from; anything, where a write before it in the same batch made that.
    pub(super) base: Expected,
}

impl Requests {
    pub(super) fn read(store: &Store, writes: Vec<Write>) -> Result<Self, DatabaseError> {
        let rules = store.id_rules();
        let mut asked = Vec::with_capacity(writes.len());
        let (mut identities, mut patched) = (Vec::new(), BTreeSet::new());
        for (operation, write) in writes.into_iter().enumerate() {
            let refused = |reason: String| DatabaseError::Write { operation, reason };
            let existing = |id: &str| DocumentId::existing(id).map_err(|error| refused(error.to_string()));
            asked.push(match write {
                Write::Put { id, document, expected } => {
                    let request =
                        IdRequest::parse(id.as_deref(), &rules).map_err(|error| refused(error.to_string()))?;
                    if let IdRequest::Identity(name) = &request {
                        if matches!(expected, Expected::ChangeVector(_)) {
                            return Err(refused(format!(
                                "'{}' asks for a new number, so no change vector can be expected; leave it out",
                                id.as_deref().unwrap_or_default()
                            )));
                        }
                        identities.push((operation, name.clone()));
                    }
                    Asked::Put { id: request, document, expected }
                }
                Write::Delete { id, expected } => Asked::Delete { id: existing(&id)?, expected },
                Write::Patch { id, patch, expected } => {
                    patched.insert(lower(&id));
                    Asked::Patch { id: existing(&id)?, patch, expected }
                }
                Write::Check { id, expected } => Asked::Check { id: existing(&id)?, expected },
            });
        }
        Ok(Self { asked, rules, identities, patched })
    }

    /// Whether the writes are the commit, as they stand.
    pub(super) fn are_plain(&self) -> bool {
        self.identities.is_empty() && self.patched.is_empty()
    }

    /// The ids that the writes name themselves, lower-cased: an identity must not become one of them.
    pub(super) fn named(&self) -> HashSet<&str> {
        let named = self.asked.iter().map(|asked| match asked {
            Asked::Put { id: IdRequest::Given(id), .. }
            | Asked::Delete { id, .. }
            | Asked::Patch { id, .. }
            | Asked::Check { id, .. } => Some(id.lower()),
            Asked::Put { .. } => None,
        });
        named.flatten().collect()
    }

    /// Applies the patches, in order: each to its document as the snapshot has it, or as the writes before it leave it.
    pub(super) fn patch(&self, snapshot: &Snapshot<'_>) -> Result<HashMap<usize, Outcome>, DatabaseError> {
        let mut outcomes = HashMap::new();
        // What writes of this batch have made of documents that are patched.
        let mut made: HashMap<&str, Option<Document>> = HashMap::new();
        for (operation, asked) in self.asked.iter().enumerate() {
            match asked {
                Asked::Put { id: IdRequest::Given(id), document, .. } if self.patched.contains(id.lower()) => {
                    made.insert(id.lower(), Some(document.clone()));
                }
                Asked::Delete { id, .. } if self.patched.contains(id.lower()) => {
                    made.insert(id.lower(), None);
                }
                Asked::Patch { id, patch, expected } => {
                    let present = match made.get(id.lower()) {
                        Some(made) => made.clone().map(|document| (id.clone(), document, expected.clone())),
                        None => read(snapshot, id, expected)?,
                    };
                    let outcome = apply(operation, id, patch, present)?;
                    if let Some(document) = &outcome.document {
                        made.insert(id.lower(), Some(document.clone()));
                    }
                    outcomes.insert(operation, outcome);
                }
                Asked::Put { .. } | Asked::Delete { .. } | Asked::Check { .. } => {}
            }
        }
        Ok(outcomes)
    }

    /// The commit, with a number for each identity, in order, and the outcome of each patch.
    pub(super) fn into_commit(
        self,
        numbers: &[u64],
        mut outcomes: HashMap<usize, Outcome>,
    ) -> Result<Commit, DatabaseError> {
        let mut numbers = numbers.iter();
        let mut operations = Vec::with_capacity(self.asked.len());
        let flags = DocumentFlags::default();
        for (position, asked) in self.asked.into_iter().enumerate() {
            operations.push(match asked {
                Asked::Put { id, document, expected } => {
                    let id = match id {
                        IdRequest::Given(id) => PutId::Given(id),
                        IdRequest::ServerSide(prefix) => PutId::ServerSide(prefix),
                        IdRequest::Identity(name) => {
                            let number = numbers.next().copied().unwrap_or_default();
                            PutId::MustBeNew(name.finish(number, &self.rules).map_err(StoreError::from)?)
                        }
                    };
                    Operation::Put { id, document, flags, expected }
                }
                Asked::Delete { id, expected } => Operation::Delete { id, expected },
                Asked::Check { id, expected } => Operation::Check { id, expected },
                Asked::Patch { id, expected, .. } => match outcomes.remove(&position) {
                    Some(Outcome { id, document: Some(document), base }) => {
                        Operation::Put { id: PutId::Given(id), document, flags, expected: base }
                    }
                    Some(Outcome { id, document: None, base }) => Operation::Check { id, expected: base },
                    None => Operation::Check { id, expected },
                },
            });
        }
        Ok(Commit { operations, ..Commit::default() })
    }
}

/// Reads a document that is to be patched, and its version; that must be the one the caller expects.
fn read(
    snapshot: &Snapshot<'_>,
    id: &DocumentId,
    expected: &Expected,
) -> Result<Option<(DocumentId, Document, Expected)>, StoreError> {
    let present = snapshot.get(id)?;
    let actual = present.as_ref().map(|present| present.change_vector.clone());
    let wanted = match expected {
        Expected::Any => None,
        Expected::New => actual.is_some().then(String::new),
        Expected::ChangeVector(vector) if Some(vector) == actual.as_ref() => None,
        Expected::ChangeVector(vector) => Some(vector.clone()),
    };
    if let Some(expected) = wanted {
        return Err(StoreError::Concurrency { id: id.as_str().to_owned(), expected, actual });
    }
    Ok(present.map(|present| {
        let id = DocumentId::stored(&present.id);
        let document = Document { collection: present.collection, metadata: present.metadata, body: present.body };
        (id, document, Expected::ChangeVector(present.change_vector))
    }))
}

fn apply(
    operation: usize,
    asked: &DocumentId,
    patch: &JsonPatch,
    present: Option<(DocumentId, Document, Expected)>,
) -> Result<Outcome, DatabaseError> {
    let refused = |reason: String| DatabaseError::Patch { operation, id: crate::id::cut(asked.as_str()), reason };
    let Some((id, document, base)) = present else {
        return Err(refused("there is no such document; put it first".to_owned()));
    };
    let patched = patch.apply(&document).map_err(|error| refused(error.to_string()))?;
    if patched.id.is_some_and(|inner| lower(&inner) != id.lower()) {
        return Err(refused("'@metadata.@id' can't be changed; put the document under another id".to_owned()));
    }
    let document = (!patch.only_tests()).then_some(patched.document);
    Ok(Outcome { id, document, base })
}
