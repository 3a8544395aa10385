//! Answers what is asked of an index by keys: its groups, totals over them, or its entries with their documents.
//!
//! Rows come from one snapshot in the order of their keys, and are given as they are read.
//!
//! Next: `read`, `regroup`.

use super::context::Context;
use super::read::{Group, InKeyOrder, KeyBounds, KeyedEntry};
use super::records::GroupResult;
use super::regroup::{Regroup, Total};
use crate::id::DocumentId;
use crate::id::artificial::artificial_id;
use crate::script::Fault;
use crate::script::encoding::write_json;
use crate::store::StoreError;
use crate::store::keyspace::{Family, KeyRange, decode_map_entry, group_prefix};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Entries whose documents are looked up at once.
const ENTRIES_AT_ONCE: usize = 128;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Ranges of keys, one after the other.
    pub ranges: Vec<KeyBounds>,
    pub direction: Direction,
    pub shape: Shape,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A group with its result.
    Groups,
    /// A total over groups whose array keys begin with the same so many elements.
    Level(usize),
    /// An entry with the id of its document.
    Entries,
}

/// A row.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The artificial document of a group, the document of an entry.
    pub id: Option<String>,
    /// JSON.
    pub key: String,
    /// JSON, or why a script failed.
    pub value: Result<String, Fault>,
}

/// Whether rows are wanted still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// Gives the rows to `each`, which says whether it wants more. To be called on a thread with `STACK_BYTES` of stack where
/// totals are asked for.
///
/// # Errors
/// A read failed, or `each` did.
pub(crate) fn answer<E: From<StoreError> + From<Fault>>(
    context: &Context,
    snapshot: &Snapshot<'_>,
    asked: &Asked,
    each: &mut dyn FnMut(Answered) -> Result<Go, E>,
) -> Result<(), E> {
    for bounds in &asked.ranges {
        let go = match asked.shape {
            Shape::Entries if !context.program.has_reduce => keyed(context, snapshot, bounds, asked.direction, each)?,
            Shape::Entries => entries(context, snapshot, bounds, asked.direction, each)?,
            Shape::Groups => groups(context, snapshot, bounds, asked.direction, each)?,
            Shape::Level(level) => totals(context, snapshot, bounds, asked.direction, level, each)?,
        };
        if go == Go::Stop {
            break;
        }
    }
    Ok(())
}

type Each<'e, E> = &'e mut dyn FnMut(Answered) -> Result<Go, E>;

fn groups<E: From<StoreError>>(
    context: &Context,
    snapshot: &Snapshot<'_>,
    bounds: &KeyBounds,
    direction: Direction,
    each: Each<'_, E>,
) -> Result<Go, E> {
    let mut groups = InKeyOrder::<Group>::new(snapshot, context.generation, bounds.clone(), direction);
    while let Some(Group { hash, record }) = groups.next()? {
        let id = context.output.as_ref().map(|output| artificial_id(output, &hash));
        let value = match record.result {
            GroupResult::Pending | GroupResult::Nothing => continue,
            GroupResult::Fault(fault) => Err(fault),
            GroupResult::Body(body) => Ok(body),
            GroupResult::Document => {
                let Some(id) = &id else { continue };
                match snapshot.get(&DocumentId::stored(id))? {
                    Some(document) => Ok(document.body),
                    None => continue,
                }
            }
        };
        if each(Answered { id, key: json(&record.key), value })? == Go::Stop {
            return Ok(Go::Stop);
        }
    }
    Ok(Go::On)
}

fn totals<E: From<StoreError> + From<Fault>>(
    context: &Context,
    snapshot: &Snapshot<'_>,
    bounds: &KeyBounds,
    direction: Direction,
    level: usize,
    each: Each<'_, E>,
) -> Result<Go, E> {
    let mut regroup = Regroup::new(context, snapshot, level)??;
    let mut give = |total: Total| match total.result {
        Ok(None) => Ok(Go::On),
        Ok(Some(value)) => each(Answered { id: None, key: json(&total.key), value: Ok(value) }),
        Err(fault) => each(Answered { id: None, key: json(&total.key), value: Err(fault) }),
    };
    let mut groups = InKeyOrder::<Group>::new(snapshot, context.generation, bounds.clone(), direction);
    while let Some(group) = groups.next()? {
        if let Some(total) = regroup.add(&group)?
            && give(total)? == Go::Stop
        {
            return Ok(Go::Stop);
        }
    }
    regroup.finish().map_or(Ok(Go::On), give)
}

/// The entries of groups, in the order of their keys, then of their documents.
fn entries<E: From<StoreError>>(
    context: &Context,
    snapshot: &Snapshot<'_>,
    bounds: &KeyBounds,
    direction: Direction,
    each: Each<'_, E>,
) -> Result<Go, E> {
    let mut groups = InKeyOrder::<Group>::new(snapshot, context.generation, bounds.clone(), direction);
    while let Some(group) = groups.next()? {
        let key = json(&group.record.key);
        let range = KeyRange::prefix(&group_prefix(context.generation, &group.hash));
        let mut rows = snapshot.rows(Family::MapEntries, range, direction);
        let mut waiting = Vec::new();
        loop {
            let row = rows.next_row()?;
            let is_last = row.is_none();
            if let Some((row, value)) = row
                && let Some((source, _)) = decode_map_entry(row)
            {
                waiting.push((source.to_owned(), key.clone(), json(value)));
            }
            if (is_last || waiting.len() >= ENTRIES_AT_ONCE)
                && give(snapshot, std::mem::take(&mut waiting), each)? == Go::Stop
            {
                return Ok(Go::Stop);
            }
            if is_last {
                break;
            }
        }
    }
    Ok(Go::On)
}

fn keyed<E: From<StoreError>>(
    context: &Context,
    snapshot: &Snapshot<'_>,
    bounds: &KeyBounds,
    direction: Direction,
    each: Each<'_, E>,
) -> Result<Go, E> {
    let mut entries = InKeyOrder::<KeyedEntry>::new(snapshot, context.generation, bounds.clone(), direction);
    let mut waiting = Vec::new();
    loop {
        let entry = entries.next()?;
        let is_last = entry.is_none();
        waiting.extend(entry.map(|entry| (entry.source, json(&entry.key), json(&entry.value))));
        if (is_last || waiting.len() >= ENTRIES_AT_ONCE)
            && give(snapshot, std::mem::take(&mut waiting), each)? == Go::Stop
        {
            return Ok(Go::Stop);
        }
        if is_last {
            return Ok(Go::On);
        }
    }
}

/// Gives entries with the ids of their documents as these are spelled.
fn give<E: From<StoreError>>(
    snapshot: &Snapshot<'_>,
    entries: Vec<(String, String, String)>,
    each: Each<'_, E>,
) -> Result<Go, E> {
    let ids: Vec<DocumentId> = entries.iter().map(|(source, ..)| DocumentId::stored(source)).collect();
    for ((source, key, value), document) in entries.into_iter().zip(snapshot.get_many(&ids)?) {
        // One that was deleted stands in the index until its next run.
        let id = document.map_or(source, |document| document.id);
        if each(Answered { id: Some(id), key, value: Ok(value) })? == Go::Stop {
            return Ok(Go::Stop);
        }
    }
    Ok(Go::On)
}

fn json(encoded: &[u8]) -> String {
    let mut text = String::new();
    write_json(encoded, &mut text);
    text
}
