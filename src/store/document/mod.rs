//! A JSON document on its way in, and as it is stored.
//!
//! `parse` checks the caller's text and takes it apart into collection, metadata and body; `render` puts the text for clients
//! together again. Between them no number and no string is ever rewritten.
//!
//! Next on the walk: `parse`, then `commit`.

mod check;
mod parse;
mod properties;
mod render;

pub(crate) use properties::Properties;
pub use render::last_modified;

use super::StoreError;
use super::codec::{self, DocumentHeader, DocumentRecord};
use super::keyspace::Family;

/// A document that was checked and can be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// `@metadata.@collection`, `@empty` where there is none.
    pub collection: String,
    /// The user's own metadata as the text of a JSON object: without `@collection` and the keys that the server sets.
    pub metadata: String,
    /// The text of the JSON object without `@metadata`; each property as the caller wrote it.
    pub body: String,
}

/// A checked document and the id that stood inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedDocument {
    /// The document.
    pub document: Document,
    /// `@metadata.@id`, where the body had one; compare it with the path.
    pub id: Option<String>,
}

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, JSON that parsers disagree on, or not a document.
    #[error("the document is not valid JSON: {detail}")]
    Json {
        /// What is wrong, with line and column.
        detail: String,
    },
    /// The name of a collection breaks a rule.
    #[error("collection '{name}' is refused: {rule}")]
    Collection {
        /// The name, cut to 80 characters.
        name: String,
        /// The rule, and the way out.
        rule: String,
    },
}

impl Document {
    /// Checks the JSON text of a document and takes it apart.
    ///
    /// Refused: text that is not one JSON object, an `@metadata` that is no object, a `@collection` or `@id` that is no string,
    /// duplicate keys at any depth, nesting over 127, numbers beyond f64 (`1e400`), lone surrogates, text after the object, a
    /// byte order mark. `@id`, `@change-vector`, `@last-modified`, `@etag`, `@flags`, `@index-score` and `@projection` are
    /// dropped from `@metadata`; the user's own keys are kept.
    ///
    /// ```
    /// use treepie::store::document::Document;
    ///
    /// let parsed = Document::parse(br#"{"Name":"Jo","Price":1.10,"@metadata":{"@collection":"Users"}}"#)?;
    /// assert_eq!(parsed.document.collection, "Users");
    /// assert_eq!(parsed.document.body, r#"{"Name":"Jo","Price":1.10}"#);
    /// # Ok::<(), treepie::store::document::DocumentError>(())
    /// ```
    ///
    /// # Cost
    /// One pass over the text and one copy; `@metadata` is passed over twice.
    ///
    /// # Errors
    /// A [`DocumentError`] that says what is wrong, with line and column.
    pub fn parse(json: &[u8]) -> Result<ParsedDocument, DocumentError> {
        parse::parse(json)
    }
}

/// What is special about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DocumentFlags {
    /// Written by an index: `@flags` is `Artificial, FromIndex`.
    pub artificial: bool,
}

impl DocumentFlags {
    const ARTIFICIAL: u8 = 1;

    pub(super) fn encode(self) -> u8 {
        if self.artificial { Self::ARTIFICIAL } else { 0 }
    }

    fn decode(bits: u8) -> Self {
        Self { artificial: bits & Self::ARTIFICIAL != 0 }
    }
}

/// A document as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    /// The id as last written.
    pub id: String,
    /// The etag of the last write.
    pub etag: u64,
    /// `A:<etag>-<incarnation>`.
    pub change_vector: String,
    /// The collection, spelled as in this document.
    pub collection: String,
    /// The time of the last write, microseconds since 1970 (UTC).
    pub modified_micros: i64,
    /// What is special about it.
    pub flags: DocumentFlags,
    /// See [`Document::metadata`].
    pub metadata: String,
    /// See [`Document::body`].
    pub body: String,
}

impl StoredDocument {
    /// Decodes a row of `documents`.
    pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let DocumentRecord { header, metadata, body } =
            codec::decode_borrowed(value).map_err(|error| StoreError::corrupt(Family::Documents, key, error))?;
        let DocumentHeader { etag, collection: _, modified_micros, flags, change_vector, collection_name, id } = header;
        Ok(Self {
            id: id.to_owned(),
            etag,
            change_vector: change_vector.to_owned(),
            collection: collection_name.to_owned(),
            modified_micros,
            flags: DocumentFlags::decode(flags),
            metadata: metadata.to_owned(),
            body: body.to_owned(),
        })
    }
}
