//! RQL, read by recursive descent over tokens.
//!
//! `token` cuts the text with `winnow`; the grammar stands here by hand, because each error must name the word that stands
//! there, its place and the way out, also for words that RavenDB has and Treepie has not, and the depth must have a bound.
//! Keywords are known by their place and read without regard to case; a name that is a keyword goes into quotes.
//!
//! Next: `clauses`, then `bind`.

mod clauses;
mod condition;
mod subject;

use super::error::{Position, QueryError};
use super::syntax::Query;
use super::token::{Token, What, tokens};

/// The most bytes of a query's text; long lists of values belong into parameters.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;

/// How deep conditions may be nested.
const DEPTH_MAX: usize = 64;

/// Words that begin or join clauses, and so name nothing without quotes.
const RESERVED: [&str; 25] = [
    "from", "where", "order", "group", "by", "select", "include", "limit", "offset", "and", "or", "not", "in",
    "between", "as", "true", "false", "null", "distinct", "all", "asc", "desc", "load", "filter", "update",
];

/// Reads a query.
///
/// # Errors
/// What is wrong, with line and column; what RavenDB has and Treepie has not, by name.
///
/// # Cost
/// O(length of the text).
pub fn parse(text: &str) -> Result<Query, QueryError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(QueryError::Rule(format!(
            "the query has {} bytes, and may have {TEXT_BYTES_MAX}; give long lists of values as a parameter: in ($values)",
            text.len()
        )));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, alias: None, depth: 0 };
    parser.query()
}

/// Whether a word is a keyword of RQL.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// A place in the tokens of a query.
struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    next: usize,
    /// What the query calls its documents.
    alias: Option<String>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&What> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&What> {
        self.tokens.get(self.next + ahead).map(|token| &token.what)
    }

    fn is_word(&self, ahead: usize, wanted: &str) -> bool {
        matches!(self.peek_at(ahead), Some(What::Word(word)) if word.eq_ignore_ascii_case(wanted))
    }

    fn is_symbol(&self, ahead: usize, wanted: &str) -> bool {
        matches!(self.peek_at(ahead), Some(What::Symbol(symbol)) if *symbol == wanted)
    }

    /// Takes a keyword, where it stands here.
    fn take_word(&mut self, wanted: &str) -> bool {
        let found = self.is_word(0, wanted);
        self.next += usize::from(found);
        found
    }

    /// Takes a symbol, where it stands here.
    fn take_symbol(&mut self, wanted: &str) -> bool {
        let found = self.is_symbol(0, wanted);
        self.next += usize::from(found);
        found
    }

    fn expect_word(&mut self, wanted: &str, place: &str) -> Result<(), QueryError> {
        if self.take_word(wanted) { Ok(()) } else { Err(self.unexpected(&format!("'{wanted}' {place}"))) }
    }

    fn expect_symbol(&mut self, wanted: &str, place: &str) -> Result<(), QueryError> {
        if self.take_symbol(wanted) { Ok(()) } else { Err(self.unexpected(&format!("'{wanted}' {place}"))) }
    }

    /// Where the next token begins; the end of the text where there is none.
    fn position(&self) -> Position {
        Position::of(self.text, self.tokens.get(self.next).map_or(self.text.trim_end().len(), |token| token.at))
    }

    /// The refusal of what stands here.
    fn unexpected(&self, expected: &str) -> QueryError {
        let found = match self.peek() {
            None => "the query ends".to_owned(),
            Some(What::Word(word)) if is_reserved(word) => {
                format!("'{word}' stands here (a property of this name is written in quotes)")
            }
            Some(What::Word(word)) => format!("'{word}' stands here"),
            Some(What::Quoted(text)) => format!("the string '{}' stands here", crate::id::cut(text)),
            Some(What::Number(number)) => format!("the number {} stands here", crate::id::cut(number)),
            Some(What::Parameter(name)) => format!("the parameter ${name} stands here"),
            Some(What::Symbol(symbol)) => format!("'{symbol}' stands here"),
        };
        QueryError::Syntax { at: self.position(), message: format!("Expected {expected}, but {found}") }
    }

    /// The refusal of something that RavenDB has.
    fn unsupported(&self, what: impl Into<String>) -> QueryError {
        QueryError::Unsupported { at: self.position(), what: what.into() }
    }

    /// Reads something one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, QueryError>) -> Result<T, QueryError> {
        if self.depth >= DEPTH_MAX {
            let message = format!("Conditions are nested more than {DEPTH_MAX} deep; use 'in' for many values");
            return Err(QueryError::Syntax { at: self.position(), message });
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads a list with commas between its items.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, QueryError>) -> Result<Vec<T>, QueryError> {
        let mut items = vec![item(self)?];
        while self.take_symbol(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }
}
