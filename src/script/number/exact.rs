//! A decimal value before it is rounded: sign, up to 38 digits, a power of ten, and whether nonzero digits follow.
//!
//! All rounding of numbers is here and is half-even. What an operation or a text yields is brought into this form
//! without loss (digits that do not fit are remembered in `more`), then [`Exact::round`] picks the representation.

use std::cmp::Ordering;

use rust_decimal::Decimal;

use super::Number;

/// Significant digits, and decimal places, of a decimal.
pub const DIGITS_MAX: u32 = 28;

/// From 10⁻¹¹ up, rounding to 28 places keeps at least 17 digits, as many as an `f64` has. Counted like `size`: digits
/// before the point, negative for zeros behind it.
const SMALLEST_SIZE: i64 = -10;

/// `±(mantissa + something below one, if more) × 10^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The sign; false for zero.
    pub negative: bool,
    /// At most 38 digits; at least 29 when `more`.
    pub mantissa: u128,
    /// A power of ten.
    pub exponent: i64,
    /// Whether digits other than zero were cut off behind the mantissa.
    pub more: bool,
}

/// Why a value is no decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// At least 10²⁸.
    Large,
    /// Below 10⁻¹¹, with more than 28 decimal places.
    Small,
}

impl Exact {
    /// The value of an `f64`'s shortest round-trip digits; zero for NaN and infinities.
    pub fn from_f64(value: f64) -> Self {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut exact =
            Self { negative: value < 0.0, mantissa: 0, exponent: exponent.parse().unwrap_or(0), more: false };
        let mut places = false;
        for byte in digits.bytes() {
            match byte {
                b'0'..=b'9' => {
                    exact.mantissa = exact.mantissa * 10 + u128::from(byte - b'0');
                    exact.exponent -= i64::from(places);
                }
                b'.' => places = true,
                _ => {}
            }
        }
        exact
    }

    /// The value of a decimal.
    pub fn from_decimal(value: Decimal) -> Self {
        Self {
            negative: value.is_sign_negative() && !value.is_zero(),
            mantissa: value.mantissa().unsigned_abs(),
            exponent: -i64::from(value.scale()),
            more: false,
        }
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        // A sticky digit decides ties; the text form is correctly rounded on every platform.
        let sticky = if self.more { "1" } else { "0" };
        format!("{sign}{}{sticky}e{}", self.mantissa, self.exponent - 1).parse().unwrap_or(f64::MAX)
    }

    /// Rounds half-even to 28 significant digits and 28 decimal places and picks the representation.
    ///
    /// # Errors
    /// [`Outside`] where a decimal cannot hold the value.
    pub fn round(self) -> Result<Number, Outside> {
        if self.mantissa == 0 {
            return Ok(Number::Int(0));
        }
        let excess = digits(self.mantissa).saturating_sub(DIGITS_MAX);
        let rounded = self.drop_digits(excess).stripped();
        let size = i64::from(digits(rounded.mantissa)) + rounded.exponent;
        if size > i64::from(DIGITS_MAX) {
            return Err(Outside::Large);
        }
        if rounded.exponent >= -i64::from(DIGITS_MAX) {
            return rounded.to_number().ok_or(Outside::Large);
        }
        if size < SMALLEST_SIZE {
            return Err(Outside::Small);
        }
        let places = u32::try_from(-self.exponent - i64::from(DIGITS_MAX)).unwrap_or(u32::MAX);
        self.drop_digits(places).stripped().to_number().ok_or(Outside::Small)
    }

    /// Drops digits at the end, half-even.
    #[must_use]
    pub fn drop_digits(self, count: u32) -> Self {
        if count == 0 {
            return self;
        }
        let exponent = self.exponent + i64::from(count);
        let Some(unit) = 10u128.checked_pow(count) else {
            return Self { negative: false, mantissa: 0, exponent: 0, more: false };
        };
        let (kept, cut) = (self.mantissa / unit, self.mantissa % unit);
        let up = match cut.cmp(&(unit / 2)) {
            Ordering::Greater => true,
            Ordering::Equal => self.more || kept % 2 == 1,
            Ordering::Less => false,
        };
        let mantissa = kept + u128::from(up);
        Self { negative: self.negative && mantissa != 0, mantissa, exponent, more: false }
    }

    /// Moves zeros at the mantissa's end into the exponent.
    #[must_use]
    pub fn stripped(mut self) -> Self {
        if self.mantissa == 0 {
            return Self { negative: false, mantissa: 0, exponent: 0, more: false };
        }
        // Most mantissas fit a machine word, whose division is many times faster.
        if let Ok(mut short) = u64::try_from(self.mantissa) {
            while short.is_multiple_of(10) {
                short /= 10;
                self.exponent += 1;
            }
            self.mantissa = u128::from(short);
            return self;
        }
        while self.mantissa.is_multiple_of(10_000) {
            self.mantissa /= 10_000;
            self.exponent += 4;
        }
        while self.mantissa.is_multiple_of(10) {
            self.mantissa /= 10;
            self.exponent += 1;
        }
        self
    }

    /// The representation of a stripped value within a decimal's range.
    fn to_number(self) -> Option<Number> {
        if self.exponent >= 0 {
            let scale = u32::try_from(self.exponent).ok()?;
            let whole = i128::try_from(self.mantissa.checked_mul(10u128.checked_pow(scale)?)?).ok()?;
            let whole = if self.negative { -whole } else { whole };
            if let Ok(int) = i64::try_from(whole) {
                return Some(Number::Int(int));
            }
            return Decimal::try_from_i128_with_scale(whole, 0).ok().map(Number::Decimal);
        }
        let mantissa = i128::try_from(self.mantissa).ok()?;
        let signed = if self.negative { -mantissa } else { mantissa };
        let scale = u32::try_from(-self.exponent).ok()?;
        Decimal::try_from_i128_with_scale(signed, scale).ok().map(Number::Decimal)
    }

    /// Compares by value. Neither side may have `more`.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.mantissa, other.mantissa) {
            (0, 0) => return Ordering::Equal,
            (0, _) => return Ordering::Less,
            (_, 0) => return Ordering::Greater,
            _ => {}
        }
        let (a, b) = (self.stripped(), other.stripped());
        let size = |x: &Self| i64::from(digits(x.mantissa)) + x.exponent;
        size(&a).cmp(&size(&b)).then_with(|| {
            // The same number of digits before the point: align the shorter mantissa. Both have at most 38 digits.
            let (da, db) = (digits(a.mantissa), digits(b.mantissa));
            let align = |m: u128, from: u32, to: u32| m.saturating_mul(10u128.saturating_pow(to.saturating_sub(from)));
            align(a.mantissa, da, db).cmp(&align(b.mantissa, db, da))
        })
    }
}

impl From<Number> for Exact {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => {
                Self { negative: value < 0, mantissa: u128::from(value.unsigned_abs()), exponent: 0, more: false }
            }
            Number::Decimal(value) => Self::from_decimal(value),
            Number::Float(value) => Self::from_f64(value),
        }
    }
}

/// Decimal digits; 1 for zero.
pub(super) fn digits(mantissa: u128) -> u32 {
    let log = match u64::try_from(mantissa) {
        Ok(short) => short.checked_ilog10(),
        Err(_) => mantissa.checked_ilog10(),
    };
    log.unwrap_or(0) + 1
}
