//! What scripts can calculate: exact sums and differences, products and quotients of 28 digits, whole powers.
//!
//! Operands of a decimal's range are calculated in integers. Where an operand is an `f64` (see [`Number`]) the four
//! operations of IEEE 754 are used, which give the same bits on every platform. A result that has no representation
//! is an error, never a rounded or wrapped value. Next: `sum`.

use super::exact::digits;
use super::{DIGITS_MAX, Exact, Number, Outside};

/// Why a calculation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArithmeticError {
    /// A quotient or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// At least 10²⁸, or beyond an `f64`.
    #[error("the result is too large: decimals end at 10^28")]
    TooLarge,
    /// A sum or difference with more than 28 digits.
    #[error("the exact result has more than 28 digits")]
    Inexact,
    /// `**` with a fraction.
    #[error("the exponent of ** must be an integer")]
    Exponent,
    /// More decimal places than a number can have.
    #[error("digits must be between -28 and 28")]
    Digits,
}

type Result<T> = std::result::Result<T, ArithmeticError>;

impl Number {
    /// `self + other`, exactly.
    ///
    /// # Errors
    /// `Inexact` where the sum needs more than 28 digits, `TooLarge` beyond 10²⁸.
    pub fn plus(self, other: Self) -> Result<Self> {
        if let (Self::Int(a), Self::Int(b)) = (self, other)
            && let Some(sum) = a.checked_add(b)
        {
            return Ok(Self::Int(sum));
        }
        if let Some(result) = with_floats(self, other, |a, b| a + b) {
            return result;
        }
        add_exact(Exact::from(self), Exact::from(other))
    }

    /// `self - other`, exactly.
    ///
    /// # Errors
    /// As [`Number::plus`].
    pub fn minus(self, other: Self) -> Result<Self> {
        if let (Self::Int(a), Self::Int(b)) = (self, other)
            && let Some(difference) = a.checked_sub(b)
        {
            return Ok(Self::Int(difference));
        }
        self.plus(other.negate())
    }

    /// `-self`.
    #[must_use]
    pub fn negate(self) -> Self {
        match self {
            Self::Int(value) => match value.checked_neg() {
                Some(negated) => Self::Int(negated),
                None => Self::from_decimal(-rust_decimal::Decimal::from(value)),
            },
            Self::Decimal(value) => Self::from_decimal(-value),
            Self::Float(value) => Self::Float(-value),
        }
    }

    /// `self * other`, rounded half-even to 28 digits.
    ///
    /// # Errors
    /// `TooLarge` beyond 10²⁸.
    pub fn multiply(self, other: Self) -> Result<Self> {
        if let (Self::Int(a), Self::Int(b)) = (self, other)
            && let Some(product) = a.checked_mul(b)
        {
            return Ok(Self::Int(product));
        }
        if let Some(result) = with_floats(self, other, |a, b| a * b) {
            return result;
        }
        finish(product(Exact::from(self), Exact::from(other)))
    }

    /// `self / other`: an integer when whole, else rounded half-even to 28 digits.
    ///
    /// # Errors
    /// `DivisionByZero`; `TooLarge` beyond 10²⁸.
    pub fn divide(self, other: Self) -> Result<Self> {
        if other.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        if let (Self::Int(a), Self::Int(b)) = (self, other)
            && let (Some(0), Some(quotient)) = (a.checked_rem(b), a.checked_div(b))
        {
            return Ok(Self::Int(quotient));
        }
        if let Some(result) = with_floats(self, other, |a, b| a / b) {
            return result;
        }
        finish(quotient(Exact::from(self), Exact::from(other)))
    }

    /// The remainder of the truncated quotient: it has the sign of `self`.
    ///
    /// # Errors
    /// `DivisionByZero`.
    pub fn remainder(self, other: Self) -> Result<Self> {
        if other.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        if let (Self::Int(a), Self::Int(b)) = (self, other) {
            return Ok(Self::Int(a.checked_rem(b).unwrap_or(0)));
        }
        if let Some(result) = with_floats(self, other, |a, b| a % b) {
            return result;
        }
        let (a, b) = (Exact::from(self), Exact::from(other));
        let (_, rest) = divide_whole(&a, &b)?;
        finish(Exact { negative: a.negative, mantissa: rest, exponent: a.exponent.min(b.exponent), more: false })
    }

    /// The largest integer that is at most `self / other`.
    ///
    /// # Errors
    /// `DivisionByZero`; `TooLarge` beyond 10²⁸.
    pub fn divide_floor(self, other: Self) -> Result<Self> {
        if other.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        if let Some(result) = with_floats(self, other, |a, b| (a / b).floor()) {
            return result;
        }
        let (a, b) = (Exact::from(self), Exact::from(other));
        let (whole, rest) = divide_whole(&a, &b)?;
        let negative = a.negative != b.negative;
        let mantissa = whole + u128::from(negative && rest != 0);
        finish(Exact { negative: negative && mantissa != 0, mantissa, exponent: 0, more: false })
    }

    /// `self ** exponent`, by repeated squaring; a negative exponent gives the reciprocal.
    ///
    /// # Errors
    /// `Exponent` where it is no `i64`; `TooLarge`; `DivisionByZero` for a negative power of zero.
    ///
    /// # Cost
    /// At most 128 multiplications.
    pub fn power(self, exponent: Self) -> Result<Self> {
        let Self::Int(exponent) = exponent else {
            return Err(ArithmeticError::Exponent);
        };
        let (mut base, mut left, mut result) = (self, exponent.unsigned_abs(), Self::Int(1));
        if exponent < 0 && base.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        while left > 0 {
            if left & 1 == 1 {
                result = result.multiply(base)?;
            }
            left >>= 1;
            if left > 0 {
                base = base.multiply(base)?;
            }
        }
        if exponent < 0 { Self::Int(1).divide(result) } else { Ok(result) }
    }

    /// Rounds half-even to `places` decimal places; negative places round before the point.
    ///
    /// # Errors
    /// `Digits` where `places` is not within ±28.
    pub fn round_to(self, places: i64) -> Result<Self> {
        let limit = i64::from(DIGITS_MAX);
        if !(-limit..=limit).contains(&places) {
            return Err(ArithmeticError::Digits);
        }
        let exact = match self {
            Self::Int(_) if places >= 0 => return Ok(self),
            // Numbers from 10²⁸ up have no digits there, small ones round to zero.
            Self::Float(value) => return Ok(if value.abs() < 1.0 { Self::Int(0) } else { self }),
            _ => Exact::from(self),
        };
        let excess = u32::try_from(-exact.exponent - places).unwrap_or(0);
        finish(exact.drop_digits(excess))
    }

    /// The largest integer that is at most `self`.
    ///
    /// # Errors
    /// None in practice; see [`Number::divide_floor`].
    pub fn floor(self) -> Result<Self> {
        match self {
            Self::Float(value) if value.abs() > 1.0 => Ok(self),
            _ => self.divide_floor(Self::Int(1)),
        }
    }

    /// The smallest integer that is at least `self`.
    ///
    /// # Errors
    /// None in practice; see [`Number::divide_floor`].
    pub fn ceiling(self) -> Result<Self> {
        Ok(self.negate().floor()?.negate())
    }

    /// Whether the number is below zero.
    pub fn is_negative(self) -> bool {
        self.compare(Self::Int(0)).is_lt()
    }
}

/// The result in `f64` where an operand is one.
fn with_floats(a: Number, b: Number, operation: impl Fn(f64, f64) -> f64) -> Option<Result<Number>> {
    if !matches!(a, Number::Float(_)) && !matches!(b, Number::Float(_)) {
        return None;
    }
    Some(Number::from_f64(operation(a.to_f64(), b.to_f64())).ok_or(ArithmeticError::TooLarge))
}

/// Rounds what an operation gave. What is too small for a decimal becomes an `f64`.
fn finish(exact: Exact) -> Result<Number> {
    match exact.round() {
        Ok(number) => Ok(number),
        Err(Outside::Large) => Err(ArithmeticError::TooLarge),
        Err(Outside::Small) => Number::from_f64(exact.to_f64()).ok_or(ArithmeticError::TooLarge),
    }
}

/// Adds in units of the smaller power of ten. Where that overflows, the operands lie more than 28 digits apart.
fn add_exact(a: Exact, b: Exact) -> Result<Number> {
    let exponent = a.exponent.min(b.exponent);
    let signed = |x: &Exact| {
        let scale = u32::try_from(x.exponent - exponent).ok()?;
        let units = i128::try_from(x.mantissa.checked_mul(10u128.checked_pow(scale)?)?).ok()?;
        Some(if x.negative { -units } else { units })
    };
    let sum = match (signed(&a), signed(&b)) {
        (Some(x), Some(y)) => x.checked_add(y).ok_or(ArithmeticError::Inexact)?,
        _ => return Err(ArithmeticError::Inexact),
    };
    let exact = Exact { negative: sum < 0, mantissa: sum.unsigned_abs(), exponent, more: false }.stripped();
    match finish(exact) {
        Ok(_) if digits(exact.mantissa) > DIGITS_MAX => Err(ArithmeticError::Inexact),
        result => result,
    }
}

/// Half of a decimal's digits: products of halves fit an integer.
const HALF: u128 = 100_000_000_000_000;

/// The exact product of two mantissas below 10²⁸, shortened to 38 digits with a trace of the rest.
fn product(a: Exact, b: Exact) -> Exact {
    let (negative, exponent) = (a.negative != b.negative, a.exponent + b.exponent);
    if let Some(mantissa) = a.mantissa.checked_mul(b.mantissa)
        && digits(mantissa) <= 38
    {
        return Exact { negative: negative && mantissa != 0, mantissa, exponent, more: false };
    }
    let (a_high, a_low) = (a.mantissa / HALF, a.mantissa % HALF);
    let (b_high, b_low) = (b.mantissa / HALF, b.mantissa % HALF);
    let middle = a_high * b_low + a_low * b_high;
    let low = a_low * b_low + (middle % HALF) * HALF;
    let unit = HALF * HALF;
    let high = a_high * b_high + middle / HALF + low / unit;
    let low = low % unit;
    // high × 10²⁸ + low, with both below 10²⁸: keep 38 digits.
    let cut = digits(high).saturating_sub(10);
    let tail = 10u128.pow(cut.min(DIGITS_MAX));
    let kept = high * 10u128.pow(DIGITS_MAX.saturating_sub(cut)) + low / tail;
    Exact { negative, mantissa: kept, exponent: exponent + i64::from(cut), more: !low.is_multiple_of(tail) }
}

/// Digits that one step of long division brings down.
const STEP: u128 = 1_000_000_000;

/// The quotient to at least 29 digits, with a trace of the rest. Mantissas are below 10²⁸, so that a step fits.
fn quotient(a: Exact, b: Exact) -> Exact {
    let (mut whole, mut rest) = (a.mantissa / b.mantissa, a.mantissa % b.mantissa);
    let mut exponent = a.exponent - b.exponent;
    while rest != 0 && digits(whole) <= DIGITS_MAX {
        rest *= STEP;
        whole = whole * STEP + rest / b.mantissa;
        rest %= b.mantissa;
        exponent -= 9;
    }
    Exact { negative: a.negative != b.negative && (whole, rest) != (0, 0), mantissa: whole, exponent, more: rest != 0 }
}

/// The whole quotient of the magnitudes, and the rest in units of the smaller power of ten.
fn divide_whole(a: &Exact, b: &Exact) -> Result<(u128, u128)> {
    let unit = a.exponent.min(b.exponent);
    let scale = |x: &Exact| u32::try_from(x.exponent - unit).unwrap_or(0);
    let Some(divisor) = 10u128.checked_pow(scale(b)).and_then(|power| b.mantissa.checked_mul(power)) else {
        // The divisor has at least 38 digits in these units, the dividend at most 28: it is the rest.
        return Ok((0, a.mantissa));
    };
    let (mut whole, mut rest) = (a.mantissa / divisor, a.mantissa % divisor);
    for _ in 0..scale(a) {
        rest = rest.checked_mul(10).ok_or(ArithmeticError::TooLarge)?;
        whole = whole.checked_mul(10).and_then(|w| w.checked_add(rest / divisor)).ok_or(ArithmeticError::TooLarge)?;
        rest %= divisor;
    }
    Ok((whole, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    fn shown(result: Result<Number>) -> String {
        result.map_or_else(|error| error.to_string(), |n| n.to_string())
    }

    #[test]
    fn sums_are_exact_or_refused() {
        assert_eq!(shown(number("0.1").plus(number("0.2"))), "0.3");
        assert_eq!(shown(number("9223372036854775807").plus(number("1"))), "9223372036854775808");
        assert_eq!(number("12345678901234567890.12345678").plus(number("1e-28")), Err(ArithmeticError::Inexact));
        assert_eq!(number("9999999999999999999999999999").plus(number("0.4")), Err(ArithmeticError::Inexact));
        assert_eq!(number("9999999999999999999999999999").plus(number("1")), Err(ArithmeticError::TooLarge));
        assert_eq!(shown(number("-9223372036854775808").minus(number("1"))), "-9223372036854775809");
        assert_eq!(shown(number("9223372036854775808").minus(number("1"))), "9223372036854775807");
    }

    #[test]
    fn quotients_are_whole_when_they_can_be() {
        assert!(matches!(number("6").divide(number("2")), Ok(Number::Int(3))));
        assert!(matches!(number("7.5").divide(number("2.5")), Ok(Number::Int(3))));
        assert_eq!(shown(number("7").divide(number("2"))), "3.5");
        assert_eq!(shown(number("1").divide(number("3"))), "0.3333333333333333333333333333");
        assert_eq!(shown(number("2").divide(number("3"))), "0.6666666666666666666666666667");
        assert_eq!(shown(number("1").divide(number("0"))), "division by zero");
        assert_eq!(shown(number("-9223372036854775808").divide(number("-1"))), "9223372036854775808");
    }

    #[test]
    fn floors_and_remainders_agree() {
        for (a, b, floor, rest) in
            [("7", "2", "3", "1"), ("-7", "2", "-4", "-1"), ("7", "-2", "-4", "1"), ("7.5", "2", "3", "1.5")]
        {
            assert_eq!(shown(number(a).divide_floor(number(b))), floor);
            assert_eq!(shown(number(a).remainder(number(b))), rest);
        }
        assert_eq!(shown(number("-9223372036854775808").remainder(number("-1"))), "0");
        assert_eq!(
            shown(number("1e-28").remainder(number("9999999999999999999999999999"))),
            number("1e-28").to_string()
        );
    }

    #[test]
    fn powers_take_whole_exponents() {
        assert_eq!(shown(number("2").power(number("10"))), "1024");
        assert_eq!(shown(number("2").power(number("-1"))), "0.5");
        assert_eq!(shown(number("1.1").power(number("2"))), "1.21");
        assert_eq!(number("2").power(number("0.5")), Err(ArithmeticError::Exponent));
        assert_eq!(number("10").power(number("9223372036854775807")), Err(ArithmeticError::TooLarge));
        assert_eq!(number("0").power(number("-1")), Err(ArithmeticError::DivisionByZero));
        assert_eq!(shown(number("-1").power(number("9223372036854775807"))), "-1");
    }

    #[test]
    fn rounding_is_half_even() {
        for (value, places, rounded) in [
            ("2.5", 0, "2"),
            ("3.5", 0, "4"),
            ("2.675", 2, "2.68"),
            ("-2.5", 0, "-2"),
            ("1250", -2, "1200"),
            ("1e-300", 3, "0"),
        ] {
            assert_eq!(shown(number(value).round_to(places)), rounded);
        }
        assert_eq!(shown(number("-0.5").floor()), "-1");
        assert_eq!(shown(number("-0.5").ceiling()), "0");
        assert_eq!(shown(number("1.2").ceiling()), "2");
    }

    #[test]
    fn f64_operands_calculate_as_f64() {
        assert_eq!(shown(number("1e300").multiply(number("1e-300"))), "1");
        assert_eq!(shown(number("1e300").plus(number("1"))), "1e300");
        assert_eq!(number("1e300").multiply(number("1e300")), Err(ArithmeticError::TooLarge));
    }
}
