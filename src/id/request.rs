//! What a caller's id asks for.
//!
//! Next on the walk: `document_id`.

use super::document_id::{DocumentId, check_characters};
use super::identity::IdentityName;
use super::rules::{IdError, IdRules};
use super::{guid, server_side};

/// What a caller's id asks for.
///
/// ```
/// use treepie::id::{IdRequest, IdRules};
///
/// let rules = IdRules::default();
/// assert_eq!(IdRequest::parse(Some("users/"), &rules)?, IdRequest::ServerSide("users/".to_owned()));
/// assert!(matches!(IdRequest::parse(Some("users|"), &rules)?, IdRequest::Identity(_)));
/// assert!(matches!(IdRequest::parse(None, &rules)?, IdRequest::Given(guid) if guid.as_str().len() == 36));
/// # Ok::<(), treepie::id::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdRequest {
    /// This very id, also a GUID that was made just now.
    Given(DocumentId),
    /// A server-side id under this prefix, separator included.
    ServerSide(String),
    /// The next number of an identity.
    Identity(IdentityName),
}

impl IdRequest {
    /// Reads a caller's id: nothing, `""` or blanks give a GUID, a trailing separator a server-side id (or an identity, where
    /// the rules say so), a trailing `|` an identity.
    ///
    /// # Errors
    /// An [`IdError`] where no id that could come of it keeps the rules.
    pub fn parse(id: Option<&str>, rules: &IdRules) -> Result<Self, IdError> {
        let Some(id) = id.filter(|id| !id.trim().is_empty()) else {
            return DocumentId::new(&guid::guid(rules.guid_v7), rules).map(Self::Given);
        };
        if id.ends_with('|') {
            return IdentityName::new(id, rules).map(Self::Identity);
        }
        match id.strip_suffix(rules.separator) {
            None => DocumentId::new(id, rules).map(Self::Given),
            Some(name) if rules.trailing_slash_is_identity => {
                IdentityName::new(&format!("{name}|"), rules).map(Self::Identity)
            }
            Some(_) => {
                check_characters(id)?;
                server_side::check_prefix(id, rules)?;
                Ok(Self::ServerSide(id.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(id: &str) -> Result<IdRequest, IdError> {
        IdRequest::parse(Some(id), &IdRules::default())
    }

    #[test]
    fn nothing_and_blanks_give_different_guids() {
        let mut seen = std::collections::HashSet::new();
        for id in [None, Some(""), Some(" "), Some("\t\n"), None] {
            let Ok(IdRequest::Given(id)) = IdRequest::parse(id, &IdRules::default()) else { panic!("no GUID") };
            assert_eq!(id.as_str().len(), 36);
            assert_eq!(id.as_str(), id.lower());
            assert!(seen.insert(id));
        }
    }

    #[test]
    fn a_semantic_id_stays_as_it_is() {
        for id in ["users/ayende@ayende.com", "a", " x ", "a|b", "users//1", "100%"] {
            assert!(matches!(parse(id), Ok(IdRequest::Given(given)) if given.as_str() == id), "{id}");
        }
    }

    #[test]
    fn a_trailing_separator_asks_for_a_server_side_id() {
        for id in ["users/", "/", "users//", "users|/"] {
            assert_eq!(parse(id), Ok(IdRequest::ServerSide(id.to_owned())));
        }
        assert!(parse("us\ners/").is_err());
        assert!(parse(&format!("{}/", "x".repeat(512))).is_err());
    }

    #[test]
    fn a_trailing_bar_asks_for_an_identity() {
        for (id, key) in [("Users|", "users|"), ("|", "|"), ("users/|", "users/|"), ("users||", "users||")] {
            assert!(matches!(parse(id), Ok(IdRequest::Identity(name)) if name.key() == key), "{id}");
        }
    }

    #[test]
    fn the_separator_decides() {
        let rules = IdRules { separator: '#', ..IdRules::default() };
        assert!(matches!(IdRequest::parse(Some("users/"), &rules), Ok(IdRequest::Given(_))));
        assert_eq!(IdRequest::parse(Some("users#"), &rules), Ok(IdRequest::ServerSide("users#".to_owned())));
    }

    #[test]
    fn the_older_rule_reads_a_trailing_separator_as_an_identity() {
        let rules = IdRules { trailing_slash_is_identity: true, ..IdRules::default() };
        let Ok(IdRequest::Identity(name)) = IdRequest::parse(Some("Users/"), &rules) else { panic!("no identity") };
        assert_eq!(name.key(), "users|");
        assert_eq!(name.finish(7, &rules).unwrap().as_str(), "Users/7");
    }
}
