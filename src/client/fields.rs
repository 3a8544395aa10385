//! A document as its top-level fields, each kept as the text it came with, so that no number changes on its way.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::RawValue;

/// The key of a document's metadata.
pub(super) const METADATA: &str = "@metadata";

/// The keys of metadata that the server sets.
pub(super) const SERVER_KEYS: [&str; 11] = [
    "@id",
    "@change-vector",
    "@last-modified",
    "@etag",
    "@flags",
    "@index-score",
    "@projection",
    // Of deliveries by a subscription.
    "@deleted",
    "@run",
    "@complete-through",
    "@previous",
];

/// The top-level fields of a document, in their order.
pub(super) type Fields = IndexMap<String, Box<RawValue>>;

/// Writes a value as fields.
///
/// # Errors
/// The value can't be written as JSON, or is no object.
pub(super) fn fields_of(value: &impl Serialize) -> Result<Fields, String> {
    let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
    if !text.starts_with('{') {
        let shown: String = text.chars().take(40).collect();
        return Err(format!("a document is a JSON object, and this is '{shown}'; use a struct or a map"));
    }
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Writes a value as raw JSON.
///
/// # Errors
/// The value can't be written as JSON.
pub(super) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, String> {
    serde_json::value::to_raw_value(value).map_err(|error| error.to_string())
}

/// Whether two sets of fields have the same values, in whatever order.
pub(super) fn same(one: &Fields, other: &Fields) -> bool {
    one.len() == other.len()
        && one.iter().all(|(name, value)| other.get(name).is_some_and(|held| held.get() == value.get()))
}

/// What is stored when an entity changed: its fields, and those of the document that its type does not know.
///
/// A field is unknown when the document had it and the entity, written right after it was read, had not.
pub(super) fn merged(now: Fields, at_load: &Fields, document: &Fields) -> Fields {
    let mut result = now;
    for (name, value) in document {
        if !at_load.contains_key(name) && !result.contains_key(name) {
            result.insert(name.clone(), value.clone());
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn fields_that_the_type_does_not_know_stay() {
        let document = fields(r#"{"a":1,"b":12345678901234567890.10,"c":3}"#);
        let merged = merged(fields(r#"{"a":2}"#), &fields(r#"{"a":1,"c":3}"#), &document);
        assert_eq!(serde_json::to_string(&merged).unwrap(), r#"{"a":2,"b":12345678901234567890.10}"#);
    }

    #[test]
    fn the_order_of_fields_is_no_change() {
        assert!(same(&fields(r#"{"a":1,"b":2}"#), &fields(r#"{"b":2,"a":1}"#)));
        assert!(!same(&fields(r#"{"a":1}"#), &fields(r#"{"a":2}"#)));
        assert!(!same(&fields(r#"{"a":1}"#), &fields(r#"{"b":1}"#)));
    }

    #[test]
    fn only_objects_are_documents() {
        assert!(fields_of(&3).unwrap_err().contains("JSON object"));
        assert!(fields_of(&[1]).is_err() && fields_of(&()).is_err());
    }
}
