//! One entity of a session: its value, how it was when it was read or saved last, and what the server says of it.
//!
//! Next on the walk: `load`.

use serde_json::value::RawValue;

use crate::client::error::ClientError;
use crate::client::fields::{Fields, METADATA, SERVER_KEYS, merged, same};
use crate::client::held::AnyEntity;

/// An entity with what the session knows of it.
pub(super) struct Tracked {
    entity: Box<dyn AnyEntity>,
    /// The finished id.
    pub(super) id: Option<String>,
    /// The id that the server is asked for: the finished one, or `users/`, `users|`, or nothing.
    pub(super) asked: String,
    pub(super) change_vector: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Its id was made for it, so there can be no document of that id.
    pub(super) is_made: bool,
    pub(super) metadata: Fields,
    /// How it is stored; `None` where it is not.
    stored: Option<Stored>,
}

/// How an entity was when it was read or saved last.
#[derive(Debug)]
struct Stored {
    /// All fields of the document, also those that the type does not know.
    document: Fields,
    /// The fields of the entity.
    fields: Fields,
    metadata: Fields,
}

/// What is to be written of an entity.
#[derive(Debug)]
pub(super) struct Pending {
    /// The document without its metadata.
    pub(super) document: Fields,
    fields: Fields,
}

/// A document as the server sends it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) id: String,
    change_vector: String,
    last_modified: Option<String>,
    metadata: Fields,
    pub(super) document: Fields,
}

impl Tracked {
    /// A new entity.
    pub(super) fn new(
        entity: Box<dyn AnyEntity>,
        id: Option<String>,
        asked: String,
        metadata: Fields,
        is_made: bool,
    ) -> Self {
        Self { entity, id, asked, change_vector: None, last_modified: None, is_made, metadata, stored: None }
    }

    /// An entity that was loaded.
    pub(super) fn loaded(entity: Box<dyn AnyEntity>, received: Received) -> Result<Self, String> {
        let Received { id, change_vector, last_modified, metadata, document } = received;
        let stored = Stored { document, fields: entity.fields()?, metadata: metadata.clone() };
        Ok(Self {
            entity,
            asked: id.clone(),
            id: Some(id),
            change_vector: Some(change_vector),
            last_modified,
            is_made: false,
            metadata,
            stored: Some(stored),
        })
    }

    pub(super) fn get<T: 'static>(&self) -> Option<&T> {
        self.entity.as_any().downcast_ref()
    }

    pub(super) fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.entity.as_any_mut().downcast_mut()
    }

    pub(super) fn type_name(&self) -> &'static str {
        self.entity.type_name()
    }

    /// What is to be written; `None` when nothing changed.
    pub(super) fn pending(&self) -> Result<Option<Pending>, ClientError> {
        let fields = self.entity.fields().map_err(|reason| self.mismatch(reason))?;
        let Some(stored) = &self.stored else {
            return Ok(Some(Pending { document: fields.clone(), fields }));
        };
        if same(&fields, &stored.fields) && same(&self.metadata, &stored.metadata) {
            return Ok(None);
        }
        let document = merged(fields.clone(), &stored.fields, &stored.document);
        Ok(Some(Pending { document, fields }))
    }

    /// Notes that the server has stored what was pending.
    pub(super) fn saved(
        &mut self,
        pending: Pending,
        id: String,
        change_vector: String,
        modified: Option<String>,
    ) -> Result<(), ClientError> {
        let Pending { document, mut fields } = pending;
        if self.id.is_none() {
            let named = self.entity.set_id(&id).and_then(|()| self.entity.fields());
            // An id field that is stored too is no change of the program's.
            fields = named.map_err(|reason| self.mismatch(reason))?;
        }
        self.asked.clone_from(&id);
        (self.id, self.change_vector, self.last_modified) = (Some(id), Some(change_vector), modified);
        self.stored = Some(Stored { document, fields, metadata: self.metadata.clone() });
        self.is_made = false;
        Ok(())
    }

    /// Takes what the server has in place of what the session had; changes that were not saved are lost.
    pub(super) fn refresh(&mut self, received: Received) -> Result<(), ClientError> {
        let Received { id, change_vector, last_modified, metadata, document } = received;
        let refilled = self.entity.refill(&document, &id).and_then(|()| self.entity.fields());
        let fields = refilled.map_err(|reason| self.mismatch(reason))?;
        self.asked.clone_from(&id);
        (self.id, self.change_vector, self.last_modified) = (Some(id), Some(change_vector), last_modified);
        self.metadata.clone_from(&metadata);
        self.stored = Some(Stored { document, fields, metadata });
        self.is_made = false;
        Ok(())
    }

    fn mismatch(&self, reason: String) -> ClientError {
        let id = crate::client::held::cut(self.id.as_deref().unwrap_or_default());
        ClientError::Document { id, type_name: self.type_name(), reason }
    }
}

impl std::fmt::Debug for Tracked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracked")
            .field("type", &self.type_name())
            .field("asked", &self.asked)
            .field("change_vector", &self.change_vector)
            .finish_non_exhaustive()
    }
}

impl Received {
    /// Takes a document apart.
    pub(super) fn read(text: &RawValue) -> Result<Self, String> {
        let mut document: Fields = serde_json::from_str(text.get()).map_err(|error| error.to_string())?;
        let metadata = document.shift_remove(METADATA).ok_or("a document has no '@metadata'")?;
        let mut metadata: Fields =
            serde_json::from_str(metadata.get()).map_err(|error| format!("'@metadata': {error}"))?;
        let mut take = |key: &str| -> Result<Option<String>, String> {
            let Some(value) = metadata.shift_remove(key) else { return Ok(None) };
            serde_json::from_str(value.get()).map_err(|error| format!("'@metadata.{key}': {error}"))
        };
        let id = take("@id")?.ok_or("a document has no '@metadata.@id'")?;
        let change_vector = take("@change-vector")?.ok_or("a document has no '@metadata.@change-vector'")?;
        let last_modified = take("@last-modified")?;
        metadata.retain(|key, _| !SERVER_KEYS.contains(&key.as_str()));
        Ok(Self { id, change_vector, last_modified, metadata, document })
    }
}
