//! JSON strings, times and sizes as clients read them.

use jiff::Timestamp;
use jiff::tz::Offset;
use serde_json::value::RawValue;

/// Appends a JSON string.
pub(crate) fn write_string(text: &str, into: &mut Vec<u8>) {
    let before = into.len();
    if serde_json::to_writer(&mut *into, text).is_err() {
        // Neither strings nor vectors make it fail; an empty string keeps the JSON whole all the same.
        into.truncate(before);
        into.extend_from_slice(b"\"\"");
    }
}

/// JSON text that stands in an answer as it is; null where it is none, which the database's own never is.
pub(crate) fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Appends the digits of a number.
pub(crate) fn write_number(number: u64, into: &mut Vec<u8>) {
    into.extend_from_slice(number.to_string().as_bytes());
}

/// Formats microseconds since 1970 as `2026-11-30T11:29:42.7523780Z`: seven digits, which the Python client insists on.
pub(crate) fn time(micros: i64) -> String {
    let timestamp =
        Timestamp::from_microsecond(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX });
    let at = Offset::UTC.to_datetime(timestamp);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.subsec_nanosecond() / 100
    )
}

/// The time now.
pub(crate) fn now() -> String {
    time(Timestamp::now().as_microsecond())
}

/// Formats bytes as `13.48 MBytes`.
pub(crate) fn humane_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GBytes"), (1 << 20, "MBytes"), (1 << 10, "KBytes")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            let hundredths = (u128::from(bytes) * 100 + u128::from(unit) / 2) / u128::from(unit);
            return format!("{}.{:02} {name}", hundredths / 100, hundredths % 100);
        }
    }
    format!("{bytes} Bytes")
}

/// Reads a time span: `00:00:15`, `1.02:03:04.5`, or a number of milliseconds. `None` where it is neither.
pub(crate) fn time_span(text: &str) -> Option<std::time::Duration> {
    use std::time::Duration;
    if let Ok(millis) = text.parse::<u64>() {
        return Some(Duration::from_millis(millis));
    }
    let (days, clock) = match text.split_once(':')?.0.split_once('.') {
        Some((days, _)) => (days.parse::<u64>().ok()?, text.split_once('.')?.1),
        None => (0, text),
    };
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u64>().ok()?, minutes.parse::<u64>().ok()?);
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds = seconds.parse::<u64>().ok()?;
    if hours > 23 || minutes > 59 || seconds > 59 || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse::<u32>().ok()?;
    let whole = days.checked_mul(86_400)?.checked_add(hours * 3_600 + minutes * 60 + seconds)?;
    Some(Duration::new(whole, nanos))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_have_seven_digits() {
        assert_eq!(time(0), "1970-01-01T00:00:00.0000000Z");
        assert_eq!(time(1_796_038_182_752_378), "2026-11-30T11:29:42.7523780Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59.9999990Z");
    }

    #[test]
    fn sizes_are_rounded_to_two_digits() {
        assert_eq!(humane_size(127), "127 Bytes");
        assert_eq!(humane_size(14_131_200), "13.48 MBytes");
        assert_eq!(humane_size(u64::MAX), "17179869184.00 GBytes");
    }

    #[test]
    fn time_spans_are_read_as_clients_write_them() {
        assert_eq!(time_span("00:00:15"), Some(Duration::from_secs(15)));
        assert_eq!(time_span("00:00:00.250000"), Some(Duration::from_millis(250)));
        assert_eq!(time_span("2.01:00:00"), Some(Duration::from_secs(2 * 86_400 + 3_600)));
        assert_eq!(time_span("1500"), Some(Duration::from_millis(1500)));
        for bad in ["", "x", "15s", "00:15", "1:2:3:4", "00:00:61", "-00:00:01", "00:00:00.1234567890"] {
            assert_eq!(time_span(bad), None, "{bad}");
        }
    }

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        write_string("a\"\n\u{1}😀", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#""a\"\n\u0001😀""#);
    }
}
