//! The properties of a document's body one by one, each as its text stands, for a change of one of them.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{DocumentError, StoreError};

/// The properties of a body, in order.
#[derive(Debug)]
pub(crate) struct Properties<'a>(Vec<(String, &'a str)>);

impl<'a> Properties<'a> {
    /// Takes the body of a document apart.
    ///
    /// # Errors
    /// It is not the text of an object, which no stored body is.
    pub(crate) fn read(body: &'a str) -> Result<Self, StoreError> {
        serde_json::from_str(body).map_err(|error| DocumentError::Json { detail: error.to_string() }.into())
    }

    /// The text of one property's value.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, text)| *text)
    }

    /// The body with one property set to a number, in its old place or last; the others stay as they are.
    pub(crate) fn with_number(&self, name: &str, number: u64) -> String {
        let number = number.to_string();
        let known = self.0.iter().map(|(key, text)| (key.as_str(), if key == name { number.as_str() } else { *text }));
        let new = self.get(name).is_none().then_some((name, number.as_str()));
        object(known.chain(new))
    }

    /// The body without some of its properties; the others stay as they are.
    pub(crate) fn without(&self, names: &[&str]) -> String {
        let kept = self.0.iter().filter(|(key, _)| !names.contains(&key.as_str()));
        object(kept.map(|(key, text)| (key.as_str(), *text)))
    }
}

fn object<'p>(properties: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    let mut body = String::from("{");
    for (position, (key, text)) in properties.enumerate() {
        if position > 0 {
            body.push(',');
        }
        body.push_str(&serde_json::Value::from(key).to_string());
        body.push(':');
        body.push_str(text);
    }
    body.push('}');
    body
}

impl<'de: 'a, 'a> Deserialize<'de> for Properties<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Properties<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut properties = Vec::new();
                while let Some((key, text)) = map.next_entry::<String, &'de RawValue>()? {
                    properties.push((key, text.get()));
                }
                Ok(Properties(properties))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_property_changes_and_the_others_keep_their_text_and_place() {
        let body = r#"{"a":1.10,"Max":"32","b\n":{"x":[1e3]}}"#;
        let properties = Properties::read(body).unwrap();
        assert_eq!(properties.get("Max"), Some(r#""32""#));
        assert_eq!(properties.with_number("Max", 64), r#"{"a":1.10,"Max":64,"b\n":{"x":[1e3]}}"#);
        assert_eq!(Properties::read(r#"{"a":1}"#).unwrap().with_number("Max", 5), r#"{"a":1,"Max":5}"#);
        assert_eq!(Properties::read("{}").unwrap().with_number("Max", 5), r#"{"Max":5}"#);
        assert_eq!(properties.without(&["Max", "none"]), r#"{"a":1.10,"b\n":{"x":[1e3]}}"#);
        assert!(Properties::read("[]").is_err());
    }
}
