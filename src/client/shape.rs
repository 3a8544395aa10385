//! What serde knows of a type before there is a value of it: its name, its id field, and what that field holds.
//!
//! A type's `Deserialize` is asked for a value by a reader that has none. It notes what is asked for, and fails.

use std::any::type_name;
use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The names of id fields, the first that a type has counts.
pub(super) const ID_FIELDS: [&str; 2] = ["Id", "id"];

/// What an id field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdKind {
    /// The whole id: a `String`, a `Uuid`, or an `Option` of these.
    Text,
    /// The id's number: an integer.
    Number,
}

/// What is known of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The name that serde has for the type.
    pub(super) name: Option<&'static str>,
    /// The id field.
    pub(super) id: Option<(&'static str, IdKind)>,
}

impl Shape {
    /// Finds out about a type.
    pub(super) fn of<T: for<'de> Deserialize<'de>>() -> Self {
        let mut shape = Self::default();
        // It fails by design: there is no value.
        drop(T::deserialize(TypeReader { shape: &mut shape, in_map: None }));
        if shape.name.is_some() {
            return shape;
        }
        shape.name = own_name::<T>();
        if shape.name.is_some() {
            // A struct with a flattened field is read as a map, and does not tell its fields.
            for field in ID_FIELDS {
                if shape.id.is_none() {
                    drop(T::deserialize(TypeReader { shape: &mut shape, in_map: Some(field) }));
                }
            }
        }
        shape
    }
}

#[derive(Debug)]
struct Noted;

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("only the type was looked at")
    }
}

impl std::error::Error for Noted {}

impl serde::de::Error for Noted {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Stands where the value of the type should be.
struct TypeReader<'a> {
    shape: &'a mut Shape,
    /// The field that a map is said to have.
    in_map: Option<&'static str>,
}

impl<'de> Deserializer<'de> for TypeReader<'_> {
    type Error = Noted;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Noted> {
        Err(Noted)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Noted> {
        self.shape.name.get_or_insert(name);
        match ID_FIELDS.into_iter().find(|field| fields.contains(field)) {
            Some(field) => visitor.visit_map(OneField { shape: self.shape, field, given: false }),
            None => Err(Noted),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Noted> {
        match self.in_map {
            Some(field) => visitor.visit_map(OneField { shape: self.shape, field, given: false }),
            None => Err(Noted),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Noted> {
        self.shape.name.get_or_insert(name);
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Noted> {
        self.shape.name.get_or_insert(name);
        Err(Noted)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct identifier ignored_any
    }
}

/// A map with the id field alone.
struct OneField<'a> {
    shape: &'a mut Shape,
    field: &'static str,
    given: bool,
}

impl<'de> MapAccess<'de> for OneField<'_> {
    type Error = Noted;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Noted> {
        if std::mem::replace(&mut self.given, true) {
            return Ok(None);
        }
        seed.deserialize(StrDeserializer::new(self.field)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Noted> {
        seed.deserialize(FieldReader { shape: self.shape, field: self.field })
    }
}

/// Stands where the value of the id field should be.
struct FieldReader<'a> {
    shape: &'a mut Shape,
    field: &'static str,
}

macro_rules! note {
    ($kind:expr, $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Noted> {
            self.shape.id = Some((self.field, $kind));
            Err(Noted)
        })*
    };
}

impl<'de> Deserializer<'de> for FieldReader<'_> {
    type Error = Noted;

    note!(IdKind::Number, deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128);
    note!(IdKind::Number, deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128);
    note!(IdKind::Text, deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf);

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Noted> {
        Err(Noted::custom("this field is no id"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Noted> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Noted> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool f32 f64 char unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The name of a type that serde does not name, unless it belongs to a library of containers.
fn own_name<T>() -> Option<&'static str> {
    let path = type_name::<T>().split('<').next().unwrap_or_default();
    let library =
        ["serde_json::", "std::", "alloc::", "core::", "indexmap::"].iter().any(|name| path.starts_with(name));
    if library { None } else { path.rsplit("::").next() }
}

#[cfg(test)]
#[allow(dead_code, reason = "the types are only looked at")]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct User {
        name: String,
        id: Option<String>,
    }

    #[derive(Deserialize)]
    struct OrderId(u64);

    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Order {
        id: OrderId,
    }

    #[derive(Deserialize)]
    struct Session {
        id: uuid::Uuid,
    }

    #[derive(Deserialize)]
    struct Odd {
        id: Vec<u8>,
    }

    #[derive(Deserialize)]
    struct Flat {
        id: u64,
        #[serde(flatten)]
        rest: std::collections::HashMap<String, String>,
    }

    #[derive(Deserialize)]
    struct FlatWithout {
        #[serde(flatten)]
        rest: std::collections::HashMap<String, serde_json::Value>,
    }

    #[test]
    fn name_and_id_field_are_found() {
        let shape = |name, id| Shape { name: Some(name), id };
        assert_eq!(Shape::of::<User>(), shape("User", Some(("id", IdKind::Text))));
        assert_eq!(Shape::of::<Order>(), shape("Order", Some(("Id", IdKind::Number))));
        assert_eq!(Shape::of::<Session>(), shape("Session", Some(("id", IdKind::Text))));
        assert_eq!(Shape::of::<Odd>(), shape("Odd", None));
        assert_eq!(Shape::of::<Flat>(), shape("Flat", Some(("id", IdKind::Number))));
        assert_eq!(Shape::of::<FlatWithout>(), shape("FlatWithout", None));
        assert_eq!(Shape::of::<serde_json::Value>(), Shape::default());
        assert_eq!(Shape::of::<std::collections::HashMap<String, String>>(), Shape::default());
    }
}
