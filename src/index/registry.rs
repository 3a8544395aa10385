//! The indexes of one database: put, list, delete; and their threads.
//!
//! Definitions change one at a time; the rules between indexes are checked here, and again by the commit that makes the claim
//! on the output collection, so that a user's write in between can't slip past.
//!
//! Next on the walk: `definition`, `graph`, then `live`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};

use super::context::{Context, feeds, first_watermarks, same_name};
use super::counters::Counters;
use super::definition::{Checked, IndexDefinition, Refused, check};
use super::faults::FaultLog;
use super::graph;
use super::live::Index;
use super::publish::meta;
use super::records::{
    DEFINITIONS, DefinitionRecord, NUMBERS, Numbers, PhaseRecord, ProgressRecord, decode, definition_name,
    disabled_name, encode, faults_prefix, progress_name,
};
use super::retire::generation_rows;
use super::worker;
use crate::script::{Limits, STACK_BYTES};
use crate::store::commit::{Author, ClaimChange, Commit, Condition, RowChange};
use crate::store::keyspace::{Family, Generation, KeyRange};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// Indexes of one database; each has a thread.
pub const INDEXES_MAX: usize = 256;

/// The indexes of one database.
#[derive(Debug)]
pub(crate) struct Registry {
    store: Store,
    limits: Limits,
    /// Held while a definition changes; true when the database was closed, and no thread may start any more.
    changing: Mutex<bool>,
    /// By lower-cased name.
    indexes: RwLock<BTreeMap<String, Arc<Index>>>,
    /// Stored definitions whose script this version refuses; they can be replaced and deleted. By lower-cased name.
    unloaded: Mutex<BTreeMap<String, DefinitionRecord>>,
}

/// Why a definition could not be put or deleted.
#[derive(Debug)]
pub(crate) enum RegistryError {
    /// It is refused.
    Refused(Refused),
    /// The store failed, or refused the claim.
    Store(StoreError),
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Registry {
    /// Reads the definitions and starts their threads.
    pub(crate) fn open(store: Store, limits: Limits) -> Result<Self, StoreError> {
        let registry = Self {
            store,
            limits,
            changing: Mutex::new(false),
            indexes: RwLock::new(BTreeMap::new()),
            unloaded: Mutex::new(BTreeMap::new()),
        };
        match registry.load_all() {
            Ok(()) => Ok(registry),
            Err(error) => {
                registry.close();
                Err(error)
            }
        }
    }

    fn load_all(&self) -> Result<(), StoreError> {
        for record in self.stored_definitions()? {
            if record.deleting {
                super::retire::delete_index(&self.store, &record)?;
                continue;
            }
            let name = record.name.clone();
            match check(IndexDefinition::from_record(&record), &self.limits) {
                Ok(checked) => self.load(checked, record)?,
                Err(reason) => {
                    tracing::error!(index = %name, ?reason, "index.not_loaded");
                    self.unloaded.lock().insert(crate::id::lower(&name), record);
                }
            }
        }
        Ok(())
    }

    /// Lets one definition change at a time, as long as the database is open.
    fn change(&self) -> Result<MutexGuard<'_, bool>, StoreError> {
        let is_closed = self.changing.lock();
        if *is_closed {
            return Err(StoreError::Closed("it is closed; open it again".to_owned()));
        }
        Ok(is_closed)
    }

    /// Puts an index. `false`: the same is there already.
    pub(crate) fn put(&self, definition: IndexDefinition) -> Result<bool, RegistryError> {
        let checked = check(definition, &self.limits).map_err(RegistryError::Refused)?;
        let _changing = self.change()?;
        let present = self.get(&checked.definition.name);
        if let Some(present) = &present {
            if present.checked.is_same(&checked) {
                return Ok(false);
            }
            if let Some(reason) = checked.clash(&present.checked) {
                return Err(RegistryError::Refused(Refused::Rule(reason)));
            }
        }
        let others: Vec<_> = self.all().iter().map(|index| index.checked.node()).collect();
        let others: Vec<_> =
            others.into_iter().filter(|node| !same_name(&node.name, &checked.definition.name)).collect();
        if others.len() >= INDEXES_MAX {
            let reason = format!("the database has {INDEXES_MAX} indexes, the most it may have; delete one first");
            return Err(RegistryError::Refused(Refused::Rule(reason)));
        }
        graph::check(&checked.node(), &others).map_err(|reason| RegistryError::Refused(Refused::Rule(reason)))?;
        self.begin_generation(checked, present)?;
        Ok(true)
    }

    /// Builds an index anew from its documents, behind its present results. `false`: there is none.
    pub(crate) fn reset(&self, name: &str) -> Result<bool, RegistryError> {
        let _changing = self.changing.lock();
        if let Some(present) = self.get(name) {
            self.begin_generation(present.checked.clone(), Some(present))?;
            return Ok(true);
        }
        match self.unloaded.lock().get(&crate::id::lower(name)).cloned() {
            None => Ok(false),
            Some(record) => {
                let refused = check(IndexDefinition::from_record(&record), &self.limits).err();
                let reason = "its script is refused by this version; put a corrected one".to_owned();
                Err(RegistryError::Refused(refused.unwrap_or(Refused::Rule(reason))))
            }
        }
    }

    /// Turns an index off, or on again; for good, restarts included. `false`: there is none that could run.
    pub(crate) fn set_disabled(&self, name: &str, is_disabled: bool) -> Result<bool, StoreError> {
        let _changing = self.changing.lock();
        let Some(index) = self.get(name) else { return Ok(false) };
        let (family, key) = (Family::Meta, disabled_name(index.context.number).into_bytes());
        let row = match is_disabled {
            true => RowChange::Put { family, key, value: Vec::new() },
            false => RowChange::Delete { family, key },
        };
        let author = Author::Index(index.context.number);
        self.store.commit(Commit { author, rows: vec![row], ..Commit::default() })?;
        index.is_disabled.store(is_disabled, Ordering::Relaxed);
        index.reach(None);
        self.store.wake();
        Ok(true)
    }

    /// Whether a definition is there already and would change nothing.
    ///
    /// # Errors
    /// The definition is refused by itself.
    pub(crate) fn is_same(&self, definition: IndexDefinition) -> Result<bool, RegistryError> {
        let checked = check(definition, &self.limits).map_err(RegistryError::Refused)?;
        Ok(self.get(&checked.definition.name).is_some_and(|present| present.checked.is_same(&checked)))
    }

    /// Deletes an index and its artificial documents. `false`: there was none.
    pub(crate) fn delete(&self, name: &str) -> Result<bool, StoreError> {
        let _changing = self.change()?;
        let index = self.get(name);
        let Some(record) = self.stop_index(name) else {
            return Ok(false);
        };
        let record = DefinitionRecord { deleting: true, ..record };
        let rows = vec![meta(definition_name(record.number), &record)];
        self.store.commit(Commit { author: Author::Index(record.number), rows, ..Commit::default() })?;
        super::retire::delete_index(&self.store, &record)?;
        self.indexes.write().remove(&crate::id::lower(name));
        self.unloaded.lock().remove(&crate::id::lower(name));
        if let Some(index) = index {
            index.leave();
        }
        Ok(true)
    }

    /// Stops an index's thread, if it has one, and returns its stored definition.
    fn stop_index(&self, name: &str) -> Option<DefinitionRecord> {
        match self.get(name) {
            Some(index) => {
                index.stop();
                let record = index.record.lock().clone();
                Some(record)
            }
            None => self.unloaded.lock().get(&crate::id::lower(name)).cloned(),
        }
    }

    /// One index, by name without regard to case.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Index>> {
        self.indexes.read().get(&crate::id::lower(name)).cloned()
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

    /// All indexes, in name order.
    pub(crate) fn all(&self) -> Vec<Arc<Index>> {
        self.indexes.read().values().cloned().collect()
    }

    /// Stops all threads after the runs in hand.
    pub(crate) fn close(&self) {
        let mut is_closed = self.changing.lock();
        *is_closed = true;
        let all = self.all();
        for index in &all {
            index.context.stop.store(true, Ordering::Relaxed);
        }
        self.store.wake();
        for index in &all {
            index.stop();
        }
    }

    /// Commits the definition as a new generation, hidden behind the artificial documents of the one before, and starts it.
    fn begin_generation(&self, checked: Checked, before: Option<Arc<Index>>) -> Result<(), StoreError> {
        let stored_numbers = self.store.snapshot().row(Family::Meta, NUMBERS.as_bytes())?;
        let mut numbers: Numbers =
            stored_numbers.as_deref().map(|bytes| decode("meta", bytes)).transpose()?.unwrap_or_default();
        numbers.generation += 1;
        let former = self.stop_index(&checked.definition.name);
        let record = next_record(&checked, former.as_ref(), &mut numbers);
        let progress = first_progress(&checked, record.generation, self.store.progress().written);
        let mut rows = vec![
            RowChange::Put { family: Family::Meta, key: NUMBERS.into(), value: encode(&numbers) },
            meta(definition_name(record.number), &record),
            meta(progress_name(record.number), &progress),
        ];
        if let Some(former) = &former {
            rows.extend(generation_rows(Generation(former.generation)));
            let range = KeyRange::prefix(faults_prefix(record.number).as_bytes());
            rows.push(RowChange::DeleteRange { family: Family::Meta, range });
        }
        let committed = self.store.commit(Commit {
            author: Author::Index(record.number),
            rows,
            claims: claims(&record, former.as_ref()),
            conditions: vec![Condition::MetaIs { name: NUMBERS.to_owned(), value: stored_numbers }],
            ..Commit::default()
        });
        match (committed, before) {
            (Ok(_), before) => {
                self.unloaded.lock().remove(&crate::id::lower(&record.name));
                self.start(checked, record, progress, FaultLog::default())?;
                if let Some(before) = before {
                    before.leave();
                }
                Ok(())
            }
            (Err(error), None) => Err(error),
            (Err(error), Some(before)) => {
                let record = before.record.lock().clone();
                self.load(before.checked.clone(), record)?;
                before.leave();
                Err(error)
            }
        }
    }

    /// Starts an index whose definition is stored.
    fn load(&self, checked: Checked, record: DefinitionRecord) -> Result<(), StoreError> {
        let snapshot = self.store.snapshot();
        let faults = FaultLog::load(&snapshot, record.number)?;
        let stored = snapshot.row(Family::Meta, progress_name(record.number).as_bytes())?;
        let progress = match stored {
            Some(bytes) => decode("meta", &bytes)?,
            None => first_progress(&checked, record.generation, snapshot.progress().written),
        };
        drop(snapshot);
        self.start(checked, record, progress, faults)
    }

    fn start(
        &self,
        checked: Checked,
        record: DefinitionRecord,
        progress: ProgressRecord,
        faults: FaultLog,
    ) -> Result<(), StoreError> {
        let context = Context {
            store: self.store.clone(),
            number: record.number,
            name: record.name.as_str().into(),
            generation: Generation(record.generation),
            program: Arc::clone(&checked.program),
            output: checked.output.clone(),
            reference: checked.reference.clone(),
            feeds: feeds(&checked.program),
            counters: Arc::new(Counters::default()),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let name = crate::id::lower(&record.name);
        let is_disabled = self.store.snapshot().row(Family::Meta, disabled_name(record.number).as_bytes())?.is_some();
        let index = Index::new(checked, context, record, progress, faults, is_disabled);
        let running = Arc::clone(&index);
        let thread =
            std::thread::Builder::new().name(format!("index-{}", index.context.number)).stack_size(STACK_BYTES);
        let thread = thread
            .spawn(move || worker::run(&running))
            .map_err(|error| StoreError::Closed(format!("no thread for the index could be started: {error}")))?;
        *index.thread.lock() = Some(thread);
        self.indexes.write().insert(name, index);
        Ok(())
    }

    fn stored_definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        let snapshot: Snapshot<'_> = self.store.snapshot();
        let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(DEFINITIONS.as_bytes()), Direction::Forward);
        let mut records = Vec::new();
        while let Some((_, value)) = scan.next_row()? {
            records.push(decode("meta", value)?);
        }
        Ok(records)
    }
}

/// The record of a new generation; a new index gets the next number.
fn next_record(checked: &Checked, former: Option<&DefinitionRecord>, numbers: &mut Numbers) -> DefinitionRecord {
    let mut former_outputs = Vec::new();
    let number = match former {
        Some(former) => {
            let written = former.output_collection.iter().chain(&former.reference_collection);
            let earlier = former.former_outputs.iter().chain(written);
            let is_current = |output: &&String| checked.written().iter().any(|now| same_name(now, output));
            former_outputs.extend(earlier.filter(|output| !is_current(output)).cloned());
            former.number
        }
        None => {
            numbers.index += 1;
            numbers.index
        }
    };
    DefinitionRecord {
        number,
        generation: numbers.generation,
        name: checked.definition.name.clone(),
        maps: checked.definition.texts.maps.clone(),
        reduce: checked.definition.texts.reduce.clone(),
        output: checked.definition.output.clone(),
        output_collection: checked.output.clone(),
        former_outputs,
        deleting: false,
        errored: false,
        reference_pattern: checked.definition.reference_pattern.clone(),
        reference_name: checked.definition.reference_collection.clone(),
        reference_collection: checked.reference.as_ref().map(|reference| reference.collection.clone()),
    }
}

/// The claims on the output and the reference collection, unless the index holds it already.
fn claims(record: &DefinitionRecord, former: Option<&DefinitionRecord>) -> Vec<ClaimChange> {
    let held = |output: &String| {
        former.is_some_and(|former| {
            let theirs = former.output_collection.iter().chain(&former.reference_collection);
            theirs.chain(&former.former_outputs).any(|theirs| same_name(theirs, output))
        })
    };
    let written = record.output_collection.iter().chain(&record.reference_collection);
    let new = written.filter(|output| !held(output));
    new.map(|output| ClaimChange::Take {
        collection: output.clone(),
        owner: record.number,
        owner_name: record.name.clone(),
    })
    .collect()
}

fn first_progress(checked: &Checked, generation: u32, written: u64) -> ProgressRecord {
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
