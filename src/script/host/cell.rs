//! A value where it lies, undecoded: what aggregates and encoding look at.

use std::borrow::Cow;

use rhai::{Dynamic, ImmutableString, Map};

use super::super::encoding::{self, Item, Reader};
use super::super::json::{self, Field, Kind};
use super::super::number::Number;
use super::decode::value_number;
use super::object::is_name;
use super::{List, Object};

/// A value where it lies.
#[derive(Clone, Copy)]
pub(in crate::script) enum Cell<'a> {
    /// Canonical bytes.
    Encoded(&'a [u8]),
    /// JSON text without space around it.
    Json(&'a str),
    /// An object of JSON text whose fields are known.
    Fields { text: &'a str, fields: &'a [Field] },
    /// A map of the script's own.
    Map(&'a Map),
    /// Any value of the script's own.
    Value(&'a Dynamic),
    /// No value.
    Missing,
}

/// What aggregates can calculate with.
pub(in crate::script) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    /// Something else; what scripts call it.
    Other(&'static str),
}

/// Calls `look` with the cell of a value; a host type's cell lies in the value.
pub(in crate::script) fn with_cell<T>(value: &Dynamic, look: impl FnOnce(Cell<'_>) -> T) -> T {
    match value.read_lock::<Object>() {
        Some(object) => look(object.cell()),
        None => look(Cell::Value(value)),
    }
}

impl<'a> Cell<'a> {
    /// Calls `look` with the field of this name, or else, where the name has dots, with what the path leads to.
    pub(in crate::script) fn at<T>(self, path: &str, look: impl FnOnce(Cell<'_>) -> T) -> T {
        let Some((first, rest)) = path.split_once('.') else {
            return self.field(path, look);
        };
        let is_whole = self.field(path, |cell| !matches!(cell, Cell::Missing));
        if is_whole {
            return self.field(path, look);
        }
        // Boxed, so that the type does not grow with the path.
        let look: Box<dyn FnOnce(Cell<'_>) -> T + '_> = Box::new(look);
        self.field(first, move |cell| cell.at_boxed(rest, look))
    }

    fn at_boxed<'f, T>(self, path: &str, look: Box<dyn FnOnce(Cell<'_>) -> T + 'f>) -> T {
        self.at(path, look)
    }

    fn field<T>(self, name: &str, look: impl FnOnce(Cell<'_>) -> T) -> T {
        match self {
            Cell::Encoded(bytes) => look(encoding::field(bytes, name).map_or(Cell::Missing, Cell::Encoded)),
            Cell::Json(text) => look(json_field(text, name)),
            Cell::Fields { text, fields } => {
                let found = fields.iter().rev().find(|field| is_name(field.name.of(text), name));
                look(found.map_or(Cell::Missing, |field| Cell::Json(field.value.of(text))))
            }
            Cell::Map(map) => match map.get(name) {
                Some(value) => with_cell(value, look),
                None => look(Cell::Missing),
            },
            Cell::Value(value) => match value.as_map_ref() {
                Ok(map) => Cell::Map(&map).field(name, look),
                Err(_) => look(Cell::Missing),
            },
            Cell::Missing => look(Cell::Missing),
        }
    }

    /// Whether there is no value, which null is.
    pub(in crate::script) fn is_missing(&self) -> bool {
        matches!(self, Cell::Missing)
    }

    /// Decodes a scalar.
    pub(in crate::script) fn scalar(self) -> Scalar<'a> {
        match self {
            Cell::Missing => Scalar::Null,
            Cell::Encoded(bytes) => match Reader::new(bytes).item() {
                Some(Item::Null) => Scalar::Null,
                Some(Item::Bool(value)) => Scalar::Bool(value),
                Some(Item::Number(number)) => Scalar::Number(number),
                Some(Item::Str(text)) => Scalar::Text(Cow::Borrowed(text)),
                Some(Item::Array(_)) => Scalar::Other("array"),
                Some(Item::Object(_)) => Scalar::Other("object"),
                None => Scalar::Other("damaged value"),
            },
            Cell::Json(text) => json_scalar(text),
            Cell::Fields { .. } | Cell::Map(_) => Scalar::Other("object"),
            Cell::Value(value) => value_scalar(value),
        }
    }
}

fn json_field<'a>(text: &'a str, name: &str) -> Cell<'a> {
    if json::kind(text) != Some(Kind::Object) {
        return Cell::Missing;
    }
    let fields = json::fields(text).unwrap_or_default();
    let found = fields.iter().rev().find(|field| is_name(field.name.of(text), name));
    found.map_or(Cell::Missing, |field| Cell::Json(field.value.of(text)))
}

fn json_scalar(text: &str) -> Scalar<'_> {
    match json::kind(text) {
        Some(Kind::Null) => Scalar::Null,
        Some(Kind::Bool(value)) => Scalar::Bool(value),
        Some(Kind::Number) => Number::parse(text).map_or(Scalar::Other("number out of range"), Scalar::Number),
        Some(Kind::String) => json::unescape(text).map_or(Scalar::Other("damaged value"), Scalar::Text),
        Some(Kind::Array) => Scalar::Other("array"),
        Some(Kind::Object) => Scalar::Other("object"),
        None => Scalar::Other("damaged value"),
    }
}

fn value_scalar(value: &Dynamic) -> Scalar<'_> {
    if value.is_unit() {
        return Scalar::Null;
    }
    if let Some(number) = value_number(value) {
        return Scalar::Number(number);
    }
    if let Ok(value) = value.as_bool() {
        return Scalar::Bool(value);
    }
    if let Ok(c) = value.as_char() {
        return Scalar::Text(Cow::Owned(c.to_string()));
    }
    match value.read_lock::<ImmutableString>() {
        Some(text) => Scalar::Text(Cow::Owned(text.as_str().to_owned())),
        None => Scalar::Other(type_name(value)),
    }
}

/// What scripts call a value's type.
pub(in crate::script) fn type_name(value: &Dynamic) -> &'static str {
    if value.is_unit() {
        "()"
    } else if value.is_int() || value.is_decimal() || value.is_float() {
        "number"
    } else if value.is_bool() {
        "bool"
    } else if value.is_string() || value.is_char() {
        "string"
    } else if value.is_array() || value.is::<List>() {
        "array"
    } else if value.is_map() || value.is::<Object>() {
        "object"
    } else if value.is_fnptr() {
        "function"
    } else {
        "range"
    }
}
