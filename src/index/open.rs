//! Reads the stored definitions when a database is opened, and goes on where each of them stood.
//!
//! A definition that this version refuses is kept with the reason, and its results stay as they are. Where a replacement of such a one
//! is under way, the replacement becomes the index; a replacement that is itself refused is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::change::{Change, first_progress};
use super::definition::{Checked, IndexDefinition, Refused, check};
use super::faults::FaultLog;
use super::live::{Stored, Switches};
use super::publish::meta;
use super::records::{
    DEFINITIONS, DefinitionRecord, PhaseRecord, ProgressRecord, decode, definition_name, disabled_name, progress_name,
    replacement_name, settings_name,
};
use super::registry::Registry;
use super::retire::{delete_index, delete_meta, generation_rows};
use super::roster::Unloaded;
use crate::store::StoreError;
use crate::store::keyspace::{Family, Generation, KeyRange};
use crate::store::scan::Direction;

impl Registry {
    pub(super) fn load_all(&self) -> Result<(), StoreError> {
        for record in self.stored_definitions()? {
            if record.deleting {
                delete_index(&self.store, &record)?;
                continue;
            }
            let replacement = self.stored_record(&replacement_name(record.number))?;
            let name = record.name.clone();
            match (self.check(&record), replacement) {
                (Ok(checked), None) => self.load(checked, record)?,
                (Ok(checked), Some(replacement)) => self.load_both(checked, record, replacement)?,
                (Err(reason), Some(replacement)) => self.load_adopted(record, reason, replacement)?,
                (Err(reason), None) => self.keep_unloaded(record, reason),
            }
            self.resume(&name)?;
        }
        Ok(())
    }

    fn load(&self, checked: Checked, record: DefinitionRecord) -> Result<(), StoreError> {
        let switches = self.stored_switches(record.number)?;
        let stored = self.stored(&checked, record)?;
        let faults = FaultLog::load(&self.store.snapshot(), stored.generation())?;
        self.roster.set(&self.assemble(checked, stored, faults, switches, false));
        Ok(())
    }

    /// An index whose definition was changing.
    fn load_both(
        &self,
        checked: Checked,
        record: DefinitionRecord,
        replacement: DefinitionRecord,
    ) -> Result<(), StoreError> {
        let name = record.name.clone();
        match self.check(&replacement) {
            Ok(newer) => {
                self.load(checked, record)?;
                let switches = self.roster.serving(&name).map(|index| Arc::clone(&index.switches)).unwrap_or_default();
                let stored = self.stored(&newer, replacement)?;
                let faults = FaultLog::load(&self.store.snapshot(), stored.generation())?;
                let index = self.assemble(newer, stored, faults, switches, true);
                self.roster.set_replacement(&name, Some(index));
                Ok(())
            }
            Err(reason) => {
                tracing::error!(name: "index.replacement.given_up", index = %name, ?reason, "the changed script of an index is refused; the one that serves goes on");
                let serving = self.stored(&checked, record)?;
                let record = self.give_up(serving, replacement)?;
                self.load(checked, record)
            }
        }
    }

    /// A replacement becomes the index, because the definition that served is refused. What it has not merged yet, it merges now.
    fn load_adopted(
        &self,
        former: DefinitionRecord,
        reason: Refused,
        replacement: DefinitionRecord,
    ) -> Result<(), StoreError> {
        let Ok(checked) = self.check(&replacement) else {
            let progress = self.stored_progress(Generation(former.generation))?.unwrap_or_else(no_progress);
            let record = self.give_up(Stored { record: former, progress }, replacement)?;
            self.keep_unloaded(record, reason);
            return Ok(());
        };
        let mut stored = self.stored(&checked, replacement)?;
        stored.record.former_outputs = super::change::left_outputs(&former, &stored.record);
        stored.progress.phase = match stored.progress.phase {
            PhaseRecord::Mapping => PhaseRecord::Mapping,
            PhaseRecord::Sweeping { .. } => {
                stored.progress.groups = 0;
                PhaseRecord::Sweeping { slice: 0 }
            }
            PhaseRecord::Live | PhaseRecord::Swapping { .. } => PhaseRecord::Swapping { slice: 0 },
        };
        let number = stored.record.number;
        let mut change = Change { rows: generation_rows(Generation(former.generation)), ..Change::default() };
        change.rows.push(delete_meta(replacement_name(number)));
        change.rows.push(meta(definition_name(number), &stored.record));
        change.rows.push(meta(progress_name(stored.generation()), &stored.progress));
        self.commit(number, change, Vec::new())?;
        self.load(checked, stored.record)
    }

    /// Commits that a replacement is given up; returns what then stands for the index.
    fn give_up(&self, mut serving: Stored, replacement: DefinitionRecord) -> Result<DefinitionRecord, StoreError> {
        let progress = self.stored_progress(Generation(replacement.generation))?.unwrap_or_else(no_progress);
        let given_up = self.given_up_of(Stored { record: replacement, progress })?;
        let change = Change::without_replacement(&mut serving, &given_up);
        self.commit(serving.record.number, change, Vec::new())?;
        Ok(serving.record)
    }

    fn keep_unloaded(&self, record: DefinitionRecord, reason: Refused) {
        tracing::error!(name: "index.not_loaded", index = %record.name, ?reason, "the script of an index is refused; its results stay as they are");
        self.roster.set_unloaded(Unloaded { record, reason });
    }

    fn check(&self, record: &DefinitionRecord) -> Result<Checked, Refused> {
        check(IndexDefinition::from_record(record), &self.limits)
    }

    /// A generation as it is stored. One without progress is begun anew, whatever rows it has.
    fn stored(&self, checked: &Checked, record: DefinitionRecord) -> Result<Stored, StoreError> {
        let generation = Generation(record.generation);
        if let Some(progress) = self.stored_progress(generation)? {
            return Ok(Stored { record, progress });
        }
        let progress = first_progress(checked, record.generation, self.store.progress().written);
        let mut change = Change { rows: generation_rows(generation), ..Change::default() };
        change.rows.push(meta(progress_name(generation), &progress));
        self.commit(record.number, change, Vec::new())?;
        Ok(Stored { record, progress })
    }

    fn stored_progress(&self, generation: Generation) -> Result<Option<ProgressRecord>, StoreError> {
        let row = self.store.snapshot().row(Family::Meta, progress_name(generation).as_bytes())?;
        row.map(|bytes| decode("meta", &bytes)).transpose()
    }

    fn stored_record(&self, name: &str) -> Result<Option<DefinitionRecord>, StoreError> {
        let row = self.store.snapshot().row(Family::Meta, name.as_bytes())?;
        row.map(|bytes| decode("meta", &bytes)).transpose()
    }

    fn stored_definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        let snapshot = self.store.snapshot();
        let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(DEFINITIONS.as_bytes()), Direction::Forward);
        let mut records = Vec::new();
        while let Some((_, value)) = scan.next_row()? {
            records.push(decode("meta", value)?);
        }
        Ok(records)
    }

    /// What is set of an index.
    pub(super) fn stored_switches(&self, number: u32) -> Result<Arc<Switches>, StoreError> {
        let snapshot = self.store.snapshot();
        let settings = snapshot.row(Family::Meta, settings_name(number).as_bytes())?;
        let settings = settings.map(|bytes| decode("meta", &bytes)).transpose()?.unwrap_or_default();
        let switches =
            Switches { settings: Mutex::new(settings), is_paused: AtomicBool::new(false), ..Switches::default() };
        let is_disabled = snapshot.row(Family::Meta, disabled_name(number).as_bytes())?.is_some();
        switches.is_disabled.store(is_disabled, Ordering::Relaxed);
        Ok(Arc::new(switches))
    }
}

/// The progress of a generation of which nothing is known.
fn no_progress() -> ProgressRecord {
    ProgressRecord {
        generation: 0,
        fresh_through: 0,
        phase: PhaseRecord::Mapping,
        watermarks: Vec::new(),
        entries: 0,
        groups: 0,
        map_attempts: 0,
        map_faults: 0,
        reduce_attempts: 0,
        reduce_faults: 0,
    }
}
