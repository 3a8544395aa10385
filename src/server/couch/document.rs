//! Documents as CouchDB's clients read them: `_id` and `_rev` first, then what RavenDB's clients read.
//!
//! The change vector stands for the revision. A document's own `_id` and `_rev`, of one that was copied from CouchDB, stay in
//! the store and are not shown twice.

use crate::server::wire::text::write_string;
use crate::store::StoreError;
use crate::store::document::{Properties, StoredDocument};

/// Appends a document, without line breaks between its values: rows end with one.
///
/// # Errors
/// Its stored text can't be read.
pub(super) fn write_document(document: &StoredDocument, into: &mut Vec<u8>) -> Result<(), StoreError> {
    let begun = into.len();
    into.extend_from_slice(b"{\"_id\":");
    write_string(&document.id, into);
    into.extend_from_slice(b",\"_rev\":");
    write_string(&document.change_vector, into);
    let place = into.len();
    if may_have_own(&document.body) {
        let body = Properties::read(&document.body)?.without(&["_id", "_rev"]);
        StoredDocument { body, ..document.clone() }.write_json(into);
    } else {
        document.write_json(into);
    }
    // Its metadata makes sure that something follows.
    if let Some(brace) = into.get_mut(place) {
        *brace = b',';
    }
    into.iter_mut().skip(begun).filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    Ok(())
}

/// Appends what is left of a document that was deleted.
pub(super) fn write_deleted(id: &str, rev: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"_id\":");
    write_string(id, into);
    into.extend_from_slice(b",\"_rev\":");
    write_string(rev, into);
    into.extend_from_slice(b",\"_deleted\":true}");
}

/// Whether a property may be called `_id` or `_rev`, with escapes too.
fn may_have_own(body: &str) -> bool {
    body.contains("\"_id\"") || body.contains("\"_rev\"") || body.contains("\\u00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::document::DocumentFlags;

    fn written(body: &str) -> serde_json::Value {
        let document = StoredDocument {
            id: "a\"b".to_owned(),
            etag: 4,
            change_vector: "A:4-x".to_owned(),
            collection: "Users".to_owned(),
            modified_micros: 0,
            flags: DocumentFlags::default(),
            metadata: "{}".to_owned(),
            body: body.to_owned(),
        };
        let mut json = Vec::new();
        write_document(&document, &mut json).unwrap();
        assert!(!json.contains(&b'\n'));
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn a_document_has_its_id_and_revision_once() {
        for body in ["{}", "{\"n\":1}", "{\n\"_id\":\"old\",\n\"n\":1}", r#"{"\u005fid":1,"_rev":"1-abc"}"#] {
            let json = written(body);
            assert_eq!((json["_id"].as_str(), json["_rev"].as_str()), (Some("a\"b"), Some("A:4-x")), "{body}");
            assert_eq!(json["@metadata"]["@id"], "a\"b");
        }
        assert_eq!(written("{\"n\":1.50}")["n"].to_string(), "1.5");
    }
}
