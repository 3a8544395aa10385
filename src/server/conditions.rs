//! `If-Match` and `If-None-Match`: what the caller believes about a document.

use axum::http::{HeaderMap, HeaderName, header};

use super::error::ApiError;
use crate::store::commit::Expected;

/// Reads what a write expects: `If-Match` with a change vector, or empty (or `If-None-Match: *`) for a new document.
pub(crate) fn expected(headers: &HeaderMap) -> Result<Expected, ApiError> {
    if let Some(value) = value(headers, &header::IF_MATCH)? {
        if value == "*" || value.contains(',') {
            return Err(ApiError::argument(format!(
                "If-Match must be one change vector, or \"\" for a document that must not exist yet; '{value}' is not supported."
            )));
        }
        let vector = unquoted(value);
        return Ok(if vector.is_empty() { Expected::New } else { Expected::ChangeVector(vector.to_owned()) });
    }
    match value(headers, &header::IF_NONE_MATCH)? {
        Some("*") => Ok(Expected::New),
        Some(_) => Err(ApiError::argument("If-None-Match of a write can only be *; to expect a version use If-Match.")),
        None => Ok(Expected::Any),
    }
}

/// Whether the caller holds this version already (`If-None-Match`).
pub(crate) fn is_known(headers: &HeaderMap, change_vector: &str) -> Result<bool, ApiError> {
    let Some(value) = value(headers, &header::IF_NONE_MATCH)? else { return Ok(false) };
    Ok(value.split(',').map(str::trim).any(|tag| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || unquoted(tag) == change_vector
    }))
}

/// Reads `Client-Configuration-Etag`, with or without quotes. What is no number (Python's `None`) is 0: the client holds none.
pub(crate) fn client_configuration(headers: &HeaderMap) -> Option<u64> {
    let text = unquoted(headers.get("client-configuration-etag")?.to_str().ok()?.trim());
    Some(text.parse().unwrap_or(0))
}

fn value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    match headers.get(name) {
        None => Ok(None),
        Some(value) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(ApiError::argument(format!("The header {name} holds characters that no change vector has."))),
        },
    }
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_change_vector_may_be_quoted_or_bare() {
        for text in ["\"A:1-x\"", "A:1-x"] {
            let wanted = Expected::ChangeVector("A:1-x".to_owned());
            assert_eq!(expected(&with(header::IF_MATCH, text)).unwrap(), wanted);
        }
        assert_eq!(expected(&with(header::IF_MATCH, "\"\"")).unwrap(), Expected::New);
        assert_eq!(expected(&with(header::IF_MATCH, "")).unwrap(), Expected::New);
        assert_eq!(expected(&with(header::IF_NONE_MATCH, "*")).unwrap(), Expected::New);
        assert_eq!(expected(&HeaderMap::new()).unwrap(), Expected::Any);
        assert!(expected(&with(header::IF_MATCH, "*")).is_err());
    }

    #[test]
    fn known_versions_are_recognised() {
        for text in ["\"A:1-x\"", "A:1-x", "W/\"A:1-x\"", "\"A:0-x\", \"A:1-x\"", "*"] {
            assert!(is_known(&with(header::IF_NONE_MATCH, text), "A:1-x").unwrap(), "{text}");
        }
        assert!(!is_known(&with(header::IF_NONE_MATCH, "\"A:2-x\""), "A:1-x").unwrap());
        assert!(!is_known(&HeaderMap::new(), "A:1-x").unwrap());
    }
}
