//! A record as a command of `bulk_docs`: its id, its collection.
//!
//! Next on the walk: `batch`.

use super::id::IdPlan;
use crate::cli::json::{self, Members};

/// What is done to every document.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    ids: IdPlan,
    collection: Option<String>,
    /// `"@metadata":{"@collection":"Orders"}`, for documents without metadata.
    metadata: String,
}

impl Shape {
    pub(super) fn new(ids: IdPlan, collection: Option<String>) -> Self {
        let mut metadata = String::new();
        if let Some(collection) = &collection {
            metadata.push_str("\"@metadata\":{\"@collection\":");
            json::push_string(&mut metadata, collection);
            metadata.push('}');
        }
        Self { ids, collection, metadata }
    }

    /// Appends the command that stores `document` to `body`, and tells the id it asks for; `None` for a GUID.
    ///
    /// # Errors
    /// The text is no JSON object, or gives no id; `body` is left as it was.
    pub(super) fn push_command(&self, document: &str, body: &mut String) -> Result<Option<String>, String> {
        let members = Members::parse(document).map_err(|error| {
            // The document is one line, and the caller names that line of the file.
            format!("it is no JSON object: {error}").replace(" at line 1 column ", " at column ")
        })?;
        let id = self.ids.of(&members)?;
        let rewritten = match members.get("@metadata") {
            Some(_) => json::with_metadata(document, self.collection.as_deref(), true)
                .map_err(|error| format!("its @metadata is no object: {error}"))?,
            None => String::new(),
        };
        body.push_str("{\"Type\":\"PUT\",\"Id\":");
        match &id {
            Some(id) => json::push_string(body, id),
            None => body.push_str("null"),
        }
        body.push_str(",\"ChangeVector\":null,\"Document\":");
        if !rewritten.is_empty() {
            body.push_str(&rewritten);
        } else if self.metadata.is_empty() {
            body.push_str(document);
        } else {
            let inside = document.strip_prefix('{').unwrap_or_default();
            body.push('{');
            body.push_str(&self.metadata);
            if !members.0.is_empty() {
                body.push(',');
            }
            body.push_str(inside);
        }
        body.push('}');
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(shape: &Shape, document: &str) -> Result<String, String> {
        let mut body = String::new();
        shape.push_command(document, &mut body).map(|_| body)
    }

    #[test]
    fn a_document_is_passed_on_as_it_is() {
        let shape = Shape::new(IdPlan::Guid, None);
        assert_eq!(
            command(&shape, r#"{"n": 1.00}"#).as_deref(),
            Ok(r#"{"Type":"PUT","Id":null,"ChangeVector":null,"Document":{"n": 1.00}}"#)
        );
    }

    #[test]
    fn a_collection_is_added_with_or_without_other_metadata() {
        let shape = Shape::new(IdPlan::Own, Some("C".to_owned()));
        for (document, expected) in [
            (r#"{"n":1}"#, r#""Id":null,"ChangeVector":null,"Document":{"@metadata":{"@collection":"C"},"n":1}}"#),
            ("{}", r#""Id":null,"ChangeVector":null,"Document":{"@metadata":{"@collection":"C"}}}"#),
            (
                r#"{"@metadata":{"@id":"x","k":1},"n":1}"#,
                r#""Id":"x","ChangeVector":null,"Document":{"n":1,"@metadata":{"@collection":"C","k":1}}}"#,
            ),
        ] {
            assert_eq!(command(&shape, document), Ok(format!(r#"{{"Type":"PUT",{expected}"#)));
        }
    }

    #[test]
    fn a_refused_record_leaves_the_body_alone() {
        let shape = Shape::new(IdPlan::Own, None);
        let mut body = "before".to_owned();
        for document in ["[1]", "{\"a\":1} 2", "{\"a\":}", "{\"@metadata\":[]}", "{\"id\":1}"] {
            assert!(shape.push_command(document, &mut body).is_err(), "{document}");
        }
        assert_eq!(body, "before");
    }
}
