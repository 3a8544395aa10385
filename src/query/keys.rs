//! Rows that are read by the keys of an index: results, entries with their documents, or documents alone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use super::error::QueryError;
use super::plan::Held;
use super::row::{Entry, IndexResult, Row};
use super::run::{Go, Run};
use crate::id::artificial::artificial_id;
use crate::id::{DocumentId, lower};
use crate::index::ordered_key::ordered_key;
use crate::index::queried::QueriedIndex;
use crate::index::read::{Group, InKeyOrder, KeyBounds, Keyed, KeyedEntry};
use crate::index::records::GroupResult;
use crate::script::encoding::{Item, Reader, write_json};
use crate::script::json;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::scan::Direction;

/// Documents read at once by id.
const READ_AT_ONCE: usize = 128;
/// What a remembered id costs beside its bytes.
const ID_BYTES: usize = 64;

/// A part of an index that a run reads.
pub(super) struct Keys<'r, 'a> {
    pub(super) run: &'r Run<'a>,
    pub(super) index: &'r QueriedIndex,
    pub(super) ranges: &'r [KeyBounds],
}

type Each<'e, E> = &'e mut dyn FnMut(Row<'_>) -> Result<Go, E>;

impl Keys<'_, '_> {
    /// Calls `each` with every row.
    pub(super) fn read<E: From<QueryError>>(&self, held: &Held, each: Each<'_, E>) -> Result<(), E> {
        match held {
            Held::Results => self.each_item::<Group, E>(&mut |group| match group.record.result {
                GroupResult::Body(body) => each(Row::Result(IndexResult { key: ordered_key(&group.record.key), body })),
                _ => Ok(Go::On),
            }),
            Held::Outputs(output) => self.outputs(output, each),
            Held::Entries => self.entries(each),
            Held::Documents { after } => self.documents(*after, each),
        }
    }

    fn each_item<T: Keyed, E: From<QueryError>>(&self, each: &mut dyn FnMut(T) -> Result<Go, E>) -> Result<(), E> {
        for bounds in self.ranges {
            let mut items =
                InKeyOrder::<T>::new(self.run.snapshot, self.index.generation, bounds.clone(), self.run.plan.direction);
            while let Some(item) = items.next().map_err(QueryError::from)? {
                if each(item)? == Go::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn outputs<E: From<QueryError>>(&self, output: &str, each: Each<'_, E>) -> Result<(), E> {
        let mut waiting = Vec::new();
        let mut give = |waiting: &mut Vec<DocumentId>| {
            let documents = self.run.snapshot.get_many(&std::mem::take(waiting)).map_err(QueryError::from)?;
            for document in documents.into_iter().flatten() {
                if each(Row::Document(Cow::Owned(document)))? == Go::Stop {
                    return Ok(Go::Stop);
                }
            }
            Ok::<Go, E>(Go::On)
        };
        let mut has_stopped = false;
        self.each_item::<Group, E>(&mut |group| {
            if group.record.result == GroupResult::Document {
                waiting.push(DocumentId::stored(&artificial_id(output, &group.hash)));
            }
            if waiting.len() < READ_AT_ONCE {
                return Ok(Go::On);
            }
            let go = give(&mut waiting)?;
            has_stopped = go == Go::Stop;
            Ok(go)
        })?;
        if !has_stopped {
            give(&mut waiting)?;
        }
        Ok(())
    }

    /// Entries with their documents; of several entries of one document that pass, the first.
    fn entries<E: From<QueryError>>(&self, each: Each<'_, E>) -> Result<(), E> {
        let (mut seen, mut memory) = (HashSet::new(), self.run.memory());
        let filter = &self.run.bound.filter;
        let mut give = |waiting: &mut Vec<KeyedEntry>| {
            let entries = std::mem::take(waiting);
            let ids: Vec<DocumentId> = entries.iter().map(|entry| DocumentId::stored(&entry.source)).collect();
            let documents = self.run.snapshot.get_many(&ids).map_err(QueryError::from)?;
            for (entry, document) in entries.into_iter().zip(documents) {
                // A document that was deleted stands in the index until its next run.
                let Some(document) = document else { continue };
                let row = Row::Entry(Box::new(Entry {
                    document,
                    fields: fields(&entry.key, &entry.value),
                    key: ordered_key(&entry.key),
                }));
                if filter.matches(&row) && !seen.contains(&entry.source) {
                    memory.take(entry.source.len() + ID_BYTES, "Telling the documents of entries apart")?;
                    seen.insert(entry.source);
                    if each(row)? == Go::Stop {
                        return Ok(Go::Stop);
                    }
                }
            }
            Ok::<Go, E>(Go::On)
        };
        let (mut waiting, mut has_stopped) = (Vec::new(), false);
        self.each_item::<KeyedEntry, E>(&mut |entry| {
            waiting.push(entry);
            if waiting.len() < READ_AT_ONCE {
                return Ok(Go::On);
            }
            let go = give(&mut waiting)?;
            has_stopped = go == Go::Stop;
            Ok(go)
        })?;
        if !has_stopped {
            give(&mut waiting)?;
        }
        Ok(())
    }

    /// Documents by the entries that the index has of them; those that it has not taken in yet come from the feed.
    fn documents<E: From<QueryError>>(&self, after: u64, each: Each<'_, E>) -> Result<(), E> {
        let changed = self.changed(after)?;
        let mut has_stopped = false;
        let mut waiting = Vec::new();
        let give = |waiting: &mut Vec<DocumentId>, each: Each<'_, E>| {
            let documents = self.run.snapshot.get_many(&std::mem::take(waiting)).map_err(QueryError::from)?;
            for document in documents.into_iter().flatten() {
                if self.run.offer_document(document, each)? == Go::Stop {
                    return Ok(Go::Stop);
                }
            }
            Ok::<Go, E>(Go::On)
        };
        self.each_item::<KeyedEntry, E>(&mut |entry| {
            if !changed.contains(&entry.source) {
                waiting.push(DocumentId::stored(&entry.source));
            }
            if waiting.len() < READ_AT_ONCE {
                return Ok(Go::On);
            }
            let go = give(&mut waiting, each)?;
            has_stopped = go == Go::Stop;
            Ok(go)
        })?;
        if !has_stopped && give(&mut waiting, each)? == Go::On {
            let mut changed: Vec<DocumentId> = changed.iter().map(|id| DocumentId::stored(id)).collect();
            while !changed.is_empty() {
                let mut some = changed.split_off(changed.len().saturating_sub(READ_AT_ONCE));
                if give(&mut some, each)? == Go::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The lower-cased ids of the documents that were written or deleted after an etag.
    fn changed(&self, after: u64) -> Result<BTreeSet<String>, QueryError> {
        let (mut changed, mut memory) = (BTreeSet::new(), self.run.memory());
        let feed = self.run.plan.collection.clone().map_or(Feed::All, Feed::Collection);
        let through = self.run.snapshot.progress().written;
        for change in self.run.snapshot.changes(&feed, after, through, Direction::Forward) {
            let change = change?;
            // Also those that were deleted: the index has them still.
            debug_assert!(matches!(change.kind, ChangeKind::Put | ChangeKind::Delete), "there is no third kind");
            let id = lower(&change.id);
            memory.take(id.len() + ID_BYTES, "Looking past an index that lags")?;
            changed.insert(id);
        }
        Ok(changed)
    }
}

/// The fields of an entry: those of its key (`Key` where that is no object), then those of its value that the key has not.
fn fields(key: &[u8], value: &[u8]) -> String {
    let mut text = String::from("{");
    let mut names: Vec<&str> = Vec::new();
    let of = |encoded| match Reader::new(encoded).item() {
        Some(Item::Object(fields)) => fields.collect(),
        _ => Vec::new(),
    };
    let key_fields: Vec<(&str, &[u8])> = of(key);
    let key_fields = if key_fields.is_empty() { vec![("Key", key)] } else { key_fields };
    for (name, field) in key_fields.into_iter().chain(of(value)) {
        if names.contains(&name) {
            continue;
        }
        text.push_str(if names.is_empty() { "" } else { "," });
        json::write_string(name, &mut text);
        text.push(':');
        write_json(field, &mut text);
        names.push(name);
    }
    text.push('}');
    text
}
