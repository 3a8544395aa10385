//! Which documents `_all_docs` is asked for: a range of ids by CouchDB's rules, or a list of ids.
//!
//! `startkey` is where reading begins and `endkey` where it ends, so with `descending=true` the first is the higher one. Both
//! are JSON; one that is no string stands before all ids (null, booleans, numbers) or after them (arrays, objects), by the one
//! order of values. A range that is the wrong way round is refused, never turned round.

use std::ops::Bound;

use serde_json::Value;

use crate::id;
use crate::server::error::ApiError;
use crate::server::query::{Query, bad};
use crate::store::scan::Direction;
use crate::store::span::IdSpan;

/// What is listed.
#[derive(Debug)]
pub(super) enum Wanted {
    /// A range; `None` is one that no id can be in.
    Range(Option<IdSpan>),
    /// These keys, in this order, also where there is no document.
    Keys(Vec<Value>),
}

/// Reads what is asked for.
///
/// # Errors
/// A bound that is no JSON, bounds that contradict each other.
pub(super) fn read(query: &Query) -> Result<Wanted, ApiError> {
    let direction = if query.switch("descending", false)? { Direction::Backward } else { Direction::Forward };
    let (key, keys) = (parameter(query, "key", "key")?, parameter(query, "keys", "keys")?);
    let start = parameter(query, "startkey", "start_key")?;
    let end = parameter(query, "endkey", "end_key")?;
    if let Some(keys) = keys {
        if key.is_some() || start.is_some() || end.is_some() || query.text("prefix").is_some() {
            return Err(ApiError::argument(
                "'keys' goes with none of 'key', 'startkey', 'endkey' and 'prefix': it says already which documents are wanted.",
            ));
        }
        let Value::Array(mut keys) = keys else {
            return Err(bad("keys", &keys.to_string(), "a JSON array of ids"));
        };
        if direction == Direction::Backward {
            keys.reverse();
        }
        return Ok(Wanted::Keys(keys));
    }
    let inclusive = query.switch("inclusive_end", true)?;
    let (start, end, inclusive) = match key {
        None => (start, end, inclusive),
        Some(key) => (Some(key.clone()), Some(key), true),
    };
    check_order(start.as_ref(), end.as_ref(), direction)?;
    let prefix = query.text("prefix").unwrap_or_default().to_owned();
    Ok(Wanted::Range(span(start.as_ref(), end.as_ref(), inclusive, direction).map(|span| IdSpan { prefix, ..span })))
}

/// Turns where reading begins and ends into a range. `None`: no id is in it.
fn span(start: Option<&Value>, end: Option<&Value>, inclusive: bool, direction: Direction) -> Option<IdSpan> {
    let (low, high, is_low_in, is_high_in) = match direction {
        Direction::Forward => (start, end, true, inclusive),
        Direction::Backward => (end, start, inclusive, true),
    };
    let bound = |id: &str, is_in| {
        let id = id.to_owned();
        if is_in { Bound::Included(id) } else { Bound::Excluded(id) }
    };
    let from = match low {
        Some(Value::String(id)) => bound(id, is_low_in),
        Some(value) if !stands_before(value) => return None,
        None | Some(_) => Bound::Unbounded,
    };
    let to = match high {
        Some(Value::String(id)) => bound(id, is_high_in),
        Some(value) if stands_before(value) => return None,
        None | Some(_) => Bound::Unbounded,
    };
    Some(IdSpan { from, to, prefix: String::new(), direction })
}

/// Whether a value that is no string stands before all strings.
fn stands_before(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

fn check_order(start: Option<&Value>, end: Option<&Value>, direction: Direction) -> Result<(), ApiError> {
    let (Some(Value::String(start)), Some(Value::String(end))) = (start, end) else { return Ok(()) };
    let (first, last) = (id::lower(start), id::lower(end));
    let (is_reversed, other) = match direction {
        Direction::Forward => (first > last, "true"),
        Direction::Backward => (first < last, "false"),
    };
    if !is_reversed {
        return Ok(());
    }
    Err(ApiError::argument(format!(
        "No document can be between startkey '{}' and endkey '{}'; exchange them, or set descending={other}.",
        id::cut(start),
        id::cut(end)
    )))
}

/// Reads a parameter with JSON, under either of its names.
fn parameter(query: &Query, name: &str, other: &str) -> Result<Option<Value>, ApiError> {
    let (name, Some(text)) = (match query.text(name) {
        Some(text) => (name, Some(text)),
        None => (other, query.text(other)),
    }) else {
        return Ok(None);
    };
    serde_json::from_str(text).map(Some).map_err(|_| bad(name, text, "JSON: an id stands in quotes, as in \"users/1\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(query: &str) -> Result<Wanted, ApiError> {
        read(&Query::parse(query).unwrap())
    }

    fn bounds(query: &str) -> Option<(Bound<String>, Bound<String>)> {
        match wanted(query).unwrap() {
            Wanted::Range(span) => span.map(|span| (span.from, span.to)),
            Wanted::Keys(keys) => panic!("{keys:?}"),
        }
    }

    fn included(id: &str) -> Bound<String> {
        Bound::Included(id.to_owned())
    }

    #[test]
    fn bounds_follow_the_direction() {
        assert_eq!(bounds("startkey=%22b%22&endkey=%22d%22"), Some((included("b"), included("d"))));
        let falling = "start_key=%22d%22&end_key=%22b%22&descending=true";
        assert_eq!(bounds(falling), Some((included("b"), included("d"))));
        let open = Bound::Excluded("b".to_owned());
        assert_eq!(bounds(&format!("{falling}&inclusive_end=false")), Some((open, included("d"))));
        assert_eq!(bounds("key=%22b%22&inclusive_end=false"), Some((included("b"), included("b"))));
    }

    #[test]
    fn what_is_no_string_stands_before_or_after_all_ids() {
        assert_eq!(bounds("startkey=%22b%22&endkey=%7B%7D"), Some((included("b"), Bound::Unbounded)));
        assert_eq!(bounds("startkey=null&endkey=%22b%22"), Some((Bound::Unbounded, included("b"))));
        assert_eq!(bounds("endkey=5"), None);
        assert_eq!(bounds("startkey=[]"), None);
        assert_eq!(bounds("startkey=%7B%7D&descending=true"), Some((Bound::Unbounded, Bound::Unbounded)));
        assert_eq!(bounds("key=5"), None);
    }

    #[test]
    fn contradictions_and_bad_json_are_refused_by_name() {
        for (query, word) in [
            ("startkey=b", "startkey"),
            ("end_key=b", "end_key"),
            ("keys=%22b%22", "keys"),
            ("keys=[]&key=%22b%22", "keys"),
            ("startkey=%22d%22&endkey=%22b%22", "descending=true"),
            ("startkey=%22b%22&endkey=%22D%22&descending=true", "descending=false"),
        ] {
            let error = wanted(query).unwrap_err();
            assert!(error.status().as_u16() == 400 && error.message().contains(word), "{query}: {}", error.message());
        }
    }
}
