//! The artificial documents of an index, side by side with its groups.
//!
//! Next on the walk: `strays`.

use super::super::context::same_name;
use super::super::reference;
use super::documents::cut;
use super::{DifferenceKind, Verification, VerifyError};
use crate::id::DocumentId;
use crate::id::artificial::artificial_parts;
use crate::store::StoreError;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::commit::{Expected, Operation, PutId};
use crate::store::document::StoredDocument;
use crate::store::keyspace::GroupHash;
use crate::store::scan::Direction;
use crate::store::snapshot::{IdRange, Snapshot};

/// The documents that stand under ids of an output collection, in the order of ids, which is that of their hashes.
pub(super) struct Outputs<'s> {
    snapshot: Snapshot<'s>,
    output: Option<String>,
    next: Option<(GroupHash, StoredDocument)>,
    /// Artificial documents of the collection that were passed.
    pub(super) passed: u64,
}

impl<'s> Outputs<'s> {
    pub(super) fn new(snapshot: Snapshot<'s>, output: Option<&str>) -> Result<Self, StoreError> {
        let mut outputs = Self { snapshot, output: output.map(crate::id::lower), next: None, passed: 0 };
        outputs.advance(None)?;
        Ok(outputs)
    }

    /// The group of the next document.
    pub(super) fn group(&self) -> Option<GroupHash> {
        self.next.as_ref().map(|(hash, _)| *hash)
    }

    /// The document under a group's id, where there is one.
    pub(super) fn take(&mut self, group: &GroupHash) -> Result<Option<StoredDocument>, StoreError> {
        if self.group() != Some(*group) {
            return Ok(None);
        }
        let taken = self.next.take().map(|(_, document)| document);
        self.advance(taken.as_ref().map(|document| document.id.clone()))?;
        if let (Some(document), Some(output)) = (&taken, &self.output) {
            self.passed += u64::from(same_name(&document.collection, output));
        }
        Ok(taken)
    }

    fn advance(&mut self, after: Option<String>) -> Result<(), StoreError> {
        let Some(output) = &self.output else { return Ok(()) };
        let range = IdRange { prefix: format!("{output}/"), after, direction: Direction::Forward };
        for document in self.snapshot.documents(&range) {
            let document = document?;
            let lower = crate::id::lower(&document.id);
            if let Some((_, hash)) = artificial_parts(&lower).filter(|(collection, _)| *collection == output.as_str()) {
                self.next = Some((hash, document));
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Verification<'_, '_> {
    /// Finds documents in the output collection whose ids are no artificial document's.
    pub(super) fn odd_outputs(&mut self, outputs: &Outputs<'_>) -> Result<(), VerifyError> {
        let Some(output) = self.context.output.clone() else { return Ok(()) };
        let snapshot = self.snapshot;
        if snapshot.collection(&output)?.map_or(0, |count| count.documents) == outputs.passed {
            return Ok(());
        }
        let feed = Feed::Collection(output.clone());
        let through = snapshot.progress().written;
        for change in snapshot.changes(&feed, 0, through, Direction::Forward) {
            let change = change?;
            let lower = crate::id::lower(&change.id);
            let is_artificial = artificial_parts(&lower).is_some_and(|(collection, _)| same_name(collection, &output));
            if change.kind == ChangeKind::Put && !is_artificial {
                let id = DocumentId::stored(&change.id);
                let present = snapshot.get(&id)?;
                let operation = Operation::Delete { id, expected: Expected::Any };
                self.output_differs(operation, present.as_ref(), "its id is that of no group")?;
            }
            self.report.beat()?;
        }
        Ok(())
    }
}

impl Verification<'_, '_> {
    /// Compares the reference documents with the rows that say which group each lists; not while some are still to be written.
    pub(super) fn reference_documents(&mut self) -> Result<(), VerifyError> {
        if self.context.reference.is_none() || reference::is_open(&self.context, self.snapshot)? {
            return Ok(());
        }
        let (context, snapshot) = (self.context.clone(), self.snapshot);
        reference::differences(&context, snapshot, &mut |operations| {
            for operation in operations {
                let present = match &operation {
                    Operation::Put { id: PutId::Given(id) | PutId::MustBeNew(id), .. }
                    | Operation::Delete { id, .. }
                    | Operation::Check { id, .. } => snapshot.get(id)?,
                    Operation::Put { .. } => None,
                };
                self.output_differs(operation, present.as_ref(), "no result belongs to it")?;
            }
            self.report.beat()
        })
    }
}

/// What a write that would mend a document says about it: kind, id, detail.
pub(super) fn told(
    operation: &Operation,
    present: Option<&StoredDocument>,
    why_none: &str,
) -> (DifferenceKind, String, String) {
    let is = present.map_or_else(|| "not there".to_owned(), |present| cut(&present.body));
    match operation {
        Operation::Put { id, document, .. } => {
            let kind = if present.is_some() { DifferenceKind::Changed } else { DifferenceKind::Missing };
            (kind, name(id), format!("should be {}, is {is}", cut(&document.body)))
        }
        Operation::Delete { id, .. } => {
            (DifferenceKind::Foreign, id.as_str().to_owned(), format!("should not be there: {why_none}; is {is}"))
        }
        Operation::Check { id, .. } => {
            (DifferenceKind::Changed, id.as_str().to_owned(), format!("should be another version; is {is}"))
        }
    }
}

fn name(id: &PutId) -> String {
    match id {
        PutId::Given(id) | PutId::MustBeNew(id) => id.as_str().to_owned(),
        PutId::ServerSide(prefix) => prefix.clone(),
    }
}

/// The same write, for the version that was compared only: the index may have written a newer one.
pub(super) fn guarded(operation: Operation, present: Option<&StoredDocument>) -> Operation {
    let version = present.map_or(Expected::New, |present| Expected::ChangeVector(present.change_vector.clone()));
    match operation {
        Operation::Put { id, document, flags, .. } => Operation::Put { id, document, flags, expected: version },
        Operation::Delete { id, .. } => Operation::Delete { id, expected: version },
        Operation::Check { id, .. } => Operation::Check { id, expected: version },
    }
}
