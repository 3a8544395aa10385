//! What a subscription hands to its workers, before it takes the shape of a protocol.

use crate::store::changes::Run;
use crate::store::document::StoredDocument;

/// One change on its way to a worker.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// The etag of the write or deletion.
    pub(crate) etag: u64,
    /// Its change vector.
    pub(crate) change_vector: String,
    /// The id as last written.
    pub(crate) id: String,
    /// The collection, spelled as when it was first used.
    pub(crate) collection: String,
    /// The run of the index that wrote it.
    pub(crate) run: Option<Run>,
    /// What is told.
    pub(crate) news: News,
    /// The version that this subscription had seen, where it was asked for and there was one.
    pub(crate) previous: Option<Shaped>,
}

/// What is told about a document.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// It was written.
    Written(Shaped),
    /// It was deleted.
    Deleted,
    /// It was written, and the script failed on it.
    Failed(StoredDocument, String),
}

/// A document, and the JSON that a script made of it.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    /// As stored.
    pub(crate) document: StoredDocument,
    /// The text of an object that stands in place of its properties.
    pub(crate) projection: Option<String>,
}

impl Delivery {
    /// Bytes, about.
    pub(super) fn bytes(&self) -> usize {
        const ROW: usize = 256;
        let shaped = |shaped: &Shaped| {
            let body = shaped.projection.as_ref().unwrap_or(&shaped.document.body);
            body.len() + shaped.document.metadata.len()
        };
        let news = match &self.news {
            News::Written(written) => shaped(written),
            News::Deleted => 0,
            News::Failed(_, fault) => fault.len(),
        };
        ROW + self.id.len() + news + self.previous.as_ref().map_or(0, shaped)
    }
}
