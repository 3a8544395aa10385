//! A row as it is answered: a whole document, its metadata, or what `select` shows of it.

use std::collections::BTreeSet;

use super::error::QueryError;
use super::row::Row;
use super::sort::Memory;
use super::syntax::{Field, Select};
use super::value::Value;
use crate::script::json;

/// Appends a row as a JSON object, as RavenDB's clients expect it.
pub(crate) fn write(row: &Row<'_>, select: Option<&Select>, metadata_only: bool, into: &mut Vec<u8>) {
    match (row, row.document(), select) {
        (_, Some(document), _) if metadata_only => document.write_metadata_json(into),
        (_, Some(document), None) => document.write_json(into),
        (Row::Result(result), _, None) => {
            let properties = result.body.trim().strip_suffix('}').unwrap_or("{").trim_end();
            into.extend_from_slice(properties.as_bytes());
            if !properties.ends_with('{') {
                into.push(b',');
            }
            into.extend_from_slice(b"\"@metadata\":{\"@change-vector\":null}}");
        }
        (_, _, select) => {
            into.push(b'{');
            for field in select.map_or(&[][..], |select| select.fields.as_slice()) {
                write_name(field, into);
                row.write_value(&field.value, into);
                into.push(b',');
            }
            write_projected_metadata(row, into);
            into.push(b'}');
        }
    }
}

fn write_name(field: &Field, into: &mut Vec<u8>) {
    let mut name = String::new();
    json::write_string(&field.name(), &mut name);
    into.extend_from_slice(name.as_bytes());
    into.push(b':');
}

/// A document's metadata with a mark that this is not all of it.
fn write_projected_metadata(row: &Row<'_>, into: &mut Vec<u8>) {
    match row.document() {
        Some(document) => {
            let mut metadata = Vec::new();
            document.write_metadata_json(&mut metadata);
            let inside = metadata.strip_prefix(b"{\"@metadata\":{").and_then(|rest| rest.strip_suffix(b"}}"));
            into.extend_from_slice(b"\"@metadata\":{\"@projection\":true,");
            into.extend_from_slice(inside.unwrap_or_default());
            into.push(b'}');
        }
        None => {
            into.extend_from_slice(b"\"@metadata\":{\"@projection\":true,\"@change-vector\":null}");
        }
    }
}

/// Tells rows that show the same from those that were not seen before.
#[derive(Debug)]
pub(crate) struct Distinct<'s> {
    select: &'s Select,
    memory: Memory,
    seen: BTreeSet<Vec<Value<'static>>>,
}

impl<'s> Distinct<'s> {
    /// `None` where the query does not ask for it.
    pub(crate) fn of(select: Option<&'s Select>, memory: Memory) -> Option<Self> {
        select.filter(|select| select.distinct).map(|select| Self { select, memory, seen: BTreeSet::new() })
    }

    /// Whether this is the first row that shows this.
    ///
    /// # Errors
    /// There is no memory left to remember it.
    pub(crate) fn is_new(&mut self, row: &Row<'_>) -> Result<bool, QueryError> {
        let shown: Vec<_> = self.select.fields.iter().map(|field| row.value(&field.value)).collect();
        let bytes = 64 + shown.iter().map(|value| size_of::<Value<'_>>() + value.heap_bytes()).sum::<usize>();
        let is_new = self.seen.insert(shown);
        if is_new {
            self.memory.take(bytes, "Telling the rows of 'select distinct' apart")?;
        }
        Ok(is_new)
    }
}
