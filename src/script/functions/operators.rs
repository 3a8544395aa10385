//! Operators: arithmetic by [`Number`], comparisons by value, and faults that name what does not fit.
//!
//! Rhai's own operators are off (`set_fast_operators(false)`) and every pair of types is registered here, compound
//! assignments included, so that no operator has another meaning in some corner.

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

use std::any::TypeId;
use std::cmp::Ordering;
use std::rc::Rc;

use rhai::{Array, Dynamic, Engine, ImmutableString, Map, NativeCallContext};
use rust_decimal::Decimal;

use super::super::host::cell::type_name;
use super::super::host::convert::{Bounds, encode};
use super::super::host::decode::{number_value, value_number};
use super::super::host::{List, Object};
use super::super::number::Number;
use super::super::number::arithmetic::ArithmeticError;
use super::super::problem::{Failure, failure, failure_with};
use super::super::state::State;
use super::with_article;

type Operation = fn(Number, Number) -> Result<Number, ArithmeticError>;
type Operands<'a, 'b> = &'a mut [&'b mut Dynamic];

const ARITHMETIC: [(&str, &str, Operation); 6] = [
    ("+", "+=", Number::plus),
    ("-", "-=", Number::minus),
    ("*", "*=", Number::multiply),
    ("/", "/=", Number::divide),
    ("%", "%=", Number::remainder),
    ("**", "**=", Number::power),
];

type Holds = fn(Ordering) -> bool;

const ORDER: [(&str, Holds); 4] =
    [("<", Ordering::is_lt), ("<=", Ordering::is_le), (">", Ordering::is_gt), (">=", Ordering::is_ge)];

/// Registers all operators.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    let numbers = [TypeId::of::<i64>(), TypeId::of::<Decimal>(), TypeId::of::<f64>()];
    for (name, assign, operation) in ARITHMETIC {
        for a in numbers {
            for b in numbers {
                engine.register_raw_fn(name, [a, b], move |_: NativeCallContext, operands: Operands| {
                    calculate(name, operation, operands)
                });
                engine.register_raw_fn(assign, [a, b], move |_: NativeCallContext, operands: Operands| {
                    let result = calculate(name, operation, operands)?;
                    assign_first(operands, result);
                    Ok::<_, Failure>(())
                });
            }
        }
        register_others(engine, state, name, assign);
    }
    register_order(engine, numbers);
    register_equality(engine, state, numbers);
    register_unary(engine, numbers);
}

/// The operands that are not both numbers.
fn register_others(engine: &mut Engine, state: &Rc<State>, name: &'static str, assign: &'static str) {
    let any = [TypeId::of::<Dynamic>(), TypeId::of::<Dynamic>()];
    let shared = Rc::clone(state);
    engine.register_raw_fn(name, any, move |_: NativeCallContext, operands: Operands| match operands {
        [a, b] if name == "+" => join(&shared, a, b),
        [a, b] => Err(no_numbers(name, a, b)),
        _ => Err(failure("an operator has two operands")),
    });
    let shared = Rc::clone(state);
    engine.register_raw_fn(assign, any, move |_: NativeCallContext, operands: Operands| {
        let result = match operands {
            [a, b] if name == "+" => match append(a, b)? {
                true => return Ok(()),
                false => join(&shared, a, b)?,
            },
            [a, b] => return Err(no_numbers(name, a, b)),
            _ => return Err(failure("an operator has two operands")),
        };
        assign_first(operands, result);
        Ok::<_, Failure>(())
    });
}

fn register_order(engine: &mut Engine, numbers: [TypeId; 3]) {
    let string = TypeId::of::<ImmutableString>();
    let mut pairs = vec![[string, string], [TypeId::of::<Dynamic>(), TypeId::of::<Dynamic>()]];
    pairs.extend(numbers.iter().flat_map(|a| numbers.map(|b| [*a, b])));
    for (name, holds) in ORDER {
        for pair in &pairs {
            engine.register_raw_fn(name, pair, move |_: NativeCallContext, operands: Operands| match operands {
                [a, b] => Ok(holds(order(name, a, b)?)),
                _ => Err(failure("an operator has two operands")),
            });
        }
    }
}

fn register_equality(engine: &mut Engine, state: &Rc<State>, numbers: [TypeId; 3]) {
    let (string, any) = (TypeId::of::<ImmutableString>(), TypeId::of::<Dynamic>());
    let mut pairs = vec![
        [string, string],
        [any, any],
        // The array and map packages have their own, which compare element by element without a charge.
        [TypeId::of::<Array>(), TypeId::of::<Array>()],
        [TypeId::of::<Map>(), TypeId::of::<Map>()],
    ];
    pairs.extend(numbers.iter().flat_map(|a| numbers.map(|b| [*a, b])));
    for (name, wanted) in [("==", true), ("!=", false)] {
        for pair in &pairs {
            let state = Rc::clone(state);
            engine.register_raw_fn(name, pair, move |_: NativeCallContext, operands: Operands| match operands {
                [a, b] => Ok(equal(&state, a, b)? == wanted),
                _ => Err(failure("an operator has two operands")),
            });
        }
    }
}

fn register_unary(engine: &mut Engine, numbers: [TypeId; 3]) {
    for number in numbers {
        engine.register_raw_fn("-", [number], |_: NativeCallContext, operands: Operands| match operands {
            [value] => value_number(value).map(|n| number_value(n.negate())).ok_or_else(|| failure("- needs a number")),
            _ => Err(failure("- needs a number")),
        });
    }
    for name in ["-", "+"] {
        engine.register_raw_fn(name, [TypeId::of::<Dynamic>()], move |_: NativeCallContext, operands: Operands| {
            match operands {
                [value] if name == "+" && value_number(value).is_some() => Ok((*value).clone()),
                [value] => Err(super::wrong_type(name, "a number", value)),
                _ => Err(failure("an operand is missing")),
            }
        });
    }
    engine.register_raw_fn("!", [TypeId::of::<Dynamic>()], |_: NativeCallContext, operands: Operands| match operands {
        [value] => match value.as_bool() {
            Ok(truth) => Ok(!truth),
            Err(_) => Err(super::wrong_type("!", "true or false", value)),
        },
        _ => Err(failure("an operand is missing")),
    });
}

fn assign_first(operands: Operands<'_, '_>, result: Dynamic) {
    if let [first, ..] = operands {
        **first = result;
    }
}

fn calculate(name: &str, operation: Operation, operands: Operands<'_, '_>) -> Result<Dynamic, Failure> {
    let [a, b] = operands else {
        return Err(failure("an operator has two operands"));
    };
    let (Some(x), Some(y)) = (value_number(a), value_number(b)) else {
        return Err(no_numbers(name, a, b));
    };
    operation(x, y).map(number_value).map_err(|error| arithmetic(error, &format!("{x} {name} {y}")))
}

/// A calculation without a result.
pub(in crate::script) fn arithmetic(error: ArithmeticError, what: &str) -> Failure {
    match error {
        ArithmeticError::DivisionByZero => {
            failure_with(format!("{error}: {what}"), "check the divisor with `if` first")
        }
        ArithmeticError::Inexact => failure_with(
            format!("{error}: {what}"),
            "round the operands first: round(x, 10); sums of many values are what `sum` is for",
        ),
        _ => failure(format!("{error}: {what}")),
    }
}

/// An operation on something that is no number.
fn no_numbers(name: &str, a: &Dynamic, b: &Dynamic) -> Failure {
    let side = |value: &Dynamic| with_article(type_name(value));
    let message = format!("{name} cannot be applied to {} and {}", side(a), side(b));
    if a.is_unit() || b.is_unit() {
        let which = if a.is_unit() { "left" } else { "right" };
        return failure_with(
            format!("{message}: the {which} side is missing or null"),
            "give a default with ??, as in (doc.Amount ?? 0) + 1",
        );
    }
    if a.is_string() || b.is_string() {
        return failure_with(message, "turn the text into a number with parse_number(text)");
    }
    failure(message)
}

/// `+` on text, arrays and maps.
fn join(state: &State, a: &Dynamic, b: &Dynamic) -> Result<Dynamic, Failure> {
    let is_text = |value: &Dynamic| value.is_string() || value.is_char();
    if is_text(a) || is_text(b) {
        let (Some(left), Some(right)) = (piece(a), piece(b)) else {
            return Err(no_numbers("+", a, b));
        };
        state.text(left.len() + right.len())?;
        let mut text = String::with_capacity(left.len() + right.len());
        text.push_str(&left);
        text.push_str(&right);
        return Ok(text.into());
    }
    if type_name(a) == "array" && type_name(b) == "array" {
        let (mut left, right) = (array(a)?, array(b)?);
        state.charge_elements(left.len() + right.len())?;
        left.extend(right);
        return Ok(left.into());
    }
    if type_name(a) == "object" && type_name(b) == "object" {
        let (mut left, right) = (map(a)?, map(b)?);
        state.charge_elements(left.len() + right.len())?;
        left.extend(right);
        return Ok(left.into());
    }
    Err(no_numbers("+", a, b))
}

/// `+=` on an array or map of the script's own, in place. False where `+` must do it.
fn append(a: &mut Dynamic, b: &Dynamic) -> Result<bool, Failure> {
    if a.is_array() {
        let more = if type_name(b) == "array" { array(b)? } else { vec![b.clone()] };
        if let Ok(mut array) = a.as_array_mut() {
            array.extend(more);
        }
        return Ok(true);
    }
    if a.is_map() && type_name(b) == "object" {
        let more = map(b)?;
        if let Ok(mut map) = a.as_map_mut() {
            map.extend(more);
        }
        return Ok(true);
    }
    Ok(false)
}

/// A scalar's text, for joining.
fn piece(value: &Dynamic) -> Option<ImmutableString> {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Some(text.clone());
    }
    if let Some(number) = value_number(value) {
        return Some(number.to_string().into());
    }
    if let Ok(c) = value.as_char() {
        return Some(c.to_string().into());
    }
    value.as_bool().ok().map(|truth| if truth { "true".into() } else { "false".into() })
}

/// The elements of an array or list.
pub(in crate::script) fn array(value: &Dynamic) -> Result<Array, Failure> {
    if let Some(list) = value.read_lock::<List>() {
        return list.to_array();
    }
    value.as_array_ref().map(|array| array.clone()).map_err(|_| failure("not an array"))
}

/// The fields of a map or object.
pub(in crate::script) fn map(value: &Dynamic) -> Result<Map, Failure> {
    if let Some(object) = value.read_lock::<Object>() {
        return object.to_map();
    }
    value.as_map_ref().map(|map| map.clone()).map_err(|_| failure("not an object"))
}

/// Orders numbers by value and strings by code point; anything else has no order.
pub(in crate::script) fn order(name: &str, a: &Dynamic, b: &Dynamic) -> Result<Ordering, Failure> {
    if let (Some(x), Some(y)) = (value_number(a), value_number(b)) {
        return Ok(x.compare(y));
    }
    if let (Some(x), Some(y)) = (a.read_lock::<ImmutableString>(), b.read_lock::<ImmutableString>()) {
        return Ok(x.as_str().cmp(y.as_str()));
    }
    if (a.is_string() || a.is_char()) && (b.is_string() || b.is_char()) {
        return Ok(super::text_of(a, name)?.cmp(&super::text_of(b, name)?));
    }
    Err(no_numbers(name, a, b))
}

/// Whether two values are equal by value. Values of different types are not.
pub(in crate::script) fn equal(state: &State, a: &Dynamic, b: &Dynamic) -> Result<bool, Failure> {
    if let (Some(x), Some(y)) = (value_number(a), value_number(b)) {
        return Ok(x == y);
    }
    let kind = type_name(a);
    if kind != type_name(b) {
        return Ok(false);
    }
    match kind {
        "()" => Ok(true),
        "bool" => Ok(a.as_bool() == b.as_bool()),
        "string" => {
            let (x, y) = (super::text_of(a, "==")?, super::text_of(b, "==")?);
            state.charge_bytes(x.len().min(y.len()))?;
            Ok(x == y)
        }
        "array" | "object" => {
            let bounds =
                Bounds { bytes: (state.limits.value_bytes_max, "value_bytes_max"), depth: state.limits.depth_max };
            let (mut x, mut y) = (Vec::new(), Vec::new());
            for (value, bytes) in [(a, &mut x), (b, &mut y)] {
                encode(value, bounds, bytes)
                    .map_err(|error| failure(format!("== cannot compare: the value {error}")))?;
            }
            state.charge_bytes(x.len() + y.len())?;
            Ok(x == y)
        }
        _ => Err(failure(format!("== cannot compare {}", with_article(kind)))),
    }
}
