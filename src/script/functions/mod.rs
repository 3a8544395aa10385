//! The functions that scripts can call, by subject. Each file registers its own into an engine.

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

pub(super) mod aggregates;
pub(super) mod collections;
pub(super) mod dates;
pub(super) mod definition;
pub(super) mod document;
pub(super) mod emit;
pub(super) mod load;
pub(super) mod numbers;
pub(super) mod operators;
pub(super) mod sort;
pub(super) mod strings;

use rhai::{Dynamic, ImmutableString};

use super::host::cell::type_name;
use super::problem::{Failure, failure, failure_with};

/// The string in an argument.
pub(super) fn text_of(value: &Dynamic, function: &str) -> Result<ImmutableString, Failure> {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Ok(text.clone());
    }
    match value.as_char() {
        Ok(c) => Ok(c.to_string().into()),
        Err(_) => Err(wrong_type(function, "a string", value)),
    }
}

/// An argument of the wrong type.
pub(super) fn wrong_type(function: &str, wanted: &str, value: &Dynamic) -> Failure {
    let found = type_name(value);
    let message = format!("{function} needs {wanted}, but the value is {}", with_article(found));
    if value.is_unit() {
        failure_with(message, "the field is missing or null: give a default with ??")
    } else {
        failure(message)
    }
}

/// A type's name as it stands in a sentence.
pub(super) fn with_article(name: &str) -> String {
    match name {
        "()" => "() (missing or null)".to_owned(),
        "bool" => "true or false".to_owned(),
        "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
