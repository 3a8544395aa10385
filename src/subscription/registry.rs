//! The subscriptions of one database: created, changed, found, deleted. Names are matched without regard to case.
//!
//! Next on the walk: `live`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::definition::{Checked, Definition, Start};
use super::error::{End, SubscriptionError};
use super::live::{Live, Status};
use super::record::{self, CursorRecord, FaultRow};
use crate::id::{cut, lower};
use crate::script::Limits;
use crate::store::commit::{Commit, RowChange, now_micros};
use crate::store::keyspace::Family;
use crate::store::{Store, StoreError, previous};

/// Subscriptions of one database.
const SUBSCRIPTIONS_MAX: usize = 10_000;

/// The subscriptions of one database.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    store: Store,
    limits: Limits,
    /// By lower-cased name.
    lives: RwLock<BTreeMap<String, Arc<Live>>>,
    /// Held while definitions change.
    changing: Mutex<()>,
}

/// What is to change of a subscription; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Update {
    pub(crate) name: Option<String>,
    pub(crate) query: Option<String>,
    /// Empty: without a script from now on.
    pub(crate) script: Option<String>,
    pub(crate) include_deletes: Option<bool>,
    pub(crate) include_previous: Option<bool>,
    pub(crate) is_disabled: Option<bool>,
    pub(crate) start: Option<Start>,
}

/// How a subscription is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key<'a> {
    /// By its name.
    Name(&'a str),
    /// By its number.
    Number(u64),
}

impl Subscriptions {
    /// Reads the subscriptions of a store, before anything is written to it. Blocking.
    ///
    /// # Errors
    /// A read failed or a row is damaged.
    pub(crate) fn open(store: Store, limits: Limits) -> Result<Self, StoreError> {
        let mut lives = BTreeMap::new();
        {
            let snapshot = store.snapshot();
            for definition in record::read_definitions(&snapshot)? {
                let (number, name) = (definition.number, definition.name.clone());
                let cursor: CursorRecord = record::read(&snapshot, &record::cursor(number))?.unwrap_or_default();
                let faults: Vec<FaultRow> = record::read(&snapshot, &record::faults(number))?.unwrap_or_default();
                match Checked::of(definition, &limits) {
                    Ok(checked) => {
                        lives.insert(lower(&name), Live::new(store.clone(), checked, cursor, faults));
                    }
                    Err(error) => {
                        tracing::error!(name: "subscription.refused", subscription = %name, %error, "a stored subscription is refused by this version; it stays as it is");
                    }
                }
            }
        }
        Ok(Self { store, limits, lives: RwLock::new(lives), changing: Mutex::new(()) })
    }

    /// Finds one.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(&self, key: Key<'_>) -> Result<Arc<Live>, SubscriptionError> {
        let lives = self.lives.read();
        let (found, name) = match key {
            Key::Name(name) => (lives.get(&lower(name)).cloned(), cut(name)),
            Key::Number(number) => (lives.values().find(|live| live.number == number).cloned(), number.to_string()),
        };
        found.ok_or(SubscriptionError::Missing { name })
    }

    /// Lists all, in name order.
    pub(crate) fn list(&self) -> Vec<Status> {
        let lives: Vec<Arc<Live>> = self.lives.read().values().cloned().collect();
        lives.iter().map(|live| live.status()).collect()
    }

    /// Creates one; returns its name. Blocking until it is durable.
    ///
    /// # Errors
    /// The definition breaks a rule, the name is taken, or the storage fails.
    pub(crate) fn create(&self, definition: &Definition) -> Result<String, SubscriptionError> {
        let _one = self.changing.lock();
        if self.lives.read().len() >= SUBSCRIPTIONS_MAX {
            return Err(SubscriptionError::Definition {
                name: cut(definition.name.as_deref().unwrap_or("")),
                reason: format!(
                    "a database has at most {SUBSCRIPTIONS_MAX} subscriptions; delete those that nobody reads"
                ),
            });
        }
        let last = record::read::<u64>(&self.store.snapshot(), record::LAST)?.unwrap_or(0);
        let (number, now) = (last + 1, now_micros());
        let checked = Checked::check(definition, number, &self.limits, now)?;
        if let Ok(present) = self.find(Key::Name(&checked.record.name)) {
            return Err(SubscriptionError::Exists { name: present.status().definition.name });
        }
        let mut cursor = CursorRecord { touched_micros: now, ..CursorRecord::default() };
        self.start(&checked, definition.start, &mut cursor)?;
        let rows = vec![
            record::put(record::LAST.to_owned(), &number),
            record::put(record::definition(number), &checked.record),
            record::put(record::cursor(number), &cursor),
        ];
        self.store.commit(Commit { rows, ..Commit::default() })?;
        let name = checked.record.name.clone();
        let live = Live::new(self.store.clone(), checked, cursor, Vec::new());
        self.lives.write().insert(lower(&name), live);
        Ok(name)
    }

    /// Changes one; returns its name, and whether anything had to change. Its workers end, and may come again. Blocking until
    /// it is durable.
    ///
    /// # Errors
    /// There is none, what it would be breaks a rule, the name is taken, or the storage fails.
    pub(crate) fn update(&self, key: Key<'_>, update: &Update) -> Result<(String, bool), SubscriptionError> {
        let _one = self.changing.lock();
        let live = self.find(key)?;
        let present = live.status().definition;
        let wanted = Definition {
            name: Some(update.name.clone().unwrap_or_else(|| present.name.clone())),
            query: update.query.clone().unwrap_or_else(|| present.query.clone()),
            script: update.script.clone().or_else(|| present.script.clone()),
            include_deletes: update.include_deletes.unwrap_or(present.include_deletes),
            include_previous: update.include_previous.unwrap_or(present.include_previous),
            is_disabled: update.is_disabled.unwrap_or(present.is_disabled),
            start: update.start.unwrap_or(Start::Unchanged),
        };
        let checked = Checked::check(&wanted, live.number, &self.limits, present.created_micros)?;
        let name = checked.record.name.clone();
        if checked.record == present && wanted.start == Start::Unchanged {
            return Ok((name, false));
        }
        if self.find(Key::Name(&name)).is_ok_and(|other| other.number != live.number) {
            return Err(SubscriptionError::Exists { name });
        }
        let end = if checked.record.is_disabled { End::Disabled } else { End::Changed };
        self.change(&live, checked, wanted.start, end)?;
        let mut lives = self.lives.write();
        lives.remove(&lower(&present.name));
        lives.insert(lower(&name), live);
        Ok((name, true))
    }

    /// Deletes one; `false`: there is none. Blocking until it is durable.
    ///
    /// # Errors
    /// The storage fails.
    pub(crate) fn delete(&self, name: &str) -> Result<bool, SubscriptionError> {
        let _one = self.changing.lock();
        let Ok(live) = self.find(Key::Name(name)) else { return Ok(false) };
        let number = live.number;
        let keeps = {
            let mut state = live.state.lock();
            state.is_deleted = true;
            state.end_workers(End::Deleted);
            state.checked.record.include_previous
        };
        self.store.forget_previous(number);
        let mut rows = vec![
            record::delete(record::definition(number)),
            record::delete(record::cursor(number)),
            record::delete(record::faults(number)),
        ];
        if keeps {
            rows.push(RowChange::DeleteRange { family: Family::Meta, range: previous::range(number) });
        }
        self.store.commit(Commit { rows, ..Commit::default() })?;
        self.lives.write().remove(&lower(name));
        live.changed.send_replace(());
        Ok(true)
    }

    /// Ends the workers of one, or those that call themselves `worker`; they may not come back by themselves.
    ///
    /// # Errors
    /// There is no such subscription.
    pub(crate) fn drop_workers(&self, name: &str, worker: Option<&str>) -> Result<(), SubscriptionError> {
        let live = self.find(Key::Name(name))?;
        let mut state = live.state.lock();
        match worker {
            None => state.end_workers(End::Dropped),
            Some(worker) => {
                let named = state.workers.iter().filter(|entry| entry.id == worker);
                let numbers: Vec<u64> = named.map(|entry| entry.number).collect();
                for number in numbers {
                    if let Some(entry) = state.workers.iter().find(|entry| entry.number == number) {
                        entry.end.send_replace(Some(End::Dropped));
                    }
                    state.remove_worker(number);
                }
            }
        }
        drop(state);
        live.changed.send_replace(());
        Ok(())
    }

    /// Puts another definition or position in place.
    fn change(&self, live: &Live, checked: Checked, start: Start, end: End) -> Result<(), SubscriptionError> {
        let number = live.number;
        let mut state = live.state.lock();
        state.sync_cursor();
        let mut cursor = state.cursor.clone();
        cursor.touched_micros = now_micros();
        // Deletions that were not asked for until now were not kept for it.
        let begins_deletes = checked.record.include_deletes && !state.checked.record.include_deletes;
        if begins_deletes && start == Start::Unchanged {
            self.start(&checked, Start::After(cursor.through), &mut cursor)?;
        } else {
            self.start(&checked, start, &mut cursor)?;
        }
        state.end_workers(end);
        let moved = start != Start::Unchanged;
        let keeps = checked.record.include_previous && !moved && checked.feed == state.checked.feed;
        let mut rows = vec![record::put(record::definition(number), &checked.record)];
        if state.checked.record.include_previous && !keeps {
            rows.push(RowChange::DeleteRange { family: Family::Meta, range: previous::range(number) });
        }
        state.replace(checked, cursor);
        rows.extend(state.rows(number));
        // Handed over under the lock, so that no later acknowledgement is written before it.
        let written = self.store.submit(Commit { rows, ..Commit::default() });
        let through = state.cursor.through;
        drop(state);
        self.store.forget_previous(number);
        live.keep(through);
        live.changed.send_replace(());
        blocking(written)?;
        Ok(())
    }

    /// Moves a cursor to where a subscription is to begin.
    fn start(&self, checked: &Checked, start: Start, cursor: &mut CursorRecord) -> Result<(), SubscriptionError> {
        let progress = self.store.progress();
        let Some(through) = start.etag(progress) else { return Ok(()) };
        // Who begins at the beginning has seen nothing, and needs no deletion of what is gone already.
        let seen_from = if start == Start::Beginning { progress.durable } else { 0 };
        let purged = self.store.snapshot().purged_through(&checked.feed)?;
        if checked.record.include_deletes && purged > through.max(seen_from) {
            return Err(SubscriptionError::Position(format!(
                "deletions through etag {purged} were cleaned up, so a subscription with IncludeDeletes can't begin at {through}; start \
                 at 'BeginningOfTime', and forget what was read before"
            )));
        }
        *cursor = CursorRecord { through, above: Vec::new(), seen_from, ..cursor.clone() };
        Ok(())
    }
}

/// Waits for a commit on a thread that may block.
fn blocking<T>(written: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|source| StoreError::System { action: "waiting for a commit".to_owned(), source })?;
    runtime.block_on(written)
}
