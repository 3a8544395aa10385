//! A JSON document on its way in, and as it is stored.

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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or JSON that parsers disagree on.
    #[error("the document is not valid JSON: {detail}")]
    Json { detail: String },
}

impl Document {
    /// Checks the JSON text of a document (depth ≤ 127, no duplicate keys, an object, …) and takes it apart.
    pub fn parse(json: &[u8]) -> Result<ParsedDocument, DocumentError> {
        todo!()
    }
}

/// What is special about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DocumentFlags {
    /// Written by an index: `@flags` is `Artificial, FromIndex`.
    pub artificial: bool,
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
    /// Appends the document as clients read it: its properties, then `@metadata` with `@collection`, the user's own keys, `@flags`, `@id`, `@change-vector`, `@last-modified`.
    pub fn write_json(&self, into: &mut Vec<u8>) {
        todo!()
    }

    /// Appends only `{"@metadata":{…}}`.
    pub fn write_metadata_json(&self, into: &mut Vec<u8>) {
        todo!()
    }
}
