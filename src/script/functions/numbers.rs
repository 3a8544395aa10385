//! Functions on numbers. Whatever differs between platforms (roots, logarithms, trigonometry) is not among them.

use rhai::{Dynamic, Engine};

use super::super::host::decode::{number_value, value_number};
use super::super::number::Number;
use super::super::number::arithmetic::ArithmeticError;
use super::super::problem::{Failure, failure, failure_with};
use super::operators::{arithmetic, order};
use super::{text_of, wrong_type};

type Result<T> = std::result::Result<T, Failure>;

/// Registers the functions.
pub(in crate::script) fn register(engine: &mut Engine) {
    engine
        .register_fn("div", |a: Dynamic, b: Dynamic| {
            let (x, y) = (number("div", &a)?, number("div", &b)?);
            x.divide_floor(y).map(number_value).map_err(|error| arithmetic(error, &format!("div({x}, {y})")))
        })
        .register_fn("abs", |a: Dynamic| one("abs", &a, |x| Ok(if x.is_negative() { x.negate() } else { x })))
        .register_fn("sign", |a: Dynamic| {
            one("sign", &a, |x| {
                Ok(Number::Int(if x.is_zero() {
                    0
                } else if x.is_negative() {
                    -1
                } else {
                    1
                }))
            })
        })
        .register_fn("floor", |a: Dynamic| one("floor", &a, Number::floor))
        .register_fn("ceiling", |a: Dynamic| one("ceiling", &a, Number::ceiling))
        .register_fn("round", |a: Dynamic| one("round", &a, |x| x.round_to(0)))
        .register_fn("round", |a: Dynamic, places: Dynamic| {
            let places = places.as_int().map_err(|_| wrong_type("round", "a whole number of digits", &places))?;
            one("round", &a, |x| x.round_to(places))
        })
        .register_fn("min", |a: Dynamic, b: Dynamic| {
            Ok::<_, Failure>(if order("min", &a, &b)?.is_gt() { b } else { a })
        })
        .register_fn("max", |a: Dynamic, b: Dynamic| {
            Ok::<_, Failure>(if order("max", &a, &b)?.is_lt() { b } else { a })
        })
        .register_fn("parse_number", |text: Dynamic| parse("parse_number", &text))
        .register_fn("parse_int", |text: Dynamic| {
            let value = parse("parse_int", &text)?;
            if value.is_int() { Ok(value) } else { Err(failure(format!("parse_int: {value} is not a whole number"))) }
        })
        .register_fn("is_number", |value: Dynamic| {
            value_number(&value).is_some()
                || text_of(&value, "is_number").is_ok_and(|text| Number::parse(text.trim()).is_some())
        });
}

fn number(function: &str, value: &Dynamic) -> Result<Number> {
    value_number(value).ok_or_else(|| wrong_type(function, "a number", value))
}

fn one(
    function: &str,
    value: &Dynamic,
    operation: impl FnOnce(Number) -> std::result::Result<Number, ArithmeticError>,
) -> Result<Dynamic> {
    let x = number(function, value)?;
    operation(x).map(number_value).map_err(|error| arithmetic(error, &format!("{function}({x})")))
}

/// A number from text; numbers pass, `()` stays `()`.
fn parse(function: &str, value: &Dynamic) -> Result<Dynamic> {
    if value.is_unit() || value_number(value).is_some() {
        return Ok(value.clone());
    }
    let text = text_of(value, function)?;
    Number::parse(text.trim()).map(number_value).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        failure_with(format!("{function}: {shown:?} is not a number"), "ask is_number(text) first")
    })
}
