//! Whether two JSON texts have the same value: numbers by value, to the last digit; objects without regard to order.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Compares two values of which each could stand in a document, so that recursion ends at a document's depth.
pub(super) fn is_equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    match (a.as_bytes().first(), b.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => {
            let (Some(a), Some(b)) = (fields(a), fields(b)) else { return false };
            a.len() == b.len()
                && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| is_equal(value.get(), other.get())))
        }
        (Some(b'['), Some(b'[')) => {
            let read = |text| serde_json::from_str::<Vec<&RawValue>>(text).ok();
            let (Some(a), Some(b)) = (read(a), read(b)) else { return false };
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_equal(a.get(), b.get()))
        }
        (Some(b'"'), Some(b'"')) => {
            let read = |text| serde_json::from_str::<String>(text).ok();
            a == b || read(a).is_some_and(|a| Some(a) == read(b))
        }
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => {
            a == b || Digits::read(a).is_some_and(|a| Some(a) == Digits::read(b))
        }
        _ => a == b,
    }
}

fn fields(text: &str) -> Option<BTreeMap<Cow<'_, str>, &RawValue>> {
    serde_json::from_str::<BTreeMap<String, &RawValue>>(text)
        .ok()
        .map(|fields| fields.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect())
}

/// A number as sign, digits without zeros at the ends, and a power of ten; zero has no digits and no sign.
#[derive(PartialEq, Eq)]
struct Digits {
    is_negative: bool,
    digits: String,
    exponent: i128,
}

impl Digits {
    /// `None` where the exponent is beyond everything; such numbers compare as text.
    fn read(number: &str) -> Option<Self> {
        let (is_negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let digits = all.trim_start_matches('0');
        let short = digits.trim_end_matches('0');
        if short.is_empty() {
            return Some(Self { is_negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent = exponent.parse::<i128>().ok()?;
        let exponent = exponent.checked_add(i128::try_from(digits.len() - short.len()).ok()?)?;
        let exponent = exponent.checked_sub(i128::try_from(fraction.len()).ok()?)?;
        Some(Self { is_negative, digits: short.to_owned(), exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::is_equal;

    #[test]
    fn values_are_equal_whatever_they_look_like() {
        for (a, b) in [
            ("1", "1.0"),
            ("1e2", "100"),
            ("-0.0", "0"),
            ("0e9999999999999999999999999999999999999999999", "0"),
            ("123456789012345678901234567890", "1.23456789012345678901234567890e29"),
            ("\"\\u0041\"", "\"A\""),
            ("{\"a\":1,\"b\":[2]}", " { \"b\" : [ 2.0 ] , \"\\u0061\" : 1 } "),
            ("null", "null"),
        ] {
            assert!(is_equal(a, b) && is_equal(b, a), "{a} {b}");
        }
    }

    #[test]
    fn what_differs_is_not_equal() {
        for (a, b) in [
            ("123456789012345678901234567890", "123456789012345678901234567891"),
            ("1", "-1"),
            ("1", "\"1\""),
            ("0", "null"),
            ("0", "false"),
            ("[1,2]", "[2,1]"),
            ("[]", "{}"),
            ("{\"a\":1}", "{\"a\":1,\"b\":1}"),
            ("{\"a\":null}", "{\"b\":null}"),
            ("\"a\"", "\"A\""),
        ] {
            assert!(!is_equal(a, b) && !is_equal(b, a), "{a} {b}");
        }
    }
}
