//! A slice at a swap: groups and documents, both in the order of their hashes, are walked side by side, and only what differs is
//! written. Documents without a group go; foreign ones stay, and their group gets a fault.
//!
//! Nothing maps meanwhile, so a slice done twice, after a crash, comes out the same. Memory: one group and one document.
//!
//! Next on the walk: `worker`.

use super::super::group::plan_output;
use super::super::records::{GroupRecord, decode};
use super::super::rows::{GenerationRows, GroupRows};
use super::super::settle::settle;
use super::BuildError;
use super::sweep::{Sweep, group_of, interruption};
use crate::store::StoreError;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, KeyRange, decode_group};
use crate::store::scan::Direction;
use crate::store::snapshot::{IdRange, Snapshot};

impl Sweep<'_> {
    /// Makes the documents of a slice equal to the results of its groups.
    pub(super) fn merge(&mut self, slice: u32) -> Result<(), BuildError> {
        let store = self.context.store.clone();
        let snapshot = store.snapshot();
        let Some(output) = self.context.output.clone() else {
            self.part.is_last = true;
            return Ok(());
        };
        let rows = GenerationRows::open(&snapshot, self.context.generation)?;
        let range = IdRange { prefix: format!("{output}/{slice:02x}"), ..IdRange::default() };
        let mut present = Present::new(&output, snapshot.documents(&range));
        let prefix = [self.context.generation.0.to_be_bytes().as_slice(), &slice.to_be_bytes()[3..]].concat();
        let mut groups = snapshot.rows(Family::ReduceGroups, KeyRange::prefix(&prefix), Direction::Forward);
        while let Some((key, value)) = groups.next_row()? {
            let Some(hash) = decode_group(key) else { continue };
            let record: GroupRecord = decode("reduce_groups", value)?;
            while let Some((orphan, document)) = present.next_before(Some(&hash))? {
                self.remove(&orphan, &document)?;
            }
            let document = present.take(&hash);
            self.settle_group(&snapshot, &rows, hash, &record, document.as_ref())?;
        }
        while let Some((orphan, document)) = present.next_before(None)? {
            self.remove(&orphan, &document)?;
        }
        self.part.is_last = true;
        Ok(())
    }

    fn settle_group(
        &mut self,
        snapshot: &Snapshot<'_>,
        rows: &GenerationRows<'_>,
        group: GroupHash,
        record: &GroupRecord,
        present: Option<&StoredDocument>,
    ) -> Result<(), BuildError> {
        let gives_up = self.given_up.contains(&format!("{group:?}"));
        let rows = GroupRows { rows, group, counters: &self.context.counters };
        let settled = settle(self.context, snapshot, self.runner, &rows, record, present, gives_up)
            .map_err(|error| interruption(&group, error))?;
        self.part.operations.extend(settled.operation);
        self.part.rows.extend(settled.rows);
        self.part.faults.extend(settled.fault);
        self.part.blocked.extend(settled.is_blocked.then_some(group));
        self.part.reduce_attempts += settled.attempts;
        self.part.reduce_faults += settled.faults;
        self.send_when_full()
    }

    /// A document whose group does not exist goes, unless it is a foreign one.
    fn remove(&mut self, group: &GroupHash, document: &StoredDocument) -> Result<(), BuildError> {
        if let Ok(operation) = plan_output(self.context, group, Some(document), None) {
            self.part.operations.extend(operation);
        }
        self.send_when_full()
    }
}

/// The documents under ids of a slice, in the order of their hashes, one looked at ahead.
struct Present<'o, I> {
    output: &'o str,
    documents: I,
    next: Option<(GroupHash, StoredDocument)>,
}

impl<'o, I: Iterator<Item = Result<StoredDocument, StoreError>>> Present<'o, I> {
    fn new(output: &'o str, documents: I) -> Self {
        Self { output, documents, next: None }
    }

    /// The next document before a group (all that are left, without one).
    fn next_before(&mut self, before: Option<&GroupHash>) -> Result<Option<(GroupHash, StoredDocument)>, StoreError> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        let is_before = |(hash, _): &mut (GroupHash, StoredDocument)| before.is_none_or(|before| *hash < *before);
        Ok(self.next.take_if(is_before))
    }

    /// The document of a group, after all before it have been taken.
    fn take(&mut self, group: &GroupHash) -> Option<StoredDocument> {
        self.next.take_if(|(hash, _)| hash == group).map(|(_, document)| document)
    }

    fn read(&mut self) -> Result<Option<(GroupHash, StoredDocument)>, StoreError> {
        let lower_output = crate::id::lower(self.output);
        for document in self.documents.by_ref() {
            let document = document?;
            if let Some(hash) = group_of(&crate::id::lower(&document.id), &lower_output) {
                return Ok(Some((hash, document)));
            }
        }
        Ok(None)
    }
}
