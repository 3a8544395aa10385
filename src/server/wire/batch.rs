//! The answer to a batch: one result for each command, in order, in the several shapes that clients look for.

use std::collections::HashMap;

use super::text::{time, write_string};
use crate::database::Done;
use crate::store::commit::OperationResult;
use crate::store::document::{Document, DocumentFlags, StoredDocument};

/// What the result of an operation alone does not say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// It is a JSON Patch; whether the patched document is wanted.
    Patch { return_document: bool },
    /// With those after it, so many together, it is one command that names the versions of documents.
    Tracked { checks: usize },
}

/// Writes the answer; notes are by the first operation of their command.
pub(crate) fn write_results(done: &Done, notes: &HashMap<usize, Note>) -> Vec<u8> {
    let results = &done.committed.results;
    let mut into = Vec::with_capacity(32 + results.len() * 192);
    let (mut times, mut position) = (Times::default(), 0);
    into.extend_from_slice(b"{\"Results\":[");
    while let Some(result) = results.get(position) {
        if position > 0 {
            into.push(b',');
        }
        match notes.get(&position) {
            None => write_result(result, &mut times, &mut into),
            Some(Note::Patch { return_document }) => {
                let document = done.patched.get(&position);
                write_patch(result, document, *return_document, &mut into);
            }
            Some(Note::Tracked { checks }) => {
                into.extend_from_slice(b"{\"Type\":\"BatchTrackChanges\"}");
                position += checks.saturating_sub(1);
            }
        }
        position += 1;
    }
    into.extend_from_slice(b"]}");
    into
}

/// The text of the time that was written last: the writes of one batch mostly have the same.
#[derive(Default)]
struct Times(Option<(i64, String)>);

impl Times {
    fn text(&mut self, micros: i64) -> &str {
        if self.0.as_ref().is_none_or(|(last, _)| *last != micros) {
            self.0 = Some((micros, time(micros)));
        }
        self.0.as_ref().map_or("", |(_, text)| text)
    }
}

fn write_result(result: &OperationResult, times: &mut Times, into: &mut Vec<u8>) {
    match result {
        OperationResult::Put { id, change_vector, collection, modified_micros, .. } => {
            into.extend_from_slice(b"{\"Type\":\"PUT\",\"@id\":");
            write_string(id, into);
            into.extend_from_slice(b",\"@collection\":");
            write_string(collection, into);
            into.extend_from_slice(b",\"@change-vector\":");
            write_string(change_vector, into);
            into.extend_from_slice(b",\"@last-modified\":");
            write_string(times.text(*modified_micros), into);
            into.push(b'}');
        }
        OperationResult::Delete { id, existed, .. } => {
            into.extend_from_slice(b"{\"Id\":");
            write_string(id, into);
            into.extend_from_slice(b",\"Type\":\"DELETE\",\"Deleted\":");
            into.extend_from_slice(if *existed { b"true" } else { b"false" });
            into.extend_from_slice(b",\"ChangeVector\":null}");
        }
        OperationResult::Checked { .. } => into.extend_from_slice(b"{\"Type\":\"BatchTrackChanges\"}"),
    }
}

fn write_patch(result: &OperationResult, document: Option<&Document>, return_document: bool, into: &mut Vec<u8>) {
    let id = match result {
        OperationResult::Put { id, .. } | OperationResult::Delete { id, .. } | OperationResult::Checked { id } => id,
    };
    into.extend_from_slice(b"{\"Id\":");
    write_string(id, into);
    into.extend_from_slice(b",\"Type\":\"JsonPatch\",\"PatchStatus\":");
    match (result, document) {
        (OperationResult::Put { change_vector, modified_micros, .. }, Some(document)) => {
            into.extend_from_slice(b"\"Patched\",\"ChangeVector\":");
            write_string(change_vector, into);
            into.extend_from_slice(b",\"LastModified\":");
            write_string(&time(*modified_micros), into);
            if return_document {
                into.extend_from_slice(b",\"ModifiedDocument\":");
                write_patched(result, document, into);
            }
        }
        _ => into.extend_from_slice(b"\"NotModified\",\"ChangeVector\":null"),
    }
    into.push(b'}');
}

/// Writes the answer to the patch of one document.
pub(crate) fn write_patch_answer(result: &OperationResult, document: Option<&Document>) -> Vec<u8> {
    let mut into = Vec::new();
    match (result, document) {
        (OperationResult::Put { change_vector, collection, modified_micros, .. }, Some(document)) => {
            into.extend_from_slice(b"{\"Status\":\"Patched\",\"ModifiedDocument\":");
            write_patched(result, document, &mut into);
            into.extend_from_slice(b",\"LastModified\":");
            write_string(&time(*modified_micros), &mut into);
            into.extend_from_slice(b",\"ChangeVector\":");
            write_string(change_vector, &mut into);
            into.extend_from_slice(b",\"Collection\":");
            write_string(collection, &mut into);
            into.push(b'}');
        }
        _ => into.extend_from_slice(b"{\"Status\":\"NotModified\"}"),
    }
    into
}

/// Writes a document as it was stored, with its metadata.
fn write_patched(result: &OperationResult, document: &Document, into: &mut Vec<u8>) {
    if let OperationResult::Put { id, etag, change_vector, collection, modified_micros } = result {
        let stored = StoredDocument {
            id: id.clone(),
            etag: *etag,
            change_vector: change_vector.clone(),
            collection: collection.clone(),
            modified_micros: *modified_micros,
            flags: DocumentFlags::default(),
            metadata: document.metadata.clone(),
            body: document.body.clone(),
        };
        stored.write_json(into);
    }
}
