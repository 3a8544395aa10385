//! What a credential may do: a level for each database, or for all.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Stands for all databases, and for the server itself.
pub const EVERYTHING: &str = "*";

/// What one may do. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Read documents, indexes, feeds and statistics.
    Read,
    /// Also write and delete documents, take numbers, import.
    Write,
    /// Also put and delete indexes, change settings, take backups; with `*`, create and delete databases.
    Admin,
}

/// Levels by database, lower-case, or `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(BTreeMap<String, Level>);

impl Grants {
    /// Grants a level in a database, or in `*`; the highest one that was granted holds.
    pub fn add(&mut self, database: &str, level: Level) {
        let held = self.0.entry(database.to_ascii_lowercase()).or_insert(level);
        *held = level.max(*held);
    }

    /// Whether they include `level` in a database; `None`: in the server as a whole.
    #[must_use]
    pub fn permits(&self, level: Level, database: Option<&str>) -> bool {
        let held = |name: &str| self.0.get(name).is_some_and(|held| *held >= level);
        held(EVERYTHING) || database.is_some_and(|database| held(&database.to_ascii_lowercase()))
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "admin" => Ok(Self::Admin),
            _ => Err(format!("'{text}' is none of read, write and admin")),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

/// As they are written on the command line: `main=write,*=read`.
impl FromStr for Grants {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut grants = Self::default();
        for part in text.split(',') {
            let Some((database, level)) = part.split_once('=') else {
                return Err(format!("'{part}' must be a database and a level, such as main=write or *=read"));
            };
            if database.is_empty() {
                return Err(format!("'{part}' names no database; * stands for all"));
            }
            grants.add(database, level.parse()?);
        }
        Ok(grants)
    }
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (database, level)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            write!(f, "{comma}{database}={level}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_includes_those_before_it_in_its_database_only() {
        let grants: Grants = "Main=write,logs=read".parse().unwrap();
        for (level, database, permitted) in [
            (Level::Read, Some("main"), true),
            (Level::Write, Some("MAIN"), true),
            (Level::Admin, Some("main"), false),
            (Level::Read, Some("logs"), true),
            (Level::Write, Some("logs"), false),
            (Level::Read, Some("other"), false),
            (Level::Read, None, false),
        ] {
            assert_eq!(grants.permits(level, database), permitted, "{level} {database:?}");
        }
    }

    #[test]
    fn a_star_stands_for_all_databases_and_the_server() {
        let grants: Grants = "*=read,main=admin".parse().unwrap();
        assert!(grants.permits(Level::Read, Some("any")) && grants.permits(Level::Read, None));
        assert!(grants.permits(Level::Admin, Some("main")) && !grants.permits(Level::Admin, None));
        assert_eq!(grants.to_string(), "*=read,main=admin");
    }

    #[test]
    fn what_is_no_grant_is_refused() {
        for text in ["", "main", "main=", "=read", "main=all", "main=read,"] {
            assert!(text.parse::<Grants>().is_err(), "{text}");
        }
    }
}
