//! A finished id: checked, as written and lower-cased.
//!
//! Next on the walk: `store::commit`.

use super::case::lower;
use super::rules::{IdError, IdRules};

/// The most bytes (UTF-8) of a finished id, lower-cased.
pub const ID_BYTES_MAX: usize = 512;

/// A finished id: checked, in the caller's spelling and lower-cased.
///
/// ```
/// use treepie::id::{DocumentId, IdRules};
///
/// let id = DocumentId::new("Users/Ayende", &IdRules::default())?;
/// assert_eq!((id.as_str(), id.lower()), ("Users/Ayende", "users/ayende"));
/// # Ok::<(), treepie::id::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentId {
    written: String,
    lower: String,
}

impl DocumentId {
    /// Checks a finished id that a document is to be written under: 1 to 512 bytes when lower-cased, no control characters,
    /// not ending in `|` or the separator.
    ///
    /// # Errors
    /// An [`IdError`] that names the id, the rule and the way out.
    pub fn new(id: &str, rules: &IdRules) -> Result<Self, IdError> {
        if id.ends_with('|') {
            return Err(IdError::refused(
                id,
                "an id that ends in '|' asks for the next number of an identity and can't name a stored document; \
                 leave the '|' out",
            ));
        }
        if id.ends_with(rules.separator) {
            return Err(IdError::refused(
                id,
                &format!(
                    "an id that ends in the separator '{}' asks for a server-made id and can't name a stored document; \
                     leave the separator out, or write something after it",
                    rules.separator
                ),
            ));
        }
        Self::existing(id)
    }

    /// Checks an id that is only read or deleted: like [`DocumentId::new`], but it may end in the separator, because the
    /// document may have been written under another one.
    ///
    /// # Errors
    /// An [`IdError`] that names the id, the rule and the way out.
    pub fn existing(id: &str) -> Result<Self, IdError> {
        if id.is_empty() {
            return Err(IdError::refused(id, "it is empty; name a document"));
        }
        check_characters(id)?;
        let lower = lower(id);
        check_length(id, lower.len())?;
        Ok(Self { written: id.to_owned(), lower })
    }

    /// Takes an id that the database itself has stored or made; nothing is checked.
    #[cfg(feature = "server")]
    pub(crate) fn stored(id: &str) -> Self {
        Self { written: id.to_owned(), lower: lower(id) }
    }

    /// The id as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The id as compared and sorted.
    #[must_use]
    pub fn lower(&self) -> &str {
        &self.lower
    }
}

/// Refuses control characters.
pub(super) fn check_characters(id: &str) -> Result<(), IdError> {
    let control = if id.is_ascii() {
        id.bytes().find(u8::is_ascii_control).map(char::from)
    } else {
        id.chars().find(|character| character.is_control())
    };
    match control {
        None => Ok(()),
        Some(control) => Err(IdError::refused(
            id,
            &format!("it holds the control character U+{:04X}; leave it out", u32::from(control)),
        )),
    }
}

/// Refuses a finished id whose lower-cased form has `lower_bytes` bytes, where that is too many.
pub(super) fn check_length(id: &str, lower_bytes: usize) -> Result<(), IdError> {
    if lower_bytes <= ID_BYTES_MAX {
        return Ok(());
    }
    Err(IdError::refused(
        id,
        &format!(
            "lower-cased it has {lower_bytes} bytes of UTF-8, and an id may have {ID_BYTES_MAX} bytes; shorten it"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(id: &str) -> Result<DocumentId, IdError> {
        DocumentId::new(id, &IdRules::default())
    }

    #[test]
    fn the_spelling_is_kept_and_the_lower_case_compares() {
        let id = new("Ünï/Σ😀 a+b%20").unwrap();
        assert_eq!(id.as_str(), "Ünï/Σ😀 a+b%20");
        assert_eq!(id.lower(), "ünï/σ😀 a+b%20");
    }

    #[test]
    fn the_limit_counts_the_bytes_of_the_lower_case() {
        for (unit, bytes) in [("a", 1), ("✈", 3), ("😀", 4)] {
            let at_limit = format!("{}{}", unit.repeat(512 / bytes), "x".repeat(512 % bytes));
            assert!(new(&at_limit).is_ok());
            let error = new(&format!("{at_limit}x")).unwrap_err().to_string();
            assert!(error.contains("513 bytes") && error.contains("512 bytes"), "{error}");
        }
        assert!(new(&"İ".repeat(170)).is_ok());
        assert!(new(&"İ".repeat(171)).is_err(), "2 bytes become 3 in lower case");
        assert!(new(&"\u{212A}".repeat(512)).is_ok(), "Kelvin's 3 bytes become 1");
    }

    #[test]
    fn endings_that_ask_for_something_else_name_no_document() {
        for id in ["users/", "/", "users|", "|", "users/|", "users|/"] {
            let error = new(id).unwrap_err().to_string();
            assert!(error.contains(&format!("'{id}'")) && error.contains("leave the"), "{error}");
        }
        assert!(new("a|b").is_ok());
        let hash = IdRules { separator: '#', ..IdRules::default() };
        assert!(DocumentId::new("users/", &hash).is_ok());
        assert!(DocumentId::new("users#", &hash).is_err());
        assert!(DocumentId::existing("users/").is_ok(), "written under another separator");
    }

    #[test]
    fn control_characters_and_nothing_are_refused() {
        for id in ["a\0", "a\nb", "\u{7f}", "ü\u{85}"] {
            let error = new(id).unwrap_err().to_string();
            assert!(error.contains("control character U+00") && error.contains("leave it out"), "{error}");
        }
        assert!(new("").is_err());
    }
}
