//! The second pass: every group is computed again from its entries, and nodes, result and artificial document are compared.
//!
//! Entries, groups, nodes and artificial documents all stand in the order of the group's hash and are gone through side by side.
//!
//! Next on the walk: `nodes`.

use super::super::blocked;
use super::super::group::{GroupReduce, plan_output, subject};
use super::super::ordered_key::keyed_group;
use super::super::records::{GroupRecord, GroupResult, decode, encode};
use super::super::reference::Listing;
use super::super::tree::{Built, TreeBuilder, TreeError};
use super::documents::cut;
use super::nodes::Nodes;
use super::outputs::Outputs;
use super::rows::Rows;
use super::{DifferenceKind, Report, Verification, VerifyError};
use crate::id::artificial::group_hash;
use crate::store::commit::{Operation, RowChange};
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, generation_range};
use crate::store::scan::Direction;

/// Where the second pass stands.
struct Pass<'s> {
    entries: Rows<'s>,
    groups: Rows<'s>,
    nodes: Rows<'s>,
    outputs: Outputs<'s>,
    keys: u64,
    references: u64,
}

/// What the second pass has counted.
pub(super) struct Counted {
    /// Rows of entries, and of groups.
    pub(super) entries: u64,
    pub(super) groups: u64,
    /// Rows that groups account for and that are there: in key order, and of references.
    pub(super) keys: u64,
    pub(super) references: u64,
}

impl Pass<'_> {
    /// The first group that any of the four still speaks of.
    fn next(&self) -> Option<GroupHash> {
        [self.entries.group(), self.groups.group(), self.nodes.group(), self.outputs.group()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl<'s> Verification<'_, 's> {
    /// Compares every group, and all documents that the index writes.
    pub(super) fn groups(&mut self) -> Result<Counted, VerifyError> {
        let rows = |family| {
            let range = generation_range(self.context.generation);
            Rows::new(self.snapshot.rows(family, range, Direction::Forward))
        };
        let mut pass = Pass {
            entries: rows(Family::MapEntries)?,
            groups: rows(Family::ReduceGroups)?,
            nodes: rows(Family::ReduceNodes)?,
            outputs: Outputs::new(self.snapshot.clone(), self.context.output.as_deref())?,
            keys: 0,
            references: 0,
        };
        while let Some(hash) = pass.next() {
            if pass.entries.of_group(&hash).is_some() {
                self.group(hash, &mut pass)?;
            } else {
                self.without_entries(hash, &mut pass)?;
            }
            self.report.beat()?;
        }
        self.odd_outputs(&pass.outputs)?;
        self.reference_documents()?;
        let Pass { entries, groups, keys, references, .. } = pass;
        Ok(Counted { entries: entries.count, groups: groups.count, keys, references })
    }

    /// A group of which something stands without any entry.
    fn without_entries(&mut self, hash: GroupHash, pass: &mut Pass<'s>) -> Result<(), VerifyError> {
        let why = "the group has no entries";
        for (rows, family) in [(&mut pass.groups, Family::ReduceGroups), (&mut pass.nodes, Family::ReduceNodes)] {
            while rows.of_group(&hash).is_some() {
                self.report.row(DifferenceKind::Foreign, family, format!("group {hash:?}"), why.to_owned())?;
                rows.advance()?;
            }
        }
        let present = pass.outputs.take(&hash)?;
        if let Ok(Some(operation)) = plan_output(&self.context, &hash, present.as_ref(), None) {
            self.output_differs(operation, present.as_ref(), why)?;
        }
        Ok(())
    }

    fn group(&mut self, hash: GroupHash, pass: &mut Pass<'s>) -> Result<(), VerifyError> {
        let stored = pass.groups.of_group(&hash).map(|(_, value)| value.to_vec());
        if stored.is_some() {
            pass.groups.advance()?;
        }
        let present = pass.outputs.take(&hash)?;
        let Some(record) = readable(&mut self.report, &hash, stored.as_deref())? else {
            return skip(&hash, pass);
        };
        self.report.found.groups += 1;
        self.key_row(&hash, &record, pass)?;
        let mut nodes = Nodes::new(self.snapshot, self.context.generation, hash);
        let mut reduce = GroupReduce::new(&mut self.runner, &record.key, &self.context, false);
        let mut builder = TreeBuilder::default();
        let report = &mut self.report;
        let sink = &mut |level: u8, start: &[u8], stored: &[u8]| nodes.compare(report, level, start, stored);
        let mut tried = Ok(());
        while let Some((key, value)) = pass.entries.of_group(&hash) {
            if tried.is_ok() {
                tried = builder.push(key.get(20..).unwrap_or_default(), value, &mut reduce, sink);
            }
            pass.entries.advance()?;
        }
        let built = tried.and_then(|()| builder.finish(&mut reduce, sink));
        let finished = built.and_then(|built| Ok((reduce.finish(built.result.clone())?, built)));
        nodes.end(&mut self.report, finished.as_ref().ok().map(|(_, built)| built.height), &mut pass.nodes)?;
        match finished {
            Ok(((result, body), built)) => {
                if self.comes_back(&hash, &record, present.as_ref())? {
                    self.report.found.waiting += 1;
                    return Ok(());
                }
                let mut listing = Listing::new(&self.context, body.as_deref());
                let result = self.output(&hash, present.as_ref(), result, body, &mut listing)?;
                self.references(&hash, &listing, pass)?;
                self.compare_record(&record, &built, result, stored.as_deref())
            }
            Err(TreeError::Interrupted(_)) => {
                self.report.found.interrupted += 1;
                Ok(())
            }
            Err(TreeError::Store(error)) => Err(error.into()),
            Err(TreeError::Order) => self.report.row(
                DifferenceKind::Unreadable,
                Family::ReduceNodes,
                cut(subject(&record).text()),
                "the tree can't be computed".to_owned(),
            ),
        }
    }

    /// Whether a foreign document has gone from under the group's id, and the index has yet to notice.
    fn comes_back(
        &self,
        hash: &GroupHash,
        record: &GroupRecord,
        present: Option<&StoredDocument>,
    ) -> Result<bool, VerifyError> {
        let is_blocked = matches!(record.result, GroupResult::Fault(_)) && present.is_none();
        Ok(is_blocked && blocked::is_marked(self.snapshot, self.context.generation, hash)?)
    }

    /// Compares the group's artificial document; returns the result that its row should hold.
    fn output(
        &mut self,
        hash: &GroupHash,
        present: Option<&StoredDocument>,
        result: GroupResult,
        body: Option<String>,
        listing: &mut Listing,
    ) -> Result<GroupResult, VerifyError> {
        self.report.found.outputs += u64::from(result == GroupResult::Document);
        match plan_output(&self.context, hash, present, body) {
            Ok(None) => Ok(result),
            Ok(Some(operation)) => {
                self.output_differs(operation, present, "the group has no document")?;
                Ok(result)
            }
            Err(fault) => {
                listing.withdraw();
                Ok(GroupResult::Fault(fault))
            }
        }
    }

    /// The group's row in key order.
    fn key_row(&mut self, hash: &GroupHash, record: &GroupRecord, pass: &mut Pass<'s>) -> Result<(), VerifyError> {
        let key = keyed_group(self.context.generation, &record.key, hash);
        let (kind, detail) = match self.snapshot.row(Family::ReduceKeys, &key)? {
            Some(value) => {
                pass.keys += 1;
                if value.is_empty() {
                    return Ok(());
                }
                (DifferenceKind::Changed, "it should be empty")
            }
            None => (DifferenceKind::Missing, "the group is there, and this row is not"),
        };
        self.report.row(kind, Family::ReduceKeys, cut(subject(record).text()), detail.to_owned())
    }

    /// The rows that say which reference document lists the group.
    fn references(&mut self, hash: &GroupHash, listing: &Listing, pass: &mut Pass<'s>) -> Result<(), VerifyError> {
        for row in listing.rows(self.context.generation, hash) {
            let RowChange::Put { family, key, value } = row else { continue };
            let kind = match self.snapshot.row(family, &key)? {
                None => DifferenceKind::Missing,
                Some(present) => {
                    pass.references += 1;
                    if present == value {
                        continue;
                    }
                    DifferenceKind::Changed
                }
            };
            let detail = "the group's result says where it is listed".to_owned();
            self.report.row(kind, family, format!("group {hash:?}"), detail)?;
        }
        Ok(())
    }

    fn compare_record(
        &mut self,
        record: &GroupRecord,
        built: &Built,
        result: GroupResult,
        stored: Option<&[u8]>,
    ) -> Result<(), VerifyError> {
        let wanted = GroupRecord { key: record.key.clone(), count: built.count, height: built.height, result };
        if Some(encode(&wanted).as_slice()) == stored {
            return Ok(());
        }
        let told = |record: &GroupRecord| {
            format!("{} entries, {} levels, {}", record.count, record.height, told_result(&record.result))
        };
        let detail = format!("should be {}, is {}", told(&wanted), told(record));
        self.report.row(DifferenceKind::Changed, Family::ReduceGroups, cut(subject(record).text()), detail)
    }

    /// The counts that the index keeps must be those of its rows.
    pub(super) fn compare_counts(&mut self, entries: u64, groups: u64) -> Result<(), VerifyError> {
        if (self.progress.entries, self.progress.groups) == (entries, groups) {
            return Ok(());
        }
        let (kept_entries, kept_groups) = (self.progress.entries, self.progress.groups);
        let detail = format!(
            "should be {entries} entries in {groups} groups, which are there, is {kept_entries} in {kept_groups}"
        );
        self.report.row(DifferenceKind::Changed, Family::Meta, "counts".to_owned(), detail)
    }

    /// Tells of an artificial document that differs, and mends it where that is wanted.
    pub(super) fn output_differs(
        &mut self,
        operation: Operation,
        present: Option<&StoredDocument>,
        why_none: &str,
    ) -> Result<(), VerifyError> {
        let (kind, id, detail) = super::outputs::told(&operation, present, why_none);
        self.report.output(kind, id, detail)?;
        if let Some(mend) = &mut self.mend {
            mend(super::outputs::guarded(operation, present))?;
        }
        Ok(())
    }
}

/// The record of a group, where it can be read and is of this group.
fn readable(
    report: &mut Report<'_>,
    hash: &GroupHash,
    stored: Option<&[u8]>,
) -> Result<Option<GroupRecord>, VerifyError> {
    let (kind, detail) = match stored.map(|stored| decode::<GroupRecord>("reduce_groups", stored)) {
        Some(Ok(record)) if group_hash(&record.key) == *hash => return Ok(Some(record)),
        Some(Ok(_)) => (DifferenceKind::Changed, "its reduce key is that of another group".to_owned()),
        Some(Err(error)) => (DifferenceKind::Unreadable, error.to_string()),
        None => (DifferenceKind::Missing, "the group has entries, and no row".to_owned()),
    };
    report.row(kind, Family::ReduceGroups, format!("group {hash:?}"), detail)?;
    Ok(None)
}

/// Passes over a group that can't be computed without its key.
fn skip(hash: &GroupHash, pass: &mut Pass<'_>) -> Result<(), VerifyError> {
    for rows in [&mut pass.entries, &mut pass.nodes] {
        while rows.of_group(hash).is_some() {
            rows.advance()?;
        }
    }
    Ok(())
}

fn told_result(result: &GroupResult) -> String {
    match result {
        GroupResult::Pending => "not reduced".to_owned(),
        GroupResult::Document => "a document".to_owned(),
        GroupResult::Body(body) => cut(body),
        GroupResult::Nothing => "no document".to_owned(),
        GroupResult::Fault(fault) => cut(&format!("a fault: {fault}")),
    }
}
