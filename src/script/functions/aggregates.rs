//! Aggregates: `sum`, `count`, `min`, `max`, `average`, `distinct`, `first`, `last`, `concat`.
//!
//! They run over undecoded values, take an optional field name or dotted path, and skip `()`. Anything else that does
//! not fit is a fault that names field and type, never a zero.

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

use std::any::TypeId;
use std::collections::HashSet;
use std::rc::Rc;

use rhai::{Array, Dynamic, Engine, ImmutableString, NativeCallContext};

use super::super::host::cell::{Scalar, with_cell};
use super::super::host::convert::{Bounds, encode};
use super::super::host::decode::number_value;
use super::super::host::{Cell, List};
use super::super::number::Number;
use super::super::number::arithmetic::ArithmeticError;
use super::super::number::sum::Sum;
use super::super::problem::{Failure, failure, failure_with};
use super::super::state::State;
use super::operators::{arithmetic, order};
use super::{text_of, with_article, wrong_type};

type Result<T> = std::result::Result<T, Failure>;
type Aggregate = fn(&State, &Dynamic, Option<&str>) -> Result<Dynamic>;

const AGGREGATES: [(&str, Aggregate); 9] = [
    ("sum", sum),
    ("count", count),
    ("min", |state, values, path| extreme(state, values, path, "min")),
    ("max", |state, values, path| extreme(state, values, path, "max")),
    ("average", average),
    ("distinct", distinct),
    ("first", first),
    ("last", last),
    ("concat", |state, values, path| concat(state, values, path, None)),
];

/// The names, for checking calls.
pub(in crate::script) fn names() -> impl Iterator<Item = &'static str> {
    AGGREGATES.iter().map(|(name, _)| *name)
}

/// Registers the functions on lists, arrays and `()`, which counts as an empty list.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    let string = TypeId::of::<ImmutableString>();
    for values in [TypeId::of::<List>(), TypeId::of::<Array>(), TypeId::of::<()>()] {
        for (name, aggregate) in AGGREGATES {
            let s = Rc::clone(state);
            engine.register_raw_fn(name, [values], move |_: NativeCallContext, args: &mut [&mut Dynamic]| match args {
                [values] => aggregate(&s, values, None),
                _ => Err(failure(format!("{name} needs a list"))),
            });
            let s = Rc::clone(state);
            let types = [values, string];
            engine.register_raw_fn(name, types, move |_: NativeCallContext, args: &mut [&mut Dynamic]| match args {
                [values, path] => aggregate(&s, values, Some(&text_of(path, name)?)),
                _ => Err(failure(format!("{name} needs a list"))),
            });
        }
        let s = Rc::clone(state);
        let types = [values, string, string];
        engine.register_raw_fn("concat", types, move |_: NativeCallContext, args: &mut [&mut Dynamic]| match args {
            [values, path, by] => {
                let path = text_of(path, "concat")?;
                concat(&s, values, (!path.is_empty()).then_some(path.as_str()), Some(&text_of(by, "concat")?))
            }
            _ => Err(failure("concat needs a list")),
        });
    }
}

/// Calls `look` with each value, or its field.
fn each(
    state: &State,
    values: &Dynamic,
    path: Option<&str>,
    mut look: impl FnMut(Cell<'_>) -> Result<()>,
) -> Result<()> {
    let mut at = |cell: Cell<'_>| match path {
        Some(path) => cell.at(path, &mut look),
        None => look(cell),
    };
    state.note_path(values, path);
    if let Some(list) = values.read_lock::<List>() {
        state.charge_elements(list.len())?;
        return list.cells().try_for_each(at);
    }
    let Ok(array) = values.as_array_ref() else {
        return Ok(());
    };
    state.charge_elements(array.len())?;
    array.iter().try_for_each(|value| with_cell(value, &mut at))
}

/// A value that the aggregate cannot take.
fn unfit(function: &str, path: Option<&str>, wanted: &str, found: &str) -> Failure {
    let which = path.map_or_else(|| "a value".to_owned(), |path| format!("the field {path} of a value"));
    let message = format!("{function} needs {wanted}, but {which} is {}", with_article(found));
    match (found, path) {
        ("object", None) => failure_with(message, format!("name the field: values.{function}(\"Total\")")),
        ("string", _) => failure_with(message, "turn it into a number in the map: parse_number(doc.Amount)"),
        _ => failure(message),
    }
}

/// Calls `look` with each number.
fn each_number(
    state: &State,
    values: &Dynamic,
    path: Option<&str>,
    function: &str,
    mut look: impl FnMut(Number),
) -> Result<()> {
    each(state, values, path, |cell| {
        let found = match cell.scalar() {
            Scalar::Number(number) => {
                look(number);
                return Ok(());
            }
            Scalar::Null => return Ok(()),
            Scalar::Bool(_) => "bool",
            Scalar::Text(_) => "string",
            Scalar::Other(name) => name,
        };
        Err(unfit(function, path, "numbers", found))
    })
}

fn sum(state: &State, values: &Dynamic, path: Option<&str>) -> Result<Dynamic> {
    let mut total = Sum::default();
    each_number(state, values, path, "sum", |number| total.add(number))?;
    total.total().map(number_value).map_err(|error| arithmetic(error, "sum"))
}

fn count(state: &State, values: &Dynamic, path: Option<&str>) -> Result<Dynamic> {
    let mut count = 0_i64;
    each(state, values, path, |cell| {
        count += i64::from(path.is_none() || !matches!(cell.scalar(), Scalar::Null));
        Ok(())
    })?;
    Ok(count.into())
}

fn average(state: &State, values: &Dynamic, path: Option<&str>) -> Result<Dynamic> {
    let (mut total, mut count) = (Sum::default(), 0_i64);
    each_number(state, values, path, "average", |number| {
        total.add(number);
        count += 1;
    })?;
    if count == 0 {
        return Ok(Dynamic::UNIT);
    }
    let average = total.total().and_then(|total| total.divide(Number::Int(count)));
    average.map(number_value).map_err(|error: ArithmeticError| arithmetic(error, "average"))
}

/// The value of a cell: scalars decoded, the rest by way of the element it came from.
fn scalar_value(scalar: Scalar<'_>) -> std::result::Result<Dynamic, &'static str> {
    match scalar {
        Scalar::Null => Ok(Dynamic::UNIT),
        Scalar::Bool(value) => Ok(value.into()),
        Scalar::Number(number) => Ok(number_value(number)),
        Scalar::Text(text) => Ok(ImmutableString::from(text.as_ref()).into()),
        Scalar::Other(name) => Err(name),
    }
}

/// The smallest or largest number or text.
fn extreme(state: &State, values: &Dynamic, path: Option<&str>, function: &'static str) -> Result<Dynamic> {
    let mut best = Dynamic::UNIT;
    each(state, values, path, |cell| {
        let value = match cell.scalar() {
            Scalar::Null => return Ok(()),
            scalar @ (Scalar::Number(_) | Scalar::Text(_)) => {
                scalar_value(scalar).map_err(|found| unfit(function, path, "numbers or texts", found))?
            }
            Scalar::Bool(_) => return Err(unfit(function, path, "numbers or texts", "bool")),
            Scalar::Other(name) => return Err(unfit(function, path, "numbers or texts", name)),
        };
        if best.is_unit() {
            best = value;
            return Ok(());
        }
        let found = order(function, &value, &best)?;
        if (function == "min" && found.is_lt()) || (function == "max" && found.is_gt()) {
            best = value;
        }
        Ok(())
    })?;
    Ok(best)
}

/// Each value, or its field, as a value of the script's own, `()` left out. Stops when `take` says so.
fn each_value(
    state: &State,
    values: &Dynamic,
    path: Option<&str>,
    mut take: impl FnMut(Dynamic) -> Result<bool>,
) -> Result<()> {
    state.note_path(values, path);
    let elements = super::operators::array(values).unwrap_or_default();
    state.charge_elements(elements.len())?;
    for element in elements {
        let value = match path {
            None => element,
            Some(path) => field(&element, path)?,
        };
        if !value.is_unit() && !take(value)? {
            return Ok(());
        }
    }
    Ok(())
}

fn field(element: &Dynamic, path: &str) -> Result<Dynamic> {
    let whole = own_field(element, path)?;
    match path.split_once('.') {
        Some((first, rest)) if whole.is_unit() => field(&own_field(element, first)?, rest),
        _ => Ok(whole),
    }
}

fn own_field(element: &Dynamic, name: &str) -> Result<Dynamic> {
    if let Some(object) = element.read_lock::<super::super::host::Object>() {
        return object.get(name);
    }
    Ok(element.as_map_ref().ok().and_then(|map| map.get(name).cloned()).unwrap_or(Dynamic::UNIT))
}

fn first(state: &State, values: &Dynamic, path: Option<&str>) -> Result<Dynamic> {
    let mut found = Dynamic::UNIT;
    each_value(state, values, path, |value| {
        found = value;
        Ok(false)
    })?;
    Ok(found)
}

fn last(state: &State, values: &Dynamic, path: Option<&str>) -> Result<Dynamic> {
    let mut found = Dynamic::UNIT;
    each_value(state, values, path, |value| {
        found = value;
        Ok(true)
    })?;
    Ok(found)
}

/// The different values, in the order of their first appearance.
fn distinct(state: &State, values: &Dynamic, path: Option<&str>) -> Result<Dynamic> {
    let (mut seen, mut found) = (HashSet::new(), Array::new());
    let bounds = Bounds { bytes: (state.limits.value_bytes_max, "value_bytes_max"), depth: state.limits.depth_max };
    each_value(state, values, path, |value| {
        let mut bytes = Vec::new();
        encode(&value, bounds, &mut bytes).map_err(|error| super::emit::refused("value", &error))?;
        state.charge_bytes(bytes.len())?;
        if seen.insert(bytes) {
            if found.len() >= state.limits.array_elements() {
                return Err(super::collections::too_long(state.limits.array_elements()));
            }
            found.push(value);
        }
        Ok(true)
    })?;
    Ok(found.into())
}

/// Arrays one after the other, or texts with a separator between them.
fn concat(state: &State, values: &Dynamic, path: Option<&str>, by: Option<&str>) -> Result<Dynamic> {
    let (mut text, mut array): (Option<String>, Option<Array>) = (None, None);
    each_value(state, values, path, |value| {
        if value.is_string() && array.is_none() {
            let piece = text_of(&value, "concat")?;
            let is_first = text.is_none();
            let joined = text.get_or_insert_default();
            state.text(joined.len() + piece.len() + by.map_or(0, str::len))?;
            if let (Some(by), false) = (by, is_first) {
                joined.push_str(by);
            }
            joined.push_str(&piece);
            return Ok(true);
        }
        let Ok(more) = super::operators::array(&value) else {
            return Err(wrong_type("concat", "arrays, or texts", &value));
        };
        if text.is_some() {
            return Err(failure("concat: texts and arrays are mixed"));
        }
        let joined = array.get_or_insert_default();
        if joined.len() + more.len() > state.limits.array_elements() {
            return Err(super::collections::too_long(state.limits.array_elements()));
        }
        joined.extend(more);
        Ok(true)
    })?;
    Ok(match (text, array) {
        (Some(text), _) => text.into(),
        (None, Some(array)) => array.into(),
        (None, None) => Dynamic::UNIT,
    })
}
