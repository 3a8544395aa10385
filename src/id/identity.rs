//! Identities: named counters whose numbers finish ids, `users|` → `users/7`.
//!
//! The numbers come from `store::coordinator`; a finished id must be new, and where it is taken the caller asks again above
//! the floor that [`free_number`] finds.

use super::case::lower;
use super::document_id::{DocumentId, check_characters, check_length};
use super::rules::{IdError, IdRules};

/// The name of an identity: `users|`. Compared without regard to case; the caller's spelling goes into the finished id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityName {
    prefix: String,
}

impl IdentityName {
    /// Reads `users|` or `users`. `|` alone is an identity without a prefix.
    ///
    /// # Errors
    /// The name is empty, holds control characters, or leaves no room for a number.
    pub fn new(name: &str, rules: &IdRules) -> Result<Self, IdError> {
        if name.is_empty() {
            return Err(IdError::new("an identity must have a name, for example 'users|'".to_owned()));
        }
        let prefix = name.strip_suffix('|').unwrap_or(name);
        check_characters(name)?;
        check_length(name, lower(prefix).len() + rules.separator.len_utf8() + 1)?;
        Ok(Self { prefix: prefix.to_owned() })
    }

    /// Lower-cased, with the `|`: the key under which it counts.
    #[must_use]
    pub fn key(&self) -> String {
        let mut key = lower(&self.prefix);
        key.push('|');
        key
    }

    /// Makes the finished id of `number`: `users/7`.
    ///
    /// # Errors
    /// The finished id is too long.
    pub fn finish(&self, number: u64, rules: &IdRules) -> Result<DocumentId, IdError> {
        DocumentId::new(&format!("{}{}{number}", self.prefix, rules.separator), rules)
    }
}

/// Finds a free number above `floor`: one that is not taken, and whose predecessor is taken or is `floor`. Where the taken
/// numbers have holes, not necessarily the lowest. `None`: every number that was probed up to `u64::MAX` is taken.
///
/// # Cost
/// At most 2 · log₂(n) + 2 calls of `is_taken`, n being the number found minus `floor`: 42 for a million taken numbers.
///
/// # Errors
/// Those of `is_taken`.
pub fn free_number<E>(floor: u64, mut is_taken: impl FnMut(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    let Some(mut taken) = floor.checked_add(1) else { return Ok(None) };
    if !is_taken(taken)? {
        return Ok(Some(taken));
    }
    let mut step = 1_u64;
    let mut free = loop {
        if taken == u64::MAX {
            return Ok(None);
        }
        let number = taken.saturating_add(step);
        if !is_taken(number)? {
            break number;
        }
        taken = number;
        step = step.saturating_mul(2);
    };
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle)? {
            taken = middle;
        } else {
            free = middle;
        }
    }
    Ok(Some(free))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn find(floor: u64, is_taken: impl Fn(u64) -> bool) -> (Option<u64>, u32) {
        let mut probes = 0;
        let Ok(found) = free_number(floor, |number| {
            probes += 1;
            Ok::<_, Infallible>(is_taken(number))
        });
        (found, probes)
    }

    #[test]
    fn names_count_without_regard_to_case_and_finish_in_the_callers_spelling() {
        let rules = IdRules::default();
        for (name, key, id) in [
            ("USERS|", "users|", "USERS/3"),
            ("Users", "users|", "Users/3"),
            ("|", "|", "/3"),
            ("users/|", "users/|", "users//3"),
            ("users||", "users||", "users|/3"),
        ] {
            let identity = IdentityName::new(name, &rules).unwrap();
            assert_eq!((identity.key().as_str(), identity.finish(3, &rules).unwrap().as_str()), (key, id));
        }
        assert!(IdentityName::new("", &rules).is_err());
        assert!(IdentityName::new("a\u{1}|", &rules).is_err());
        assert!(IdentityName::new(&"x".repeat(511), &rules).is_err());
    }

    #[test]
    fn the_next_number_is_free_where_nothing_is_taken() {
        assert_eq!(find(0, |_| false), (Some(1), 1));
        assert_eq!(find(41, |_| false), (Some(42), 1));
    }

    #[test]
    fn a_stretch_without_holes_ends_at_its_first_free_number() {
        for taken in [1, 2, 3, 7, 8, 9, 1000] {
            assert_eq!(find(5, |number| number <= 5 + taken).0, Some(6 + taken));
        }
    }

    #[test]
    fn a_million_taken_numbers_take_at_most_a_hundred_probes() {
        let (found, probes) = find(0, |number| number <= 1_000_000);
        assert_eq!(found, Some(1_000_001));
        assert!(probes <= 42, "{probes}");
    }

    #[test]
    fn with_holes_a_free_number_behind_a_taken_one_is_found() {
        let is_taken = |number: u64| number <= 100 && !number.is_multiple_of(10) || number == 500;
        let (Some(found), _) = find(0, is_taken) else { panic!("nothing found") };
        assert!(!is_taken(found) && is_taken(found - 1));
    }

    #[test]
    fn the_last_number_is_the_end() {
        assert_eq!(find(u64::MAX, |_| false).0, None);
        assert_eq!(find(u64::MAX - 2, |_| true).0, None);
        assert_eq!(find(u64::MAX - 2, |number| number < u64::MAX).0, Some(u64::MAX));
    }
}
