//! From JSON text and canonical bytes to the values that Rhai calculates with.

use std::rc::Rc;

use rhai::{Dynamic, ImmutableString};

use super::super::encoding::{Item, Reader};
use super::super::json::{self, Kind, Span};
use super::super::number::Number;
use super::super::problem::{Failure, failure};
use super::{List, Object};

/// A number as Rhai holds it: `INT`, else decimal, else `FLOAT`.
pub(in crate::script) fn number_value(number: Number) -> Dynamic {
    match number {
        Number::Int(value) => Dynamic::from_int(value),
        Number::Decimal(value) => Dynamic::from_decimal(value),
        Number::Float(value) => Dynamic::from_float(value),
    }
}

/// The number that Rhai holds; `None` for any other value. Decimals are canonical, as all that scripts get are.
pub(in crate::script) fn value_number(value: &Dynamic) -> Option<Number> {
    if let Ok(int) = value.as_int() {
        return Some(Number::Int(int));
    }
    if let Ok(decimal) = value.as_decimal() {
        return Some(Number::Decimal(decimal));
    }
    value.as_float().ok().and_then(Number::from_f64)
}

/// Decodes a stretch of JSON text: scalars to values, arrays and objects to host types over the same text.
pub(in crate::script) fn json_value(text: &Rc<str>, span: Span) -> Result<Dynamic, Failure> {
    let value = span.of(text);
    let malformed = || failure("the stored document is not valid JSON");
    Ok(match json::kind(value).ok_or_else(malformed)? {
        Kind::Null => Dynamic::UNIT,
        Kind::Bool(value) => value.into(),
        Kind::Number => number_value(Number::parse(value).ok_or_else(|| {
            let shown: String = value.chars().take(40).collect();
            failure(format!("the number {shown} is out of range"))
        })?),
        Kind::String => ImmutableString::from(json::unescape(value).ok_or_else(malformed)?.as_ref()).into(),
        Kind::Array => Dynamic::from(List::from_json(text, span).ok_or_else(malformed)?),
        Kind::Object => Dynamic::from(Object::from_json(text, span).ok_or_else(malformed)?),
    })
}

/// Decodes an encoded value, one level deep.
pub(in crate::script) fn encoded_value(bytes: &Rc<[u8]>, span: Span) -> Result<Dynamic, Failure> {
    let encoded = bytes.get(span.start as usize..span.end as usize).unwrap_or(&[]);
    Ok(match Reader::new(encoded).item().ok_or_else(|| failure("a stored value is damaged"))? {
        Item::Null => Dynamic::UNIT,
        Item::Bool(value) => value.into(),
        Item::Number(number) => number_value(number),
        Item::Str(value) => ImmutableString::from(value).into(),
        Item::Array(elements) => Dynamic::from(List::from_elements(bytes, elements)),
        Item::Object(_) => Dynamic::from(Object::from_encoded(bytes, span)),
    })
}
