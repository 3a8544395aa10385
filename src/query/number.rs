//! Numbers by their exact value, of any size and with any number of digits.
//!
//! Scripts round to 28 digits (`script::number`); queries compare what is stored, and nothing of it is lost here.

use std::cmp::Ordering;
use std::fmt;

/// Digits that fit the first part.
const HEAD_DIGITS: usize = 38;
/// Past this size every exponent means the same.
const EXPONENT_MAX: i64 = 1 << 40;
/// Whole numbers of more digits are written with an exponent, as scripts write them.
const PLAIN_DIGITS_MAX: i64 = 21;
/// Fractions with more zeros behind the point are written with an exponent.
const PLAIN_ZEROS_MAX: i64 = 6;

/// A number by value: `±0.DIGITS × 10^size`, the first digit not zero, no zeros at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// -1, 0 or 1.
    sign: i8,
    size: i64,
    /// The first 38 digits, filled up with zeros.
    head: u128,
    /// The digits after those, in ASCII.
    tail: Option<Box<[u8]>>,
}

impl Number {
    const ZERO: Self = Self { sign: 0, size: 0, head: 0, tail: None };

    /// Reads a JSON number. `None` where the text is none.
    ///
    /// # Cost
    /// O(length of the text); no memory for up to 38 digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (text.get(..at)?, exponent(text.get(at + 1..)?)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) || !is_digits(whole) || !is_digits(fraction)
        {
            return None;
        }
        Some(Self::from_digits(negative, whole, fraction, exponent))
    }

    fn from_digits(negative: bool, whole: &str, fraction: &str, exponent: i64) -> Self {
        let all = || whole.bytes().chain(fraction.bytes());
        let zeros = all().take_while(|digit| *digit == b'0').count();
        let count = all().count() - all_zeros_at_end(whole, fraction);
        if count <= zeros {
            return Self::ZERO;
        }
        let mut digits = all().take(count).skip(zeros);
        let mut head = 0_u128;
        for _ in 0..HEAD_DIGITS {
            head = head * 10 + digits.next().map_or(0, |digit| u128::from(digit - b'0'));
        }
        let tail: Vec<u8> = digits.collect();
        let before_point = i64::try_from(whole.len()).unwrap_or(i64::MAX) - i64::try_from(zeros).unwrap_or(0);
        Self {
            sign: if negative { -1 } else { 1 },
            size: before_point.saturating_add(exponent),
            head,
            tail: (!tail.is_empty()).then(|| tail.into_boxed_slice()),
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let by_head = self.size.cmp(&other.size).then(self.head.cmp(&other.head));
        by_head.then_with(|| self.tail.cmp(&other.tail))
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.tail.as_ref().map_or(0, |tail| tail.len())
    }
}

fn exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let power = digits.bytes().fold(0, |power, digit| (power * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX));
    Some(if negative { -power } else { power })
}

fn all_zeros_at_end(whole: &str, fraction: &str) -> usize {
    let zeros = |text: &str| text.len() - text.trim_end_matches('0').len();
    match zeros(fraction) {
        some if some < fraction.len() => some,
        all => all + zeros(whole),
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sign.cmp(&other.sign).then_with(|| match self.sign {
            1 => self.compare_magnitude(other),
            -1 => other.compare_magnitude(self),
            _ => Ordering::Equal,
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self::from_digits(false, &value.to_string(), "", 0)
    }
}

impl fmt::Display for Number {
    /// JSON: whole below 10²¹ as an integer, else without trailing zeros, very large and small ones with an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sign == 0 {
            return f.write_str("0");
        }
        let mut digits = format!("{:0HEAD_DIGITS$}", self.head);
        match &self.tail {
            Some(tail) => digits.extend(tail.iter().map(|digit| char::from(*digit))),
            None => digits.truncate(digits.trim_end_matches('0').len()),
        }
        if self.sign < 0 {
            f.write_str("-")?;
        }
        let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        if self.size > PLAIN_DIGITS_MAX || self.size < -PLAIN_ZEROS_MAX {
            let (first, others) = digits.split_at(1);
            let point = if others.is_empty() { "" } else { "." };
            write!(f, "{first}{point}{others}e{}", self.size - 1)
        } else if self.size >= count {
            write!(f, "{digits}{}", zeros(self.size - count))
        } else if self.size > 0 {
            let (whole, fraction) = digits.split_at(usize::try_from(self.size).unwrap_or(0));
            write!(f, "{whole}.{fraction}")
        } else {
            write!(f, "0.{}{digits}", zeros(-self.size))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn spelling_does_not_matter() {
        for (a, b) in [
            ("1", "1.0"),
            ("1", "0.1e1"),
            ("1", "10000e-4"),
            ("0", "-0.0e99"),
            ("1e30", &format!("1{}", "0".repeat(30))),
        ] {
            assert_eq!(number(a), number(b), "{a} and {b}");
        }
    }

    #[test]
    fn order_is_by_value_at_any_size() {
        let long = format!("1.{}1", "0".repeat(60));
        let longer = format!("1.{}2", "0".repeat(60));
        let sorted = [
            "-1e400",
            "-1e300",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-1e-300",
            "0",
            "1e-400",
            "0.5",
            "1",
            &long,
            &longer,
            "2",
            "10",
            "9007199254740992",
            "9007199254740993",
            "123456789012345678901234567890",
            "1e300",
            "1e400",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(number(a).cmp(&number(b)), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        for text in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", " 1", "NaN", "0x1", "--1", "1.2.3", "1e5.0"] {
            assert!(Number::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_value() {
        let long = "1234567890123456789012345678901234567890.5";
        for text in ["0", "-1.50", "100", "1e20", "1e21", "-1.25e30", "0.000001", "1e-9", "1e-400", long] {
            let written = number(text).to_string();
            assert_eq!(number(&written), number(text), "{text} as {written}");
        }
        assert_eq!(number("1.50e2").to_string(), "150");
        assert_eq!(number("-12.50").to_string(), "-12.5");
    }
}
