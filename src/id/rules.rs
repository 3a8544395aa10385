//! How one database reads ids: separator, node tag, trailing slash, kind of GUID; and why an id is refused.
//!
//! Every refusal names the id (cut to 80 characters), the rule it breaks and the way out.
//!
//! Next on the walk: `request`.

/// How one database reads ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdRules {
    /// The character that asks for a server-side id and stands before identity numbers. Default `/`.
    pub separator: char,
    /// The tag of this node in server-side ids. Default `A`.
    pub node_tag: String,
    /// Whether a trailing separator asks for an identity, as in old RavenDB, and not for a server-side id. Default false.
    pub trailing_slash_is_identity: bool,
    /// Whether GUIDs are time-ordered (v7). Default false (v4).
    pub guid_v7: bool,
}

impl Default for IdRules {
    fn default() -> Self {
        Self { separator: '/', node_tag: "A".to_owned(), trailing_slash_is_identity: false, guid_v7: false }
    }
}

impl IdRules {
    /// Checks the rules themselves: the separator and the node tag.
    ///
    /// # Errors
    /// The separator is `|` or a control character, or the node tag is not 1 to 4 capital letters.
    pub fn check(&self) -> Result<(), IdError> {
        if self.separator == '|' || self.separator.is_control() {
            return Err(IdError::new(format!(
                "the identity parts separator can't be {:?}: '|' asks for identities and control characters are refused; \
                 choose another single character, for example '/'",
                self.separator
            )));
        }
        check_node_tag(&self.node_tag)
    }
}

/// Checks a node tag: 1 to 4 capital letters, `A` to `Z`.
///
/// # Errors
/// Anything else, because the tag stands in ids and change vectors.
pub fn check_node_tag(tag: &str) -> Result<(), IdError> {
    if (1..=4).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Ok(());
    }
    Err(IdError::new(format!(
        "node tag '{}' is refused: a node tag is 1 to 4 capital letters, for example 'A'",
        cut(tag)
    )))
}

/// Why an id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdError(String);

impl IdError {
    /// Makes an error of a whole message.
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }

    /// Makes an error that names the id, the rule and the way out.
    pub(super) fn refused(id: &str, rule_and_way_out: &str) -> Self {
        Self(format!("document id '{}' is refused: {rule_and_way_out}", cut(id)))
    }
}

/// Cuts a text to its first 80 characters and shows control characters as escapes, for messages.
pub(crate) fn cut(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown = String::new();
    for character in text.chars().take(SHOWN) {
        if character.is_control() {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_rules_are_sound() {
        assert_eq!(IdRules::default().check(), Ok(()));
    }

    #[test]
    fn the_separator_may_be_any_character_but_the_bar_and_control_characters() {
        for separator in ['-', '#', '😀', ' '] {
            assert_eq!(IdRules { separator, ..IdRules::default() }.check(), Ok(()));
        }
        for separator in ['|', '\n', '\0'] {
            let error = IdRules { separator, ..IdRules::default() }.check().unwrap_err();
            assert!(error.to_string().contains("choose another"), "{error}");
        }
    }

    #[test]
    fn a_node_tag_is_one_to_four_capital_letters() {
        for tag in ["A", "ABCD"] {
            assert_eq!(check_node_tag(tag), Ok(()));
        }
        for tag in ["", "a", "ABCDE", "A1", "Ä"] {
            assert!(check_node_tag(tag).is_err(), "{tag}");
        }
    }

    #[test]
    fn messages_cut_the_id_and_escape_control_characters() {
        assert_eq!(cut("a\u{1e}b"), "a\\u{1e}b");
        assert_eq!(cut(&"x".repeat(80)), "x".repeat(80));
        assert_eq!(cut(&"😀".repeat(81)), format!("{}…", "😀".repeat(80)));
    }
}
