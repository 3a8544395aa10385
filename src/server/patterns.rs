//! `matches` and `exclude`: patterns for the rest of an id behind its prefix.

use super::error::ApiError;
use crate::id;

/// The most bytes of one parameter: matching costs id length × pattern length.
const BYTES_MAX: usize = 4_096;

/// Alternatives, separated by `|`, of text with `*` (any characters) and `?` (any one character).
#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    alternatives: Vec<Vec<char>>,
}

impl Patterns {
    /// Reads the value of the parameter `name`; none where it is empty.
    ///
    /// # Errors
    /// It is longer than 4,096 bytes.
    pub(crate) fn parse(name: &str, text: Option<&str>) -> Result<Option<Self>, ApiError> {
        let Some(text) = text else { return Ok(None) };
        if text.len() > BYTES_MAX {
            return Err(ApiError::argument(format!("The query parameter '{name}' has more than {BYTES_MAX} bytes.")));
        }
        let alternatives =
            text.split('|').filter(|part| !part.is_empty()).map(|part| id::lower(part).chars().collect());
        Ok(Some(Self { alternatives: alternatives.collect() }).filter(|patterns| !patterns.alternatives.is_empty()))
    }

    /// Whether `text`, lower-cased already, is like one of the patterns.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        self.alternatives.iter().any(|pattern| is_like(&text, pattern))
    }
}

/// Matches without recursion: on a mismatch the last `*` takes one character more.
fn is_like(text: &[char], pattern: &[char]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&character) = text.get(at) {
        match pattern.get(of) {
            Some('*') => {
                star = Some((at, of));
                of += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == character => {
                at += 1;
                of += 1;
            }
            _ => match &mut star {
                None => return false,
                Some((begun, star_at)) => {
                    *begun += 1;
                    at = *begun;
                    of = *star_at + 1;
                }
            },
        }
    }
    pattern.get(of..).unwrap_or_default().iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        is_like(&text.chars().collect::<Vec<_>>(), &pattern.chars().collect::<Vec<_>>())
    }

    #[test]
    fn stars_and_question_marks_match_as_in_ravendb() {
        for (text, pattern) in
            [("10", "1*"), ("1", "1*"), ("", "*"), ("abc", "a?c"), ("abcabd", "*abd"), ("x", "**x**")]
        {
            assert!(like(text, pattern), "{text} like {pattern}");
        }
        for (text, pattern) in [("10", "1"), ("", "?"), ("abc", "a?"), ("abc", "*abd"), ("a", "")] {
            assert!(!like(text, pattern), "{text} not like {pattern}");
        }
    }
}
