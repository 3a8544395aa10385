//! Compares the nodes of one group's tree with those that are computed.
//!
//! Of each level, nodes are computed in the order in which they stand; so each level is read along, and no node is held.
//!
//! Next on the walk: `outputs`.

use super::documents::cut;
use super::rows::Rows;
use super::{DifferenceKind, Report, VerifyError};
use crate::store::keyspace::{Family, Generation, GroupHash, KeyRange, decode_reduce_node, level_prefix};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// The nodes of one group.
pub(super) struct Nodes<'a, 's> {
    snapshot: &'a Snapshot<'s>,
    generation: Generation,
    group: GroupHash,
    /// The rows of each level, from 1.
    levels: Vec<Rows<'s>>,
    failed: Option<VerifyError>,
}

impl<'a, 's> Nodes<'a, 's> {
    pub(super) fn new(snapshot: &'a Snapshot<'s>, generation: Generation, group: GroupHash) -> Self {
        Self { snapshot, generation, group, levels: Vec::new(), failed: None }
    }

    /// Takes in a node as it should be.
    pub(super) fn compare(&mut self, report: &mut Report<'_>, level: u8, start: &[u8], wanted: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.compare_one(report, level, start, wanted)
        {
            self.failed = Some(error);
        }
    }

    fn compare_one(
        &mut self,
        report: &mut Report<'_>,
        level: u8,
        start: &[u8],
        wanted: &[u8],
    ) -> Result<(), VerifyError> {
        while self.levels.len() < usize::from(level) {
            let next = u8::try_from(self.levels.len() + 1).unwrap_or(u8::MAX);
            let range = KeyRange::prefix(&level_prefix(self.generation, &self.group, next));
            self.levels.push(Rows::new(self.snapshot.rows(Family::ReduceNodes, range, Direction::Forward))?);
        }
        let group = self.group;
        let Some(rows) = self.levels.get_mut(usize::from(level).saturating_sub(1)) else { return Ok(()) };
        let key = [level_prefix(self.generation, &group, level).as_slice(), start].concat();
        while rows.row().is_some_and(|(at, _)| at < key.as_slice()) {
            foreign(report, rows, &group)?;
            rows.advance()?;
        }
        let place = place(&key, &group);
        match rows.row().filter(|(at, _)| *at == key.as_slice()).map(|(_, value)| value == wanted) {
            Some(true) => rows.advance()?,
            Some(false) => {
                let detail = "its partial result is another one".to_owned();
                report.row(DifferenceKind::Changed, Family::ReduceNodes, place, detail)?;
                rows.advance()?;
            }
            None => {
                report.row(DifferenceKind::Missing, Family::ReduceNodes, place, "the tree has this node".to_owned())?;
            }
        }
        Ok(())
    }

    /// All nodes of the tree were computed, `height` levels of them (`None`: it could not be): what is left in `rows`, which
    /// stands at this group or behind it, is too much.
    pub(super) fn end(
        self,
        report: &mut Report<'_>,
        height: Option<u8>,
        rows: &mut Rows<'_>,
    ) -> Result<(), VerifyError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        for mut level in self.levels {
            while height.is_some() && level.row().is_some() {
                foreign(report, &level, &self.group)?;
                level.advance()?;
            }
        }
        while let Some((key, _)) = rows.of_group(&self.group) {
            if height.is_some_and(|height| key.get(20).is_some_and(|level| *level > height)) {
                foreign(report, rows, &self.group)?;
            }
            rows.advance()?;
        }
        Ok(())
    }
}

fn foreign(report: &mut Report<'_>, rows: &Rows<'_>, group: &GroupHash) -> Result<(), VerifyError> {
    let key = rows.row().map(|(key, _)| key).unwrap_or_default();
    let detail = "the tree has no such node".to_owned();
    report.row(DifferenceKind::Foreign, Family::ReduceNodes, place(key, group), detail)
}

fn place(key: &[u8], group: &GroupHash) -> String {
    let level = key.get(20).copied().unwrap_or_default();
    let start =
        decode_reduce_node(key).map_or_else(String::new, |(id, ordinal)| format!(" from {id}, entry {ordinal}"));
    format!("group {group:?}, level {level}{}", cut(&start))
}
