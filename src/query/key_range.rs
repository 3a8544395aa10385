//! The ranges of an index's keys that can hold what conditions ask for.
//!
//! A key is an object whose fields stand in code-point order, so ranges exist for conditions on its first field, on the second
//! where the first is given, and so on. They may hold more than is asked for (numbers are rounded to 28 digits in keys, and an
//! array may hold an element that is asked for), never less: each row is asked again.

use std::ops::Bound;

use super::filter::Test;
use super::path::{Path, Step};
use super::syntax::{Comparison, Order, Reading, Subject};
use super::value::Value;
use crate::index::ordered_key::ordered_key;
use crate::index::read::KeyBounds;
use crate::script::encoding::{encode_json, write_null, write_string};
use crate::store::keyspace::after_prefix;

/// The most ranges for values of `in`.
const RANGES_MAX: usize = 1_024;
/// The depth of values in keys.
const DEPTH_MAX: usize = 64;

/// The fields of an index's keys, in their order, each with the path by which a query asks for it.
pub(crate) type KeyFields = [(String, Path)];

/// Ranges of keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyRanges {
    /// In key order.
    pub(crate) ranges: Vec<KeyBounds>,
    /// How many fields have a given value.
    pub(crate) given: usize,
    /// Whether the field behind those has bounds.
    pub(crate) is_bounded: bool,
}

impl KeyRanges {
    /// All keys.
    pub(crate) fn all() -> Self {
        Self { ranges: vec![all_keys()], given: 0, is_bounded: false }
    }

    /// Whether they leave anything out.
    pub(crate) fn is_selective(&self) -> bool {
        self.given > 0 || self.is_bounded
    }

    /// The ranges for conditions that all must hold.
    pub(crate) fn of(tests: &[Test], fields: &KeyFields) -> Self {
        let mut prefixes = vec![object_tag()];
        let mut arrays = Vec::new();
        let mut found = Self::all();
        for (name, path) in fields {
            let behind_name = |prefix: &Vec<u8>| [prefix.as_slice(), &text(name)].concat();
            let starts: Vec<Vec<u8>> = prefixes.iter().map(behind_name).collect();
            if let Some(values) = given(tests, path).filter(|values| values.len() * starts.len() <= RANGES_MAX) {
                arrays.extend(starts.iter().map(|start| [start.as_slice(), &array_tag()].concat()));
                let all = starts.iter().flat_map(|start| values.iter().map(|value| [start.as_slice(), value].concat()));
                prefixes = all.collect();
                found.given += 1;
                continue;
            }
            if let Some((from, to)) = bounds(tests, path) {
                found.ranges = starts.iter().map(|start| within(start, from.as_deref(), to.as_deref())).collect();
                arrays.extend(starts.iter().map(|start| [start.as_slice(), &array_tag()].concat()));
                found.is_bounded = true;
            }
            break;
        }
        if found.given > 0 && !found.is_bounded {
            found.ranges = prefixes.iter().map(|prefix| beginning(prefix)).collect();
        }
        if found.is_selective() {
            found.ranges.extend(arrays.iter().map(|prefix| beginning(prefix)));
            found.ranges = disjoint(found.ranges);
        }
        found
    }
}

/// All keys.
pub(crate) fn all_keys() -> KeyBounds {
    KeyBounds { from: Bound::Unbounded, to: Bound::Unbounded }
}

/// Whether rows in key order are in the order that a query asks for: by the first fields, all rising; or by all of them.
pub(crate) fn is_key_order(order: &[Order], fields: &KeyFields) -> bool {
    !order.is_empty()
        && order.len() <= fields.len()
        && order.iter().zip(fields).all(|(order, (_, path))| {
            !order.descending && order.reading == Reading::Typed && order.by == Subject::Path(path.clone())
        })
}

/// The ordered values that a path must have one of.
fn given(tests: &[Test], path: &Path) -> Option<Vec<Vec<u8>>> {
    tests.iter().find_map(|test| match test {
        Test::Compare(Subject::Path(asked), Comparison::Equal, value) if asked == path => Some(vec![ordered(value)?]),
        Test::In(Subject::Path(asked), values) if asked == path => values.iter().map(ordered).collect(),
        _ => None,
    })
}

type Limits = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The beginnings between which a path's ordered value lies, both included.
fn bounds(tests: &[Test], path: &Path) -> Option<Limits> {
    let (mut from, mut to): Limits = (None, None);
    for test in tests {
        let (low, high) = match test {
            Test::Compare(Subject::Path(asked), comparison, value) if asked == path => match comparison {
                Comparison::Less | Comparison::LessOrEqual => (None, Some(ordered(value)?)),
                Comparison::Greater | Comparison::GreaterOrEqual => (Some(ordered(value)?), None),
                Comparison::Equal | Comparison::NotEqual => continue,
            },
            Test::Between(Subject::Path(asked), low, high) if asked == path => {
                (Some(ordered(low)?), Some(ordered(high)?))
            }
            Test::StartsWith(Subject::Path(asked), start) if asked == path => {
                let mut start = text(start);
                // Without its end, it begins all that goes on.
                start.pop();
                (Some(start.clone()), Some(start))
            }
            _ => continue,
        };
        from = from.max(low);
        to = match (to, high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    (from.is_some() || to.is_some()).then_some((from, to))
}

fn within(start: &[u8], from: Option<&[u8]>, to: Option<&[u8]>) -> KeyBounds {
    let from = Bound::Included([start, from.unwrap_or_default()].concat());
    let to = after_prefix(&[start, to.unwrap_or_default()].concat()).map_or(Bound::Unbounded, Bound::Excluded);
    KeyBounds { from, to }
}

/// The keys that begin so.
fn beginning(prefix: &[u8]) -> KeyBounds {
    within(prefix, None, None)
}

/// Puts ranges in order and joins those that overlap.
fn disjoint(mut ranges: Vec<KeyBounds>) -> Vec<KeyBounds> {
    let start = |range: &KeyBounds| match &range.from {
        Bound::Included(key) | Bound::Excluded(key) => key.clone(),
        Bound::Unbounded => Vec::new(),
    };
    ranges.sort_by_key(start);
    let mut joined: Vec<KeyBounds> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let overlaps = joined.last().is_some_and(|last| match &last.to {
            Bound::Included(end) | Bound::Excluded(end) => start(&range) < *end,
            Bound::Unbounded => true,
        });
        match joined.last_mut().filter(|_| overlaps) {
            Some(last) => {
                let end = |bound: &Bound<Vec<u8>>| match bound {
                    Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
                    Bound::Unbounded => None,
                };
                let is_longer = match (end(&last.to), end(&range.to)) {
                    (Some(last), Some(end)) => end > last,
                    (Some(_), None) => true,
                    (None, _) => false,
                };
                if is_longer {
                    last.to = range.to;
                }
            }
            None => joined.push(range),
        }
    }
    joined
}

/// A value as it stands in keys. `None`: numbers beyond what scripts hold.
fn ordered(value: &Value<'_>) -> Option<Vec<u8>> {
    let (mut json, mut canonical) = (String::new(), Vec::new());
    value.write_json(&mut json);
    encode_json(&json, DEPTH_MAX, &mut canonical).ok()?;
    Some(ordered_key(&canonical))
}

fn text(text: &str) -> Vec<u8> {
    let mut canonical = Vec::new();
    write_string(text, &mut canonical);
    ordered_key(&canonical)
}

/// How objects begin.
fn object_tag() -> Vec<u8> {
    tag("{}")
}

/// How arrays begin.
fn array_tag() -> Vec<u8> {
    tag("[]")
}

fn tag(empty: &str) -> Vec<u8> {
    let mut canonical = Vec::new();
    if encode_json(empty, DEPTH_MAX, &mut canonical).is_err() {
        write_null(&mut canonical);
    }
    ordered_key(&canonical).into_iter().take(1).collect()
}

/// A field of a key as a query asks for it.
pub(crate) fn field(name: &str) -> (String, Path) {
    (name.to_owned(), Path(vec![Step::Name(name.to_owned())]))
}
