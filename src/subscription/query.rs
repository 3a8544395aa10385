//! Which documents: RavenDB's `from Collection [(options)] [as alias]`, as its clients write it.
//!
//! What follows (`where`, `select`, `include`, …) is refused by name; `filter` is the place where conditions come in.

use crate::store::changes::Feed;
use crate::store::collections;

/// What a subscription's query says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// The documents.
    pub(crate) feed: Feed,
    /// `(Deletes = true)`.
    pub(crate) include_deletes: bool,
    /// `(Previous = true)`.
    pub(crate) include_previous: bool,
}

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    /// It is no query.
    #[error("{0}")]
    Syntax(String),
    /// It asks for something that subscriptions do not have, by name.
    #[error("{0}")]
    Unsupported(String),
}

/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 64 * 1024;

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// It is no query, or asks for what subscriptions do not have.
    pub(crate) fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > QUERY_BYTES_MAX {
            let message = format!("the query is {} bytes long, the limit is {QUERY_BYTES_MAX}", text.len());
            return Err(QueryError::Syntax(message));
        }
        let mut words = Words { text, at: 0 };
        match words.next()? {
            Some(Word::Name(word)) if word.eq_ignore_ascii_case("from") => {}
            Some(Word::Name(word)) if word.eq_ignore_ascii_case("declare") => {
                return Err(unsupported("functions declared in the query; give a Rhai script with `fn project(doc)`"));
            }
            _ => return Err(syntax("a subscription's query begins with from, as in: from Orders")),
        }
        let feed = match words.next()? {
            Some(Word::Name(name)) if name.eq_ignore_ascii_case("index") => {
                return Err(unsupported("queries over an index; subscribe to the index's output collection"));
            }
            Some(Word::Name(name) | Word::Quoted(name)) => feed(&name)?,
            _ => return Err(syntax("from is followed by the name of a collection, as in: from Orders")),
        };
        let mut query = Self { feed, include_deletes: false, include_previous: false };
        let mut word = words.next()?;
        if word == Some(Word::Mark('(')) {
            query.read_options(&mut words)?;
            word = words.next()?;
        }
        match word {
            Some(Word::Name(alias)) if alias.eq_ignore_ascii_case("as") => {
                match words.next()? {
                    Some(Word::Name(_)) => {}
                    _ => return Err(syntax("as is followed by a name, as in: from Orders as order")),
                }
                word = words.next()?;
            }
            Some(Word::Name(alias)) if !is_clause(&alias) => word = words.next()?,
            _ => {}
        }
        match word {
            None => Ok(query),
            Some(Word::Name(clause)) if is_clause(&clause) => Err(unsupported(&format!(
                "'{}' in a subscription's query; give a Rhai script with `fn filter(doc)` or `fn project(doc)`",
                clause.to_ascii_lowercase()
            ))),
            Some(_) => Err(syntax("nothing is expected after: from Collection as alias")),
        }
    }

    /// Reads what stands in parentheses behind the collection.
    fn read_options(&mut self, words: &mut Words<'_>) -> Result<(), QueryError> {
        loop {
            let Some(Word::Name(option)) = words.next()? else {
                return Err(syntax("options look like this: from Orders (Deletes = true)"));
            };
            let mark = words.next()?;
            let value = match (mark, words.next()?) {
                (Some(Word::Mark('=')), Some(Word::Name(value))) if value.eq_ignore_ascii_case("true") => true,
                (Some(Word::Mark('=')), Some(Word::Name(value))) if value.eq_ignore_ascii_case("false") => false,
                _ => return Err(syntax("options look like this: from Orders (Deletes = true)")),
            };
            match option.to_ascii_lowercase().as_str() {
                "deletes" => self.include_deletes = value,
                "previous" => self.include_previous = value,
                "revisions" if value => {
                    return Err(unsupported(
                        "(Revisions = true): revisions; (Previous = true) gives what a consumer saw before, (Deletes = true) deletions",
                    ));
                }
                "revisions" => {}
                _ => return Err(syntax(&format!("there is no option '{option}'; there are Deletes and Previous"))),
            }
            match words.next()? {
                Some(Word::Mark(',')) => {}
                Some(Word::Mark(')')) => return Ok(()),
                _ => return Err(syntax("a ) is missing after the options")),
            }
        }
    }
}

fn feed(name: &str) -> Result<Feed, QueryError> {
    if name.eq_ignore_ascii_case("@all_docs") {
        return Ok(Feed::All);
    }
    collections::check_name(name).map_err(|error| QueryError::Syntax(error.to_string()))?;
    Ok(Feed::Collection(name.to_owned()))
}

fn is_clause(word: &str) -> bool {
    const CLAUSES: [&str; 9] = ["where", "select", "include", "order", "group", "load", "limit", "filter", "update"];
    CLAUSES.iter().any(|clause| word.eq_ignore_ascii_case(clause))
}

fn syntax(message: &str) -> QueryError {
    QueryError::Syntax(message.to_owned())
}

fn unsupported(what: &str) -> QueryError {
    QueryError::Unsupported(what.to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Name(String),
    Quoted(String),
    Mark(char),
}

/// The words of a query, one after the other.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Word>, QueryError> {
        let rest = self.text.get(self.at..).unwrap_or("");
        let word = rest.trim_start();
        self.at += rest.len() - word.len();
        let Some(first) = word.chars().next() else { return Ok(None) };
        if first == '\'' || first == '"' {
            return self.quoted(first).map(|name| Some(Word::Quoted(name)));
        }
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '-' | '/' | '.');
        if !is_name(first) {
            self.at += first.len_utf8();
            return Ok(Some(Word::Mark(first)));
        }
        let name: String = word.chars().take_while(|c| is_name(*c)).collect();
        self.at += name.len();
        Ok(Some(Word::Name(name)))
    }

    /// A name in quotes, in which a backslash, or the quote itself doubled, gives the character behind it.
    fn quoted(&mut self, quote: char) -> Result<String, QueryError> {
        let mut name = String::new();
        let mut rest = self.text.get(self.at + 1..).unwrap_or("").chars().peekable();
        self.at += 1;
        while let Some(character) = rest.next() {
            self.at += character.len_utf8();
            let is_doubled = character == quote && rest.peek() == Some(&quote);
            if character == quote && !is_doubled {
                return Ok(name);
            }
            if character == '\\' || is_doubled {
                let Some(escaped) = rest.next() else { break };
                self.at += escaped.len_utf8();
                name.push(escaped);
            } else {
                name.push(character);
            }
        }
        Err(syntax(&format!("a name in quotes does not end: {quote}{name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(text: &str) -> Feed {
        Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).feed
    }

    #[test]
    fn what_clients_write_is_read() {
        for text in [
            "from Orders",
            "FROM 'Orders' as doc",
            " from \"Orders\"\n\tas d ",
            "from Orders o",
            "from Orders (Revisions = false) as x",
        ] {
            assert_eq!(collection(text), Feed::Collection("Orders".into()), "{text}");
        }
        assert_eq!(collection("from 'It''s \\'mine\\''"), Feed::Collection("It's 'mine'".into()));
        assert_eq!(collection("from @all_docs"), Feed::All);
        assert_eq!(collection("from @empty"), Feed::Collection("@empty".into()));
        assert_eq!(collection("from 'from'"), Feed::Collection("from".into()));
    }

    #[test]
    fn deletions_and_former_versions_are_options() {
        let query = Query::parse("from Totals (Deletes = true, previous=TRUE) as t").unwrap();
        assert!(query.include_deletes && query.include_previous);
        assert!(!Query::parse("from Totals (Deletes = false)").unwrap().include_deletes);
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (text, words) in [
            ("from Orders as o where o.Total > 3", "'where'"),
            ("from Orders select Name", "'select'"),
            ("from Orders include Customer", "'include'"),
            ("from Orders (Revisions = true) as o", "revisions"),
            ("from index 'Orders/Totals'", "index"),
            ("declare function f(o) { return o; } from Orders as o select f(o)", "declared"),
        ] {
            match Query::parse(text) {
                Err(QueryError::Unsupported(message)) => assert!(message.contains(words), "{message}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_query_is_refused() {
        for text in [
            "",
            "frm Orders",
            "from",
            "from 'Orders",
            "from Orders (",
            "from Orders (Deletes)",
            "from Orders as",
            "from Orders (Deletes = 1)",
            "from Orders (X = true)",
            "from Orders as a b",
            "from @mine",
            "from ''",
            "from Orders ;",
        ] {
            assert!(matches!(Query::parse(text), Err(QueryError::Syntax(_))), "{text}");
        }
    }
}
