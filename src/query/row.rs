//! What a query's conditions are asked of: a document, a result of an index, or a group of documents.

use std::borrow::Cow;

use super::number::Number;
use super::path::{Found, Path};
use super::syntax::{Reading, Subject};
use super::value::Value;
use crate::id;
use crate::store::document::StoredDocument;

/// One row on its way through a query.
#[derive(Clone, Debug)]
pub(crate) enum Row<'d> {
    /// A document.
    Document(Cow<'d, StoredDocument>),
    /// A result of an index that writes no documents.
    Result(IndexResult),
    /// An entry of a map-only index.
    Entry(Box<Entry>),
    /// A group of documents.
    Group(GroupRow),
}

/// A result of an index without an output collection.
#[derive(Clone, Debug)]
pub(crate) struct IndexResult {
    /// The reduce key, by whose bytes such rows are ordered where nothing else says how.
    pub(crate) key: Vec<u8>,
    /// JSON text of an object.
    pub(crate) body: String,
}

/// An entry of a map-only index, with its document.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) document: StoredDocument,
    /// The key, by whose bytes entries are ordered where nothing else says how.
    pub(crate) key: Vec<u8>,
    /// JSON text of an object: the fields of the key and of the value.
    pub(crate) fields: String,
}

/// A group of documents with its totals, ready to be shown.
#[derive(Clone, Debug)]
pub(crate) struct GroupRow {
    /// The paths of `group by` with the group's values.
    pub(crate) keys: Vec<(Path, Value<'static>)>,
    pub(crate) count: u64,
    pub(crate) sums: Vec<(Path, Number)>,
}

impl Row<'_> {
    /// The document that the row is, or belongs to.
    pub(crate) fn document(&self) -> Option<&StoredDocument> {
        match self {
            Self::Document(document) => Some(document),
            Self::Entry(entry) => Some(&entry.document),
            Self::Result(_) | Self::Group(_) => None,
        }
    }

    /// The JSON text of the properties.
    fn body(&self) -> &str {
        match self {
            Self::Document(document) => document.body.trim(),
            Self::Entry(entry) => entry.document.body.trim(),
            Self::Result(result) => &result.body,
            Self::Group(_) => "{}",
        }
    }

    /// The text that a path is followed in.
    fn text_for(&self, path: &Path) -> Cow<'_, str> {
        match (self, self.document()) {
            (Self::Entry(entry), _) if path.begins_in(&entry.fields) => Cow::Borrowed(&entry.fields),
            (_, Some(document)) if path.is_metadata() => {
                let mut text = Vec::new();
                document.write_metadata_json(&mut text);
                Cow::Owned(String::from_utf8(text).unwrap_or_default())
            }
            _ => Cow::Borrowed(self.body()),
        }
    }

    /// Calls `visit` with each value of the subject: of an array with the elements and with the array, of what is missing with null.
    pub(crate) fn visit(&self, subject: &Subject, visit: &mut dyn FnMut(&Value<'_>)) {
        match (self, subject) {
            (Self::Document(_) | Self::Result(_) | Self::Entry(_), Subject::Path(path)) => {
                path.visit(&self.text_for(path), &mut |end| {
                    let value = end.map_or(Value::Null, Value::stored);
                    if let Some(elements) = value.elements() {
                        elements.iter().for_each(&mut *visit);
                    }
                    visit(&value);
                });
            }
            (_, Subject::Id) => visit(&self.order_value(subject, Reading::Typed)),
            _ => visit(&self.value(subject)),
        }
    }

    /// Whether a path leads somewhere.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let mut found = false;
        path.visit(&self.text_for(path), &mut |end| found |= end.is_some());
        found
    }

    /// The one value of the subject: where a path goes through arrays, an array of all that it finds; null for what is missing.
    pub(crate) fn value(&self, subject: &Subject) -> Value<'static> {
        match (self, subject) {
            (Self::Document(_) | Self::Result(_) | Self::Entry(_), Subject::Path(path)) => {
                let text = self.text_for(path);
                match path.find(&text) {
                    Found::Missing => Value::Null,
                    Found::One(text) => Value::stored(text).into_owned(),
                    Found::Many(texts) => Value::Array(Cow::Owned(format!("[{}]", texts.join(",")))),
                }
            }
            (Self::Group(group), subject) => group.value(subject),
            (_, Subject::Id) => self.document().map_or(Value::Null, |it| Value::String(Cow::Owned(it.id.clone()))),
            (_, Subject::Etag) => self.document().map_or(Value::Null, |it| Value::Number(Number::from(it.etag))),
            _ => Value::Null,
        }
    }

    /// The value by which the row is ordered.
    pub(crate) fn order_value(&self, subject: &Subject, reading: Reading) -> Value<'static> {
        let value = match (self.document(), subject) {
            (Some(document), Subject::Id) => Value::String(Cow::Owned(id::lower(&document.id))),
            _ => self.value(subject),
        };
        match (reading, value) {
            (Reading::Typed, value) | (Reading::String, value @ (Value::Null | Value::String(_))) => value,
            (Reading::String, value) => {
                let mut text = String::new();
                value.write_json(&mut text);
                Value::String(Cow::Owned(text))
            }
            (Reading::Long | Reading::Double, number @ Value::Number(_)) => number,
            (Reading::Long | Reading::Double, Value::String(text)) => {
                Number::parse(text.trim()).map_or(Value::Null, Value::Number)
            }
            (Reading::Long | Reading::Double, _) => Value::Null,
        }
    }

    /// What decides between rows that are equal in everything the query orders by.
    pub(crate) fn tie(&self) -> Vec<u8> {
        match self {
            Self::Document(document) => id::lower(&document.id).into_bytes(),
            Self::Result(result) => result.key.clone(),
            Self::Entry(entry) => [entry.key.as_slice(), id::lower(&entry.document.id).as_bytes()].concat(),
            Self::Group(group) => {
                let mut text = String::new();
                group.keys.iter().for_each(|(_, value)| value.write_json(&mut text));
                text.into_bytes()
            }
        }
    }

    /// Appends the JSON text of what a subject shows.
    pub(crate) fn write_value(&self, subject: &Subject, into: &mut Vec<u8>) {
        if let (Self::Document(_) | Self::Result(_) | Self::Entry(_), Subject::Path(path)) = (self, subject) {
            let text = self.text_for(path);
            match path.find(&text) {
                Found::Missing => into.extend_from_slice(b"null"),
                // As it is stored: no digit is changed by being selected.
                Found::One(text) => into.extend_from_slice(text.as_bytes()),
                Found::Many(texts) => {
                    into.push(b'[');
                    into.extend_from_slice(texts.join(",").as_bytes());
                    into.push(b']');
                }
            }
            return;
        }
        let mut text = String::new();
        self.value(subject).write_json(&mut text);
        into.extend_from_slice(text.as_bytes());
    }
}

impl GroupRow {
    /// Bytes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.keys.iter().map(|(_, value)| size_of::<Value<'_>>() + value.heap_bytes()).sum::<usize>() + 64
    }

    fn value(&self, subject: &Subject) -> Value<'static> {
        let of = |path: &Path| self.keys.iter().find(|(key, _)| key == path).map(|(_, value)| value.clone());
        match subject {
            Subject::Path(path) => of(path).unwrap_or(Value::Null),
            Subject::Count => Value::Number(Number::from(self.count)),
            Subject::Sum(path) => {
                let sum = self.sums.iter().find(|(summed, _)| summed == path);
                sum.map_or(Value::Null, |(_, sum)| Value::Number(sum.clone()))
            }
            Subject::Key => match self.keys.as_slice() {
                [(_, only)] => only.clone(),
                keys => Value::Object(Cow::Owned(object(keys))),
            },
            Subject::Id | Subject::Etag => Value::Null,
        }
    }
}

fn object(keys: &[(Path, Value<'_>)]) -> String {
    let mut text = String::from("{");
    for (position, (path, value)) in keys.iter().enumerate() {
        text.push_str(if position > 0 { "," } else { "" });
        let field = super::syntax::Field { value: Subject::Path(path.clone()), alias: None };
        Value::String(Cow::Owned(field.name())).write_json(&mut text);
        text.push(':');
        value.write_json(&mut text);
    }
    text.push('}');
    text
}
