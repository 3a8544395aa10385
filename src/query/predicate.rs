//! A query as a filter of documents alone: what subscriptions ask of each document.

use std::borrow::Cow;

use super::bind::{Parameters, bind};
use super::error::QueryError;
use super::parse::parse;
use super::row::Row;
use super::syntax::From;
use super::test::Test;
use crate::store::changes::Feed;
use crate::store::document::StoredDocument;

/// `from Orders as o where o.Total > 5`: which documents, and nothing about their order or shape.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "subscriptions will ask it")]
pub(crate) struct Predicate {
    feed: Feed,
    test: Test,
}

#[allow(dead_code, reason = "subscriptions will ask it")]
impl Predicate {
    /// Reads a query that only chooses documents.
    ///
    /// # Errors
    /// It is no query; it queries an index, or has a clause other than `from` and `where`, named.
    pub(crate) fn parse(text: &str, parameters: &Parameters) -> Result<Self, QueryError> {
        let query = parse(text)?;
        let clauses = [
            ("group by", query.group.is_some()),
            ("order by", !query.order.is_empty()),
            ("select", query.select.is_some()),
            ("include", !query.include.is_empty() || query.timings),
            ("limit", query.limit.is_some() || query.offset.is_some()),
        ];
        if let Some((clause, _)) = clauses.iter().find(|(_, is_there)| *is_there) {
            return Err(QueryError::Rule(format!(
                "'{clause}' has no meaning here; only 'from' and 'where' choose documents"
            )));
        }
        let bound = bind(&query, parameters)?;
        let feed = match bound.from {
            From::Collection(name) => Feed::Collection(name),
            From::AllDocs => Feed::All,
            From::Index(name) => {
                return Err(QueryError::Rule(format!(
                    "'from index '{name}'' has no meaning here; name its output collection: from Collection"
                )));
            }
        };
        Ok(Self { feed, test: bound.filter })
    }

    /// The documents among which it chooses.
    pub(crate) fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Whether it chooses a document of its feed.
    pub(crate) fn matches(&self, document: &StoredDocument) -> bool {
        self.test.matches(&Row::Document(Cow::Borrowed(document)))
    }
}
