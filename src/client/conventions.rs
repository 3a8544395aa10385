//! What the client takes for granted: how a type's collection is named, where its id stands, how new ids are made.
//!
//! Next on the walk: `shape`, `hilo`.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plural::plural;
use super::shape::{IdKind, Shape};

/// A type whose values are documents: anything that serde reads and writes as a JSON object.
pub trait Document: Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Document for T {}

/// How an entity that has no id gets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IdGeneration {
    /// `users/33-A`, from a range that the store reserved: known at once, a request only now and then.
    #[default]
    HiLo,
    /// A random GUID, known at once.
    Guid,
    /// `users/0000000000000000042-A`, made by the server when changes are saved.
    ServerSide,
    /// `users/7`, the next number of an identity, made by the server when changes are saved.
    Identity,
}

/// What the client takes for granted, and what it was told to do otherwise.
///
/// ```
/// use treepie::client::{Conventions, IdGeneration};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Invoice { number: String }
///
/// let conventions = Conventions::new()
///     .separator('-')
///     .collection::<Invoice>("Bills")
///     .generate::<Invoice>(IdGeneration::Identity)
///     .id::<Invoice>(|invoice| Some(invoice.number.clone()), |invoice, id| invoice.number = id.to_owned());
/// assert_eq!(conventions.collection_of::<Invoice>().as_deref(), Some("Bills"));
/// ```
#[derive(Clone)]
pub struct Conventions {
    separator: char,
    generation: IdGeneration,
    collection_name: Arc<dyn Fn(&str) -> String + Send + Sync>,
    types: HashMap<TypeId, OfType>,
}

#[derive(Clone, Default)]
struct OfType {
    collection: Option<String>,
    generation: Option<IdGeneration>,
    /// An `IdAccess` of the type.
    access: Option<Arc<dyn Any + Send + Sync>>,
}

type GetId<T> = dyn Fn(&T) -> Option<String> + Send + Sync;
type SetId<T> = dyn Fn(&mut T, &str) + Send + Sync;

/// How the id of a type is read and written where that is not by convention.
pub(super) struct IdAccess<T> {
    pub(super) get: Box<GetId<T>>,
    pub(super) set: Box<SetId<T>>,
}

/// All that is known of a type.
pub(super) struct TypeInfo<T> {
    pub(super) collection: Option<String>,
    pub(super) generation: IdGeneration,
    pub(super) id_field: Option<(&'static str, IdKind)>,
    pub(super) access: Option<Arc<IdAccess<T>>>,
}

impl Default for Conventions {
    fn default() -> Self {
        Self {
            separator: '/',
            generation: IdGeneration::default(),
            collection_name: Arc::new(plural),
            types: HashMap::new(),
        }
    }
}

impl Conventions {
    /// Makes the conventions: separator `/`, collections named by the English plural of the type's name, ids by HiLo, and an
    /// id field `Id` or `id`, which may be a `String`, an integer, a `Uuid`, or an `Option` of one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the character between a prefix and a number. What the server is configured to use goes before it.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Self {
        self.separator = separator;
        self
    }

    /// Sets how a collection is named after a type.
    #[must_use]
    pub fn collection_names(mut self, name: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.collection_name = Arc::new(name);
        self
    }

    /// Sets the collection of one type.
    #[must_use]
    pub fn collection<T: Document>(mut self, name: impl Into<String>) -> Self {
        self.of_type::<T>().collection = Some(name.into());
        self
    }

    /// Sets how ids are made, for every type that has no rule of its own.
    #[must_use]
    pub fn generate_all(mut self, generation: IdGeneration) -> Self {
        self.generation = generation;
        self
    }

    /// Sets how ids of one type are made.
    #[must_use]
    pub fn generate<T: Document>(mut self, generation: IdGeneration) -> Self {
        self.of_type::<T>().generation = Some(generation);
        self
    }

    /// Says how the id of one type is read (`None` or empty: it has none yet) and written. Such a field is stored in the
    /// document like any other; give it `#[serde(default)]` where documents of others lack it.
    #[must_use]
    pub fn id<T: Document>(
        mut self,
        get: impl Fn(&T) -> Option<String> + Send + Sync + 'static,
        set: impl Fn(&mut T, &str) + Send + Sync + 'static,
    ) -> Self {
        let access: IdAccess<T> = IdAccess { get: Box::new(get), set: Box::new(set) };
        self.of_type::<T>().access = Some(Arc::new(access));
        self
    }

    /// The collection of a type; `None` for maps and JSON values, which have no name.
    #[must_use]
    pub fn collection_of<T: Document>(&self) -> Option<String> {
        self.describe::<T>().collection
    }

    pub(super) fn own_separator(&self) -> char {
        self.separator
    }

    pub(super) fn describe<T: Document>(&self) -> TypeInfo<T> {
        let shape = Shape::of::<T>();
        let told = self.types.get(&TypeId::of::<T>());
        let by_name = || shape.name.map(|name| (self.collection_name)(name));
        let collection = told.and_then(|told| told.collection.clone()).or_else(by_name);
        let access = told.and_then(|told| Arc::clone(told.access.as_ref()?).downcast::<IdAccess<T>>().ok());
        let generation = told.and_then(|told| told.generation).unwrap_or(self.generation);
        // Without a name there is no prefix.
        let generation = if collection.is_some() { generation } else { IdGeneration::Guid };
        let id_field = if access.is_some() { None } else { shape.id };
        TypeInfo { collection, generation, id_field, access }
    }

    fn of_type<T: Document>(&mut self) -> &mut OfType {
        self.types.entry(TypeId::of::<T>()).or_default()
    }
}

impl fmt::Debug for Conventions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conventions")
            .field("separator", &self.separator)
            .field("generation", &self.generation)
            .field("types", &self.types.len())
            .finish_non_exhaustive()
    }
}

/// The prefix of ids in a collection: in small letters, unless the name has several capitals (`Users` → `users`,
/// `OrderLines` → `OrderLines`).
pub(super) fn id_prefix(collection: &str) -> String {
    if collection.chars().filter(|letter| letter.is_uppercase()).count() > 1 {
        return collection.to_owned();
    }
    crate::id::lower(collection)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Category {
        id: String,
    }

    #[derive(Serialize, Deserialize)]
    struct Flat {
        #[serde(flatten)]
        rest: HashMap<String, i32>,
    }

    #[test]
    fn collections_are_named_after_types() {
        let conventions = Conventions::new();
        assert_eq!(conventions.collection_of::<Category>().as_deref(), Some("Categories"));
        assert_eq!(conventions.collection_of::<Flat>().as_deref(), Some("Flats"));
        assert_eq!(conventions.collection_of::<serde_json::Value>(), None);
        assert_eq!(conventions.collection_of::<HashMap<String, i32>>(), None);
        let shouted = conventions.collection_names(str::to_uppercase);
        assert_eq!(shouted.collection_of::<Category>().as_deref(), Some("CATEGORY"));
    }

    #[test]
    fn prefixes_are_in_small_letters_unless_there_are_several_capitals() {
        assert_eq!(id_prefix("Users"), "users");
        assert_eq!(id_prefix("OrderLines"), "OrderLines");
    }
}
