//! Server-side ids: a prefix, the etag of the write in 19 digits, the node tag: `users/0000000000000000042-A`.

use super::case::lower;
use super::document_id::{DocumentId, check_length};
use super::rules::{IdError, IdRules};

/// The digits of the etag.
const DIGITS: usize = 19;

/// Checks that the ids made under `prefix` (separator included) are short enough.
pub(super) fn check_prefix(prefix: &str, rules: &IdRules) -> Result<(), IdError> {
    check_length(prefix, lower(prefix).len() + DIGITS + 1 + rules.node_tag.len())
}

/// Makes the finished id of a write: `prefix` (separator included), `etag`, node tag.
///
/// # Errors
/// The finished id breaks a rule: it is too long, or the prefix holds control characters.
pub fn finish(prefix: &str, etag: u64, rules: &IdRules) -> Result<DocumentId, IdError> {
    DocumentId::new(&format!("{prefix}{etag:0DIGITS$}-{}", rules.node_tag), rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_etag_has_19_digits_and_the_node_tag_follows() {
        let rules = IdRules { node_tag: "BC".to_owned(), ..IdRules::default() };
        assert_eq!(finish("Users/", 42, &rules).unwrap().as_str(), "Users/0000000000000000042-BC");
    }

    #[test]
    fn the_limit_is_that_of_the_finished_id() {
        let rules = IdRules::default();
        let at_limit = format!("{}/", "x".repeat(512 - 21 - 1));
        assert!(check_prefix(&at_limit, &rules).is_ok() && finish(&at_limit, 1, &rules).is_ok());
        let above = format!("x{at_limit}");
        assert!(check_prefix(&above, &rules).is_err() && finish(&above, 1, &rules).is_err());
    }
}
