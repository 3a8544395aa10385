//! Includes: documents that a document names by id, sent along with it.
//!
//! A path is property names with `.` between them; arrays on the way fan out (`Lines.Product`, `Lines[].Product`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::ApiError;
use super::query::Query;
use super::stream::{Ended, Sink};
use super::wire::text::write_string;
use crate::id::DocumentId;
use crate::store::document::StoredDocument;
use crate::store::snapshot::Snapshot;

/// The paths of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Includes {
    paths: Vec<Vec<String>>,
    max: usize,
}

/// The documents that were named so far, by lower-case id.
#[derive(Debug, Default)]
pub(crate) struct Named {
    ids: BTreeMap<String, DocumentId>,
}

impl Includes {
    /// Reads the `include` parameters.
    ///
    /// # Errors
    /// 501 for forms that are not plain paths: prefixes and suffixes in parentheses, `$…`.
    pub(crate) fn read(query: &Query, max: usize) -> Result<Self, ApiError> {
        let mut paths = Vec::new();
        for path in query.all("include").filter(|path| !path.is_empty()) {
            if path.replace("[]", "").contains(['(', ')', '$', '[']) {
                return Err(ApiError::unsupported(&format!("the include '{path}', only paths of property names")));
            }
            let names = path.split('.').map(|name| name.trim_end_matches("[]").to_owned());
            paths.push(names.collect());
        }
        Ok(Self { paths, max })
    }

    /// Whether nothing is to be included.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Collects the ids that `document` names.
    ///
    /// # Errors
    /// There are more than `includes_max`.
    pub(crate) fn collect(&self, document: &StoredDocument, named: &mut Named) -> Result<(), ApiError> {
        if self.paths.is_empty() {
            return Ok(());
        }
        let body: Value = serde_json::from_str(&document.body).map_err(|error| {
            ApiError::internal(format!("Document '{}' can't be read as JSON: {error}", document.id))
        })?;
        for path in &self.paths {
            let mut found = Vec::new();
            walk(&body, path, &mut found);
            for id in found {
                named.add(id, self.max)?;
            }
        }
        Ok(())
    }
}

impl Named {
    /// Adds what may be an id; what is none names no document.
    ///
    /// # Errors
    /// There are more than `max`.
    pub(crate) fn add(&mut self, id: &str, max: usize) -> Result<(), ApiError> {
        if let Ok(id) = DocumentId::existing(id) {
            self.ids.entry(id.lower().to_owned()).or_insert(id);
        }
        if self.ids.len() > max {
            let message = format!("The answer would include more than {max} documents (includes_max).");
            return Err(ApiError::argument(message));
        }
        Ok(())
    }

    /// Writes `{"id":{…}|null,…}`.
    pub(crate) fn write(self, snapshot: &Snapshot<'_>, sink: &mut Sink) -> Result<(), Ended> {
        sink.buffer.push(b'{');
        for (position, id) in self.ids.into_values().enumerate() {
            if position > 0 {
                sink.buffer.push(b',');
            }
            write_string(id.as_str(), &mut sink.buffer);
            sink.buffer.push(b':');
            match snapshot.get(&id)? {
                Some(document) => document.write_json(&mut sink.buffer),
                None => sink.buffer.extend_from_slice(b"null"),
            }
            sink.send_if_full()?;
        }
        sink.buffer.push(b'}');
        Ok(())
    }
}

fn walk<'a>(value: &'a Value, path: &[String], found: &mut Vec<&'a str>) {
    match (value, path.split_first()) {
        (Value::Array(items), _) => items.iter().for_each(|item| walk(item, path, found)),
        (Value::Object(fields), Some((name, rest))) => {
            if let Some(field) = fields.get(name) {
                walk(field, rest, found);
            }
        }
        (Value::String(id), None) => found.push(id),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fan_out_over_arrays() {
        let body =
            serde_json::json!({"Company": "c/1", "Lines": [{"Product": "p/1"}, {"Product": ["p/2", 3, null]}, 4]});
        let find = |path: &str| {
            let query = Query::parse(&format!("include={path}")).unwrap();
            let includes = Includes::read(&query, 10).unwrap();
            let mut found = Vec::new();
            walk(&body, includes.paths.first().unwrap(), &mut found);
            found.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(find("Company"), ["c/1"]);
        assert_eq!(find("Lines.Product"), ["p/1", "p/2"]);
        assert_eq!(find("Lines[].Product"), ["p/1", "p/2"]);
        assert_eq!(find("Nothing.Here"), [""; 0]);
    }

    #[test]
    fn other_forms_are_refused_by_name() {
        for form in ["Company(companies/)", "$rev", "Lines[0].Product"] {
            let query = Query::parse(&format!("include={form}")).unwrap();
            let error = Includes::read(&query, 10).unwrap_err();
            assert_eq!(error.status().as_u16(), 501);
            assert!(error.message().contains(form));
        }
    }
}
