//! Numbers against a big-integer oracle that shares no code with the product.

use num_bigint::BigInt;
use num_rational::Ratio;
use num_traits::{One, Signed, Zero};
use proptest::prelude::*;
use treepie::script::number::Number;
use treepie::script::number::arithmetic::ArithmeticError;
use treepie::script::number::sum::Sum;

use crate::support::{encode, json, on_script_stack, reduced, value_of};

type BigRational = Ratio<BigInt>;

/// 10^n, also below one.
fn power(n: i64) -> BigRational {
    let base = BigRational::from_integer(BigInt::from(10));
    let mut result = BigRational::one();
    for _ in 0..n.unsigned_abs() {
        result *= &base;
    }
    if n < 0 { result.recip() } else { result }
}

/// The value of a JSON number, by long-hand.
fn exact(text: &str) -> BigRational {
    let (body, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, places) = body.split_once('.').unwrap_or((body, ""));
    let digits: BigInt = format!("{whole}{places}").parse().unwrap();
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap();
    BigRational::from_integer(digits) * power(exponent - i64::try_from(places.len()).unwrap())
}

/// Rounds half-even to 28 significant digits and 28 places.
fn rounded(value: &BigRational) -> BigRational {
    if value.is_zero() {
        return value.clone();
    }
    let mut size = 0_i64;
    while value.abs() >= power(size) {
        size += 1;
    }
    while value.abs() < power(size - 1) {
        size -= 1;
    }
    let unit = power((size - 28).max(-28));
    let scaled = value / &unit;
    let floor = scaled.floor();
    let half = BigRational::new(BigInt::one(), BigInt::from(2));
    let rest = &scaled - &floor;
    let up = rest > half || (rest == half && (floor.to_integer() % 2_i32 != BigInt::zero()));
    (if up { floor + BigRational::one() } else { floor }) * unit
}

/// Whether a result is the value, rounded as promised: below 10⁻¹¹, where 28 places would not leave the digits of an
/// `f64`, to an `f64`.
fn is_near(result: &BigRational, value: &BigRational) -> bool {
    if value.abs() < power(-11) && rounded(value) != *value {
        return (result - value).abs() * BigInt::from(1_u64 << 52) <= value.abs();
    }
    *result == rounded(value)
}

fn decimal_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (-1000_i64..1000).prop_map(|n| n.to_string()),
        ("-?(0|[1-9][0-9]{0,14})", "[0-9]{1,13}").prop_map(|(whole, places)| format!("{whole}.{places}")),
        ("-?[1-9][0-9]{0,12}", -15_i32..12).prop_map(|(digits, exponent)| format!("{digits}e{exponent}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_keeps_its_value(text in decimal_text()) {
        let number = Number::parse(&text).unwrap();
        prop_assert_eq!(exact(&number.to_string()), exact(&text));
        prop_assert_eq!(Number::parse(&number.to_string()).unwrap(), number);
    }

    #[test]
    fn long_text_is_rounded_half_even(whole in "-?[1-9][0-9]{0,20}", places in "[0-9]{10,50}") {
        let text = format!("{whole}.{places}");
        prop_assert_eq!(exact(&Number::parse(&text).unwrap().to_string()), rounded(&exact(&text)));
    }

    #[test]
    fn order_is_that_of_the_values(a in decimal_text(), b in decimal_text()) {
        let (x, y) = (Number::parse(&a).unwrap(), Number::parse(&b).unwrap());
        prop_assert_eq!(x.compare(y), exact(&a).cmp(&exact(&b)));
        prop_assert_eq!(encode(&a) == encode(&b), exact(&a) == exact(&b));
    }

    #[test]
    fn arithmetic_agrees_with_rationals(a in decimal_text(), b in decimal_text()) {
        let (x, y) = (Number::parse(&a).unwrap(), Number::parse(&b).unwrap());
        let (p, q) = (exact(&a), exact(&b));
        let limit = power(28);
        for (result, value, is_sum) in [(x.plus(y), &p + &q, true), (x.minus(y), &p - &q, true), (x.multiply(y), &p * &q, false)] {
            let nearest = rounded(&value);
            match result {
                Ok(number) if is_sum => prop_assert_eq!(exact(&number.to_string()), value),
                Ok(number) => prop_assert!(is_near(&exact(&number.to_string()), &value)),
                Err(ArithmeticError::Inexact) => prop_assert!(is_sum && nearest != value),
                Err(ArithmeticError::TooLarge) => prop_assert!(nearest.abs() >= limit),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
        if !q.is_zero() {
            let quotient = &p / &q;
            match x.divide(y) {
                Ok(number) => prop_assert!(is_near(&exact(&number.to_string()), &quotient)),
                Err(_) => prop_assert!(rounded(&quotient).abs() >= limit),
            }
            if let Ok(floor) = x.divide_floor(y) {
                prop_assert_eq!(exact(&floor.to_string()), quotient.floor());
            }
            if let Ok(rest) = x.remainder(y) {
                prop_assert!(is_near(&exact(&rest.to_string()), &(&p - quotient.trunc() * &q)));
            }
        }
    }

    #[test]
    fn sums_do_not_depend_on_order(mut texts in proptest::collection::vec(decimal_text(), 0..40)) {
        let sum = |texts: &[String]| {
            let mut sum = Sum::default();
            for text in texts {
                sum.add(Number::parse(text).unwrap());
            }
            sum.total().map(|n| n.to_string())
        };
        let total = texts.iter().map(|text| exact(text)).fold(BigRational::zero(), |a, b| a + b);
        let forwards = sum(&texts);
        if let Ok(text) = &forwards {
            prop_assert_eq!(exact(text), rounded(&total));
        }
        texts.reverse();
        prop_assert_eq!(sum(&texts), forwards.clone());
        texts.sort();
        prop_assert_eq!(sum(&texts), forwards);
    }

    #[test]
    fn rounding_agrees_with_rationals(text in decimal_text(), places in -10_i64..12) {
        let result = Number::parse(&text).unwrap().round_to(places).unwrap();
        let scaled = exact(&text) * power(places);
        let (floor, half) = (scaled.floor(), BigRational::new(BigInt::one(), BigInt::from(2)));
        let rest = &scaled - &floor;
        let up = rest > half || (rest == half && floor.to_integer() % 2_i32 != BigInt::zero());
        let expected = (if up { floor + BigRational::one() } else { floor }) * power(-places);
        prop_assert_eq!(exact(&result.to_string()), expected);
    }
}

/// JSON text with numbers spelled in many ways.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        decimal_text(),
        any::<String>().prop_map(|s| serde_json::to_string(&s).unwrap()),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(|v| format!("[{}]", v.join(" , "))),
            proptest::collection::btree_map("[a-zé\"\\\\]{0,4}", inner, 0..5).prop_map(|m| {
                let fields: Vec<_> =
                    m.iter().rev().map(|(k, v)| format!("{} : {v}", serde_json::to_string(k).unwrap())).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

/// Whether two JSON values are equal, numbers by their texts' exact values. Keeps number texts by walking `RawValue`s.
fn same(a: &str, b: &str) -> bool {
    use serde_json::value::RawValue;
    type Fields<'a> = std::collections::BTreeMap<String, &'a RawValue>;
    let (a, b) = (a.trim(), b.trim());
    match a.as_bytes().first() {
        Some(b'[') => {
            let (x, y): (Vec<&RawValue>, Vec<&RawValue>) = match (serde_json::from_str(a), serde_json::from_str(b)) {
                (Ok(x), Ok(y)) => (x, y),
                _ => return false,
            };
            x.len() == y.len() && x.iter().zip(&y).all(|(p, q)| same(p.get(), q.get()))
        }
        Some(b'{') => {
            let (x, y): (Fields, Fields) = match (serde_json::from_str(a), serde_json::from_str(b)) {
                (Ok(x), Ok(y)) => (x, y),
                _ => return false,
            };
            x.len() == y.len() && x.iter().zip(&y).all(|((n, p), (m, q))| n == m && same(p.get(), q.get()))
        }
        Some(b'"' | b'n' | b't' | b'f') => {
            serde_json::from_str::<serde_json::Value>(a).ok() == serde_json::from_str::<serde_json::Value>(b).ok()
        }
        _ => exact(a) == exact(b),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn encoding_keeps_values(text in json_text()) {
        let bytes = encode(&text);
        let written = json(&bytes);
        prop_assert!(same(&text, &written), "{text} became {written}");
        prop_assert_eq!(encode(&written), bytes);
    }

    #[test]
    fn bytes_that_are_no_encoding_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        json(&bytes);
        treepie::script::encoding::skip_value(&bytes);
        treepie::script::encoding::field(&bytes, "a");
        treepie::script::encoding::depth(&bytes);
    }
}

#[test]
fn operators_mean_numbers_by_value() {
    for (expression, value) in [
        ("7 / 2", "3.5"),
        ("6 / 2", "3"),
        ("7.0 / 2.0", "3.5"),
        ("-7 % 3", "-1"),
        ("div(-7, 2)", "-4"),
        ("2 ** 10", "1024"),
        ("2 ** -2", "0.25"),
        ("9223372036854775807 + 1", "9223372036854775808"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-(-9223372036854775807 - 1)", "9223372036854775808"),
        ("9223372036854775807 * 4 / 4", "9223372036854775807"),
        ("0.1 + 0.2", "0.3"),
        ("1.0", "1"),
        ("1.50", "1.5"),
        ("1_000.25", "1000.25"),
        ("1e3", "1000"),
        ("0x10 + 0b11", "19"),
        ("1 == 1.0", "true"),
        ("1.5 != 1.50", "false"),
        ("1 < 1.5 && 1.5 <= 1.5 && 2 > 1.5 && !(1.0 >= 2)", "true"),
        ("1 == \"1\"", "false"),
        ("() == 0", "false"),
        ("doc.x == ()", "true"),
        ("[1, 2.0] == [1.0, 2]", "true"),
        ("#{ a: 1 } == #{ a: 1.0 }", "true"),
        ("doc.f", "1e300"),
        ("doc.f > 5 && 5 < doc.f && doc.f == doc.f", "true"),
        ("doc.d * 10", "12.5"),
        ("switch doc.one { 1 => \"int\", _ => \"other\" }", "\"int\""),
        ("switch doc.d { 1.25 => \"dec\", _ => \"other\" }", "\"dec\""),
        ("{ let x = 7; x /= 2; x *= 2; x -= 1; x += 0.5; x **= 2; x %= 40; x }", "2.25"),
        ("{ let a = [1]; a[0] /= 4; a[0] }", "0.25"),
        ("{ let m = #{}; m.n = 1; m.n += 0.5; m[\"n\"] }", "1.5"),
        ("{ let n = 0; for x in [0.1, 0.2, -0.3] { n += x } n }", "0"),
        ("min(1, 0.5) + max(1, 1.5) + abs(-2.5)", "4.5"),
        ("round(2.5) + round(1.005, 2) + floor(-1.5) + ceiling(1.2)", "3"),
        ("sign(-3) + sign(0)", "-1"),
        ("\"a\" < \"b\"", "true"),
        ("\"a\" + 1", "\"a1\""),
        ("+5 - -5", "10"),
        ("5 & 3 | 8", "9"),
        ("true == !false", "true"),
        ("{ let x = doc.d; x = -x; x }", "-1.25"),
    ] {
        let body = r#"{"f":1e300,"d":1.250,"one":1.0}"#;
        assert_eq!(value_of(expression, body).map_err(|f| f.to_string()).as_deref(), Ok(value), "{expression}");
    }
}

#[test]
fn what_is_no_calculation_is_a_fault() {
    for (expression, part) in [
        ("3 > \"x\"", "> cannot be applied to a number and a string"),
        ("\"10\" < 9", "cannot be applied"),
        ("1 - \"1\"", "parse_number"),
        ("1 + ()", "right side is missing"),
        ("\"a\" + ()", "right side is missing"),
        ("true + 1", "cannot be applied"),
        ("[1] * 2", "cannot be applied"),
        ("-\"a\"", "- needs a number"),
        ("!1", "! needs true or false"),
        ("if 1 { 2 } else { 3 }", "boolean"),
        ("if doc.x { 2 } else { 3 }", "??"),
        ("12345678901234567890.12345678 + 0.0000000000000000000000000001", "more than 28 digits"),
        ("9999999999999999999999999999 + 0.4", "more than 28 digits"),
        ("9999999999999999999999999999 * 10", "too large"),
        ("2 ** 0.5", "must be an integer"),
        ("abs(\"x\")", "abs needs a number"),
        ("doc.f * doc.f", "too large"),
    ] {
        let fault = value_of(expression, "{\"f\":1e300}").expect_err(expression);
        assert!(fault.to_string().contains(part), "{expression}\n{fault}");
    }
}

#[test]
fn the_four_values_that_floats_cannot_add_add_up_in_any_order() {
    let values = ["-0.2", "-0.1", "0.1", "0.2"];
    on_script_stack(move || {
        for (a, b, c, d) in [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1), (1, 3, 0, 2)] {
            let order = [values[a], values[b], values[c], values[d]];
            assert_eq!(reduced("values.sum()", &order).unwrap(), "0");
            assert_eq!(reduced("{ let n = 0; for v in values { n += v } n }", &order).unwrap(), "0");
        }
    });
}
