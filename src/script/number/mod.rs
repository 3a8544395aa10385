//! Numbers by value: the one representation that scripts, keys and stored values share.
//!
//! A [`Number`] is an `i64` where it is whole and fits; else a decimal of at most 28 significant digits and 28 decimal
//! places where its magnitude is below 10²⁸; else an `f64`. Which of the three depends on the value alone, so equal
//! values are equal representations. `exact` rounds, `parse` reads and writes text, `arithmetic` calculates, `sum`
//! adds many without rounding. Next on the walk: `encoding`.

pub mod arithmetic;
mod exact;
mod parse;
pub mod sum;

use std::cmp::Ordering;

use rust_decimal::Decimal;

pub use exact::{DIGITS_MAX, Exact, Outside};

/// A number in its canonical representation. See the module for the rule.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// Whole and within `i64`.
    Int(i64),
    /// Fractions and large whole numbers, below 10²⁸; without trailing zeros.
    Decimal(Decimal),
    /// What decimals cannot hold: at least 10²⁸, or below 10⁻¹¹ with more than 28 decimal places. Finite, never zero.
    Float(f64),
}

impl Number {
    /// Makes a number from an `f64`, which counts by its shortest round-trip digits. `None` for NaN and infinities.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let exact = Exact::from_f64(value);
        Some(exact.round().unwrap_or(Self::Float(value)))
    }

    /// Makes a number from a decimal, whatever its scale.
    pub fn from_decimal(value: Decimal) -> Self {
        match Exact::from_decimal(value).round() {
            Ok(number) => number,
            // Between 10²⁸ and the largest decimal, 7.9 × 10²⁸.
            Err(_) => Self::nearest_f64(&Exact::from_decimal(value)),
        }
    }

    /// The nearest `f64`, in canonical form. Values beyond `f64` saturate, which no caller can reach.
    fn nearest_f64(exact: &Exact) -> Self {
        let float = exact.to_f64();
        Self::from_f64(float).unwrap_or(Self::Float(f64::MAX.copysign(float)))
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Float(value) => value,
            _ => Exact::from(self).to_f64(),
        }
    }

    /// Whether the number is zero.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Int(0))
    }

    /// Compares by value, exactly, across representations.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(&b),
            (Self::Int(a), Self::Decimal(b)) => Decimal::from(a).cmp(&b),
            (Self::Decimal(a), Self::Int(b)) => a.cmp(&Decimal::from(b)),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(&b),
            _ => Exact::from(self).compare(&Exact::from(other)),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other) == Ordering::Equal
    }
}

impl Eq for Number {}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn spelling_does_not_matter() {
        for (a, b) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("1", "0.1e1"),
            ("1", "10000e-4"),
            ("0", "-0"),
            ("0", "-0.0e99"),
            ("1.5", "1.50"),
            ("1e30", "1000000000000000000000000000000"),
        ] {
            assert_eq!(number(a), number(b), "{a} and {b}");
            assert_eq!(number(a).to_string(), number(b).to_string(), "{a} and {b}");
        }
    }

    #[test]
    fn representation_follows_the_value() {
        assert!(matches!(number("9223372036854775807"), Number::Int(i64::MAX)));
        assert!(matches!(number("-9223372036854775808"), Number::Int(i64::MIN)));
        assert!(matches!(number("9223372036854775808"), Number::Decimal(_)));
        assert!(matches!(number("9999999999999999999999999999"), Number::Decimal(_)));
        assert!(matches!(number("1e28"), Number::Float(_)));
        assert!(matches!(number("1e-28"), Number::Decimal(_)));
        assert!(matches!(number("1e-29"), Number::Float(_)));
        assert!(matches!(number("1e300"), Number::Float(_)));
    }

    #[test]
    fn digits_beyond_28_are_rounded_half_even() {
        assert_eq!(number("1.00000000000000000000000000050").to_string(), "1");
        assert_eq!(number("1.00000000000000000000000000150").to_string(), "1.000000000000000000000000002");
        assert_eq!(
            number("1.000000000000000000000000000500000000000000000000000000000000000000000001").to_string(),
            "1.000000000000000000000000001"
        );
    }

    #[test]
    fn order_is_by_value_across_representations() {
        let sorted = [
            "-1e300",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-1e-300",
            "0",
            "1e-300",
            "1e-28",
            "0.5",
            "2",
            "10",
            "9007199254740993",
            "9223372036854775808",
            "9999999999999999999999999999",
            "1e28",
            "1e300",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(number(a).compare(number(b)), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn floats_count_by_their_shortest_digits() {
        assert_eq!(Number::from_f64(0.1).unwrap().to_string(), "0.1");
        assert_eq!(Number::from_f64(-2.0).unwrap().to_string(), "-2");
        assert!(Number::from_f64(f64::NAN).is_none());
        assert!(Number::from_f64(f64::INFINITY).is_none());
    }
}
