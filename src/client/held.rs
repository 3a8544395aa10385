//! An entity and its id: where the id stands in it, how it is read and written.
//!
//! Next on the walk: `session`.

use std::any::{Any, type_name};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::conventions::{Document, IdAccess, IdGeneration, TypeInfo, id_prefix};
use super::error::ClientError;
use super::fields::{Fields, METADATA, SERVER_KEYS, fields_of, raw};
use super::link::Link;
use super::shape::{ID_FIELDS, IdKind};

/// A `Uuid` that nobody has set.
const NIL_UUID: &str = "00000000-0000-0000-0000-000000000000";

/// An entity whose type is not known any more.
pub(super) trait AnyEntity: Send + Sync {
    /// What is stored of it: its fields without its id.
    fn fields(&self) -> Result<Fields, String>;
    fn set_id(&mut self, id: &str) -> Result<(), String>;
    /// Takes the value of a document in place of its own.
    fn refill(&mut self, document: &Fields, id: &str) -> Result<(), String>;
    fn type_name(&self) -> &'static str;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A value with what is known of its type's id.
pub(super) struct Held<T> {
    value: T,
    id_field: Option<(&'static str, IdKind)>,
    access: Option<Arc<IdAccess<T>>>,
}

/// An id as it stands in an entity.
#[derive(Debug, PartialEq, Eq)]
enum GivenId {
    Text(String),
    Number(u64),
}

impl<T: Document> Held<T> {
    pub(super) fn new(value: T, info: &TypeInfo<T>) -> Self {
        Self { value, id_field: info.id_field, access: info.access.clone() }
    }

    /// Reads a value from a document.
    pub(super) fn read(document: &Fields, id: &str, info: &TypeInfo<T>) -> Result<Self, String> {
        let value = value_of(document, id, info.id_field, info.access.as_deref())?;
        Ok(Self::new(value, info))
    }

    /// The id that stands in the entity; empty, 0 and the nil UUID are none.
    fn id(&self) -> Result<Option<GivenId>, String> {
        if let Some(access) = &self.access {
            return Ok((access.get)(&self.value).filter(|id| !id.trim().is_empty()).map(GivenId::Text));
        }
        let Some((field, kind)) = self.id_field else { return Ok(None) };
        let fields = fields_of(&self.value)?;
        let Some(value) = fields.get(field).map(|value| value.get()).filter(|value| *value != "null") else {
            return Ok(None);
        };
        match kind {
            IdKind::Number => match value.parse() {
                Ok(0) => Ok(None),
                Ok(number) => Ok(Some(GivenId::Number(number))),
                Err(_) => {
                    Err(format!("the field '{field}' is the id, and {value} is no number from 1 to {}", u64::MAX))
                }
            },
            IdKind::Text => {
                let text: String =
                    serde_json::from_str(value).map_err(|error| format!("the field '{field}': {error}"))?;
                Ok(Some(text).filter(|text| !text.trim().is_empty() && text != NIL_UUID).map(GivenId::Text))
            }
        }
    }

    /// The id to ask the server for, and whether it was made just now: the one in the entity, or one by the conventions.
    pub(super) async fn asked(&self, link: &Link, info: &TypeInfo<T>) -> Result<(String, bool), ClientError> {
        let collection = info.collection.as_deref().unwrap_or_default();
        if let Some(given) = self.id().map_err(|reason| mismatch::<T>("", reason))? {
            return Ok((given.text(link, collection).await?, false));
        }
        let generation = if self.wants_guid() { IdGeneration::Guid } else { info.generation };
        Ok((link.generate(collection, generation).await?, true))
    }

    /// What is written beside the fields: the collection, and what the entity has as its own metadata.
    pub(super) fn metadata(&self, collection: Option<&str>) -> Result<Fields, String> {
        let mut metadata = Fields::new();
        if let Some(collection) = collection {
            metadata.insert("@collection".to_owned(), raw(&collection)?);
        }
        if let Some(own) = fields_of(&self.value)?.get(METADATA) {
            metadata.extend(fields_of(own)?.into_iter().filter(|(key, _)| !SERVER_KEYS.contains(&key.as_str())));
        }
        Ok(metadata)
    }

    /// Whether the id field is a UUID that nobody has set, which no other kind of id fits into.
    fn wants_guid(&self) -> bool {
        let Some((field, _)) = self.id_field else { return false };
        let fields = fields_of(&self.value).unwrap_or_default();
        fields.get(field).is_some_and(|value| value.get().trim_matches('"') == NIL_UUID)
    }

    pub(super) fn set_id(&mut self, id: &str) -> Result<(), String> {
        if let Some(access) = &self.access {
            (access.set)(&mut self.value, id);
            return Ok(());
        }
        let Some((field, kind)) = self.id_field else { return Ok(()) };
        let mut fields = fields_of(&self.value)?;
        fields.insert(field.to_owned(), id_value(id, kind)?);
        self.value = from_fields(&fields)?;
        Ok(())
    }
}

/// Reads a row of a query: a document with its id, or what a query shows of one.
///
/// # Errors
/// It does not fit the type.
pub(super) fn entity<T: Document>(row: &RawValue, info: &TypeInfo<T>) -> Result<T, String> {
    let mut fields: Fields = serde_json::from_str(row.get()).map_err(|error| error.to_string())?;
    let metadata = fields.shift_remove(METADATA);
    let metadata: Fields = metadata.map_or_else(|| Ok(Fields::new()), |metadata| fields_of(&metadata))?;
    let id = metadata.get("@id").map(|id| serde_json::from_str::<Option<String>>(id.get()));
    match id.transpose().map_err(|error| error.to_string())?.flatten() {
        Some(id) => Held::read(&fields, &id, info).map(|held| held.value),
        None => from_fields(&fields),
    }
}

impl<T: Document> AnyEntity for Held<T> {
    fn fields(&self) -> Result<Fields, String> {
        let mut fields = fields_of(&self.value)?;
        if let Some((field, _)) = self.id_field {
            fields.shift_remove(field);
        }
        fields.shift_remove(METADATA);
        Ok(fields)
    }

    fn set_id(&mut self, id: &str) -> Result<(), String> {
        Held::set_id(self, id)
    }

    fn refill(&mut self, document: &Fields, id: &str) -> Result<(), String> {
        self.value = value_of(document, id, self.id_field, self.access.as_deref())?;
        Ok(())
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }

    fn as_any(&self) -> &dyn Any {
        &self.value
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        &mut self.value
    }
}

impl GivenId {
    /// The id as text; a number goes behind the prefix of its collection.
    async fn text(self, link: &Link, collection: &str) -> Result<String, ClientError> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(number) => {
                let prefix = id_prefix(collection);
                Ok(format!("{prefix}{}{number}", link.separator().await?))
            }
        }
    }
}

/// Says that an entity or a document does not fit its type.
pub(super) fn mismatch<T>(id: &str, reason: String) -> ClientError {
    ClientError::Document { id: cut(id), type_name: type_name::<T>(), reason }
}

/// The beginning of an id, for messages.
pub(super) fn cut(id: &str) -> String {
    crate::id::cut(id)
}

fn value_of<T: Document>(
    document: &Fields,
    id: &str,
    id_field: Option<(&'static str, IdKind)>,
    access: Option<&IdAccess<T>>,
) -> Result<T, String> {
    let mut fields = document.clone();
    if let Some((field, kind)) = id_field {
        fields.insert(field.to_owned(), id_value(id, kind)?);
    }
    let mut value = from_fields(&fields)?;
    if let Some(access) = access {
        (access.set)(&mut value, id);
    }
    Ok(value)
}

fn from_fields<T: Document>(fields: &Fields) -> Result<T, String> {
    let text = serde_json::to_string(fields).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// What an id field of this kind holds.
fn id_value(id: &str, kind: IdKind) -> Result<Box<RawValue>, String> {
    match kind {
        IdKind::Text => raw(&id),
        IdKind::Number => raw(&number_in(id).ok_or_else(|| {
            let fields = ID_FIELDS.join("' or '");
            format!("the field '{fields}' is a number, and this id has none at its end; use a String field")
        })?),
    }
}

/// The number in an id: 42 in `users/42`, `users/42-A` and `users/0000000000000000042-A`.
fn number_in(id: &str) -> Option<u64> {
    let without_tag = match id.rsplit_once('-') {
        Some((before, tag)) if !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_uppercase()) => before,
        _ => id,
    };
    let digits = without_tag.len() - without_tag.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    without_tag.get(without_tag.len() - digits..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_id_stands_at_its_end() {
        for (id, number) in [
            ("users/42", Some(42)),
            ("users/42-A", Some(42)),
            ("users/0000000000000000042-BC", Some(42)),
            ("users#7-A", Some(7)),
            ("users-7", Some(7)),
            ("users/ayende", None),
            ("users/1-a", None),
            ("", None),
        ] {
            assert_eq!(number_in(id), number, "{id}");
        }
    }
}
