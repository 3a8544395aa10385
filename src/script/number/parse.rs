//! Numbers from text and to text. The grammar is JSON's.

use std::fmt;

use super::exact::digits;
use super::{Exact, Number};

/// Digits that fit an [`Exact`] mantissa.
const MANTISSA_DIGITS: u32 = 38;

/// Whole numbers from here on are written with an exponent.
const EXPONENT_FROM_DIGITS: i64 = 21;

impl Number {
    /// Reads a JSON number, exactly up to 28 digits (more are rounded half-even). `None` where the text is no JSON
    /// number or lies beyond an `f64`.
    ///
    /// # Cost
    /// O(length of the text).
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(int) = parse_int(text.as_bytes()) {
            return Some(Self::Int(int));
        }
        let exact = parse_exact(text.as_bytes())?;
        match exact.round() {
            Ok(number) => Some(number),
            Err(_) => Self::from_f64(text.parse().ok()?),
        }
    }
}

/// The common case: up to 18 digits, perhaps a sign.
fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    let mut value = 0i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(if negative { -value } else { value })
}

/// Any JSON number. Digits past the mantissa only leave a trace in `more`.
fn parse_exact(text: &[u8]) -> Option<Exact> {
    let mut rest = text;
    let negative = take(&mut rest, b'-');
    let mut exact = Exact { negative: false, mantissa: 0, exponent: 0, more: false };
    let leading_zero = rest.first() == Some(&b'0');
    let whole = take_digits(&mut rest, &mut exact, false);
    if whole == 0 || (leading_zero && whole > 1) {
        return None;
    }
    if take(&mut rest, b'.') && take_digits(&mut rest, &mut exact, true) == 0 {
        return None;
    }
    if take(&mut rest, b'e') || take(&mut rest, b'E') {
        let minus = take(&mut rest, b'-');
        if !minus {
            take(&mut rest, b'+');
        }
        if rest.is_empty() || !rest.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // Past this size every exponent means the same: zero, or beyond an f64.
        let power = rest.iter().fold(0i64, |n, d| (n * 10 + i64::from(d - b'0')).min(1 << 40));
        exact.exponent += if minus { -power } else { power };
        rest = &[];
    }
    exact.negative = negative && exact.mantissa != 0;
    rest.is_empty().then_some(exact)
}

fn take(rest: &mut &[u8], byte: u8) -> bool {
    match rest.split_first() {
        Some((first, tail)) if *first == byte => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

/// Takes digits into the mantissa and returns how many there were.
fn take_digits(rest: &mut &[u8], exact: &mut Exact, places: bool) -> usize {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (taken, tail) = rest.split_at(count);
    *rest = tail;
    for byte in taken {
        let digit = u128::from(byte - b'0');
        if digits(exact.mantissa) < MANTISSA_DIGITS {
            exact.mantissa = exact.mantissa * 10 + digit;
            exact.exponent -= i64::from(places);
        } else {
            exact.more |= digit != 0;
            exact.exponent += i64::from(!places);
        }
    }
    count
}

impl fmt::Display for Number {
    /// An integer where whole and below 10²¹, else without trailing zeros; larger whole numbers, and what only an
    /// `f64` holds, with an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:e}"),
            Self::Decimal(value) => {
                let exact = Exact::from_decimal(*value);
                if exact.exponent < 0 || i64::from(digits(exact.mantissa)) + exact.exponent <= EXPONENT_FROM_DIGITS {
                    return write!(f, "{value}");
                }
                let exact = exact.stripped();
                let text = exact.mantissa.to_string();
                let (first, others) = text.split_at(1);
                let power = i64::from(digits(exact.mantissa)) - 1 + exact.exponent;
                let sign = if exact.negative { "-" } else { "" };
                let point = if others.is_empty() { "" } else { "." };
                write!(f, "{sign}{first}{point}{others}e{power}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_numbers_are_numbers() {
        for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1x", " 1", "NaN", "1e400", "0x1", "--1", "1.2.3"] {
            assert!(Number::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn text_is_an_integer_when_whole_and_below_ten_to_the_21() {
        for (text, written) in [
            ("100000000000000000000", "100000000000000000000"),
            ("999999999999999999999", "999999999999999999999"),
            ("1000000000000000000000", "1e21"),
            ("-1234500000000000000000000", "-1.2345e24"),
            ("1.2500", "1.25"),
            ("1e300", "1e300"),
            ("-2.5e-300", "-2.5e-300"),
            ("0.0000001", "0.0000001"),
        ] {
            assert_eq!(Number::parse(text).unwrap().to_string(), written);
        }
    }

    #[test]
    fn a_megabyte_of_digits_is_read_in_one_pass() {
        let text = format!("0.{}1", "0".repeat(1_000_000));
        assert_eq!(Number::parse(&text).unwrap().to_string(), "0");
        let text = format!("1.{}1", "0".repeat(1_000_000));
        assert_eq!(Number::parse(&text).unwrap().to_string(), "1");
    }
}
