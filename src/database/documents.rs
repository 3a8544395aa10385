//! One document at a time, for programs that embed a database.

use serde::Serialize;

use super::{Database, DatabaseError, Write};
use crate::id::DocumentId;
use crate::store::StoreError;
use crate::store::commit::{Expected, OperationResult};
use crate::store::document::{Document, DocumentError, StoredDocument};

/// What a put did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The document's id, finished.
    pub id: String,
    /// The etag of this write.
    pub etag: u64,
    /// The version, for optimistic concurrency.
    pub change_vector: String,
}

impl Database {
    /// Puts one document; blocks until it is durable. `id` in any form: `orders/7`, `orders/` (server-side), `orders|`
    /// (identity), `""` (GUID). The collection is what `@metadata.@collection` says.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub fn put(&self, id: &str, document: &impl Serialize) -> Result<Written, DatabaseError> {
        let json = serde_json::to_vec(document)
            .map_err(|error| StoreError::from(DocumentError::Json { detail: error.to_string() }))?;
        let parsed = Document::parse(&json).map_err(StoreError::from)?;
        let id = Some(id.to_owned());
        let write = Write::Put { id, document: parsed.document, expected: Expected::Any };
        let committed = self.write(vec![write])?;
        match committed.results.into_iter().next() {
            Some(OperationResult::Put { id, etag, change_vector, .. }) => Ok(Written { id, etag, change_vector }),
            _ => Err(StoreError::Closed("the commit gave no answer".to_owned()).into()),
        }
    }

    /// Reads one document, a user's or an artificial one.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn get(&self, id: &str) -> Result<Option<StoredDocument>, DatabaseError> {
        let id = DocumentId::existing(id).map_err(StoreError::from)?;
        Ok(self.store.snapshot().get(&id)?)
    }

    /// Deletes one document; blocks until that is durable. `false`: there was none.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub fn delete(&self, id: &str) -> Result<bool, DatabaseError> {
        let committed = self.write(vec![Write::Delete { id: id.to_owned(), expected: Expected::Any }])?;
        Ok(committed.results.iter().any(|result| matches!(result, OperationResult::Delete { existed: true, .. })))
    }

    /// Lists the documents of one collection, in the order in which they were last written, oldest first.
    ///
    /// # Errors
    /// Where the storage fails.
    ///
    /// # Cost
    /// Holds all of them in memory; for large collections read a snapshot's changes.
    pub fn collection(&self, name: &str) -> Result<Vec<StoredDocument>, DatabaseError> {
        use crate::store::changes::{ChangeKind, Feed};
        use crate::store::scan::Direction;

        let snapshot = self.store.snapshot();
        let feed = Feed::Collection(name.to_owned());
        let mut documents = Vec::new();
        for change in snapshot.changes(&feed, 0, snapshot.progress().written, Direction::Forward) {
            let change = change?;
            if change.kind == ChangeKind::Put {
                documents.extend(snapshot.get(&DocumentId::stored(&change.id))?);
            }
        }
        Ok(documents)
    }
}
