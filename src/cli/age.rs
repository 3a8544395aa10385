//! Spans of time on the command line: `14d`, `36h`, `90m`, `30s`.

use std::str::FromStr;
use std::time::Duration;

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
        let found = UNITS.iter().find_map(|(unit, seconds)| {
            let count = text.trim().strip_suffix(unit)?.parse::<u64>().ok()?;
            count.checked_mul(*seconds)
        });
        found.map(|seconds| Self(Duration::from_secs(seconds))).ok_or_else(|| {
            "it must be a whole number of days, hours, minutes or seconds, such as 14d, 36h, 90m or 30s".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_before_its_unit() {
        for (text, seconds) in [("14d", 1_209_600), ("36h", 129_600), ("90m", 5_400), ("0s", 0)] {
            assert_eq!(text.parse(), Ok(Age(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "14", "d", "1w", "-1d", "1.5h", "99999999999999999999d", "18446744073709551615d"] {
            assert!(text.parse::<Age>().unwrap_err().contains("14d"), "{text}");
        }
    }
}
