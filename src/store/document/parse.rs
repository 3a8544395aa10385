//! The strict reading of a document's JSON.
//!
//! serde_json reads, and `check` refuses what it lets pass: duplicate keys, nesting. The body is the caller's text
//! with the property `@metadata` cut out; `@metadata` itself is read a second time, to take its keys apart.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::check::{Check, Key, Keys, too_deep};
use super::{Document, DocumentError, ParsedDocument};
use crate::store::collections::{EMPTY, check_name};

/// The property that is no property.
const METADATA: &str = "@metadata";
/// Keys of `@metadata` that the server sets.
const SERVER_KEYS: [&str; 11] = [
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

pub(super) fn parse(json: &[u8]) -> Result<ParsedDocument, DocumentError> {
    let text = std::str::from_utf8(json).map_err(|error| not_utf8(json, error.valid_up_to()))?;
    if text.starts_with('\u{feff}') {
        return Err(refused("it begins with a byte order mark; send the JSON without it", 1, 1));
    }
    let mut keys = Keys::default();
    let metadata = read(text, |reader| reader.deserialize_map(Properties { keys: &mut keys }))
        .map_err(|error| located(&error, (1, 1)))?;
    let Some(metadata) = metadata else {
        let document = Document {
            collection: EMPTY.to_owned(),
            metadata: "{}".to_owned(),
            body: text.trim_matches(is_space).to_owned(),
        };
        return Ok(ParsedDocument { document, id: None });
    };
    // A raw value is a slice of the text it was read from.
    let start = metadata.get().as_ptr() as usize - text.as_ptr() as usize;
    let end = start + metadata.get().len();
    let own = read(metadata.get(), |reader| reader.deserialize_map(MetadataKeys { keys: &mut keys }))
        .map_err(|error| located(&error, position(text, start)))?;
    let collection = own.collection.unwrap_or_else(|| EMPTY.to_owned());
    check_name(&collection)?;
    let document = Document { collection, metadata: own.text, body: without_property(text, start, end) };
    Ok(ParsedDocument { document, id: own.id })
}

fn read<'de, T>(
    text: &'de str,
    value: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'de>>) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = value(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The white space of JSON.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// The text without the property whose value stands at `start..end`, and without one of its commas.
fn without_property(text: &str, start: usize, end: usize) -> String {
    // Going back over white space, colon and white space comes the key's closing quote. Its opening quote is the next one
    // back: the key reads `@metadata`, so that no quote stands in it, also where it is written with escapes.
    let before_value = text[..start].trim_end_matches(is_space).trim_end_matches(':').trim_end_matches(is_space);
    let key = before_value.strip_suffix('"').unwrap_or(before_value);
    let before = text[..key.rfind('"').unwrap_or(0)].trim_end_matches(is_space);
    let after = text[end..].trim_start_matches(is_space);
    let (before, after) = match before.strip_suffix(',') {
        Some(before) => (before, after),
        None => (before, after.strip_prefix(',').unwrap_or(after)),
    };
    let (before, after) = (before.trim_start_matches(is_space), after.trim_end_matches(is_space));
    let mut body = String::with_capacity(before.len() + after.len());
    body.push_str(before);
    body.push_str(after);
    body
}

/// The document: checks its properties and finds `@metadata`.
struct Properties<'k, 'de> {
    keys: &'k mut Keys<'de>,
}

impl<'de> Visitor<'de> for Properties<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document, which is a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut many, mut metadata) = (HashSet::new(), None);
        while let Some(key) = map.next_key_seed(Key)? {
            let is_metadata = key == METADATA;
            self.keys.add(0, &mut many, key).map_err(A::Error::custom)?;
            if is_metadata {
                metadata = Some(map.next_value::<&RawValue>()?);
            } else {
                map.next_value_seed(Check { keys: self.keys, depth: 1 })?;
            }
        }
        self.keys.end_object(0);
        Ok(metadata)
    }
}

/// What stands in `@metadata`.
struct OwnMetadata {
    collection: Option<String>,
    id: Option<String>,
    /// The user's own keys, as the text of an object.
    text: String,
}

struct MetadataKeys<'k, 'de> {
    keys: &'k mut Keys<'de>,
}

impl<'de> Visitor<'de> for MetadataKeys<'_, 'de> {
    type Value = OwnMetadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("'@metadata' to be a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut own = OwnMetadata { collection: None, id: None, text: "{".to_owned() };
        let mut many = HashSet::new();
        while let Some(key) = map.next_key_seed(Key)? {
            self.keys.add(0, &mut many, key.clone()).map_err(A::Error::custom)?;
            match key.as_ref() {
                "@collection" => own.collection = Some(map.next_value_seed(Text("'@collection' to be a string"))?),
                "@id" => own.id = map.next_value_seed(OptionalText("'@id' to be a string or null"))?,
                server if SERVER_KEYS.contains(&server) => {
                    map.next_value_seed(Check { keys: self.keys, depth: 2 })?;
                }
                _ => {
                    let value = map.next_value::<&RawValue>()?.get();
                    read(value, |reader| Check { keys: self.keys, depth: 2 }.deserialize(reader))
                        .map_err(|error| A::Error::custom(without_position(&error)))?;
                    push_property(&mut own.text, key, value);
                }
            }
        }
        self.keys.end_object(0);
        own.text.push('}');
        Ok(own)
    }
}

fn push_property(object: &mut String, key: Cow<'_, str>, value: &str) {
    if object.len() > 1 {
        object.push(',');
    }
    match key {
        // Borrowed from the text: it has no escapes and needs none.
        Cow::Borrowed(key) => {
            object.push('"');
            object.push_str(key);
            object.push('"');
        }
        Cow::Owned(key) => object.push_str(&serde_json::Value::from(key).to_string()),
    }
    object.push(':');
    object.push_str(value);
}

/// A string that is kept.
struct Text(&'static str);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = String;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<String, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

/// A string that is kept, or null.
struct OptionalText(&'static str);

impl<'de> DeserializeSeed<'de> for OptionalText {
    type Value = Option<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Option<String>, D::Error> {
        reader.deserialize_any(self)
    }
}

impl Visitor<'_> for OptionalText {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_unit<E>(self) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<String>, E> {
        Ok(Some(text.to_owned()))
    }
}

fn not_utf8(json: &[u8], valid: usize) -> DocumentError {
    let text = String::from_utf8_lossy(json.get(..valid).unwrap_or_default());
    let (line, column) = position(&text, text.len());
    refused("it is not UTF-8", line, column)
}

/// Line and column, from 1, of the byte at `offset`; columns count bytes, as in serde_json's messages.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, offset - before.rfind('\n').map_or(0, |end| end + 1) + 1)
}

fn refused(rule: &str, line: usize, column: usize) -> DocumentError {
    DocumentError::Json { detail: format!("{rule} (line {line}, column {column})") }
}

/// Adds the position of an error inside a text that begins at `start` (line, column).
fn located(error: &serde_json::Error, start: (usize, usize)) -> DocumentError {
    let line = start.0 + error.line().saturating_sub(1);
    let column = if error.line() <= 1 { start.1 - 1 + error.column() } else { error.column() };
    refused(&without_position(error), line, column.max(1))
}

fn without_position(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    if message == "recursion limit exceeded" { too_deep() } else { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> ParsedDocument {
        Document::parse(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn body(json: &str) -> String {
        parsed(json).document.body
    }

    fn error(json: &str) -> String {
        match Document::parse(json.as_bytes()) {
            Err(error) => error.to_string(),
            Ok(parsed) => panic!("{json} became {parsed:?}"),
        }
    }

    #[test]
    fn without_metadata_the_text_is_kept_as_sent() {
        let json = "\n { \"big\" : 123456789012345678901234567890, \"d\":1.10,\"e\":1e3,\"z\":-0.0,\"t\":1e-400 } \t";
        let parsed = parsed(json);
        assert_eq!(parsed.document.body, json.trim());
        assert_eq!((parsed.document.collection.as_str(), parsed.document.metadata.as_str()), ("@empty", "{}"));
        assert_eq!(parsed.id, None);
    }

    #[test]
    fn metadata_is_cut_out_wherever_it_stands() {
        for (json, expected) in [
            (r#"{"@metadata":{},"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"@metadata":{}}"#, r#"{"a":1}"#),
            (r#"{"a":1,"@metadata":{"@collection":"C"},"b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"@metadata":{}}"#, "{}"),
            ("{ \"a\" : 1 ,\n \"@metadata\" : { \"x\" : [ ] } ,\n \"b\" : 2 } ", "{ \"a\" : 1 ,\n \"b\" : 2 }"),
            (r#"{"\u0040metadata":{},"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":{"@metadata":{"@collection":"C"}}}"#, r#"{"a":{"@metadata":{"@collection":"C"}}}"#),
            (r#"{"a":"\"@metadata\":{},","@metadata":{}}"#, r#"{"a":"\"@metadata\":{},"}"#),
        ] {
            assert_eq!(body(json), expected, "{json}");
        }
    }

    #[test]
    fn own_metadata_is_kept_and_the_servers_is_dropped() {
        let parsed = parsed(
            r#"{"@metadata":{"@id":"a/1","@collection":"Üsers","@flags":"x","@etag":7,"@nested":{ "k":1.0 },"\u0041":"\u00e9",
               "@change-vector":null,"@last-modified":"","@index-score":1,"@projection":true}}"#,
        );
        assert_eq!(parsed.document.collection, "Üsers");
        assert_eq!(parsed.document.metadata, r#"{"@nested":{ "k":1.0 },"A":"\u00e9"}"#);
        assert_eq!(parsed.id.as_deref(), Some("a/1"));
    }

    #[test]
    fn what_parsers_disagree_on_is_refused_with_line_and_column() {
        for (json, part) in [
            ("[1]", "a document, which is a JSON object"),
            ("1", "a document, which is a JSON object"),
            ("", "EOF"),
            ("{\"a\":1,\n\"a\":2}", "duplicate key 'a'"),
            (r#"{"x":{"y":[{"a":1,"\u0061":2}]}}"#, "duplicate key 'a'"),
            (r#"{"@metadata":{},"@metadata":{}}"#, "duplicate key '@metadata'"),
            (r#"{"@metadata":{"a":{"b":1,"b":2}}}"#, "duplicate key 'b'"),
            (r#"{"@metadata":{"@id":"x","@id":"y"}}"#, "duplicate key '@id'"),
            (r#"{"a":1e400}"#, "number out of range"),
            (r#"{"@metadata":{"a":1e400}}"#, "number out of range"),
            (r#"{"a":NaN}"#, "expected value"),
            (r#"{"a":"\ud83d"}"#, "hex escape"),
            (r#"{"\ud83d":1}"#, "hex escape"),
            (r#"{"@metadata":{"a":"\ud83d"}}"#, "hex escape"),
            (r#"{"a":1,}"#, "trailing comma"),
            (r#"{"a":1} x"#, "trailing characters"),
            (r#"{"a":01}"#, "invalid number"),
            ("\u{feff}{}", "byte order mark"),
            (r#"{"@metadata":[]}"#, "'@metadata' to be a JSON object"),
            (r#"{"@metadata":null}"#, "'@metadata' to be a JSON object"),
            (r#"{"@metadata":{"@collection":5}}"#, "'@collection' to be a string"),
            (r#"{"@metadata":{"@collection":null}}"#, "'@collection' to be a string"),
            (r#"{"@metadata":{"@id":5}}"#, "'@id' to be a string or null"),
        ] {
            let error = error(json);
            assert!(error.contains(part) && error.contains("(line ") && error.contains(", column "), "{json}: {error}");
        }
        assert!(error("{\"a\":1,\n\"a\":2}").ends_with("(line 2, column 3)"), "{}", error("{\"a\":1,\n\"a\":2}"));
        assert!(error("{\"x\":1,\n \"@metadata\": {\"@id\":5}}").contains("(line 2, column 2"));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_refused() {
        let error = Document::parse(b"{\n\"a\":\"\xff\"}").unwrap_err().to_string();
        assert_eq!(error, "the document is not valid JSON: it is not UTF-8 (line 2, column 6)");
    }

    #[test]
    fn reserved_collections_are_refused() {
        assert!(error(r#"{"@metadata":{"@collection":"@mine"}}"#).contains("reserved"));
        assert!(error(r#"{"@metadata":{"@collection":""}}"#).contains("1 to 256 bytes"));
        assert_eq!(parsed(r#"{"@metadata":{"@collection":"@hilo"}}"#).document.collection, "@hilo");
    }

    #[test]
    fn nesting_may_have_127_levels() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!(body(&nested(127)), nested(127));
        for levels in [128, 129, 100_000] {
            assert!(Document::parse(nested(levels).as_bytes()).is_err());
        }
        let metadata =
            |levels: usize| format!("{{\"@metadata\":{{\"a\":{}{}}}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(Document::parse(metadata(125).as_bytes()).is_ok());
        assert!(error(&metadata(126)).contains("127 deep"));
        assert!(Document::parse(metadata(100_000).as_bytes()).is_err());
        assert!(Document::parse(format!("{{\"@metadata\":{}", "[".repeat(100_000)).as_bytes()).is_err());
    }

    #[test]
    fn duplicates_are_found_among_many_keys() {
        let many = |last: usize| {
            let keys = (0..100).chain([last]).map(|key| format!("\"k{key}\":[{{\"k{key}\":0}}]")).collect::<Vec<_>>();
            format!("{{{}}}", keys.join(","))
        };
        assert!(Document::parse(many(100).as_bytes()).is_ok());
        for last in [0, 15, 16, 17, 99] {
            assert!(error(&many(last)).contains(&format!("duplicate key 'k{last}'")));
        }
    }
}
