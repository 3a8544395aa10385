//! Functions on text. Positions and lengths count characters. Work is charged by length.

use std::any::TypeId;
use std::rc::Rc;

use rhai::{Array, Dynamic, Engine, ImmutableString, NativeCallContext};

use super::super::host::cell::type_name;
use super::super::host::convert::{Bounds, encode};
use super::super::host::decode::value_number;
use super::super::problem::{Failure, failure};
use super::super::state::State;
use super::super::{encoding, json};
use super::{text_of, wrong_type};

type Result<T> = std::result::Result<T, Failure>;
type Text = ImmutableString;

/// Registers the functions.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    register_questions(engine, state);
    register_texts(engine, state);
    register_parts(engine, state);
    register_conversions(engine, state);
    register_missing(engine);
}

fn register_questions(engine: &mut Engine, state: &Rc<State>) {
    let s = Rc::clone(state);
    engine.register_fn("len", move |text: Text| characters(&s, &text));
    let s = Rc::clone(state);
    engine.register_get("len", move |text: &mut Text| characters(&s, text));
    engine.register_fn("is_empty", |text: Text| text.is_empty());
    for (name, question) in [
        ("contains", (|text, part| text.contains(part)) as fn(&str, &str) -> bool),
        ("starts_with", |text, part| text.starts_with(part)),
        ("ends_with", |text, part| text.ends_with(part)),
    ] {
        let s = Rc::clone(state);
        engine.register_fn(name, move |text: Text, part: Dynamic| {
            let part = text_of(&part, name)?;
            s.charge_bytes(text.len() + part.len())?;
            Ok::<_, Failure>(question(&text, &part))
        });
    }
    let s = Rc::clone(state);
    engine.register_fn("index_of", move |text: Text, part: Text| index_of(&s, &text, &part, 0));
    let s = Rc::clone(state);
    engine.register_fn("index_of", move |text: Text, part: Text, start: i64| index_of(&s, &text, &part, start));
}

fn register_texts(engine: &mut Engine, state: &Rc<State>) {
    for (name, change) in [
        ("to_lower", (|text| text.chars().flat_map(char::to_lowercase).collect()) as fn(&str) -> String),
        ("to_upper", |text| text.to_uppercase()),
        ("trim", |text| text.trim().to_owned()),
        ("trim_start", |text| text.trim_start().to_owned()),
        ("trim_end", |text| text.trim_end().to_owned()),
    ] {
        let s = Rc::clone(state);
        engine.register_fn(name, move |text: Text| {
            s.text(text.len())?;
            Ok::<_, Failure>(change(&text))
        });
    }
    let s = Rc::clone(state);
    engine.register_fn("replace", move |text: Text, from: Text, to: Text| {
        if from.is_empty() {
            return Err(failure("replace: the text to look for is empty"));
        }
        s.charge_bytes(text.len())?;
        let found = text.matches(from.as_str()).count();
        s.text((text.len() - found * from.len()).saturating_add(found.saturating_mul(to.len())))?;
        Ok(text.replace(from.as_str(), &to))
    });
    for (name, at_start) in [("pad_start", true), ("pad_end", false)] {
        let s = Rc::clone(state);
        engine.register_fn(name, move |text: Text, length: i64, with: Text| {
            let missing = usize::try_from(length).unwrap_or(0).saturating_sub(text.chars().count());
            s.text(text.len().saturating_add(missing.saturating_mul(with.len().max(1))))?;
            let padding: String = with.chars().cycle().take(missing).collect();
            Ok::<_, Failure>(if at_start { padding + text.as_str() } else { text.to_string() + padding.as_str() })
        });
    }
}

fn register_parts(engine: &mut Engine, state: &Rc<State>) {
    let s = Rc::clone(state);
    engine.register_fn("sub_string", move |text: Text, start: i64| part(&s, &text, start, i64::MAX));
    let s = Rc::clone(state);
    engine.register_fn("sub_string", move |text: Text, start: i64, length: i64| part(&s, &text, start, length));
    let s = Rc::clone(state);
    engine.register_fn("split", move |text: Text, by: Text| {
        if by.is_empty() {
            return Err(failure("split: the separator is empty; chars() gives the characters"));
        }
        pieces(&s, text.len(), text.split(by.as_str()))
    });
    let s = Rc::clone(state);
    engine.register_fn("split", move |text: Text| pieces(&s, text.len(), text.split_whitespace()));
    let s = Rc::clone(state);
    engine.register_fn("chars", move |text: Text| {
        let ends: Vec<_> = text.char_indices().map(|(i, c)| i..i + c.len_utf8()).collect();
        pieces(&s, text.len(), ends.into_iter().filter_map(|range| text.get(range)))
    });
}

fn register_conversions(engine: &mut Engine, state: &Rc<State>) {
    let any = [TypeId::of::<Dynamic>()];
    let s = Rc::clone(state);
    engine.register_raw_fn("to_string", any, move |_: NativeCallContext, args: &mut [&mut Dynamic]| match args {
        [value] => shown(&s, value),
        _ => Err(failure("to_string needs a value")),
    });
}

/// Functions of text on a missing value: missing again.
fn register_missing(engine: &mut Engine) {
    for name in ["to_lower", "to_upper", "trim", "trim_start", "trim_end", "chars", "split"] {
        engine.register_fn(name, |(): ()| ());
    }
    for name in ["sub_string", "split"] {
        engine.register_fn(name, |(): (), _: Dynamic| ());
    }
    for name in ["sub_string", "replace", "pad_start", "pad_end"] {
        engine.register_fn(name, |(): (), _: Dynamic, _: Dynamic| ());
    }
    for name in ["contains", "starts_with", "ends_with"] {
        engine.register_fn(name, |(): (), _: Dynamic| false);
    }
}

fn characters(state: &State, text: &str) -> Result<i64> {
    state.charge_bytes(text.len())?;
    Ok(i64::try_from(text.chars().count()).unwrap_or(i64::MAX))
}

fn index_of(state: &State, text: &str, part: &str, start: i64) -> Result<i64> {
    state.charge_bytes(text.len() + part.len())?;
    let skip = usize::try_from(start).unwrap_or(0);
    let Some(from) = text.char_indices().map(|(i, _)| i).chain([text.len()]).nth(skip) else {
        return Ok(-1);
    };
    let found = text.get(from..).and_then(|rest| rest.find(part)).and_then(|at| text.get(..from + at));
    Ok(found.map_or(-1, |before| i64::try_from(before.chars().count()).unwrap_or(i64::MAX)))
}

/// Characters from a position; a negative position counts from the end.
fn part(state: &State, text: &str, start: i64, length: i64) -> Result<String> {
    state.text(text.len())?;
    let skip = if start < 0 {
        let back = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
        text.chars().count().saturating_sub(back)
    } else {
        usize::try_from(start).unwrap_or(usize::MAX)
    };
    Ok(text.chars().skip(skip).take(usize::try_from(length).unwrap_or(0)).collect())
}

fn pieces<'a>(state: &State, bytes: usize, pieces: impl Iterator<Item = &'a str>) -> Result<Array> {
    state.charge_bytes(bytes)?;
    let max = state.limits.array_elements();
    let array: Array = pieces.take(max + 1).map(|piece| Text::from(piece).into()).collect();
    state.charge(array.len())?;
    if array.len() > max {
        return Err(super::collections::too_long(max));
    }
    Ok(array)
}

/// A value's text: strings as they are, numbers and the rest as JSON.
fn shown(state: &State, value: &Dynamic) -> Result<Text> {
    if let Some(text) = value.read_lock::<Text>() {
        return Ok(text.clone());
    }
    if let Some(number) = value_number(value) {
        return Ok(number.to_string().into());
    }
    if value.is_unit() {
        return Ok(Text::new());
    }
    if value.is::<super::super::problem::Problem>() {
        return Ok(value
            .read_lock::<super::super::problem::Problem>()
            .map(|p| p.message.clone())
            .unwrap_or_default()
            .into());
    }
    if !matches!(type_name(value), "bool" | "string" | "array" | "object") {
        return Err(wrong_type("to_string", "a value that can be stored", value));
    }
    let (mut bytes, mut text) = (Vec::new(), String::new());
    let bounds = Bounds { bytes: (state.limits.string_bytes_max, "string_bytes_max"), depth: state.limits.depth_max };
    encode(value, bounds, &mut bytes).map_err(|error| failure(format!("to_string: the value {error}")))?;
    if value.is_char() {
        return text_of(value, "to_string");
    }
    encoding::write_json(&bytes, &mut text);
    state.text(text.len())?;
    debug_assert!(json::kind(&text).is_some());
    Ok(text.into())
}
