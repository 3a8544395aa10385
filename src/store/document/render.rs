//! Documents as clients read them: the properties as stored, then `@metadata` with what the server knows.

use std::io::Write as _;

use super::{Document, StoredDocument};
use crate::store::collections::EMPTY;

impl Document {
    /// Writes the text that [`Document::parse`] takes apart: the properties, then `@metadata` with `@collection` (unless it is
    /// `@empty`) and the user's own keys.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (properties, own) = (inside(&self.body), inside(&self.metadata));
        let mut json = Vec::with_capacity(self.body.len() + self.metadata.len() + self.collection.len() + 64);
        json.push(b'{');
        json.extend_from_slice(properties.as_bytes());
        json.extend_from_slice(if properties.is_empty() { b"" } else { b"," });
        json.extend_from_slice(b"\"@metadata\":{");
        if self.collection != EMPTY {
            json.extend_from_slice(b"\"@collection\":");
            push_string(&mut json, &self.collection);
            json.extend_from_slice(if own.is_empty() { b"" } else { b"," });
        }
        json.extend_from_slice(own.as_bytes());
        json.extend_from_slice(b"}}");
        String::from_utf8_lossy(&json).into_owned()
    }
}

impl StoredDocument {
    /// Appends the document as clients read it: its properties, then `@metadata` with `@collection` (unless it is `@empty`), the
    /// user's own keys, `@flags`, `@id`, `@change-vector`, `@last-modified`.
    ///
    /// # Cost
    /// One copy of the text.
    pub fn write_json(&self, into: &mut Vec<u8>) {
        self.write_json_as(&self.body, into, |_| {});
    }

    /// The same with other properties, the text of an object, and with what `more` appends to the metadata: `,"key":value`.
    pub(crate) fn write_json_as(&self, body: &str, into: &mut Vec<u8>, more: impl FnOnce(&mut Vec<u8>)) {
        let properties = inside(body);
        into.reserve(body.len() + self.metadata.len() + 256);
        into.push(b'{');
        into.extend_from_slice(properties.as_bytes());
        if !properties.is_empty() {
            into.push(b',');
        }
        self.write_metadata(into);
        // The metadata's closing brace is put back after what is added.
        into.pop();
        more(into);
        into.extend_from_slice(b"}}");
    }

    /// Appends only `{"@metadata":{…}}`.
    pub fn write_metadata_json(&self, into: &mut Vec<u8>) {
        into.push(b'{');
        self.write_metadata(into);
        into.push(b'}');
    }

    fn write_metadata(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(b"\"@metadata\":{");
        if self.collection != EMPTY {
            into.extend_from_slice(b"\"@collection\":");
            push_string(into, &self.collection);
            into.push(b',');
        }
        let own = inside(&self.metadata);
        if !own.is_empty() {
            into.extend_from_slice(own.as_bytes());
            into.push(b',');
        }
        if self.flags.artificial {
            into.extend_from_slice(b"\"@flags\":\"Artificial, FromIndex\",");
        }
        into.extend_from_slice(b"\"@id\":");
        push_string(into, &self.id);
        into.extend_from_slice(b",\"@change-vector\":");
        push_string(into, &self.change_vector);
        into.extend_from_slice(b",\"@last-modified\":\"");
        push_time(into, self.modified_micros);
        into.extend_from_slice(b"\"}");
    }

    /// The time of the last write as clients read it: `2026-11-30T11:29:51.0138390Z`.
    #[must_use]
    pub fn last_modified(&self) -> String {
        last_modified(self.modified_micros)
    }
}

/// Formats microseconds since 1970 (UTC) as clients read times: `2026-11-30T11:29:51.0138390Z`.
#[must_use]
pub fn last_modified(micros: i64) -> String {
    let mut text = Vec::with_capacity(28);
    push_time(&mut text, micros);
    String::from_utf8_lossy(&text).into_owned()
}

/// What stands between the braces of a JSON object, without white space at the ends.
fn inside(object: &str) -> &str {
    let object = object.trim();
    let object = object.strip_prefix('{').unwrap_or(object);
    object.strip_suffix('}').unwrap_or(object).trim()
}

fn push_string(into: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    into.push(b'"');
    if text.bytes().all(plain) {
        into.extend_from_slice(text.as_bytes());
    } else {
        for character in text.chars() {
            match character {
                '"' | '\\' => into.extend_from_slice(&[b'\\', character as u8]),
                '\0'..='\u{1f}' => {
                    // Writing to a vector can't fail.
                    let _ = write!(into, "\\u{:04x}", u32::from(character));
                }
                _ => into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    into.push(b'"');
}

fn push_time(into: &mut Vec<u8>, micros: i64) {
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let civil = jiff::tz::Offset::UTC.to_datetime(time);
    let (date, time) = (civil.date(), civil.time());
    // Writing to a vector can't fail.
    let _ = write!(
        into,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
        date.year(),
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.subsec_nanosecond() / 100
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::document::DocumentFlags;

    fn stored(json: &str) -> StoredDocument {
        let Document { collection, metadata, body } = Document::parse(json.as_bytes()).unwrap().document;
        StoredDocument {
            id: "users/\"1\"".into(),
            etag: 7,
            change_vector: "A:7-x".into(),
            collection,
            modified_micros: 1_796_038_191_013_839,
            flags: DocumentFlags::default(),
            metadata,
            body,
        }
    }

    fn render(document: &StoredDocument) -> String {
        let mut json = Vec::new();
        document.write_json(&mut json);
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn metadata_comes_last_with_what_the_server_knows() {
        let document = stored(r#"{"@metadata":{"@collection":"Users","k":[1, 2]},"n":1.10}"#);
        assert_eq!(
            render(&document),
            concat!(
                r#"{"n":1.10,"@metadata":{"@collection":"Users","k":[1, 2],"@id":"users/\"1\"","#,
                r#""@change-vector":"A:7-x","@last-modified":"2026-11-30T11:29:51.0138390Z"}}"#
            )
        );
    }

    #[test]
    fn the_empty_collection_is_not_named() {
        assert_eq!(
            render(&stored(" { } ")),
            concat!(
                r#"{"@metadata":{"@id":"users/\"1\"","@change-vector":"A:7-x","#,
                r#""@last-modified":"2026-11-30T11:29:51.0138390Z"}}"#
            )
        );
    }

    #[test]
    fn a_document_put_together_is_the_same_document() {
        for json in ["{}", r#"{"@metadata":{"@collection":"C"}}"#, r#"{"n":1.10,"@metadata":{"k":1}}"#, r#"{"a":{}}"#] {
            let document = Document::parse(json.as_bytes()).unwrap().document;
            assert_eq!(Document::parse(document.to_json().as_bytes()).unwrap().document, document, "{json}");
        }
    }

    #[test]
    fn artificial_documents_say_so() {
        let mut document = stored(r#"{"n":1}"#);
        document.flags.artificial = true;
        let mut json = Vec::new();
        document.write_metadata_json(&mut json);
        let json = String::from_utf8(json).unwrap();
        assert!(json.starts_with(r#"{"@metadata":{"@flags":"Artificial, FromIndex","@id":"#), "{json}");
    }

    #[test]
    fn what_is_written_is_json_with_the_same_content() {
        let body = r#"{"a":"\u0000\"","b":{"c":[]},"d":1e3}"#;
        let json: serde_json::Value = serde_json::from_str(&render(&stored(body))).unwrap();
        let mut object = json.as_object().unwrap().clone();
        assert_eq!(object.remove("@metadata").unwrap()["@id"], "users/\"1\"");
        assert_eq!(serde_json::Value::Object(object), serde_json::from_str::<serde_json::Value>(body).unwrap());
    }

    #[test]
    fn strings_are_escaped_like_json_asks() {
        for text in ["a\"b\\c", "\u{1}\n", "ü😀", ""] {
            let mut json = Vec::new();
            push_string(&mut json, text);
            assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }

    #[test]
    fn times_have_seven_digits() {
        assert_eq!(last_modified(0), "1970-01-01T00:00:00.0000000Z");
        assert_eq!(last_modified(-1), "1969-12-31T23:59:59.9999990Z");
    }
}
