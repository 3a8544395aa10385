//! The indexes of one database: their definitions come, change and go, one change at a time.
//!
//! The rules between indexes are checked here, and again by the commit that makes the claim on the output collection, so that a
//! user's write in between can't slip past. What a change commits is planned in `change`. While a definition changes
//! no thread of its index runs, so that a swap has either ended or not begun its last commit.
//!
//! Next on the walk: `definition`, `graph`, `roster`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::change::{Change, GivenUp, in_place, new_generation, next_numbers, written};
use super::context::{Context, feeds, same_name};
use super::counters::Counters;
use super::definition::{Checked, IndexDefinition, Refused, check};
use super::faults::FaultLog;
use super::graph;
use super::live::{Index, Stored, Switches};
use super::publish::meta;
use super::records::{
    DefinitionRecord, NUMBERS, Numbers, PhaseRecord, decode, definition_name, encode, former_name, keep_name,
};
use super::retire::delete_index;
use super::roster::{Roster, Slot, replaced_by};
use super::status::{IndexState, LockMode};
use super::worker;
use crate::script::Limits;
use crate::store::commit::{Author, Commit, Condition, RowChange};
use crate::store::keyspace::{Family, Generation};
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// Indexes of one database; each has a thread, and a second one while its definition changes.
pub const INDEXES_MAX: usize = 256;

/// The indexes of one database.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(super) store: Store,
    pub(super) limits: Limits,
    /// Held while a definition changes; true when the database was closed, and no thread may start any more.
    changing: Mutex<bool>,
    pub(super) roster: Arc<Roster>,
}

/// Why something could not be done with an index.
#[derive(Debug)]
pub(crate) enum RegistryError {
    /// A definition is refused, or a rule forbids it.
    Refused(Refused),
    /// The store failed, or refused the claim.
    Store(StoreError),
    /// There is no such index.
    Missing,
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl RegistryError {
    pub(super) fn rule(reason: impl Into<String>) -> Self {
        Self::Refused(Refused::Rule(reason.into()))
    }
}

impl Registry {
    /// Reads the definitions and starts their threads.
    pub(crate) fn open(store: Store, limits: Limits) -> Result<Self, StoreError> {
        let registry = Self { store, limits, changing: Mutex::new(false), roster: Arc::default() };
        match registry.load_all() {
            Ok(()) => Ok(registry),
            Err(error) => {
                registry.close();
                Err(error)
            }
        }
    }

    /// Bounds of index scripts.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Lets one definition change at a time, as long as the database is open.
    pub(super) fn change(&self) -> Result<MutexGuard<'_, bool>, StoreError> {
        let is_closed = self.changing.lock();
        if *is_closed {
            return Err(StoreError::Closed("it is closed; open it again".to_owned()));
        }
        Ok(is_closed)
    }

    /// Puts an index. `false`: the same is there, or is being built, already; or its lock mode has it passed over.
    pub(crate) fn put(&self, definition: IndexDefinition) -> Result<bool, RegistryError> {
        let checked = check(definition, &self.limits).map_err(RegistryError::Refused)?;
        let _changing = self.change()?;
        self.put_checked(checked)
    }

    /// Puts the definition that an index had before its present one.
    pub(crate) fn roll_back(&self, name: &str) -> Result<bool, RegistryError> {
        let _changing = self.change()?;
        let slot = self.roster.slot(name).ok_or(RegistryError::Missing)?;
        if slot.replacement.is_some() {
            return Err(RegistryError::rule("its definition is changing already; cancel that, or swap now, first"));
        }
        if slot.serving.switches.settings.lock().lock != LockMode::Unlock {
            return Err(RegistryError::rule("its definition is locked; unlock it first"));
        }
        let row = self.store.snapshot().row(Family::Meta, former_name(slot.serving.context.number).as_bytes())?;
        let Some(row) = row else {
            return Err(RegistryError::rule("it has had no other definition before, so there is none to go back to"));
        };
        let former: DefinitionRecord = decode("meta", &row)?;
        let checked = check(IndexDefinition::from_record(&former), &self.limits).map_err(RegistryError::Refused)?;
        self.put_checked(checked)
    }

    fn put_checked(&self, checked: Checked) -> Result<bool, RegistryError> {
        let name = checked.definition.name.clone();
        if let Some(replaced) = replaced_by(&name) {
            let reason = format!("names that begin with 'ReplacementOf/' are reserved; put '{replaced}' itself");
            return Err(RegistryError::rule(reason));
        }
        if let Some(newest) = self.roster.newest(&name) {
            if newest.checked.is_same(&checked) {
                return Ok(false);
            }
            match newest.switches.settings.lock().lock {
                LockMode::Unlock => {}
                LockMode::LockedIgnore => return Ok(false),
                LockMode::LockedError => {
                    return Err(RegistryError::rule(format!(
                        "Cannot edit existing index {name} with lock mode LockedError; set its lock mode to Unlock first"
                    )));
                }
            }
        }
        self.check_rules(&checked)?;
        match self.halt(&name) {
            Some(slot) if slot.serving.checked.is_same(&checked) && slot.replacement.is_some() => {
                self.drop_of(&slot)?;
            }
            Some(slot) if !is_built(&slot.serving) => self.begin_in_place(checked, Some(&slot.serving))?,
            Some(slot) => self.begin_beside(checked, &slot)?,
            None => self.begin_in_place(checked, None)?,
        }
        Ok(true)
    }

    /// Checks a definition against those of the other indexes, those under way included.
    fn check_rules(&self, checked: &Checked) -> Result<(), RegistryError> {
        let name = &checked.definition.name;
        let slots = self.roster.slots();
        let is_new = self.roster.slot(name).is_none() && self.roster.unloaded(name).is_none();
        if is_new && self.roster.count() >= INDEXES_MAX {
            let reason = format!("the database has {INDEXES_MAX} indexes, the most it may have; delete one first");
            return Err(RegistryError::rule(reason));
        }
        let mut own =
            self.roster.slot(name).into_iter().flat_map(|slot| [Some(slot.serving), slot.replacement]).flatten();
        if let Some(reason) = own.find_map(|index| checked.clash(&index.checked)) {
            return Err(RegistryError::rule(reason));
        }
        let generations = slots.iter().flat_map(|slot| [&slot.serving].into_iter().chain(&slot.replacement));
        let others: Vec<_> =
            generations.map(|index| index.checked.node()).filter(|node| !same_name(&node.name, name)).collect();
        graph::check(&checked.node(), &others).map_err(RegistryError::rule)
    }

    /// Builds an index anew from its documents, beside its present results; where its definition is changing, the new one.
    pub(crate) fn reset(&self, name: &str) -> Result<(), RegistryError> {
        let _changing = self.change()?;
        if let Some(slot) = self.halt(name) {
            let newest = slot.replacement.as_ref().unwrap_or(&slot.serving).checked.clone();
            return match is_built(&slot.serving) {
                true => self.begin_beside(newest, &slot),
                false => self.begin_in_place(newest, Some(&slot.serving)),
            };
        }
        match self.roster.unloaded(name) {
            None => Err(RegistryError::Missing),
            Some(unloaded) => {
                let refused = check(IndexDefinition::from_record(&unloaded.record), &self.limits).err();
                Err(refused.map_or_else(
                    || RegistryError::rule("it could not be started; open the database again"),
                    RegistryError::Refused,
                ))
            }
        }
    }

    /// Has the replacement of an index take its place as soon as it can, though it may not have taken in all documents.
    pub(crate) fn swap_now(&self, name: &str) -> Result<(), RegistryError> {
        let _changing = self.change()?;
        let slot = self.roster.slot(replaced_by(name).unwrap_or(name)).ok_or(RegistryError::Missing)?;
        let Some(replacement) = slot.replacement else {
            return Err(RegistryError::rule("its definition is not changing, so there is nothing to swap"));
        };
        let state = replacement.state();
        if state != IndexState::Normal {
            return Err(RegistryError::rule(format!(
                "it does not run (it is {state:?}); let it go on first, or cancel"
            )));
        }
        replacement.swaps_now.store(true, Ordering::Relaxed);
        self.store.wake();
        Ok(())
    }

    /// Gives up a change of definition: what serves goes on. `false`: there was none.
    pub(crate) fn cancel(&self, name: &str) -> Result<bool, RegistryError> {
        let _changing = self.change()?;
        match self.halt(replaced_by(name).unwrap_or(name)) {
            Some(slot) if slot.replacement.is_some() => self.drop_of(&slot).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Whether putting a definition would change nothing.
    ///
    /// # Errors
    /// The definition is refused by itself.
    pub(crate) fn is_same(&self, definition: IndexDefinition) -> Result<bool, RegistryError> {
        let checked = check(definition, &self.limits).map_err(RegistryError::Refused)?;
        Ok(self.roster.newest(&checked.definition.name).is_some_and(|newest| newest.checked.is_same(&checked)))
    }

    /// Deletes an index and its artificial documents, or makes ordinary documents of them. `false`: there was none.
    pub(crate) fn delete(&self, name: &str, keeps_outputs: bool) -> Result<bool, RegistryError> {
        if replaced_by(name).is_some() {
            return self.cancel(name);
        }
        let _changing = self.change()?;
        let slot = self.halt(name);
        let record = match &slot {
            Some(slot) => {
                slot.serving.stop();
                slot.serving.record.lock().clone()
            }
            None => match self.roster.unloaded(name) {
                Some(unloaded) => unloaded.record.clone(),
                None => return Ok(false),
            },
        };
        match self.mark_deleted(record, slot.as_ref(), keeps_outputs) {
            Ok(record) => delete_index(&self.store, &record)?,
            Err(error) => {
                self.resume(name)?;
                return Err(error);
            }
        }
        self.roster.remove(name);
        if let Some(slot) = slot {
            slot.serving.leave();
            if let Some(replacement) = &slot.replacement {
                replacement.leave();
            }
        }
        Ok(true)
    }

    /// Commits that an index is being deleted, so that a crash does not keep half of it.
    fn mark_deleted(
        &self,
        record: DefinitionRecord,
        slot: Option<&Slot>,
        keeps_outputs: bool,
    ) -> Result<DefinitionRecord, RegistryError> {
        let mut record = DefinitionRecord { deleting: true, ..record };
        let mut change = Change::default();
        if let Some((slot, replacement)) = slot.and_then(|slot| Some((slot, slot.replacement.as_ref()?))) {
            if keeps_outputs && matches!(replacement.phase(), PhaseRecord::Swapping { .. }) {
                return Err(RegistryError::rule(
                    "its documents are changing over to another definition; wait for that, or cancel it, and keep them then",
                ));
            }
            let mut serving = Stored { record, progress: slot.serving.progress.lock().clone() };
            change = Change::without_replacement(&mut serving, &self.given_up(replacement)?);
            record = serving.record;
        }
        if keeps_outputs {
            let key = keep_name(record.number).into_bytes();
            change.rows.push(RowChange::Put { family: Family::Meta, key, value: Vec::new() });
        }
        change.rows.push(meta(definition_name(record.number), &record));
        self.commit(record.number, change, Vec::new())?;
        Ok(record)
    }

    /// Stops the replacement of an index, so that nothing flips while its definition changes. Returns what there is then.
    fn halt(&self, name: &str) -> Option<Slot> {
        if let Some(replacement) = self.roster.slot(name)?.replacement {
            replacement.stop();
        }
        self.roster.slot(name)
    }

    /// Starts what is to run of an index: the generation that serves, unless it is frozen, and the replacement.
    pub(super) fn resume(&self, name: &str) -> Result<(), StoreError> {
        let Some(slot) = self.roster.slot(name) else { return Ok(()) };
        let is_frozen = slot.replacement.as_ref().is_some_and(|it| matches!(it.phase(), PhaseRecord::Swapping { .. }));
        if !is_frozen {
            worker::start(&slot.serving, &self.roster)?;
        }
        slot.replacement.map_or(Ok(()), |replacement| worker::start(&replacement, &self.roster))
    }

    /// Begins the first generation of an index, or the next of one that has nothing to serve.
    fn begin_in_place(&self, checked: Checked, before: Option<&Arc<Index>>) -> Result<(), RegistryError> {
        let name = checked.definition.name.clone();
        let former = match before {
            Some(before) => {
                before.stop();
                Some(before.record.lock().clone())
            }
            None => self.roster.unloaded(&name).map(|unloaded| unloaded.record.clone()),
        };
        let begun =
            self.begin(&checked, former.as_ref().map(|former| former.number), |new| Ok(in_place(new, former.as_ref())));
        match begun {
            Ok(stored) => {
                let switches = match before {
                    Some(before) => Arc::clone(&before.switches),
                    None => self.stored_switches(stored.record.number)?,
                };
                let index = self.assemble(checked, stored, FaultLog::default(), switches, false);
                self.roster.set(&index);
                if let Some(before) = before {
                    before.leave();
                }
            }
            Err(error) => {
                self.resume(&name)?;
                return Err(error);
            }
        }
        Ok(self.resume(&name)?)
    }

    /// Begins a generation beside the one that serves; another one that was under way is given up.
    fn begin_beside(&self, checked: Checked, slot: &Slot) -> Result<(), RegistryError> {
        let name = checked.definition.name.clone();
        slot.serving.stop();
        let mut serving = slot.serving.stored();
        let begun = self.begin(&checked, Some(serving.record.number), |new| {
            let given_up = slot.replacement.as_ref().map(|replacement| self.given_up(replacement)).transpose()?;
            Ok(Change::beside(&mut serving, new, given_up.as_ref()))
        });
        let result = begun.map(|stored| {
            slot.serving.restore(serving);
            let switches = Arc::clone(&slot.serving.switches);
            let index = self.assemble(checked, stored, FaultLog::default(), switches, true);
            self.roster.set_replacement(&name, Some(index));
            if let Some(replacement) = &slot.replacement {
                replacement.leave();
            }
        });
        self.resume(&name)?;
        result
    }

    /// Gives up the replacement of an index, whose thread is stopped.
    fn drop_of(&self, slot: &Slot) -> Result<(), RegistryError> {
        let Some(replacement) = &slot.replacement else { return Ok(()) };
        slot.serving.stop();
        let mut serving = slot.serving.stored();
        let result = self.given_up(replacement).and_then(|given_up| {
            let change = Change::without_replacement(&mut serving, &given_up);
            self.commit(serving.record.number, change, Vec::new())
        });
        if result.is_ok() {
            slot.serving.restore(serving);
            self.roster.set_replacement(&slot.serving.context.name, None);
            replacement.leave();
        }
        self.resume(&slot.serving.context.name)?;
        Ok(result?)
    }

    pub(super) fn given_up(&self, replacement: &Index) -> Result<GivenUp, StoreError> {
        self.given_up_of(replacement.stored())
    }

    /// What has to be known of a replacement to give it up.
    pub(super) fn given_up_of(&self, stored: Stored) -> Result<GivenUp, StoreError> {
        let snapshot = self.store.snapshot();
        let mut filled = Vec::new();
        for collection in written(&stored.record) {
            if snapshot.collection(collection)?.is_some_and(|count| count.documents > 0) {
                filled.push(collection.clone());
            }
        }
        Ok(GivenUp { stored, filled })
    }

    /// Numbers a generation and commits it with what `plan` says.
    fn begin(
        &self,
        checked: &Checked,
        former: Option<u32>,
        plan: impl FnOnce(&mut Stored) -> Result<Change, StoreError>,
    ) -> Result<Stored, RegistryError> {
        let stored_numbers = self.store.snapshot().row(Family::Meta, NUMBERS.as_bytes())?;
        let mut numbers: Numbers =
            stored_numbers.as_deref().map(|bytes| decode("meta", bytes)).transpose()?.unwrap_or_default();
        let (number, generation) = next_numbers(&mut numbers, former);
        let mut new = new_generation(checked, number, generation, self.store.progress().written);
        let mut change = plan(&mut new)?;
        change.rows.push(RowChange::Put { family: Family::Meta, key: NUMBERS.into(), value: encode(&numbers) });
        let condition = Condition::MetaIs { name: NUMBERS.to_owned(), value: stored_numbers };
        self.commit(number, change, vec![condition])?;
        Ok(new)
    }

    pub(super) fn commit(&self, number: u32, change: Change, conditions: Vec<Condition>) -> Result<(), StoreError> {
        let Change { rows, claims } = change;
        let author = Author::Index(number);
        self.store.commit(Commit { author, rows, claims, conditions, ..Commit::default() }).map(|_| ())
    }

    /// Puts together a generation that has not started.
    pub(super) fn assemble(
        &self,
        checked: Checked,
        stored: Stored,
        faults: FaultLog,
        switches: Arc<Switches>,
        is_replacement: bool,
    ) -> Arc<Index> {
        let is_swapping = matches!(stored.progress.phase, PhaseRecord::Swapping { .. });
        let context = Context {
            store: self.store.clone(),
            number: stored.record.number,
            name: stored.record.name.as_str().into(),
            generation: Generation(stored.record.generation),
            program: Arc::clone(&checked.program),
            output: checked.output.clone(),
            reference: checked.reference.clone(),
            feeds: feeds(&checked.program),
            hidden: Arc::new(AtomicBool::new(is_replacement && !is_swapping)),
            counters: Arc::new(Counters::default()),
            stop: Arc::new(AtomicBool::new(false)),
        };
        Index::new(checked, context, stored, faults, switches, is_replacement)
    }

    /// The last etag that was written.
    pub(crate) fn written(&self) -> u64 {
        self.store.progress().written
    }

    /// Returns when everything written before the call is durable, or nothing will be any more.
    pub(crate) async fn durable(&self) {
        let written = self.written();
        let mut progress = self.store.watch_progress();
        drop(progress.wait_for(|progress| progress.durable >= written).await);
    }

    /// One index, or the replacement of one, by name without regard to case.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Index>> {
        self.roster.find(name)
    }

    /// The generation of an index that was begun last.
    pub(crate) fn newest(&self, name: &str) -> Option<Arc<Index>> {
        self.roster.newest(name)
    }

    /// A consistent view of the documents.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        self.store.snapshot()
    }

    /// All indexes, in name order: the generations that serve.
    pub(crate) fn all(&self) -> Vec<Arc<Index>> {
        self.roster.slots().into_iter().map(|slot| slot.serving).collect()
    }

    /// Stops all threads after the runs in hand. Replacements first: they may start what they have frozen.
    pub(crate) fn close(&self) {
        let mut is_closed = self.changing.lock();
        *is_closed = true;
        let slots = self.roster.slots();
        for slot in &slots {
            for index in slot.replacement.iter().chain([&slot.serving]) {
                index.context.stop.store(true, Ordering::Relaxed);
            }
        }
        self.store.wake();
        for replacement in slots.iter().filter_map(|slot| slot.replacement.as_ref()) {
            replacement.stop();
        }
        for slot in &slots {
            slot.serving.stop();
        }
    }
}

/// Whether a generation has been built to its end, so that it has results to serve.
fn is_built(index: &Index) -> bool {
    matches!(index.phase(), PhaseRecord::Live | PhaseRecord::Swapping { .. })
}
