//! Between JSON text and canonical bytes.

use std::fmt::Write as _;

use super::super::json::{self, Kind};
use super::super::number::Number;
use super::read::{Item, Reader};
use super::{Nest, write_bool, write_name, write_null, write_number, write_string};

/// Why JSON text has no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON.
    #[error("the text is not valid JSON")]
    Malformed,
    /// A number lies beyond an `f64`.
    #[error("a number is out of range")]
    Number,
    /// Arrays and objects are nested too deep.
    #[error("the value is nested too deep")]
    Depth,
}

/// Encodes JSON text, nested at most `depth_max` deep. Of fields with one name the last wins.
///
/// # Errors
/// A [`JsonError`]; what was written until then stays in `into`.
///
/// # Cost
/// O(length of the text · log of an object's fields).
pub fn encode_json(text: &str, depth_max: usize, into: &mut Vec<u8>) -> Result<(), JsonError> {
    let text = text.trim_matches(json::is_space);
    match json::kind(text) {
        Some(Kind::Null) => write_null(into),
        Some(Kind::Bool(value)) => write_bool(value, into),
        Some(Kind::Number) => write_number(Number::parse(text).ok_or(JsonError::Number)?, into),
        Some(Kind::String) => write_string(&json::unescape(text).ok_or(JsonError::Malformed)?, into),
        Some(Kind::Array) => {
            let depth = depth_max.checked_sub(1).ok_or(JsonError::Depth)?;
            let nest = Nest::array(into);
            for element in json::elements(text).ok_or(JsonError::Malformed)? {
                encode_json(element.of(text), depth, into)?;
            }
            nest.end(into);
        }
        Some(Kind::Object) => {
            let depth = depth_max.checked_sub(1).ok_or(JsonError::Depth)?;
            let nest = Nest::object(into);
            for (name, value) in sorted_fields(text).ok_or(JsonError::Malformed)? {
                write_name(&name, into);
                encode_json(value, depth, into)?;
            }
            nest.end(into);
        }
        None => return Err(JsonError::Malformed),
    }
    Ok(())
}

/// The fields by code point, each name once.
fn sorted_fields(text: &str) -> Option<Vec<(std::borrow::Cow<'_, str>, &str)>> {
    let mut fields: Vec<_> = json::fields(text)?
        .into_iter()
        .map(|field| Some((json::unescape(field.name.of(text))?, field.value.of(text))))
        .collect::<Option<_>>()?;
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.reverse();
    fields.dedup_by(|a, b| a.0 == b.0);
    fields.reverse();
    Some(fields)
}

/// Writes an encoded value as JSON text: objects in code-point order, numbers as an integer when whole and below 10²¹.
/// Malformed bytes, which this module never makes, are written as null.
///
/// # Cost
/// O(bytes).
pub fn write_json(encoded: &[u8], into: &mut String) {
    match Reader::new(encoded).item() {
        None | Some(Item::Null) => into.push_str("null"),
        Some(Item::Bool(value)) => into.push_str(if value { "true" } else { "false" }),
        Some(Item::Number(number)) => {
            // Writing to a string cannot fail.
            let _ = write!(into, "{number}");
        }
        Some(Item::Str(value)) => json::write_string(value, into),
        Some(Item::Array(elements)) => {
            into.push('[');
            for (i, element) in elements.enumerate() {
                if i > 0 {
                    into.push(',');
                }
                write_json(element, into);
            }
            into.push(']');
        }
        Some(Item::Object(fields)) => {
            into.push('{');
            for (i, (name, value)) in fields.enumerate() {
                if i > 0 {
                    into.push(',');
                }
                json::write_string(name, into);
                into.push(':');
                write_json(value, into);
            }
            into.push('}');
        }
    }
}
