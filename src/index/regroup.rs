//! Totals over groups whose array keys begin alike, made on the fly: `group_level`.
//!
//! Groups come in key order, so those of one total follow each other. What is reduced again is what `reduce` gave before
//! `finish`; a total is finished like a group.

use super::context::Context;
use super::read::Group;
use super::rows::{GenerationRows, GroupRows};
use super::tree::{Partial, Tree};
use crate::script::encoding::{Item, Nest, Reader};
use crate::script::{Fault, Runner};
use crate::store::StoreError;
use crate::store::snapshot::Snapshot;

/// Values, and bytes of them, that are reduced in one call.
const VALUES_MAX: usize = 512;
const VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A total over groups.
#[derive(Debug)]
pub(crate) struct Total {
    /// The canonical key: the beginning that the groups' keys share; null where all groups make one total.
    pub key: Vec<u8>,
    /// The JSON text of the finished total, none where it is `()`; or why it could not be made.
    pub result: Result<Option<String>, Fault>,
}

/// Makes totals, one after the other. Belongs to a thread with [`crate::script::STACK_BYTES`] of stack.
pub(crate) struct Regroup<'c, 's> {
    context: &'c Context,
    rows: GenerationRows<'s>,
    runner: Runner,
    level: usize,
    open: Option<Open>,
}

struct Open {
    key: Vec<u8>,
    values: Vec<Vec<u8>>,
    bytes: usize,
    fault: Option<Fault>,
}

impl<'c, 's> Regroup<'c, 's> {
    /// Begins.
    ///
    /// # Errors
    /// A read failed; or, as the inner one, the script does not compile any more.
    pub(crate) fn new(
        context: &'c Context,
        snapshot: &Snapshot<'s>,
        level: usize,
    ) -> Result<Result<Self, Fault>, StoreError> {
        let rows = GenerationRows::open(snapshot, context.generation)?;
        Ok(context.runner().map(|runner| Self { context, rows, runner, level, open: None }))
    }

    /// Adds the next group; gives the total before, where this one begins another.
    ///
    /// # Errors
    /// A read failed.
    pub(crate) fn add(&mut self, group: &Group) -> Result<Option<Total>, StoreError> {
        let key = shortened(&group.record.key, self.level);
        let finished = if self.open.as_ref().is_some_and(|open| open.key != key) { self.finish() } else { None };
        let mut open = self.open.take().unwrap_or(Open { key, values: Vec::new(), bytes: 0, fault: None });
        let rows = GroupRows { rows: &self.rows, group: group.hash, counters: &self.context.counters };
        let mut values = Vec::new();
        let mut take = |_: &[u8], value: &[u8]| {
            values.push(value.to_vec());
            true
        };
        match group.record.height {
            0 => rows.entries(&[], &mut take)?,
            root => rows.nodes(root, &[], &mut take)?,
        }
        for value in values {
            match Partial::decode(&value)? {
                Partial::Value(value) => {
                    open.bytes += value.len();
                    open.values.push(value);
                }
                Partial::Fault(fault) => open.fault = Some(fault),
            }
            if open.values.len() >= VALUES_MAX || open.bytes >= VALUES_BYTES_MAX {
                self.reduce(&mut open);
            }
        }
        self.open = Some(open);
        Ok(finished)
    }

    /// Gives the last total.
    pub(crate) fn finish(&mut self) -> Option<Total> {
        let mut open = self.open.take()?;
        self.reduce(&mut open);
        let result = match (open.fault, open.values.pop()) {
            (Some(fault), _) => Err(fault),
            (None, None) => Ok(None),
            (None, Some(value)) => self.runner.finish(&open.key, &value),
        };
        Some(Total { key: open.key, result })
    }

    fn reduce(&mut self, open: &mut Open) {
        if open.values.is_empty() || open.fault.is_some() {
            return;
        }
        let values: Vec<&[u8]> = open.values.iter().map(Vec::as_slice).collect();
        match self.runner.reduce(&open.key, &values) {
            Ok(value) => {
                open.bytes = value.len();
                open.values = vec![value];
            }
            Err(fault) => open.fault = Some(fault),
        }
    }
}

/// The beginning of an array key; other keys stay whole, and level 0 leaves nothing of any.
fn shortened(key: &[u8], level: usize) -> Vec<u8> {
    if level == 0 {
        return crate::script::encoding::NULL.to_vec();
    }
    let Some(Item::Array(elements)) = Reader::new(key).item() else { return key.to_vec() };
    let mut short = Vec::with_capacity(key.len());
    let nest = Nest::array(&mut short);
    elements.take(level).for_each(|element| short.extend_from_slice(element));
    nest.end(&mut short);
    short
}
