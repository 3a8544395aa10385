//! Values and their one total order: null, false, true, numbers by value, strings by code point, arrays, objects.
//!
//! Arrays compare element by element, then by length; objects by their fields in code-point order of the names, name before
//! value, then by their number. Arrays and objects stay JSON text until they are compared.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::number::Number;
use crate::script::json::{self, Kind};

/// A JSON value, borrowed from a document where it can be.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// JSON's null, and what is missing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string, without escapes.
    String(Cow<'a, str>),
    /// An array's JSON text.
    Array(Cow<'a, str>),
    /// An object's JSON text.
    Object(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// Reads the JSON text of one value. `None` where it is none.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(json::is_space);
        Some(match json::kind(text)? {
            Kind::Null => Self::Null,
            Kind::Bool(value) => Self::Bool(value),
            Kind::Number => Self::Number(Number::parse(text)?),
            Kind::String => Self::String(json::unescape(text)?),
            Kind::Array => Self::Array(Cow::Borrowed(text)),
            Kind::Object => Self::Object(Cow::Borrowed(text)),
        })
    }

    /// Reads the text of a value that was stored; damage reads as null.
    pub(crate) fn stored(text: &'a str) -> Self {
        Self::parse(text).unwrap_or(Self::Null)
    }

    /// The same value, on its own.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(number) => Value::Number(number),
            Self::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Self::Array(text) => Value::Array(Cow::Owned(text.into_owned())),
            Self::Object(text) => Value::Object(Cow::Owned(text.into_owned())),
        }
    }

    /// The elements of an array; `None` for anything else.
    #[must_use]
    pub fn elements(&self) -> Option<Vec<Value<'_>>> {
        match self {
            Self::Array(text) => Some(elements(text)),
            _ => None,
        }
    }

    /// Appends the value as JSON.
    pub fn write_json(&self, into: &mut String) {
        match self {
            Self::Null => into.push_str("null"),
            Self::Bool(value) => into.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => into.push_str(&number.to_string()),
            Self::String(text) => json::write_string(text, into),
            Self::Array(text) | Self::Object(text) => into.push_str(text),
        }
    }

    /// Whether a range with one of the two as its bound can hold the other: both are of one kind. Null is of no kind.
    pub(crate) fn is_comparable(&self, other: &Self) -> bool {
        self.kind() == other.kind() && !matches!(self, Self::Null)
    }

    /// Bytes on the heap, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(number) => number.heap_bytes(),
            Self::String(text) | Self::Array(text) | Self::Object(text) => text.len(),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::String(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }
}

impl Ord for Value<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            // The order of UTF-8's bytes is that of code points.
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Array(a), Self::Array(b)) => elements(a).cmp(&elements(b)),
            (Self::Object(a), Self::Object(b)) => fields(a).cmp(&fields(b)),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for Value<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value<'_> {}

fn elements(text: &str) -> Vec<Value<'_>> {
    let spans = json::elements(text).unwrap_or_default();
    spans.into_iter().map(|span| Value::stored(span.of(text))).collect()
}

fn fields(text: &str) -> Vec<(Cow<'_, str>, Value<'_>)> {
    let fields = json::fields(text).unwrap_or_default();
    let mut fields: Vec<_> = fields
        .into_iter()
        .map(|field| (json::unescape(field.name.of(text)).unwrap_or_default(), Value::stored(field.value.of(text))))
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn one_order_holds_between_all_values() {
        let sorted = [
            "null",
            "false",
            "true",
            "-1",
            "0",
            "0.5",
            "1e30",
            "\"\"",
            "\"A\"",
            "\"a\"",
            "\"ab\"",
            "\"\u{fffd}\"",
            "\"😀\"",
            "[]",
            "[null]",
            "[1]",
            "[1,2]",
            "[2]",
            "{}",
            "{\"a\":1}",
            "{\"a\":1,\"b\":0}",
            "{\"a\":2}",
            "{\"b\":0}",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(value(a).cmp(&value(b)), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn equal_values_are_equal_however_they_are_written() {
        for (a, b) in [
            ("[1, 2]", "[1.0,2e0]"),
            ("{\"a\":1,\"b\":2}", "{\"b\": 2.0, \"a\": 1}"),
            ("\"\\u0041\"", "\"A\""),
            (" 1 ", "1.00"),
        ] {
            assert_eq!(value(a), value(b));
        }
    }
}
