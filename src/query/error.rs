//! Why a query has no answer, and who must act.

use std::fmt;

use crate::id::IdError;
use crate::store::StoreError;

/// A place in the text of a query, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is no query.
    #[error("{at} {message}")]
    Syntax {
        /// Where.
        at: Position,
        /// What is wrong there, and the way out.
        message: String,
    },
    /// RavenDB has it, Treepie has not.
    #[error("{at} Treepie does not support {what}")]
    Unsupported {
        /// Where.
        at: Position,
        /// What stands there.
        what: String,
    },
    /// The query breaks a rule, or a parameter is missing or of the wrong kind.
    #[error("{0}")]
    Rule(String),
    /// It needs more memory than one query may have.
    #[error("{0}")]
    TooLarge(String),
    /// There is no such index.
    #[error("there is no index '{name}'")]
    NoIndex {
        /// As asked for.
        name: String,
    },
    /// An index was replaced, or deleted, between the beginning of a query and its reading.
    #[error("index '{name}' was replaced while the query began; ask again")]
    Replaced {
        /// As its author spelled it.
        name: String,
    },
    /// Nobody waits for the answer any more.
    #[error("the query was given up")]
    Cancelled,
    /// An id breaks a rule.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Position {
    /// The position of a byte of `text`.
    pub(crate) fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for Position {
    /// As RavenDB writes it: `1:40`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
