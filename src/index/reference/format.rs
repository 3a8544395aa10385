//! Formats of fields in a reference pattern, a part of .NET's: dates by letters (`yyyy-MM-dd`), numbers by digits (`0000`,
//! `0.00`, `#`) or by `D4` and `F2`. Nothing depends on a language or a time zone; what is not understood is refused.

use std::fmt::Write as _;

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;
use rust_decimal::{Decimal, RoundingStrategy};

use crate::script::encoding::Item;
use crate::script::number::Number;

/// Digits that a format may ask for.
const DIGITS_MAX: usize = 28;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// How a field's value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Date(Vec<DatePart>),
    Number(Digits),
}

/// A part of a date format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DatePart {
    Text(String),
    /// A letter and how often it stands there.
    Letters(char, usize),
}

/// How many digits a number shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    whole_min: usize,
    places_min: usize,
    places_max: usize,
}

impl Format {
    /// Reads a format; the reason why it is refused says what is understood.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(digits) = standard_digits(text).or_else(|| custom_digits(text)) {
            return Ok(Self::Number(digits));
        }
        match date_parts(text) {
            Some(parts) => Ok(Self::Date(parts)),
            None => Err(format!(
                "has the format '{text}', which is not understood; dates have formats such as yyyy-MM-dd, HH, MMMM or 'text', \
                 numbers such as 0000, 0.00, #.##, D4 or F2"
            )),
        }
    }

    /// Writes a value; what does not fit is named.
    pub(super) fn apply(&self, value: Option<&Item<'_>>) -> Result<String, String> {
        match (self, value) {
            (_, Some(Item::Null) | None) => Err("is null".to_owned()),
            (Self::Number(digits), Some(Item::Number(number))) => digits.write(*number),
            (Self::Number(_), Some(_)) => Err("is no number, but its format is one for numbers".to_owned()),
            (Self::Date(parts), Some(Item::Str(text))) => match read_date(text) {
                Some(date) => Ok(write_date(parts, date)),
                None => Err(format!("is no date ('{}'), but its format is one for dates", crate::id::cut(text))),
            },
            (Self::Date(_), Some(_)) => Err("is no date, but its format is one for dates".to_owned()),
        }
    }
}

/// `D4`, `F2`.
fn standard_digits(text: &str) -> Option<Digits> {
    let (kind, count) = text.split_at_checked(1)?;
    let count = match count {
        "" => None,
        count if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(count.parse().ok().filter(|n| *n <= DIGITS_MAX)?)
        }
        _ => return None,
    };
    match kind {
        "D" => Some(Digits { whole_min: count.unwrap_or(1), places_min: 0, places_max: 0 }),
        "F" => Some(Digits { whole_min: 1, places_min: count.unwrap_or(2), places_max: count.unwrap_or(2) }),
        _ => None,
    }
}

/// `0000`, `0.0#`.
fn custom_digits(text: &str) -> Option<Digits> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = |part: &str| part.bytes().all(|byte| matches!(byte, b'0' | b'#'));
    let zeros = |part: &str| part.bytes().filter(|byte| *byte == b'0').count();
    // A zero asks for a digit, and so for all between it and the point.
    let is_ordered = !whole.trim_start_matches('#').contains('#') && !places.trim_end_matches('#').contains('#');
    let fits = !text.is_empty() && text != "." && whole.len() <= DIGITS_MAX && places.len() <= DIGITS_MAX;
    (fits && is_plain(whole) && is_plain(places) && is_ordered && !text.ends_with('.')).then(|| Digits {
        whole_min: zeros(whole),
        places_min: zeros(places),
        places_max: places.len(),
    })
}

impl Digits {
    /// Rounds half away from zero, as .NET does.
    fn write(self, number: Number) -> Result<String, String> {
        let decimal = match number {
            Number::Int(value) => Decimal::from(value),
            Number::Decimal(value) => value,
            Number::Float(_) => return Err("is a number too large or too small for its format".to_owned()),
        };
        let places = u32::try_from(self.places_max).unwrap_or(u32::MAX);
        let rounded = decimal.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero).normalize();
        let text = rounded.abs().to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = if whole == "0" && self.whole_min == 0 { "" } else { whole };
        let sign = if rounded.is_sign_negative() && !rounded.is_zero() { "-" } else { "" };
        let mut written = format!("{sign}{whole:0>width$}", width = self.whole_min);
        if !fraction.is_empty() || self.places_min > 0 {
            // Writing to a string cannot fail.
            let _ = write!(written, ".{fraction:0<width$}", width = self.places_min);
        }
        Ok(if written.is_empty() || written == "-" { "0".to_owned() } else { written })
    }
}

/// The parts of a date format; `None` where a letter means nothing, or it has no letters.
fn date_parts(text: &str) -> Option<Vec<DatePart>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..)?;
        if first == '\'' {
            let (quoted, after) = after.split_once('\'')?;
            parts.push(DatePart::Text(quoted.to_owned()));
            rest = after;
        } else if first.is_ascii_alphabetic() {
            let count = rest.chars().take_while(|c| *c == first).count();
            let is_known = match first {
                'y' => count == 2 || count == 4,
                'M' | 'd' => count <= 4,
                'H' | 'm' | 's' => count <= 2,
                'f' => count <= 7,
                _ => false,
            };
            is_known.then_some(())?;
            parts.push(DatePart::Letters(first, count));
            rest = rest.get(count..)?;
        } else {
            parts.push(DatePart::Text(first.to_string()));
            rest = after;
        }
    }
    let letters = parts.iter().filter(|part| matches!(part, DatePart::Letters(..))).count();
    // One letter alone is a standard format in .NET, and means something else.
    (letters > 0 && text.len() > 1).then_some(parts)
}

/// A date as scripts know it: `1998-05-06`, perhaps with a time; a month or a year begin with their first day.
fn read_date(text: &str) -> Option<DateTime> {
    if text.len() >= 10 {
        let pieces = Pieces::parse(text).ok()?;
        return Some(pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight())));
    }
    let (year, month) = text.split_once('-').unwrap_or((text, "01"));
    let is_number = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(year, 4) || !is_number(month, 2) {
        return None;
    }
    Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok().map(|date| date.to_datetime(Time::midnight()))
}

fn write_date(parts: &[DatePart], date: DateTime) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            DatePart::Text(literal) => text.push_str(literal),
            DatePart::Letters(letter, count) => write_letters(*letter, *count, date, &mut text),
        }
    }
    text
}

fn write_letters(letter: char, count: usize, date: DateTime, text: &mut String) {
    let name = |names: &[&'static str], number: i8| {
        let name = usize::try_from(number - 1).ok().and_then(|number| names.get(number)).copied().unwrap_or_default();
        if count == 3 { name.get(..3).unwrap_or(name) } else { name }
    };
    let number = match letter {
        'y' if count == 2 => i32::from(date.year()).rem_euclid(100),
        'y' => i32::from(date.year()),
        'M' if count > 2 => return text.push_str(name(&MONTHS, date.month())),
        'M' => i32::from(date.month()),
        'd' if count > 2 => return text.push_str(name(&DAYS, date.weekday().to_monday_one_offset())),
        'd' => i32::from(date.day()),
        'H' => i32::from(date.hour()),
        'm' => i32::from(date.minute()),
        's' => i32::from(date.second()),
        _ => {
            let digits = format!("{:09}", date.subsec_nanosecond());
            return text.push_str(digits.get(..count).unwrap_or_default());
        }
    };
    // Writing to a string cannot fail.
    let _ = write!(text, "{number:0count$}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(format: &str, text: &str) -> String {
        Format::parse(format).unwrap().apply(Some(&Item::Str(text))).unwrap()
    }

    fn number(format: &str, text: &str) -> String {
        Format::parse(format).unwrap().apply(Number::parse(text).map(Item::Number).as_ref()).unwrap()
    }

    #[test]
    fn dates_are_written_by_their_letters() {
        let moment = "1998-05-06T07:08:09.1234567+02:00";
        for (format, written) in [
            ("yyyy-MM-dd", "1998-05-06"),
            ("yy/M/d", "98/5/6"),
            ("HH:mm:ss.fff", "07:08:09.123"),
            ("'week of' dddd, MMMM", "week of Wednesday, May"),
            ("ddd MMM", "Wed May"),
            ("yyyy", "1998"),
        ] {
            assert_eq!(date(format, moment), written, "{format}");
        }
        assert_eq!(date("yyyy-MM-dd HH", "1998-05-06"), "1998-05-06 00");
        assert_eq!(date("MM/yyyy", "1998-05"), "05/1998");
        assert_eq!(date("yyyy-MM", "1998"), "1998-01");
    }

    #[test]
    fn numbers_are_written_by_their_digits() {
        for (format, text, written) in [
            ("0000", "42", "0042"),
            ("0000", "-42", "-0042"),
            ("0", "2.5", "3"),
            ("0.00", "2.005", "2.01"),
            ("0.0#", "2", "2.0"),
            ("#", "0", "0"),
            ("#.##", "0.5", ".5"),
            ("D3", "7", "007"),
            ("F2", "1234567", "1234567.00"),
            ("F", "-0.001", "0.00"),
        ] {
            assert_eq!(number(format, text), written, "{format} of {text}");
        }
    }

    #[test]
    fn formats_that_mean_something_else_elsewhere_are_refused() {
        for format in ["", "C", "d", "M", "N2", "qq", "yyyyy", "0,0", "'open", "hh", "tt", "0#", "0.", ".", "-"] {
            let reason = Format::parse(format).unwrap_err();
            assert!(reason.contains("yyyy-MM-dd") && reason.contains("0000"), "{reason}");
        }
    }
}
