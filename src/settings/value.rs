//! The kinds of values: how each is read and written.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time;

use super::Size;

/// A kind of value.
pub(super) trait Value: Sized {
    /// Whether a file has it as a string.
    const IS_TEXT: bool = true;
    /// Whether its presence on the command line alone sets it.
    const IS_SWITCH: bool = false;

    /// Reads it.
    ///
    /// # Errors
    /// The rule it breaks: `must be …`.
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it, so that it reads as the same; `None` where it is not set.
    fn write(&self) -> Option<String>;
}

/// A time: `250ms`, `30s`, `5m`, `1h`, `14d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration(pub time::Duration);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = UNITS.iter().find(|(name, _)| *name == unit.trim_start());
        let millis = unit.and_then(|(_, millis)| number.parse::<u64>().ok()?.checked_mul(*millis));
        let read = millis.map(|millis| Self(time::Duration::from_millis(millis)));
        read.ok_or_else(|| "must be a number with ms, s, m, h or d: 30s".to_owned())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let fits = |unit: &&(&str, u64)| millis >= unit.1 && millis.is_multiple_of(unit.1);
        let (name, unit) = UNITS.iter().rev().find(fits).unwrap_or(&("ms", 1));
        write!(f, "{}{name}", millis / unit)
    }
}

/// A choice between words.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $variant,)+ }

        impl Value for $name {
            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("must be one of {}", [$($word),+].join(", "))),
                }
            }

            fn write(&self) -> Option<String> {
                Some(match self { $(Self::$variant => $word,)+ }.to_owned())
            }
        }
    };
}

choice! {
    /// What a trailing separator asks for.
    TrailingSlash {
        /// `users/` gives `users/0000000000000000042-A`.
        ServerSide = "server-side",
        /// `users/` gives `users/7`, as `users|` does.
        Identity = "identity",
    }
}

choice! {
    /// The version of GUIDs.
    Guid {
        /// Random.
        V4 = "v4",
        /// Ordered by time.
        V7 = "v7",
    }
}

choice! {
    /// When a write is on disk.
    Storage {
        /// Before it is answered.
        Strict = "strict",
        /// Within a second.
        Relaxed = "relaxed",
    }
}

impl Value for Duration {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Size {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|rule: String| rule.replacen("it must", "must", 1))
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for usize {
    const IS_TEXT: bool = false;

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be a whole number".to_owned())
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for bool {
    const IS_TEXT: bool = false;
    const IS_SWITCH: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be true or false".to_owned())
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be an address and a port: 127.0.0.1:8080, [::1]:8080".to_owned())
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn write(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("must be a path".to_owned()) } else { Ok(Self::from(text)) }
    }

    fn write(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl<V: Value> Value for Option<V> {
    const IS_TEXT: bool = V::IS_TEXT;

    fn read(text: &str) -> Result<Self, String> {
        V::read(text).map(Some)
    }

    fn write(&self) -> Option<String> {
        self.as_ref().and_then(V::write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_alike() {
        for (text, millis) in
            [("0ms", 0), ("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("14d", 1_209_600_000)]
        {
            let read: Duration = text.parse().unwrap();
            assert_eq!((read.0.as_millis(), read.to_string()), (millis, text.to_owned()));
        }
        assert_eq!("90 s".parse::<Duration>().map(|time| time.to_string()), Ok("90s".to_owned()));
        for text in ["", "s", "-1s", "1.5s", "1w", "99999999999999999999h", "1"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }
}
