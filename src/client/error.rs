//! Why the client could not do what it was asked, and who must act.
//!
//! The server's message already names the thing, the rule and the way out, so it is passed on as it is.

use std::fmt;

/// What went wrong, by who must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request breaks a rule: change it.
    Caller,
    /// The database, document or index does not exist.
    Missing,
    /// Somebody else wrote first: load again and decide.
    Conflict,
    /// The server has too much to do, or the time is up: ask again later.
    Busy,
    /// The server can't be reached, or broke off before it answered.
    Unreachable,
    /// This server does not have what was asked for.
    Unsupported,
    /// The server failed, or answered what the client does not understand.
    Internal,
}

/// Why the client could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No connection to any of the URLs could be made: the request was not carried out.
    #[error("cannot reach {url}: {reason}; is a server running there?")]
    NotSent {
        /// The URL that was tried last.
        url: String,
        /// Why it failed.
        reason: String,
    },
    /// The connection broke before the answer: nobody knows whether the request was carried out.
    #[error("{url} broke off before it answered, so nobody knows whether it did what it was asked: {reason}")]
    Unanswered {
        /// The server.
        url: String,
        /// Why it failed.
        reason: String,
    },
    /// The server said no.
    #[error("{0}")]
    Refused(Refusal),
    /// The server answered something that is no answer to the request.
    #[error("the answer to {request} can't be read: {reason}")]
    Answer {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value can't be written as a document, or a document can't be read as the type that was asked for.
    #[error("document '{id}' and the type {type_name} don't fit: {reason}")]
    Document {
        /// The document's id; empty where it has none yet.
        id: String,
        /// The Rust type.
        type_name: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// A handle of another session was used, or of an entity that this session has let go.
    #[error(
        "the handle of a {type_name} is not of this session, or its entity was deleted or evicted; load or store it here first"
    )]
    Handle {
        /// The Rust type.
        type_name: &'static str,
    },
    /// The call breaks a rule of the client.
    #[error("{0}")]
    Usage(String),
    /// The store was closed.
    #[error("the document store is closed; open another one")]
    Closed,
}

/// A server's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The name by which RavenDB's clients tell errors apart (`Raven.Client.Exceptions.ConcurrencyException`); empty where the
    /// answer has none.
    pub type_name: String,
    /// The server's own words.
    pub message: String,
    /// Whether it is the database that does not exist.
    pub database_missing: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Refusal {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.status {
            _ if self.database_missing => ErrorKind::Missing,
            404 | 410 => ErrorKind::Missing,
            409 | 412 => ErrorKind::Conflict,
            408 | 429 | 503 => ErrorKind::Busy,
            501 => ErrorKind::Unsupported,
            502 | 504 => ErrorKind::Unreachable,
            _ if self.type_name.ends_with("TimeoutException") => ErrorKind::Busy,
            400..=499 => ErrorKind::Caller,
            _ => ErrorKind::Internal,
        }
    }
}

impl ClientError {
    /// Who must act.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotSent { .. } | Self::Unanswered { .. } => ErrorKind::Unreachable,
            Self::Refused(refusal) => refusal.kind(),
            Self::Answer { .. } => ErrorKind::Internal,
            Self::Document { .. } | Self::Handle { .. } | Self::Usage(_) | Self::Closed => ErrorKind::Caller,
        }
    }

    /// Whether the server refused a write because a document is not in the version that was expected.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, type_name: &str) -> Refusal {
        Refusal { status, type_name: type_name.to_owned(), message: "m".to_owned(), database_missing: false }
    }

    #[test]
    fn a_refusal_says_who_must_act() {
        for (status, kind) in [
            (400, ErrorKind::Caller),
            (404, ErrorKind::Missing),
            (409, ErrorKind::Conflict),
            (413, ErrorKind::Caller),
            (500, ErrorKind::Internal),
            (501, ErrorKind::Unsupported),
            (503, ErrorKind::Busy),
        ] {
            assert_eq!(refusal(status, "").kind(), kind, "{status}");
        }
        assert_eq!(refusal(500, "System.TimeoutException").kind(), ErrorKind::Busy);
        assert_eq!(Refusal { database_missing: true, ..refusal(503, "") }.kind(), ErrorKind::Missing);
    }
}
