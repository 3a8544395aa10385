//! What can be done with an index besides changing its definition: pause, turn off, set, forget faults; and how all of them are doing.

use std::sync::atomic::Ordering;

use super::definition::{IndexDefinition, Refused};
use super::publish::meta;
use super::records::{SettingsRecord, disabled_name, faults_prefix, settings_name};
use super::registry::{Registry, RegistryError};
use super::roster::{Slot, Unloaded, replaced_by};
use super::status::{FaultRecord, IndexPhase, IndexState, IndexStatus, LockMode, Priority};
use crate::script::{Fault, Phase};
use crate::store::StoreError;
use crate::store::commit::{Author, Commit, RowChange};
use crate::store::keyspace::{Family, KeyRange};

impl Registry {
    /// Pauses an index, or lets it go on: until the database is opened again. One that was stopped for its faults goes on too.
    pub(crate) fn set_paused(&self, name: &str, is_paused: bool) -> Result<(), RegistryError> {
        let slot = self.slot_of(name)?;
        slot.serving.switches.is_paused.store(is_paused, Ordering::Relaxed);
        if !is_paused {
            self.forgive(&slot)?;
        }
        self.tell(&slot);
        Ok(())
    }

    /// Turns an index off, or on again; for good, restarts included. One that was stopped for its faults goes on when it is turned on.
    pub(crate) fn set_disabled(&self, name: &str, is_disabled: bool) -> Result<(), RegistryError> {
        let slot = self.slot_of(name)?;
        let number = slot.serving.context.number;
        let (family, key) = (Family::Meta, disabled_name(number).into_bytes());
        let row = match is_disabled {
            true => RowChange::Put { family, key, value: Vec::new() },
            false => RowChange::Delete { family, key },
        };
        self.write(number, vec![row])?;
        slot.serving.switches.is_disabled.store(is_disabled, Ordering::Relaxed);
        if !is_disabled {
            self.forgive(&slot)?;
        }
        self.tell(&slot);
        Ok(())
    }

    /// Sets whether the definition may change.
    pub(crate) fn set_lock(&self, name: &str, lock: LockMode) -> Result<(), RegistryError> {
        self.set(name, |settings| SettingsRecord { lock, ..settings })
    }

    /// Sets how much an index gives way to others.
    pub(crate) fn set_priority(&self, name: &str, priority: Priority) -> Result<(), RegistryError> {
        self.set(name, |settings| SettingsRecord { priority, ..settings })
    }

    fn set(&self, name: &str, change: impl FnOnce(SettingsRecord) -> SettingsRecord) -> Result<(), RegistryError> {
        let slot = self.slot_of(name)?;
        let number = slot.serving.context.number;
        let mut settings = slot.serving.switches.settings.lock();
        let now = change(*settings);
        self.write(number, vec![meta(settings_name(number), &now)])?;
        *settings = now;
        Ok(())
    }

    /// What is set of an index.
    pub(crate) fn settings(&self, name: &str) -> Option<(LockMode, Priority)> {
        let settings = *self.get(name)?.switches.settings.lock();
        Some((settings.lock, settings.priority))
    }

    /// Forgets the recorded faults of an index, or of the replacement of one. What fails still stays without a result.
    pub(crate) fn clear_faults(&self, name: &str) -> Result<(), RegistryError> {
        let index = self.get(name).ok_or(RegistryError::Missing)?;
        let mut faults = index.faults.lock();
        let range = KeyRange::prefix(faults_prefix(index.context.generation).as_bytes());
        self.write(index.context.number, vec![RowChange::DeleteRange { family: Family::Meta, range }])?;
        faults.clear();
        Ok(())
    }

    /// Every index, and each replacement after the one whose place it is to take, with its definition. In name order.
    ///
    /// # Cost
    /// Reads at most 2,000 feed rows for each source of an index that lags.
    pub(crate) fn overview(&self) -> Result<Vec<(IndexDefinition, IndexStatus)>, StoreError> {
        let snapshot = self.store.snapshot();
        let mut all = Vec::new();
        for slot in self.roster.slots() {
            for index in [&slot.serving].into_iter().chain(&slot.replacement) {
                let status = index.status(&snapshot)?;
                let definition = IndexDefinition { name: status.name.clone(), ..index.checked.definition.clone() };
                all.push((definition, status));
            }
        }
        let unloaded = self.roster.all_unloaded();
        all.extend(unloaded.iter().map(|it| (IndexDefinition::from_record(&it.record), status_of(it))));
        all.sort_by_key(|(_, status)| {
            let name = status.replaces.as_ref().unwrap_or(&status.name);
            (crate::id::lower(name), status.replaces.is_some())
        });
        Ok(all)
    }

    /// The definitions that serve, and those that are refused; in name order.
    pub(crate) fn definitions(&self) -> Vec<IndexDefinition> {
        let slots = self.roster.slots().into_iter().map(|slot| slot.serving.checked.definition.clone());
        let unloaded = self.roster.all_unloaded().into_iter().map(|it| IndexDefinition::from_record(&it.record));
        let mut all: Vec<IndexDefinition> = slots.chain(unloaded).collect();
        all.sort_by_key(|definition| crate::id::lower(&definition.name));
        all
    }

    /// One definition: that of an index, or of the replacement of one.
    pub(crate) fn definition(&self, name: &str) -> Option<IndexDefinition> {
        match self.get(name) {
            Some(index) => Some(index.checked.definition.clone()),
            None => self.roster.unloaded(name).map(|it| IndexDefinition::from_record(&it.record)),
        }
    }

    /// The kept faults of an index, oldest first.
    pub(crate) fn faults(&self, name: &str) -> Result<Vec<FaultRecord>, RegistryError> {
        match (self.get(name), self.roster.unloaded(name)) {
            (Some(index), _) => Ok(index.fault_records()),
            (None, Some(unloaded)) => Ok(vec![FaultRecord {
                at_micros: 0,
                subject: unloaded.record.name.clone(),
                fault: reason_of(&unloaded),
            }]),
            (None, None) => Err(RegistryError::Missing),
        }
    }

    /// Lets an index go on that was stopped for its faults; they are judged anew.
    fn forgive(&self, slot: &Slot) -> Result<(), RegistryError> {
        for index in [&slot.serving].into_iter().chain(&slot.replacement) {
            let mut record = index.record.lock();
            if record.errored {
                record.errored = false;
                if let Err(error) = self.write(record.number, vec![index.definition_row(&record)]) {
                    record.errored = true;
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn slot_of(&self, name: &str) -> Result<Slot, RegistryError> {
        let name = replaced_by(name).unwrap_or(name);
        if let Some(slot) = self.roster.slot(name) {
            return Ok(slot);
        }
        match self.roster.unloaded(name) {
            Some(_) => Err(RegistryError::rule("its script is refused by this version; put a corrected one")),
            None => Err(RegistryError::Missing),
        }
    }

    fn tell(&self, slot: &Slot) {
        for index in [&slot.serving].into_iter().chain(&slot.replacement) {
            index.reach(None);
        }
        self.store.wake();
    }

    fn write(&self, number: u32, rows: Vec<RowChange>) -> Result<(), StoreError> {
        self.store.commit(Commit { author: Author::Index(number), rows, ..Commit::default() }).map(|_| ())
    }
}

/// Why a stored definition is refused.
fn reason_of(unloaded: &Unloaded) -> Fault {
    match &unloaded.reason {
        Refused::Script(fault) => fault.clone(),
        Refused::Rule(reason) => Fault {
            phase: Phase::Definition,
            script: "script".to_owned(),
            line: None,
            column: None,
            function: None,
            message: reason.clone(),
            hint: None,
            transient: false,
        },
    }
}

fn status_of(unloaded: &Unloaded) -> IndexStatus {
    let settings = SettingsRecord::default();
    IndexStatus {
        name: unloaded.record.name.clone(),
        number: unloaded.record.number,
        replaces: None,
        state: IndexState::Error,
        phase: IndexPhase::Live,
        lock: settings.lock,
        priority: settings.priority,
        building: false,
        stale: true,
        output: unloaded.record.output_collection.clone(),
        // As far as the texts tell: this version can't read them.
        is_map_reduce: unloaded
            .record
            .maps
            .iter()
            .chain(&unloaded.record.reduce)
            .any(|text| text.contains("fn reduce")),
        loads: Vec::new(),
        reference: None,
        sources: Vec::new(),
        entries: 0,
        groups: 0,
        map_attempts: 0,
        map_faults: 0,
        reduce_attempts: 0,
        reduce_faults: 0,
        documents_per_second: 0.0,
        seconds_left: None,
        last_run_micros: None,
    }
}
