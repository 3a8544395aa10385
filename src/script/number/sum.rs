//! Adding up many numbers without rounding on the way: the order of the values cannot change the result.
//!
//! Every number of a decimal's range is a whole multiple of 10⁻²⁸ below 10²⁸, so whole parts and fractions are
//! added apart in integers that 10⁹ values cannot overflow. Only the final total is rounded, to 28 digits. Values that
//! only an `f64` holds are added apart, as `f64`, in the order given.

use super::arithmetic::ArithmeticError;
use super::exact::digits;
use super::{DIGITS_MAX, Exact, Number};

/// Units of a fraction in one.
const UNIT: i128 = 10i128.pow(DIGITS_MAX);

/// A running total.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    whole: i128,
    /// In units of 10⁻²⁸.
    fraction: i128,
    floats: f64,
    has_floats: bool,
}

impl Sum {
    /// Adds one number.
    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int(value) => self.whole += i128::from(value),
            Number::Decimal(value) => {
                let scale = value.scale();
                let power = 10i128.pow(scale.min(DIGITS_MAX));
                let mantissa = value.mantissa();
                self.whole += mantissa / power;
                self.fraction += (mantissa % power) * 10i128.pow(DIGITS_MAX.saturating_sub(scale));
            }
            Number::Float(value) => {
                self.floats += value;
                self.has_floats = true;
            }
        }
        // Carrying early keeps the fraction far from its end.
        if self.fraction.abs() >= UNIT {
            self.whole += self.fraction / UNIT;
            self.fraction %= UNIT;
        }
    }

    /// The total, rounded half-even to 28 digits.
    ///
    /// # Errors
    /// `TooLarge` from 10²⁸ up.
    pub fn total(&self) -> Result<Number, ArithmeticError> {
        let exact = self.exact();
        if self.has_floats {
            return Number::from_f64(exact.to_f64() + self.floats).ok_or(ArithmeticError::TooLarge);
        }
        exact.round().map_err(|_| ArithmeticError::TooLarge)
    }

    /// The total without the floats, to 38 digits with a trace of the rest.
    fn exact(&self) -> Exact {
        let (mut whole, mut fraction) = (self.whole + self.fraction / UNIT, self.fraction % UNIT);
        // Both parts get the sign of the total.
        if whole > 0 && fraction < 0 {
            whole -= 1;
            fraction += UNIT;
        } else if whole < 0 && fraction > 0 {
            whole += 1;
            fraction -= UNIT;
        }
        let negative = whole < 0 || fraction < 0;
        let (whole, fraction) = (whole.unsigned_abs(), fraction.unsigned_abs());
        let places = 38u32.saturating_sub(digits(whole)).min(DIGITS_MAX);
        let cut = 10u128.pow(DIGITS_MAX - places);
        Exact {
            negative,
            mantissa: whole * 10u128.pow(places) + fraction / cut,
            exponent: -i64::from(places),
            more: fraction % cut != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(texts: &[&str]) -> String {
        let mut sum = Sum::default();
        for text in texts {
            sum.add(Number::parse(text).unwrap());
        }
        sum.total().map_or_else(|error| error.to_string(), |n| n.to_string())
    }

    #[test]
    fn no_order_changes_a_sum() {
        let values = ["-0.2", "-0.1", "0.1", "0.2"];
        for i in 0..values.len() {
            for j in 0..values.len() {
                let mut order = values;
                order.swap(i, j);
                assert_eq!(sum(&order), "0");
            }
        }
    }

    #[test]
    fn digits_cancel_before_anything_is_rounded() {
        let wide = "9999999999999999999999999999";
        assert_eq!(sum(&[wide, "1e-28", "-9999999999999999999999999999"]), "0.0000000000000000000000000001");
        assert_eq!(sum(&[wide, wide]), "the result is too large: decimals end at 10^28");
        assert_eq!(sum(&["9223372036854775807", "1"]), "9223372036854775808");
    }

    #[test]
    fn an_empty_sum_is_zero() {
        assert_eq!(sum(&[]), "0");
    }

    #[test]
    fn signs_of_parts_are_settled() {
        assert_eq!(sum(&["1", "-0.25"]), "0.75");
        assert_eq!(sum(&["-1", "0.25"]), "-0.75");
        assert_eq!(sum(&["-0.5", "-0.75"]), "-1.25");
    }
}
