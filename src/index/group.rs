//! One group's way from changed entries to its rows and its artificial document.
//!
//! Scripts run here, before the committer is asked. A result that did not change is not written; a group without entries loses
//! its document; a failing group's document is withdrawn, because an old value would be a lie.
//!
//! Next on the walk: `planned`, which collects what the groups of one batch change.

use super::context::{Context, same_name};
use super::counters::add;
use super::faults::Subject;
use super::records::{GroupRecord, GroupResult};
use super::tree::{Partial, Reduce, TreeError};
use crate::id::DocumentId;
use crate::id::artificial::{artificial_id, group_hash};
use crate::script::encoding::write_json;
use crate::script::{Fault, Phase, Runner};
use crate::store::commit::{Expected, Operation, PutId};
use crate::store::document::{Document, DocumentFlags, StoredDocument};
use crate::store::keyspace::GroupHash;

/// Characters of a reduce key that are shown where it is the subject of a fault; a key may have 128 KiB.
const SUBJECT_CHARACTERS_MAX: usize = 1_000;

/// `reduce` of one group.
pub(crate) struct GroupReduce<'a> {
    pub runner: &'a mut Runner,
    pub key: &'a [u8],
    pub context: &'a Context,
    /// Whether an interruption is recorded as a fault, because trying again did not help.
    pub gives_up: bool,
    pub attempts: u64,
    pub faults: u64,
}

impl<'a> GroupReduce<'a> {
    pub(crate) fn new(runner: &'a mut Runner, key: &'a [u8], context: &'a Context, gives_up: bool) -> Self {
        Self { runner, key, context, gives_up, attempts: 0, faults: 0 }
    }

    /// Finishes the group's result: what stands in the group's row, and the body of its artificial document.
    pub(crate) fn finish(&mut self, partial: Partial) -> Result<(GroupResult, Option<String>), TreeError> {
        let value = match partial {
            Partial::Value(value) => value,
            Partial::Fault(fault) => return Ok((GroupResult::Fault(fault), None)),
        };
        if self.context.program.has_finish {
            self.attempts += 1;
        }
        let body = match self.runner.finish(self.key, &value) {
            Ok(body) => body,
            Err(fault) if fault.transient && !self.gives_up => return Err(TreeError::Interrupted(Box::new(fault))),
            Err(fault) => {
                self.faults += 1;
                return Ok((GroupResult::Fault(settled(fault)), None));
            }
        };
        Ok(match (body, &self.context.output) {
            (None, _) => (GroupResult::Nothing, None),
            (Some(body), Some(_)) => (GroupResult::Document, Some(body)),
            (Some(body), None) => (GroupResult::Body(body), None),
        })
    }
}

impl Reduce for GroupReduce<'_> {
    fn reduce(&mut self, values: &[&[u8]]) -> Result<Partial, TreeError> {
        self.attempts += 1;
        add(&self.context.counters.reduce_calls, 1);
        add(&self.context.counters.values_reduced, values.len());
        match self.runner.reduce(self.key, values) {
            Ok(value) => Ok(Partial::Value(value)),
            Err(fault) if fault.transient && !self.gives_up => Err(TreeError::Interrupted(Box::new(fault))),
            Err(fault) => {
                self.faults += 1;
                Ok(Partial::Fault(settled(fault)))
            }
        }
    }
}

/// A fault that is recorded is no longer transient.
pub(crate) fn settled(fault: Fault) -> Fault {
    Fault { transient: false, ..fault }
}

/// Plans the write of a group's artificial document. `present` is the document under its id now, `wanted` the body it should have.
/// A foreign document under the id stays, and the group gets a fault instead. A hidden generation writes no documents.
pub(crate) fn plan_output(
    context: &Context,
    group: &GroupHash,
    present: Option<&StoredDocument>,
    wanted: Option<String>,
) -> Result<Option<Operation>, Fault> {
    let Some(output) = context.output.as_ref().filter(|_| !context.is_hidden()) else {
        return Ok(None);
    };
    let id = DocumentId::stored(&artificial_id(output, group));
    if let Some(present) = present
        && is_foreign(output, present)
    {
        return match wanted {
            Some(_) => Err(foreign(present)),
            None => Ok(None),
        };
    }
    Ok(match (present, wanted) {
        (None, None) => None,
        (Some(present), Some(wanted)) if present.body == wanted => None,
        (_, Some(body)) => Some(Operation::Put {
            id: PutId::Given(id),
            document: Document { collection: output.clone(), metadata: "{}".to_owned(), body },
            flags: DocumentFlags { artificial: true },
            expected: Expected::Any,
        }),
        (Some(_), None) => Some(Operation::Delete { id, expected: Expected::Any }),
    })
}

/// Whether a document under an id of the output collection is not one of the index.
pub(crate) fn is_foreign(output: &str, present: &StoredDocument) -> bool {
    !(present.flags.artificial && same_name(&present.collection, output))
}

/// The group as the subject of a fault: its key as JSON; of a very long one the beginning, and the group's hash.
pub(crate) fn subject(record: &GroupRecord) -> Subject {
    let mut text = String::new();
    write_json(&record.key, &mut text);
    if let Some((end, _)) = text.char_indices().nth(SUBJECT_CHARACTERS_MAX) {
        text.truncate(end);
        return Subject::Group(format!("{text}… (group {:?})", group_hash(&record.key)));
    }
    Subject::Group(text)
}

fn foreign(present: &StoredDocument) -> Fault {
    Fault {
        phase: Phase::Finish,
        script: String::new(),
        line: None,
        column: None,
        function: None,
        message: format!("the id '{}' is taken by a document of collection '{}'", present.id, present.collection),
        hint: Some("delete that document; the group's own then takes its place".to_owned()),
        transient: false,
    }
}
