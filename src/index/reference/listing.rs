//! Where one group is listed: its row, the row of the reference document's member, and what changes when the group's result does.

use super::super::context::Context;
use super::super::records::{ReferenceRecord, decode, encode};
use crate::script::Fault;
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, Generation, GroupHash, reference, reference_member, reference_open};
use crate::store::snapshot::Snapshot;

/// Where a group was listed and where it is now. Neither, in an index without reference documents.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    before: Option<ReferenceRecord>,
    now: Option<ReferenceRecord>,
}

/// A group that is listed by another reference document than before, or under another spelling of the same.
#[derive(Debug)]
pub(crate) struct Moved {
    pub group: GroupHash,
    /// The reference's id before.
    pub before: Option<String>,
    /// The reference's id now.
    pub now: Option<String>,
}

impl Moved {
    /// The rows that note its reference documents as still to be written.
    pub(crate) fn open(self, generation: Generation) -> impl Iterator<Item = RowChange> {
        self.before.into_iter().chain(self.now).map(move |id| RowChange::Put {
            family: Family::References,
            key: reference_open(generation, &crate::id::lower(&id)),
            value: Vec::new(),
        })
    }
}

impl Listing {
    /// Compares with what is kept. `body` is the group's artificial document, where it has one.
    pub(crate) fn of(
        context: &Context,
        snapshot: &Snapshot<'_>,
        group: &GroupHash,
        body: Option<&str>,
    ) -> Result<Self, StoreError> {
        if context.reference.is_none() {
            return Ok(Self::default());
        }
        let row = snapshot.row(Family::References, &reference(context.generation, group))?;
        let before = row.map(|bytes| decode("references", &bytes)).transpose()?;
        Ok(Self { before, ..Self::new(context, body) })
    }

    /// The same for a group that a first build meets: nothing is kept of it.
    pub(crate) fn new(context: &Context, body: Option<&str>) -> Self {
        let now = context.reference.as_ref().zip(body).map(|(reference, body)| {
            match reference.pattern.apply(body, &context.store.id_rules()) {
                Ok(id) => ReferenceRecord::Id(id),
                Err(fault) => ReferenceRecord::Fault(fault),
            }
        });
        Self { before: None, now }
    }

    /// Lists the group nowhere: it has no document after all.
    pub(crate) fn withdraw(&mut self) {
        self.now = None;
    }

    /// Why the group is listed nowhere.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        match &self.now {
            Some(ReferenceRecord::Fault(fault)) => Some(fault),
            _ => None,
        }
    }

    /// Whether there was a reason why it was listed nowhere.
    pub(crate) fn had_fault(&self) -> bool {
        matches!(self.before, Some(ReferenceRecord::Fault(_)))
    }

    /// The changes of its rows.
    pub(crate) fn rows(&self, generation: Generation, group: &GroupHash) -> Vec<RowChange> {
        let mut rows = Vec::new();
        if self.before == self.now {
            return rows;
        }
        let (family, key) = (Family::References, reference(generation, group));
        rows.push(match &self.now {
            Some(record) => RowChange::Put { family, key, value: encode(record) },
            None => RowChange::Delete { family, key },
        });
        let member = |id: &str| reference_member(generation, &crate::id::lower(id), group);
        if let Some(ReferenceRecord::Id(id)) = &self.before {
            rows.push(RowChange::Delete { family, key: member(id) });
        }
        if let Some(ReferenceRecord::Id(id)) = &self.now {
            rows.push(RowChange::Put { family, key: member(id), value: id.clone().into_bytes() });
        }
        rows
    }

    /// What this changes for reference documents.
    pub(crate) fn moved(self, group: GroupHash) -> Option<Moved> {
        if self.before == self.now {
            return None;
        }
        let id = |record| match record {
            Some(ReferenceRecord::Id(id)) => Some(id),
            _ => None,
        };
        let (before, now) = (id(self.before), id(self.now));
        (before.is_some() || now.is_some()).then_some(Moved { group, before, now })
    }
}
