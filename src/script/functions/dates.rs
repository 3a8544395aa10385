//! Periods of dates: what groups by year, quarter, month, week or day.
//!
//! A date is text in ISO 8601's form, `1998-05-06` or `1998-05-06T10:00:00.0000000Z`, taken as written: an offset does
//! not move it. A month (`1998-05`), a quarter (`1998-Q2`) and a year have coarser periods too, so that an index over
//! monthly results can group by year.

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

use jiff::civil::Date;
use jiff::fmt::temporal::Pieces;
use rhai::{Dynamic, Engine, ImmutableString};

use super::super::problem::{Failure, failure_with};

type Result<T> = std::result::Result<T, Failure>;

/// Registers the functions.
pub(in crate::script) fn register(engine: &mut Engine) {
    for (name, period) in [
        ("year", (|t: &str| Ok(i64::from(parts("year", t)?.0).into())) as fn(&str) -> Result<Dynamic>),
        ("quarter", quarter),
        ("month", |t| {
            let (year, month, _) = parts("month", t)?;
            let month = month.ok_or_else(|| no_date("month", t))?;
            Ok(format!("{year:04}-{month:02}").into())
        }),
        ("week", |t| {
            let week = date("week", t)?.iso_week_date();
            Ok(format!("{:04}-W{:02}", week.year(), week.week()).into())
        }),
        ("day", |t| Ok(date("day", t)?.to_string().into())),
    ] {
        engine.register_fn(name, move |text: ImmutableString| period(&text));
        engine.register_fn(name, |(): ()| ());
    }
}

fn quarter(text: &str) -> Result<Dynamic> {
    let (year, month, _) = parts("quarter", text)?;
    let quarter = match (month, text.split_once("-Q")) {
        (Some(month), _) => (month + 2) / 3,
        (None, Some((_, quarter))) => quarter.parse().map_err(|_| no_date("quarter", text))?,
        _ => return Err(no_date("quarter", text)),
    };
    Ok(format!("{year:04}-Q{quarter}").into())
}

fn date(function: &str, text: &str) -> Result<Date> {
    parts(function, text)?.2.ok_or_else(|| no_date(function, text))
}

/// Year, month and date, as far as the text says.
fn parts(function: &str, text: &str) -> Result<(i16, Option<i8>, Option<Date>)> {
    if text.len() >= 10 {
        let date = Pieces::parse(text).map_err(|_| no_date(function, text))?.date();
        return Ok((date.year(), Some(date.month()), Some(date)));
    }
    let (year, rest) = text.split_at_checked(4).ok_or_else(|| no_date(function, text))?;
    let year = digits(year).ok_or_else(|| no_date(function, text))?;
    match rest {
        "" | "-Q1" | "-Q2" | "-Q3" | "-Q4" => Ok((year, None, None)),
        _ => {
            let month = rest.strip_prefix('-').filter(|m| m.len() == 2).and_then(digits);
            let month = month.and_then(|m| i8::try_from(m).ok()).filter(|m| (1..=12).contains(m));
            Ok((year, Some(month.ok_or_else(|| no_date(function, text))?), None))
        }
    }
}

fn digits(text: &str) -> Option<i16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn no_date(function: &str, text: &str) -> Failure {
    let shown: String = text.chars().take(40).collect();
    failure_with(format!("{function}: {shown:?} is not a date"), "dates look like 1998-05-06 or 1998-05-06T10:00:00Z")
}
