//! A session: a unit of work. What is loaded and stored in it is remembered, and saved together.
//!
//! Entities live in the session, and a program holds [`Entity`] handles to them. Rust has no object identity that could
//! outlive a borrow, and locks inside each entity could be held across a save; with handles the borrow checker sees to it
//! that nobody changes an entity while it is being saved, and a handle is `Copy`.
//!
//! Next on the walk: `tracked` (one entity), `load`, `save`.

mod load;
mod save;
mod tracked;

use std::any::type_name;
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;

pub use load::Loader;
pub use save::Saved;

use super::batch::is_unfinished;
use super::conventions::{Document, TypeInfo};
use super::error::ClientError;
use super::fields::{SERVER_KEYS, raw};
use super::held::{Held, cut, mismatch};
use super::link::Link;
use super::patch::Patch;
use crate::id::lower;
use tracked::Tracked;

/// Sessions of this process, so that a handle is never taken for one of another session.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Names an entity of a session.
pub struct Entity<T> {
    session: u64,
    slot: u64,
    of: PhantomData<fn() -> T>,
}

/// A unit of work on one database: loads and stores entities, notices what changed, saves it all or nothing.
///
/// It is meant to be short: open one for each request or job, and drop it.
#[derive(Debug)]
pub struct Session {
    link: Arc<Link>,
    number: u64,
    next_slot: u64,
    /// In the order in which they came.
    entities: BTreeMap<u64, Tracked>,
    /// Slots by lower-case id.
    by_id: HashMap<String, u64>,
    /// What is to be deleted, by lower-case id.
    deletions: BTreeMap<String, Deletion>,
    /// Patches that are to be sent, by lower-case id, with the id as written.
    patches: BTreeMap<String, (String, Patch)>,
    /// Documents that came along with others, by lower-case id; `None`: there is none of that id.
    included: HashMap<String, Option<Box<RawValue>>>,
    optimistic_concurrency: bool,
    wait_for_indexes: Option<Duration>,
}

/// An id that the server is asked for.
struct Asked {
    id: String,
    /// The server finishes it.
    unfinished: bool,
    /// It was made for this entity just now.
    is_made: bool,
}

#[derive(Debug)]
struct Deletion {
    id: String,
    /// The version that is expected.
    change_vector: Option<String>,
}

impl Session {
    pub(super) fn new(link: Arc<Link>, optimistic_concurrency: bool) -> Self {
        Self {
            link,
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            next_slot: 0,
            entities: BTreeMap::new(),
            by_id: HashMap::new(),
            deletions: BTreeMap::new(),
            patches: BTreeMap::new(),
            included: HashMap::new(),
            optimistic_concurrency,
            wait_for_indexes: None,
        }
    }

    /// Says whether a save is refused when somebody else wrote, in the meantime, a document that this session loaded, or one
    /// with the id of an entity that is new in it.
    pub fn set_optimistic_concurrency(&mut self, on: bool) {
        self.optimistic_concurrency = on;
    }

    /// Makes each save wait until indexes have taken it in, at most for so long; `None` does not wait.
    pub fn set_wait_for_indexes(&mut self, timeout: Option<Duration>) {
        self.wait_for_indexes = timeout;
    }

    /// Stores an entity when changes are saved. Where its id field is empty, an id is made by the conventions, which may
    /// take a request for a range; the field then holds it. What serde skips in the type is reset by that.
    ///
    /// # Errors
    /// The entity is no JSON object, its id is used by another entity of the session, or no range of ids can be had.
    ///
    /// # Cancel safety
    /// Dropped on the way, the session is as before.
    pub async fn store<T: Document>(&mut self, entity: T) -> Result<Entity<T>, ClientError> {
        let info = self.link.conventions.describe::<T>();
        let mut held = Held::new(entity, &info);
        let separator = self.link.separator().await?;
        let (id, is_made) = held.asked(&self.link, &info).await?;
        let unfinished = is_unfinished(&id, separator);
        if is_made && !unfinished {
            held.set_id(&id).map_err(|reason| mismatch::<T>(&id, reason))?;
        }
        self.track(held, &info, Asked { id, unfinished, is_made })
    }

    /// Stores an entity under `id` when changes are saved: `users/ayende` is the id; with `users/` the server makes one by the
    /// write's number, with `users|` the next of an identity, and with `""` a GUID.
    ///
    /// # Errors
    /// The entity is no JSON object, or the id is used by another entity of the session.
    pub async fn store_as<T: Document>(&mut self, entity: T, id: &str) -> Result<Entity<T>, ClientError> {
        let info = self.link.conventions.describe::<T>();
        let mut held = Held::new(entity, &info);
        let unfinished = is_unfinished(id, self.link.separator().await?);
        if !unfinished {
            held.set_id(id).map_err(|reason| mismatch::<T>(id, reason))?;
        }
        self.track(held, &info, Asked { id: id.to_owned(), unfinished, is_made: false })
    }

    /// The entity that a handle names.
    ///
    /// # Errors
    /// The handle is not of this session, or the entity was deleted or forgotten.
    pub fn get<T: Document>(&self, entity: &Entity<T>) -> Result<&T, ClientError> {
        self.tracked(entity)?.get::<T>().ok_or_else(foreign::<T>)
    }

    /// The entity that a handle names, to change it; a change is noticed when changes are saved.
    ///
    /// # Errors
    /// The handle is not of this session, or the entity was deleted or forgotten.
    pub fn get_mut<T: Document>(&mut self, entity: &Entity<T>) -> Result<&mut T, ClientError> {
        self.tracked_mut(entity)?.get_mut::<T>().ok_or_else(foreign::<T>)
    }

    /// The id of an entity's document; `None` while the server has not made it yet, and for a handle that is not of this
    /// session.
    #[must_use]
    pub fn document_id<T: Document>(&self, entity: &Entity<T>) -> Option<&str> {
        self.tracked(entity).ok()?.id.as_deref()
    }

    /// The version in which an entity was loaded or saved last; `None` where it is not stored yet.
    #[must_use]
    pub fn change_vector<T: Document>(&self, entity: &Entity<T>) -> Option<&str> {
        self.tracked(entity).ok()?.change_vector.as_deref()
    }

    /// When an entity was stored last, as the server wrote it; `None` where it is not stored yet.
    #[must_use]
    pub fn last_modified<T: Document>(&self, entity: &Entity<T>) -> Option<&str> {
        self.tracked(entity).ok()?.last_modified.as_deref()
    }

    /// Reads a key of an entity's metadata; `None` where there is none.
    ///
    /// # Errors
    /// The handle is not of this session, or the value is no `V`.
    pub fn metadata<T: Document, V: serde::de::DeserializeOwned>(
        &self,
        entity: &Entity<T>,
        key: &str,
    ) -> Result<Option<V>, ClientError> {
        let tracked = self.tracked(entity)?;
        let Some(value) = tracked.metadata.get(key) else { return Ok(None) };
        serde_json::from_str(value.get()).map(Some).map_err(|error| {
            let reason = format!("the metadata '{key}': {error}");
            mismatch::<T>(tracked.id.as_deref().unwrap_or_default(), reason)
        })
    }

    /// Sets a key of an entity's metadata; `@collection` moves it to another collection.
    ///
    /// # Errors
    /// The handle is not of this session, the value can't be JSON, or the key is one that the server sets.
    pub fn set_metadata<T: Document>(
        &mut self,
        entity: &Entity<T>,
        key: &str,
        value: &impl serde::Serialize,
    ) -> Result<(), ClientError> {
        if SERVER_KEYS.contains(&key) {
            return Err(ClientError::Usage(format!("the metadata '{key}' is set by the server; choose another key")));
        }
        let value = raw(value).map_err(|reason| mismatch::<T>("", format!("the metadata '{key}': {reason}")))?;
        self.tracked_mut(entity)?.metadata.insert(key.to_owned(), value);
        Ok(())
    }

    /// Whether there is anything to save.
    ///
    /// # Errors
    /// An entity can't be written as JSON.
    pub fn has_changes(&self) -> Result<bool, ClientError> {
        if !self.deletions.is_empty() || !self.patches.is_empty() {
            return Ok(true);
        }
        for tracked in self.entities.values() {
            if tracked.pending()?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an entity is new or was changed.
    ///
    /// # Errors
    /// The handle is not of this session, or the entity can't be written as JSON.
    pub fn has_changed<T: Document>(&self, entity: &Entity<T>) -> Result<bool, ClientError> {
        Ok(self.tracked(entity)?.pending()?.is_some())
    }

    /// Deletes an entity's document when changes are saved. The handle is of no use from now on.
    ///
    /// # Errors
    /// The handle is not of this session.
    pub fn delete<T: Document>(&mut self, entity: &Entity<T>) -> Result<(), ClientError> {
        let tracked = self.evict(entity)?;
        // What was never stored is simply forgotten.
        if let (Some(id), Some(change_vector)) = (tracked.id, tracked.change_vector) {
            let expected = self.optimistic_concurrency.then_some(change_vector);
            self.deletions.insert(lower(&id), Deletion { id, change_vector: expected });
        }
        Ok(())
    }

    /// Deletes the document of an id when changes are saved, whether it was loaded or not; one that is missing is deleted
    /// already.
    ///
    /// # Errors
    /// There is a changed entity of that id in the session.
    pub fn delete_by_id(&mut self, id: &str) -> Result<(), ClientError> {
        let key = lower(id);
        let mut expected = None;
        if let Some(slot) = self.by_id.get(&key).copied() {
            if let Some(tracked) = self.entities.get(&slot) {
                if tracked.pending()?.is_some() {
                    return Err(ClientError::Usage(format!(
                        "'{}' can't be deleted by its id, because it is new or changed in this session; delete the entity, or let it go with forget first",
                        cut(id)
                    )));
                }
                expected.clone_from(&tracked.change_vector);
            }
            self.entities.remove(&slot);
            self.by_id.remove(&key);
        }
        let change_vector = expected.filter(|_| self.optimistic_concurrency);
        self.deletions.insert(key, Deletion { id: id.to_owned(), change_vector });
        Ok(())
    }

    /// Changes parts of an entity's document when changes are saved, after what else is saved of it. The entity then is as the
    /// server has it. Several patches of one document follow each other.
    ///
    /// # Errors
    /// The handle is not of this session, or the entity has no finished id yet.
    pub fn patch<T: Document>(&mut self, entity: &Entity<T>, patch: Patch) -> Result<(), ClientError> {
        let Some(id) = self.tracked(entity)?.id.clone() else {
            return Err(ClientError::Usage(
                "an entity whose id the server makes can't be patched yet; save it first".to_owned(),
            ));
        };
        self.patch_by_id(&id, patch);
        Ok(())
    }

    /// Changes parts of the document of an id when changes are saved, whether it was loaded or not.
    pub fn patch_by_id(&mut self, id: &str, patch: Patch) {
        let (_, patches) = self.patches.entry(lower(id)).or_insert_with(|| (id.to_owned(), Patch::new()));
        patches.append(patch);
    }

    /// Lets an entity go: its changes are not saved, and the handle is of no use from now on.
    ///
    /// # Errors
    /// The handle is not of this session.
    pub fn forget<T: Document>(&mut self, entity: &Entity<T>) -> Result<(), ClientError> {
        self.evict(entity).map(|_| ())
    }

    /// Lets everything go, also what was included and what was to be deleted or patched.
    pub fn clear(&mut self) {
        self.entities.clear();
        self.by_id.clear();
        self.deletions.clear();
        self.patches.clear();
        self.included.clear();
    }

    fn evict<T: Document>(&mut self, entity: &Entity<T>) -> Result<Tracked, ClientError> {
        self.tracked(entity)?;
        let tracked = self.entities.remove(&entity.slot).ok_or_else(foreign::<T>)?;
        if let Some(id) = &tracked.id {
            self.by_id.remove(&lower(id));
        }
        Ok(tracked)
    }

    fn track<T: Document>(
        &mut self,
        held: Held<T>,
        info: &TypeInfo<T>,
        asked: Asked,
    ) -> Result<Entity<T>, ClientError> {
        let Asked { id, unfinished, is_made } = asked;
        if !unfinished && self.by_id.contains_key(&lower(&id)) {
            return Err(ClientError::Usage(format!(
                "there is another entity of the id '{}' in this session; change that one, or let it go with forget",
                cut(&id)
            )));
        }
        let metadata = held.metadata(info.collection.as_deref()).map_err(|reason| mismatch::<T>(&id, reason))?;
        let finished = if unfinished { None } else { Some(id.clone()) };
        Ok(self.add(Tracked::new(Box::new(held), finished, id, metadata, is_made && !unfinished)))
    }

    fn add<T>(&mut self, tracked: Tracked) -> Entity<T> {
        let slot = self.next_slot;
        self.next_slot += 1;
        if let Some(id) = &tracked.id {
            self.by_id.insert(lower(id), slot);
        }
        self.entities.insert(slot, tracked);
        Entity { session: self.number, slot, of: PhantomData }
    }

    fn tracked<T>(&self, entity: &Entity<T>) -> Result<&Tracked, ClientError> {
        let found = self.entities.get(&entity.slot).filter(|_| entity.session == self.number);
        found.ok_or_else(foreign::<T>)
    }

    fn tracked_mut<T>(&mut self, entity: &Entity<T>) -> Result<&mut Tracked, ClientError> {
        let number = self.number;
        let found = self.entities.get_mut(&entity.slot).filter(|_| entity.session == number);
        found.ok_or_else(foreign::<T>)
    }
}

fn foreign<T>() -> ClientError {
    ClientError::Handle { type_name: type_name::<T>() }
}

impl<T> Clone for Entity<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entity<T> {}

impl<T> PartialEq for Entity<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.session, self.slot) == (other.session, other.slot)
    }
}

impl<T> Eq for Entity<T> {}

impl<T> std::fmt::Debug for Entity<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entity<{}>({}.{})", type_name::<T>(), self.session, self.slot)
    }
}
