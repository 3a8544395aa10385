//! What an index must give: plain folding over the live documents, without increments, storage or product code.
//!
//! Entries are taken in canonical order (lower-cased source id, emit position) and reduced along the tree whose shape
//! depends on the set of entries alone (`shape`). A map that fails contributes nothing; a failed reduce withdraws its group.
//!
//! Next: `shape`, then `models`, the scripts with their Rust twins.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::shape;

/// A live document, as the oracle sees it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The id in any spelling.
    pub(crate) id: String,
    /// The collection it lives in.
    pub(crate) collection: String,
    /// Its properties.
    pub(crate) body: Value,
    /// Their text, for numbers that `serde_json` would round.
    pub(crate) text: String,
}

/// A key and a value that a map emits.
pub(crate) type Emit = (Value, Value);

/// The Rust twin of an index script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// The index's name.
    pub(crate) name: &'static str,
    /// The script that the product runs.
    pub(crate) script: &'static str,
    /// The collections it maps.
    pub(crate) sources: &'static [&'static str],
    /// Its output collection.
    pub(crate) output: &'static str,
    /// What the map emits; `None` where it fails.
    pub(crate) map: fn(&Source, &Others<'_>) -> Option<Vec<Emit>>,
    /// What the reduce gives; `None` where it fails.
    pub(crate) reduce: fn(&Value, &[Value]) -> Option<Value>,
}

/// All live documents, by lower-cased id: what a map can load.
#[derive(Debug)]
pub(crate) struct Others<'a> {
    by_id: BTreeMap<String, &'a Source>,
}

impl<'a> Others<'a> {
    pub(crate) fn new(documents: &'a [Source]) -> Self {
        Self { by_id: documents.iter().map(|document| (lower(&document.id), document)).collect() }
    }

    /// A document by its id, if it lives in this collection.
    pub(crate) fn load(&self, id: &Value, collection: &str) -> Option<&'a Source> {
        let found = self.by_id.get(&lower(id.as_str()?)).copied();
        found.filter(|found| found.collection.eq_ignore_ascii_case(collection))
    }
}

/// One group: its key and its entries by (lower-cased source id, ordinal).
#[derive(Debug, Default)]
struct Group {
    key: Value,
    entries: BTreeMap<(String, u32), Value>,
}

impl Model {
    /// The bodies of all artificial documents, sorted: one for each group whose reduce gives a value.
    pub(crate) fn expected(&self, documents: &[Source]) -> Vec<String> {
        let mut bodies: Vec<String> = self.groups(documents).values().filter_map(|group| self.body(group)).collect();
        bodies.sort();
        bodies
    }

    /// The number of entries of each group, by the text of its key.
    pub(crate) fn counts(&self, documents: &[Source]) -> BTreeMap<String, usize> {
        self.groups(documents).into_iter().map(|(key, group)| (key, group.entries.len())).collect()
    }

    fn body(&self, group: &Group) -> Option<String> {
        match shape::fold(&group.entries, &|values| (self.reduce)(&group.key, values))? {
            Value::Null => None,
            value => Some(artificial(&group.key, &value)),
        }
    }

    fn groups(&self, documents: &[Source]) -> BTreeMap<String, Group> {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        let others = Others::new(documents);
        for document in documents.iter().filter(|document| self.takes(&document.collection)) {
            let mut ordinals: BTreeMap<String, u32> = BTreeMap::new();
            for (key, value) in (self.map)(document, &others).unwrap_or_default() {
                let text = canonical(&key);
                let ordinal = ordinals.entry(text.clone()).or_default();
                let group = groups.entry(text).or_default();
                group.key = key;
                group.entries.insert((lower(&document.id), *ordinal), value);
                *ordinal += 1;
            }
        }
        groups
    }

    fn takes(&self, collection: &str) -> bool {
        self.sources.iter().any(|source| source.eq_ignore_ascii_case(collection))
    }
}

/// The text of an artificial document: the key's fields (`Key` where the key is no object), then the value's fields (`Value`
/// where it is no object), each in code-point order.
pub(crate) fn artificial(key: &Value, value: &Value) -> String {
    let fields = fields_of("Key", key).into_iter().chain(fields_of("Value", value));
    let texts: Vec<String> =
        fields.map(|(name, value)| format!("{}:{}", Value::from(name), canonical(&value))).collect();
    format!("{{{}}}", texts.join(","))
}

fn fields_of(otherwise: &str, value: &Value) -> BTreeMap<String, Value> {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        plain => BTreeMap::from([(otherwise.to_owned(), plain.clone())]),
    }
}

/// Compact JSON with the fields of every object in code-point order: one text for equal values, as long as numbers are written alike.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let texts: Vec<String> = sorted
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", texts.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

/// The order of keys: null, false, true, numbers, texts by code point, arrays, objects. Whole numbers only.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(value) => 1 + u8::from(*value),
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_i64().cmp(&b.as_i64()),
        (Value::String(a), Value::String(b)) => a.chars().cmp(b.chars()),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let sorted = |fields: &serde_json::Map<String, Value>| -> Vec<(String, Value)> {
                let sorted: BTreeMap<String, Value> = fields.clone().into_iter().collect();
                sorted.into_iter().collect()
            };
            let (a, b) = (sorted(a), sorted(b));
            let field = |((name, value), (other, with)): (&(String, Value), &(String, Value))| {
                name.cmp(other).then_with(|| compare(value, with))
            };
            let unequal = a.iter().zip(&b).map(field).find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Lower-cases an id character by character, without context.
pub(crate) fn lower(id: &str) -> String {
    id.chars().flat_map(char::to_lowercase).collect()
}
