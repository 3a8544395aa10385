//! The query string: decoded strictly, looked up without regard to the case of its names.
//!
//! Clients send plenty of odd and unknown parameters (`?&id=x`, `??&a=b`, names without a value); those are ignored.
//! What a handler does read it reads with a rule, and a value that breaks it is refused by name.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::ApiError;
use super::wire::text::time_span;

/// The parameters of one request, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(parts.uri.query().unwrap_or(""))
    }
}

impl Query {
    /// Decodes a query string: `+` is a space, `%2B` a plus.
    ///
    /// # Errors
    /// An escape that is not `%` and two hexadecimal digits, or bytes that are not UTF-8.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, true)?;
            let value = decode(value, true)?;
            pairs.push((name.trim_start_matches('?').to_owned(), value));
        }
        Ok(Self { pairs })
    }

    /// The same parameters behind others, which win.
    pub(crate) fn behind(self, mut first: Vec<(String, String)>) -> Self {
        first.extend(self.pairs);
        Self { pairs: first }
    }

    /// The first value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The first value of `name`, where it is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Every value of `name`, in order.
    pub(crate) fn all<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A value that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name)
            .filter(|value| !value.trim().is_empty())
            .ok_or_else(|| ApiError::argument(format!("The query parameter '{name}' is missing; add ?{name}=….")))
    }

    /// A switch: `true` or `false` in any case.
    pub(crate) fn switch(&self, name: &str, default: bool) -> Result<bool, ApiError> {
        match self.text(name) {
            None => Ok(default),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
            Some(value) => Err(bad(name, value, "true or false")),
        }
    }

    /// A count; a negative one is zero, as RavenDB has it.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match value.parse::<i128>() {
            Ok(number) => Ok(Some(u64::try_from(number.max(0)).unwrap_or(u64::MAX))),
            Err(_) => Err(bad(name, value, "a whole number")),
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.text(name) {
            None => Ok(None),
            Some(value) => value.parse().map(Some).map_err(|_| bad(name, value, "a whole number, 0 or more")),
        }
    }

    /// A time span: `hh:mm:ss` or milliseconds.
    pub(crate) fn time_span(&self, name: &str) -> Result<Option<Duration>, ApiError> {
        match self.text(name) {
            None => Ok(None),
            Some(value) => match time_span(value) {
                Some(span) => Ok(Some(span)),
                None => Err(bad(name, value, "a time span such as 00:00:15, or a number of milliseconds")),
            },
        }
    }

    /// Refuses parameters that would change the answer and that Treepie does not have.
    pub(crate) fn refuse(&self, names: &[&str], operation: &str) -> Result<(), ApiError> {
        match names.iter().find(|name| self.text(name).is_some_and(|value| !value.eq_ignore_ascii_case("false"))) {
            Some(name) => Err(ApiError::unsupported(&format!("the parameter '{name}' of {operation}"))),
            None => Ok(()),
        }
    }
}

/// Says which parameter must be what.
pub(crate) fn bad(name: &str, value: &str, rule: &str) -> ApiError {
    let shown: String = value.chars().take(80).collect();
    ApiError::argument(format!("The query parameter '{name}' must be {rule}, but is '{shown}'."))
}

/// Decodes percent-escapes strictly.
///
/// # Errors
/// An escape that is not `%` and two hexadecimal digits, or bytes that are not UTF-8.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Result<String, ApiError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = rest.next().and_then(hex).zip(rest.next().and_then(hex));
                let Some((high, low)) = digits else {
                    return Err(undecodable(
                        text,
                        "an escape must be % and two hexadecimal digits (write % itself as %25)",
                    ));
                };
                bytes.push(high * 16 + low);
            }
            b'+' if plus_is_space => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| undecodable(text, "the decoded bytes are not UTF-8"))
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn undecodable(text: &str, rule: &str) -> ApiError {
    let shown: String = text.chars().take(80).collect();
    ApiError::argument(format!("'{shown}' in the URL can't be decoded: {rule}."))
}

/// Checks that a path can be decoded: the router itself lets broken escapes through as they are.
pub(crate) fn check(uri: &axum::http::Uri) -> Result<(), ApiError> {
    decode(uri.path(), false).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_is_a_space_and_an_escaped_plus_a_plus() {
        let query = Query::parse("id=a+b&id=a%2Bb&id=100%25&id=%C3%BC%F0%9F%98%80").unwrap();
        assert_eq!(query.all("id").collect::<Vec<_>>(), ["a b", "a+b", "100%", "ü😀"]);
        assert_eq!(decode("a+b", false).unwrap(), "a+b");
    }

    #[test]
    fn invalid_escapes_and_bytes_are_refused() {
        for bad in ["id=%zz", "id=%", "id=%4", "id=%ff", "%c3=1", "id=%+1"] {
            assert_eq!(Query::parse(bad).unwrap_err().status().as_u16(), 400, "{bad}");
        }
    }

    #[test]
    fn what_real_clients_send_is_understood() {
        let query = Query::parse("&id=x").unwrap();
        assert_eq!(query.get("id"), Some("x"));
        let query = Query::parse("?&waitForIndexesTimeout=00:00:15&waitForIndexThrow=True").unwrap();
        assert_eq!(query.time_span("waitForIndexesTimeout").unwrap(), Some(Duration::from_secs(15)));
        assert!(query.switch("waitForIndexThrow", false).unwrap());
        let query =
            Query::parse("name=x&replicationFactor=1&?raft-request-id=7&STARTSWITH=u&wait-for-indexing").unwrap();
        assert_eq!(query.get("raft-request-id"), Some("7"));
        assert_eq!(query.get("startsWith"), Some("u"));
        assert_eq!(query.get("wait-for-indexing"), Some(""));
    }

    #[test]
    fn values_that_break_a_rule_are_refused_by_name() {
        let query = Query::parse("start=a&pageSize=-1&x=maybe&limit=-1&t=soon").unwrap();
        assert!(query.count("start").unwrap_err().message().contains("'start'"));
        assert_eq!(query.count("pageSize").unwrap(), Some(0));
        assert!(query.switch("x", true).unwrap_err().message().contains("'x'"));
        assert!(query.number("limit").is_err());
        assert!(query.time_span("t").is_err());
        assert!(query.required("id").unwrap_err().message().contains("'id'"));
    }
}
