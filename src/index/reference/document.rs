//! One reference document: its members, its body, and whether it may stand under its id.
//!
//! Its id is spelled as its first member's result spells it, so that it follows from the results alone.

use std::collections::BTreeMap;

use super::super::context::{Context, same_name};
use super::super::faults::Subject;
use super::super::planned::Run;
use super::Reference;
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::script::encoding::{Nest, write_json, write_name, write_string};
use crate::script::{Fault, Phase};
use crate::store::StoreError;
use crate::store::commit::{Expected, Operation, PutId};
use crate::store::document::{Document, DocumentFlags, StoredDocument};
use crate::store::keyspace::{Family, GroupHash, KeyRange, decode_reference_member, reference_members};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Artificial documents that one reference document lists at most.
const MEMBERS_MAX: usize = 10_000;

/// Hex digits of an artificial document's id after its collection and `/`.
const HASH_DIGITS: usize = 32;

/// What one commit may still take of reference documents.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 2 * 1024 * 1024 }
    }
}

impl Budget {
    /// What reading a member costs, beside the bytes of the body.
    const MEMBER_BYTES: usize = 64;

    /// Whether nothing more may be begun.
    pub(super) fn is_spent(&self) -> bool {
        self.bytes == 0
    }

    fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The groups that a reference document lists, by hash, with the spelling of its id; one more than allowed, at most.
#[derive(Debug, Default)]
pub(super) struct Members {
    spellings: BTreeMap<GroupHash, String>,
}

impl Members {
    /// Reads them as they are after `changes`: groups that are listed now, under a spelling, or no longer (`None`).
    pub(super) fn read(
        context: &Context,
        snapshot: &Snapshot<'_>,
        lower_id: &str,
        changes: &BTreeMap<GroupHash, Option<String>>,
    ) -> Result<Self, StoreError> {
        let now = changes.iter().filter_map(|(group, now)| Some((*group, now.clone()?)));
        let mut members = Self { spellings: now.collect() };
        let range = KeyRange::prefix(&reference_members(context.generation, lower_id));
        let mut rows = snapshot.rows(Family::References, range, Direction::Forward);
        while members.spellings.len() <= MEMBERS_MAX
            && let Some((key, spelling)) = rows.next_row()?
        {
            if let Some((_, group)) = decode_reference_member(key)
                && !changes.contains_key(&group)
            {
                members.add(group, spelling);
            }
        }
        Ok(members)
    }

    /// Adds a member from its row, unless there are too many already.
    pub(super) fn add(&mut self, group: GroupHash, spelling: &[u8]) {
        if self.spellings.len() <= MEMBERS_MAX {
            self.spellings.insert(group, String::from_utf8_lossy(spelling).into_owned());
        }
    }

    fn body(&self, output: &str) -> String {
        let mut encoded = Vec::new();
        let object = Nest::object(&mut encoded);
        write_name("ReduceOutputs", &mut encoded);
        let array = Nest::array(&mut encoded);
        for group in self.spellings.keys() {
            write_string(&artificial_id(output, group), &mut encoded);
        }
        array.end(&mut encoded);
        object.end(&mut encoded);
        let mut body = String::with_capacity(encoded.len() + 64);
        write_json(&encoded, &mut body);
        body
    }
}

/// What is to be done about one reference document.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) operation: Option<Operation>,
    /// The fault to record, or to clear (`None`).
    pub(super) fault: (Subject, Option<Fault>),
}

impl Planned {
    /// Adds it to a run.
    pub(super) fn add_to(self, run: &mut Run) {
        run.reduce_faults += u64::from(self.fault.1.is_some());
        run.operations.extend(self.operation);
        run.faults.push(self.fault);
    }
}

/// Plans the write or the delete of a reference document. A foreign document under its id stays, and is a fault.
pub(super) fn plan(
    context: &Context,
    reference: &Reference,
    snapshot: &Snapshot<'_>,
    lower_id: &str,
    members: &Members,
    budget: &mut Budget,
) -> Result<Planned, StoreError> {
    budget.spend(1 + members.spellings.len() * Budget::MEMBER_BYTES);
    let lower = DocumentId::stored(lower_id);
    let present = snapshot.get(&lower)?;
    let is_own = match &present {
        Some(document) => is_of_index(context, reference, snapshot, document)?,
        None => false,
    };
    let subject = |id: &str| Subject::Reference(id.to_owned());
    let withdraw = || is_own.then(|| delete(lower.clone()));
    let (Some(id), Some(output)) = (members.spellings.values().next(), &context.output) else {
        return Ok(Planned { operation: withdraw(), fault: (subject(lower_id), None) });
    };
    let fault = if members.spellings.len() > MEMBERS_MAX {
        Some(too_many(id))
    } else if let Some(owner) = owner_of_artificial(snapshot, lower_id)? {
        Some(artificial(id, &owner))
    } else {
        present.as_ref().filter(|_| !is_own).map(foreign)
    };
    if fault.is_some() {
        return Ok(Planned { operation: withdraw(), fault: (subject(id), fault) });
    }
    let body = members.body(output);
    budget.spend(body.len());
    let is_same = present.is_some_and(|present| {
        present.body == body && present.id == *id && same_name(&present.collection, &reference.collection)
    });
    let operation = (!is_same).then(|| Operation::Put {
        id: PutId::Given(DocumentId::stored(id)),
        document: Document { collection: reference.collection.clone(), metadata: "{}".to_owned(), body },
        flags: DocumentFlags { artificial: true },
        expected: Expected::Any,
    });
    Ok(Planned { operation, fault: (subject(id), None) })
}

/// The delete of a reference document.
pub(super) fn delete(id: DocumentId) -> Operation {
    Operation::Delete { id, expected: Expected::Any }
}

/// Whether a document is one of this index's: in its reference collection, or in one that it gives up for that.
fn is_of_index(
    context: &Context,
    reference: &Reference,
    snapshot: &Snapshot<'_>,
    document: &StoredDocument,
) -> Result<bool, StoreError> {
    if !document.flags.artificial || same_name(&document.collection, &reference.collection) {
        return Ok(document.flags.artificial);
    }
    Ok(snapshot.claim(&document.collection)?.is_some_and(|claim| claim.owner == context.number))
}

/// The index whose artificial documents have ids of this form.
fn owner_of_artificial(snapshot: &Snapshot<'_>, lower_id: &str) -> Result<Option<String>, StoreError> {
    let Some((collection, hash)) = lower_id.rsplit_once('/') else { return Ok(None) };
    if hash.len() != HASH_DIGITS || !hash.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(None);
    }
    Ok(snapshot.claim(collection)?.map(|claim| claim.owner_name))
}

fn too_many(id: &str) -> Fault {
    let message = format!("the reference document '{id}' would list more than {MEMBERS_MAX} artificial documents");
    fault(message, "put another field of the result into the pattern, so that each reference lists fewer")
}

fn artificial(id: &str, owner: &str) -> Fault {
    let message = format!("the reference id '{id}' has the form of the ids of index '{owner}'s artificial documents");
    fault(message, "write something else in front of the pattern's fields")
}

fn foreign(present: &StoredDocument) -> Fault {
    let StoredDocument { id, collection, .. } = present;
    let message = format!("the reference id '{id}' is taken by a document of collection '{collection}'");
    fault(message, "delete that document, then write any document that this reference is about again")
}

/// A fault of a reference document as a whole.
fn fault(message: String, hint: &str) -> Fault {
    Fault {
        phase: Phase::Reference,
        script: String::new(),
        line: None,
        column: None,
        function: None,
        message,
        hint: Some(hint.to_owned()),
        transient: false,
    }
}
