//! `group by`: documents gathered by the values of some paths, counted and added up, within a number of bytes.

use std::collections::BTreeMap;

use super::bind::BoundGroup;
use super::error::QueryError;
use super::number::Number;
use super::row::{GroupRow, Row};
use super::sort::Memory;
use super::syntax::Subject;
use super::value::Value;
use crate::script::number::{Number as Rounded, sum::Sum};

/// What a group costs beside its values.
const GROUP_BYTES: usize = 128;

/// Documents being gathered.
#[derive(Debug)]
pub(crate) struct Grouper<'b> {
    by: &'b BoundGroup,
    memory: Memory,
    groups: BTreeMap<Vec<Value<'static>>, Totals>,
}

#[derive(Debug)]
struct Totals {
    count: u64,
    sums: Vec<Sum>,
}

impl<'b> Grouper<'b> {
    pub(crate) fn new(by: &'b BoundGroup, memory: Memory) -> Self {
        Self { by, memory, groups: BTreeMap::new() }
    }

    /// Adds a document to its group.
    ///
    /// # Errors
    /// There is no memory left for another group; something to be added up is no number.
    pub(crate) fn add(&mut self, row: &Row<'_>) -> Result<(), QueryError> {
        let key: Vec<_> = self.by.by.iter().map(|path| row.value(&Subject::Path(path.clone()))).collect();
        let sums = self.by.sums.len();
        if !self.groups.contains_key(&key) {
            let values = key.iter().map(|value| size_of::<Value<'_>>() + value.heap_bytes());
            let bytes = GROUP_BYTES + values.sum::<usize>() + sums * size_of::<Sum>();
            self.memory.take(bytes, "Grouping")?;
        }
        let totals = self.groups.entry(key).or_insert_with(|| Totals { count: 0, sums: vec![Sum::default(); sums] });
        totals.count += 1;
        for (path, sum) in self.by.sums.iter().zip(&mut totals.sums) {
            let mut refused = None;
            row.visit(&Subject::Path(path.clone()), &mut |value| match value {
                Value::Number(number) => match Rounded::parse(&number.to_string()) {
                    Some(number) => sum.add(number),
                    None => refused = Some(number.to_string()),
                },
                // The elements were visited before.
                Value::Null | Value::Array(_) => {}
                other => {
                    let mut text = String::new();
                    other.write_json(&mut text);
                    refused = Some(text);
                }
            });
            if let Some(value) = refused {
                return Err(not_summed(path, &value, row));
            }
        }
        Ok(())
    }

    /// The groups, in the order of their keys.
    ///
    /// # Errors
    /// A total is beyond what numbers can be.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = Result<GroupRow, QueryError>> {
        let by = self.by;
        self.groups.into_iter().map(move |(key, totals)| {
            let keys = by.by.iter().cloned().zip(key).collect();
            let mut sums = Vec::with_capacity(totals.sums.len());
            for (path, sum) in by.sums.iter().zip(&totals.sums) {
                let total = sum.total().ok().and_then(|total| Number::parse(&total.to_string()));
                let too_large = || QueryError::Rule(format!("sum({path}) is 10²⁸ or more, beyond exact numbers"));
                sums.push((path.clone(), total.ok_or_else(too_large)?));
            }
            Ok(GroupRow { keys, count: totals.count, sums })
        })
    }
}

fn not_summed(path: &super::path::Path, value: &str, row: &Row<'_>) -> QueryError {
    let place = row.document().map_or("a result of the index".to_owned(), |it| format!("document '{}'", it.id));
    let value: String = value.chars().take(80).collect();
    QueryError::Rule(format!(
        "sum({path}) adds numbers, and {place} has {value} there; leave such documents out with 'where' before 'group by'"
    ))
}
