//! One group of a trial: the same tree as in a build, with every call measured.

use std::collections::BTreeMap;
use std::time::Instant;

use super::super::explain::json;
use super::super::tree::{Partial, Reduce, TreeBuilder, TreeError};
use super::{Cost, TriedGroup};
use crate::id::artificial::{artificial_id, group_hash};
use crate::script::{Fault, Program, Runner};

/// Reduces and finishes a group.
pub(super) fn group(
    output: Option<&str>,
    program: &Program,
    runner: &mut Runner,
    key: &[u8],
    entries: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> TriedGroup {
    let mut measured = Measured { runner, key, cost: Cost::default() };
    let reduced = if program.has_reduce { root(&mut measured, entries) } else { Ok(None) };
    let reduce = measured.cost;
    let mut finish = Cost::default();
    let result = reduced.and_then(|value| match value {
        None => Ok(None),
        Some(value) => {
            let begun = Instant::now();
            let body = runner.finish(key, &value);
            if program.has_finish {
                finish.add_call(runner, begun, body.is_err());
            }
            body
        }
    });
    TriedGroup {
        key: json(key),
        id: output.map(|output| artificial_id(output, &group_hash(key))),
        entries: entries.len() as u64,
        result,
        reduce,
        finish,
    }
}

/// The value of the tree's root.
fn root(measured: &mut Measured<'_>, entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<Option<Vec<u8>>, Fault> {
    let mut builder = TreeBuilder::default();
    let built = entries
        .iter()
        .try_for_each(|(entry, value)| builder.push(entry, value, measured, &mut |_, _, _| {}))
        .and_then(|()| builder.finish(measured, &mut |_, _, _| {}));
    match built {
        Ok(built) => match built.result {
            Partial::Value(value) => Ok(Some(value)),
            Partial::Fault(fault) => Err(fault),
        },
        Err(TreeError::Interrupted(fault)) => Err(*fault),
        Err(TreeError::Store(_) | TreeError::Order) => Ok(None),
    }
}

struct Measured<'a> {
    runner: &'a mut Runner,
    key: &'a [u8],
    cost: Cost,
}

impl Reduce for Measured<'_> {
    fn reduce(&mut self, values: &[&[u8]]) -> Result<Partial, TreeError> {
        let begun = Instant::now();
        let reduced = self.runner.reduce(self.key, values);
        self.cost.add_call(self.runner, begun, reduced.is_err());
        Ok(reduced.map_or_else(Partial::Fault, Partial::Value))
    }
}
