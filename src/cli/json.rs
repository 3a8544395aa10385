//! Documents as text: taken apart and put together without touching a single number.
//!
//! A document that passed through a JSON library's values would lose digits (`1.00`, integers above 2^64). Here values
//! stay the text they came as; only the members of the outermost object are told apart.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member's name.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of a JSON object in their order, duplicates included, each value as its own text.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Takes an object apart.
    ///
    /// # Errors
    /// `json` is no JSON, is no object, or has something after it.
    pub(crate) fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The text of the first member called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.get())
    }

    /// Writes the object again, without the members that `keep` refuses.
    pub(crate) fn write(&self, keep: impl Fn(&str) -> bool) -> String {
        let members = self.0.iter().filter(|(name, _)| keep(name)).map(|(name, value)| (&**name, value.get()));
        object(members)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members_;
        impl<'de> Visitor<'de> for Members_ {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Members_)
    }
}

/// Writes an object from names and the texts of their values.
pub(crate) fn object<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::from("{");
    for (place, (name, value)) in members.enumerate() {
        if place > 0 {
            text.push(',');
        }
        push_string(&mut text, name);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// Appends `value` as a JSON string.
pub(crate) fn push_string(text: &mut String, value: &str) {
    text.push('"');
    let mut plain = 0;
    for (place, byte) in value.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        text.push_str(value.get(plain..place).unwrap_or_default());
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            _ => {
                const HEX: [char; 16] =
                    ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
                text.push_str("\\u00");
                text.extend(HEX.get(usize::from(byte >> 4)).into_iter().chain(HEX.get(usize::from(byte & 15))));
            }
        }
        plain = place + 1;
    }
    text.push_str(value.get(plain..).unwrap_or_default());
    text.push('"');
}

/// Reads a JSON string; `None` when `json` is something else.
pub(crate) fn as_string(json: &str) -> Option<String> {
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { None }
}

/// Whether the whole of `text` is a number as JSON spells numbers: `-0`, `1.50` and `1e5` are, `00123`, `+1`, `.5` and
/// `NaN` are not.
pub(crate) fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let rest = rest.get(whole..).unwrap_or_default();
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => match digits(fraction) {
            0 => return false,
            count => fraction.get(count..).unwrap_or_default(),
        },
        None => rest,
    };
    match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        None => rest.is_empty(),
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Gives a document a collection: `document` with `@metadata.@collection` set, and without an `@metadata.@id`, which a
/// name from elsewhere replaces when `drop_id` is set.
///
/// # Errors
/// `document` is no JSON object, or its `@metadata` is none.
pub(crate) fn with_metadata(
    document: &str,
    collection: Option<&str>,
    drop_id: bool,
) -> Result<String, serde_json::Error> {
    let members = Members::parse(document)?;
    let metadata = match members.get("@metadata") {
        Some(metadata) => Members::parse(metadata)?,
        None => Members::default(),
    };
    let mut name = String::new();
    let own = metadata.0.iter().filter(|(key, _)| !(drop_id && key == "@id"));
    let own = own.filter(|(key, _)| collection.is_none() || key != "@collection");
    let own = own.map(|(key, value)| (&**key, value.get()));
    let given = collection.map(|collection| {
        push_string(&mut name, collection);
        ("@collection", name.as_str())
    });
    let metadata = object(given.into_iter().chain(own));
    let body = members.0.iter().filter(|(key, _)| key != "@metadata").map(|(key, value)| (&**key, value.get()));
    Ok(object(body.chain([("@metadata", metadata.as_str())])))
}

/// Brings a JSON text onto one line: a line break in a string is escaped, so every other one is white space.
pub(crate) fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// Lays a JSON text out over several lines. Strings and numbers stay as they are; the text must be valid.
pub(crate) fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut rest = json;
    while let Some(character) = rest.chars().next() {
        let length = if character == '"' { string_length(rest) } else { character.len_utf8() };
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        match character {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                text.push(character);
                text.push_str(rest.get(..1).unwrap_or_default());
                rest = rest.get(1..).unwrap_or_default().trim_start();
            }
            '{' | '[' | ',' => {
                depth += usize::from(character != ',');
                text.push(character);
                new_line(&mut text, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(character);
            }
            ':' => text.push_str(": "),
            _ => text.push_str(token),
        }
    }
    text
}

/// The length in bytes of the JSON string that `text` begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    for _ in 0..depth {
        text.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_json_calls_numbers() {
        for text in ["0", "-0", "7", "-12.50", "1e5", "1E+5", "0.1e-400", "123456789012345678901234567890"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "-", "00123", "01", "+1", ".5", "1.", "1e", "1e+", "NaN", "Infinity", "0x1", " 1", "1 ", "1,5"]
        {
            assert!(!is_number(text), "{text}");
        }
    }

    #[test]
    fn a_collection_is_put_into_the_metadata_and_the_rest_is_kept() -> Result<(), serde_json::Error> {
        let document =
            r#"{"n": 1.00, "@metadata":{"@id":"a","@collection":"Old","mine":1e2}, "big":12345678901234567890123}"#;
        assert_eq!(
            with_metadata(document, Some("New"), true)?,
            r#"{"n":1.00,"big":12345678901234567890123,"@metadata":{"@collection":"New","mine":1e2}}"#
        );
        assert_eq!(with_metadata("{}", Some("a\"b"), false)?, r#"{"@metadata":{"@collection":"a\"b"}}"#);
        Ok(())
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "1", "[]", "\"a\"", "{", "{}x", "{\"a\":}", "{\"@metadata\":1}", "{\"a\":01}"] {
            assert!(with_metadata(text, Some("C"), false).is_err(), "{text}");
        }
    }

    #[test]
    fn strings_are_escaped_as_json_wants() -> Result<(), serde_json::Error> {
        let value = "a\"b\\c\n\r\t\u{1}\u{7f}é😀";
        let mut text = String::new();
        push_string(&mut text, value);
        assert_eq!(serde_json::from_str::<String>(&text)?, value);
        assert_eq!(as_string(&text).as_deref(), Some(value));
        assert_eq!(as_string("12"), None);
        Ok(())
    }

    #[test]
    fn pretty_printing_changes_white_space_alone() {
        let json = r#"{"a":[1.00,{}, [ ]],"b":"x:{,\"}", "c":{"d":null}}"#;
        let expected = "{\n  \"a\": [\n    1.00,\n    {},\n    []\n  ],\n  \"b\": \"x:{,\\\"}\",\n  \"c\": {\n    \"d\": null\n  }\n}";
        assert_eq!(pretty(json), expected);
    }
}
