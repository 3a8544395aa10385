//! Sizes: `65536`, `64KiB`, `64MiB`, `1GiB`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

const UNITS: [(&str, usize); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = UNITS.iter().find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, unit)));
        let size = unit.and_then(|(number, unit)| number.trim_end().parse::<usize>().ok()?.checked_mul(*unit));
        size.map(Self).ok_or_else(|| "it must be a number of bytes, or one with KiB, MiB or GiB: 64MiB".to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) =
            UNITS.iter().find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit)).unwrap_or(&("", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written_alike() {
        for (text, bytes) in [("0", 0), ("1500", 1500), ("64KiB", 64 << 10), ("3MiB", 3 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!("2048 MiB".parse::<Size>().map(|size| size.to_string()), Ok("2GiB".to_owned()));
        for text in ["", "MiB", "-1", "1.5MiB", "1MB", "99999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
