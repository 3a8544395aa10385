//! What a change of a definition commits: the rows of a new generation, those that go, claims taken and given up.
//!
//! Pure. A generation that has never been live has nothing to serve: another one takes its place at once (`in_place`). One that serves
//! goes on while a replacement is built beside it (`Beside`), and a replacement that is given up leaves no trace: where
//! it has written documents already, the one that serves merges its own results back and empties what is not its own.
//!
//! Next on the walk: `registry`, which commits this.

use super::context::{first_watermarks, same_name};
use super::definition::Checked;
use super::live::Stored;
use super::publish::meta;
use super::records::{
    DefinitionRecord, Numbers, PhaseRecord, ProgressRecord, definition_name, progress_name, replacement_name,
};
use super::retire::{delete_meta, generation_rows};
use crate::store::commit::{ClaimChange, RowChange};
use crate::store::keyspace::Generation;

/// A change of one index's definitions.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub rows: Vec<RowChange>,
    pub claims: Vec<ClaimChange>,
}

/// What is known of a replacement that is given up.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub stored: Stored,
    /// Those of the collections it writes that hold documents.
    pub filled: Vec<String>,
}

/// The first record and progress of a definition's new generation.
pub(crate) fn new_generation(checked: &Checked, number: u32, generation: u32, written: u64) -> Stored {
    let definition = &checked.definition;
    let record = DefinitionRecord {
        number,
        generation,
        name: definition.name.clone(),
        maps: definition.texts.maps.clone(),
        reduce: definition.texts.reduce.clone(),
        output: definition.output.clone(),
        output_collection: checked.output.clone(),
        former_outputs: Vec::new(),
        deleting: false,
        errored: false,
        reference_pattern: definition.reference_pattern.clone(),
        reference_name: definition.reference_collection.clone(),
        reference_collection: checked.reference.as_ref().map(|reference| reference.collection.clone()),
    };
    Stored { record, progress: first_progress(checked, generation, written) }
}

/// The progress of a generation that has done nothing.
pub(crate) fn first_progress(checked: &Checked, generation: u32, written: u64) -> ProgressRecord {
    ProgressRecord {
        generation,
        fresh_through: written,
        phase: PhaseRecord::Mapping,
        watermarks: first_watermarks(&checked.program, written),
        entries: 0,
        groups: 0,
        map_attempts: 0,
        map_faults: 0,
        reduce_attempts: 0,
        reduce_faults: 0,
    }
}

/// The next generation's number, and the index's where it is new.
pub(crate) fn next_numbers(numbers: &mut Numbers, former: Option<u32>) -> (u32, u32) {
    numbers.generation += 1;
    let number = former.unwrap_or_else(|| {
        numbers.index += 1;
        numbers.index
    });
    (number, numbers.generation)
}

/// A new index, or one whose generation had nothing to serve: `new` takes its place at once. What stands in the output collection is
/// merged by the build.
pub(crate) fn in_place(new: &mut Stored, former: Option<&DefinitionRecord>) -> Change {
    let mut change = Change::default();
    if let Some(former) = former {
        change.rows.extend(generation_rows(Generation(former.generation)));
        new.record.former_outputs = left_outputs(former, &new.record);
    }
    change.rows.push(meta(definition_name(new.record.number), &new.record));
    change.rows.push(meta(progress_name(new.generation()), &new.progress));
    change.take_output(&new.record, former.into_iter());
    change
}

/// The collections that an index has written under `former`, and does not write under `now`.
pub(crate) fn left_outputs(former: &DefinitionRecord, now: &DefinitionRecord) -> Vec<String> {
    let is_left = |collection: &&String| !written(now).any(|current| same_name(current, collection));
    held(former).filter(is_left).cloned().collect()
}

/// The collections that a definition writes.
pub(crate) fn written(record: &DefinitionRecord) -> impl Iterator<Item = &String> {
    record.output_collection.iter().chain(&record.reference_collection)
}

/// The collections that belong to an index under a definition: those it writes, and those still to be emptied.
fn held(record: &DefinitionRecord) -> impl Iterator<Item = &String> {
    record.former_outputs.iter().chain(written(record))
}

impl Change {
    /// Begins `new` beside the generation that serves, in the stead of the replacement that is given up, if there was one.
    pub(crate) fn beside(serving: &mut Stored, new: &Stored, given_up: Option<&GivenUp>) -> Self {
        let mut change = Self::default();
        let before = serving.clone();
        change.take_output(&new.record, [&before.record].into_iter().chain(given_up.map(|it| &it.stored.record)));
        if let Some(given_up) = given_up {
            change.drop_replacement(serving, given_up, Some(&new.record));
        }
        // What the new one will write must not be given up meanwhile.
        let is_wanted = |collection: &String| written(&new.record).any(|wanted| same_name(wanted, collection));
        serving.record.former_outputs.retain(|former| !is_wanted(former));
        change.store(&before, serving);
        change.rows.push(meta(replacement_name(new.record.number), &new.record));
        change.rows.push(meta(progress_name(new.generation()), &new.progress));
        change
    }

    /// Gives a replacement up.
    pub(crate) fn without_replacement(serving: &mut Stored, given_up: &GivenUp) -> Self {
        let mut change = Self::default();
        let before = serving.clone();
        change.drop_replacement(serving, given_up, None);
        change.store(&before, serving);
        change
    }

    /// The rows of a replacement go, and its collections with it, but for those that `next` will write.
    fn drop_replacement(&mut self, serving: &mut Stored, given_up: &GivenUp, next: Option<&DefinitionRecord>) {
        let GivenUp { stored, filled } = given_up;
        self.rows.extend(generation_rows(stored.generation()));
        self.rows.push(delete_meta(replacement_name(stored.record.number)));
        if matches!(stored.progress.phase, PhaseRecord::Swapping { .. }) {
            serving.progress.phase = PhaseRecord::Swapping { slice: 0 };
        }
        for collection in written(&stored.record) {
            let is_kept = {
                let mut kept = held(&serving.record).chain(next.into_iter().flat_map(written));
                kept.any(|kept| same_name(kept, collection))
            };
            if is_kept {
                continue;
            }
            match filled.contains(collection) {
                true => serving.record.former_outputs.push(collection.clone()),
                false => self.claims.push(ClaimChange::Release { collection: collection.clone() }),
            }
        }
    }

    /// Stores what has changed of the generation that serves.
    fn store(&mut self, before: &Stored, now: &Stored) {
        if before.record != now.record {
            self.rows.push(meta(definition_name(now.record.number), &now.record));
        }
        if before.progress != now.progress {
            self.rows.push(meta(progress_name(now.generation()), &now.progress));
        }
    }

    /// Claims the collections that a definition writes, unless the index holds them already.
    fn take_output<'r>(&mut self, record: &DefinitionRecord, holders: impl Iterator<Item = &'r DefinitionRecord>) {
        let theirs: Vec<&String> = holders.flat_map(held).collect();
        let new = written(record).filter(|collection| !theirs.iter().any(|theirs| same_name(theirs, collection)));
        self.claims.extend(new.map(|collection| ClaimChange::Take {
            collection: collection.clone(),
            owner: record.number,
            owner_name: record.name.clone(),
        }));
    }
}
