//! What serde_json lets pass in JSON and a document may not have: duplicate keys at any depth, and deep nesting.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

/// The deepest nesting of objects and arrays; the document itself is the first level.
const DEPTH_MAX: usize = 127;
/// Keys of one object that are compared one by one; beyond, a set finds duplicates.
const COMPARED_MAX: usize = 16;

/// Any value: read to its end and forgotten.
pub(super) struct Check<'k, 'de> {
    pub(super) keys: &'k mut Keys<'de>,
    /// Objects and arrays around it.
    pub(super) depth: usize,
}

impl Check<'_, '_> {
    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        if self.depth < DEPTH_MAX {
            return Ok(self.depth + 1);
        }
        Err(E::custom(too_deep()))
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_, 'de> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let depth = self.deeper()?;
        while sequence.next_element_seed(Check { keys: self.keys, depth })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let depth = self.deeper()?;
        let (first, mut many) = (self.keys.stack.len(), HashSet::new());
        while let Some(key) = map.next_key_seed(Key)? {
            self.keys.add(first, &mut many, key).map_err(A::Error::custom)?;
            map.next_value_seed(Check { keys: self.keys, depth })?;
        }
        self.keys.end_object(first);
        Ok(())
    }
}

/// The keys of the objects that are being read, outermost first.
#[derive(Default)]
pub(super) struct Keys<'de> {
    stack: Vec<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    /// Adds a key to the object whose keys begin at `first`, unless the object has it already.
    pub(super) fn add(&mut self, first: usize, many: &mut HashSet<String>, key: Cow<'de, str>) -> Result<(), String> {
        let present = self.stack.get(first..).unwrap_or_default();
        let is_new = if present.len() < COMPARED_MAX {
            !present.contains(&key)
        } else {
            if many.is_empty() {
                many.extend(present.iter().map(|key| key.as_ref().to_owned()));
            }
            many.insert(key.as_ref().to_owned())
        };
        if !is_new {
            return Err(format!(
                "duplicate key '{}': readers disagree on which one counts; keep one",
                crate::id::cut(&key)
            ));
        }
        self.stack.push(key);
        Ok(())
    }

    /// Forgets the keys of the object whose keys begin at `first`.
    pub(super) fn end_object(&mut self, first: usize) {
        self.stack.truncate(first);
    }
}

/// A key, borrowed where it has no escapes.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// The message of a document that is nested too deep.
pub(super) fn too_deep() -> String {
    format!("objects and arrays are nested more than {DEPTH_MAX} deep; flatten the document")
}
