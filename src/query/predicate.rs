//! A query as a filter of documents alone: what subscriptions ask of each document.

use std::borrow::Cow;

use super::bind::{Parameters, bind};
use super::error::QueryError;
use super::filter::Test;
use super::parse::parse;
use super::row::Row;
use super::syntax::From;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::document::{Document, DocumentFlags};

    fn order(json: &str) -> StoredDocument {
        let Document { collection, metadata, body } = Document::parse(json.as_bytes()).unwrap().document;
        StoredDocument {
            id: "Orders/1".into(),
            etag: 7,
            change_vector: "A:7-x".into(),
            collection,
            modified_micros: 0,
            flags: DocumentFlags::default(),
            metadata,
            body,
        }
    }

    #[test]
    fn documents_are_chosen_by_conditions_with_parameters() {
        let parameters = Parameters::parse(r#"{"least":5}"#).unwrap();
        let text =
            "from 'Orders' as o where o.Total >= $least and o.@metadata.Kind = 'a' and startsWith(id(), 'orders/')";
        let predicate = Predicate::parse(text, &parameters).unwrap();
        assert_eq!(predicate.feed(), &Feed::Collection("Orders".to_owned()));
        assert!(predicate.matches(&order(r#"{"Total":5.0,"@metadata":{"Kind":"a"}}"#)));
        assert!(!predicate.matches(&order(r#"{"Total":4,"@metadata":{"Kind":"a"}}"#)));
        assert!(!predicate.matches(&order(r#"{"Total":5}"#)));
    }

    #[test]
    fn what_shapes_an_answer_chooses_no_documents() {
        for (text, clause) in [
            ("from Orders limit 5", "limit"),
            ("from Orders order by Total", "order by"),
            ("from Orders select Total", "select"),
            ("from Orders include Company", "include"),
            ("from index Orders", "from index"),
        ] {
            let error = Predicate::parse(text, &Parameters::default()).unwrap_err().to_string();
            assert!(error.contains(clause), "{text}: {error}");
        }
    }
}
