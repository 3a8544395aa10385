//! HiLo ranges of one database: the document `Raven/Hilo/<tag>` that clients see, and the row that says what was handed out.
//!
//! Both change in one commit that expects both as they were read, so of two callers one asks again. The row is durable when
//! a range is answered, whatever the database's durability, and goes back only where a client returns what it has not used:
//! a document that somebody deletes or lowers gives no number a second time.
//!
//! Next on the walk: `id::hilo`, then `store::commit`.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Database, DatabaseError};
use crate::id::hilo::{HiloRange, HiloRequest, plan_next, plan_return};
use crate::id::{DocumentId, IdError, lower};
use crate::store::commit::{Commit, Condition, Expected, Operation, PutId, RowChange};
use crate::store::document::{Document, DocumentFlags, Properties, StoredDocument};
use crate::store::keyspace::{Family, KeyRange};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// Before the tags in the ids of HiLo documents.
const PREFIX: &str = "Raven/Hilo/";
/// Before the lower-cased tags in the names of the rows.
const ROWS: &str = "hilo/";
/// The collection of HiLo documents that Treepie makes.
const COLLECTION: &str = "@hilo";
/// The property of the highest number.
const MAX: &str = "Max";
/// How often a commit is tried again when the document or the row has changed meanwhile.
const TRIES_MAX: usize = 64;
/// Callers of one process wait in this many lines, by tag, instead of colliding in the committer.
const LINES: usize = 16;

/// Where callers of one process wait for each other.
#[derive(Debug, Default)]
pub(super) struct HiloLines([Mutex<()>; LINES]);

/// The row in `meta`: the range handed out last, or what is left of it after a return.
#[derive(Serialize, Deserialize)]
struct Handed {
    low: u64,
    high: u64,
}

/// A tag's document and row, as read.
struct Counter {
    id: DocumentId,
    document: Option<StoredDocument>,
    max: u64,
    row_name: String,
    row: Option<Vec<u8>>,
    handed: Option<HiloRange>,
}

impl Database {
    /// Hands out the next range of a tag (`users`); durable when it returns. Blocking. Numbers are never handed out twice.
    ///
    /// # Errors
    /// The tag can't stand in an id, its document's `Max` is no number, no numbers are left, or the storage fails.
    ///
    /// # Cost
    /// One commit and its sync for each range.
    pub fn next_hilo(&self, tag: &str, request: &HiloRequest) -> Result<HiloRange, DatabaseError> {
        let changed = self.change_hilo(tag, |counter| {
            let range = plan_next(tag, counter.max, counter.handed, request)?;
            Ok(Some((range, range.high)))
        })?;
        changed.ok_or_else(|| StoreError::Closed("a HiLo range was planned and not committed".to_owned()).into())
    }

    /// Takes back the numbers after `last` of the range that ends at `end`. Blocking. `false`: something was handed out since,
    /// or they were another client's, and nothing was done.
    ///
    /// # Errors
    /// As [`Database::next_hilo`].
    pub fn return_hilo(&self, tag: &str, end: u64, last: u64) -> Result<bool, DatabaseError> {
        let changed = self.change_hilo(tag, |counter| {
            Ok(plan_return(counter.max, counter.handed, end, last).map(|range| (range, range.high)))
        })?;
        Ok(changed.is_some())
    }

    /// Lists the tags from which ranges were handed out, lower-cased, with their highest numbers.
    ///
    /// # Errors
    /// A row is damaged, or the storage fails.
    pub fn list_hilo(&self) -> Result<Vec<(String, u64)>, DatabaseError> {
        let snapshot = self.store.snapshot();
        let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(ROWS.as_bytes()), Direction::Forward);
        let mut tags = Vec::new();
        while let Some((key, value)) = scan.next_row().map_err(DatabaseError::from)? {
            let damaged = |error: &dyn std::fmt::Display| StoreError::corrupt(Family::Meta, key, error);
            let handed: Handed = serde_json::from_slice(value).map_err(|error| damaged(&error))?;
            let tag = std::str::from_utf8(key).map_err(|error| damaged(&error))?;
            tags.push((tag.strip_prefix(ROWS).unwrap_or(tag).to_owned(), handed.high));
        }
        Ok(tags)
    }

    /// Makes sure that no number through `last` of a tag is handed out, as if it had been. Blocking.
    ///
    /// # Errors
    /// As [`Database::next_hilo`].
    pub fn raise_hilo(&self, tag: &str, last: u64) -> Result<(), DatabaseError> {
        self.change_hilo(tag, |counter| {
            let is_there = counter.handed.is_some_and(|handed| handed.high >= last);
            // Nothing is left of the range: a client that returns its rest is refused.
            let spent = HiloRange { low: last.saturating_add(1), high: last };
            Ok((!is_there).then_some((spent, counter.max.max(last))))
        })?;
        Ok(())
    }

    /// Commits what `plan` makes of a tag's counter: a new row and a new `Max`. `None`: it changes nothing.
    fn change_hilo(
        &self,
        tag: &str,
        plan: impl Fn(&Counter) -> Result<Option<(HiloRange, u64)>, IdError>,
    ) -> Result<Option<HiloRange>, DatabaseError> {
        let rules = self.store.id_rules();
        let id = DocumentId::new(&format!("{PREFIX}{tag}"), &rules).map_err(StoreError::from)?;
        let line = tag.bytes().fold(0_usize, |sum, byte| sum + usize::from(byte.to_ascii_lowercase())) % LINES;
        let _turn = self.hilo.0.get(line).map(Mutex::lock);
        for _ in 0..TRIES_MAX {
            let counter = Counter::read(&self.store.snapshot(), id.clone(), tag)?;
            let Some((range, max)) = plan(&counter).map_err(StoreError::from)? else { return Ok(None) };
            match counter.commit(&self.store, range, max) {
                Ok(()) => return Ok(Some(range)),
                Err(StoreError::Concurrency { .. } | StoreError::Condition(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Busy(format!("'{}' changes too fast to hand out a range; ask again", id.as_str())).into())
    }
}

impl Counter {
    fn read(snapshot: &Snapshot<'_>, id: DocumentId, tag: &str) -> Result<Self, StoreError> {
        let document = snapshot.get(&id)?;
        let max = document.as_ref().map_or(Ok(0), read_max)?;
        let row_name = format!("{ROWS}{}", lower(tag));
        let row = snapshot.row(Family::Meta, row_name.as_bytes())?;
        let handed = match row.as_deref().map(serde_json::from_slice::<Handed>) {
            None => None,
            Some(Ok(Handed { low, high })) => Some(HiloRange { low, high }),
            Some(Err(error)) => return Err(StoreError::corrupt(Family::Meta, row_name.as_bytes(), error)),
        };
        Ok(Self { id, document, max, row_name, row, handed })
    }

    fn commit(self, store: &Store, handed: HiloRange, max: u64) -> Result<(), StoreError> {
        let (document, expected) = match self.document {
            None => {
                let body = format!("{{\"{MAX}\":{max}}}");
                (Document { collection: COLLECTION.to_owned(), metadata: "{}".to_owned(), body }, Expected::New)
            }
            Some(stored) => {
                let body = Properties::read(&stored.body)?.with_number(MAX, max);
                let StoredDocument { collection, metadata, change_vector, .. } = stored;
                (Document { collection, metadata, body }, Expected::ChangeVector(change_vector))
            }
        };
        let value = format!("{{\"low\":{},\"high\":{}}}", handed.low, handed.high).into_bytes();
        let row = RowChange::Put { family: Family::Meta, key: self.row_name.clone().into_bytes(), value };
        let put = Operation::Put { id: PutId::Given(self.id), document, flags: DocumentFlags::default(), expected };
        store.commit_synced(Commit {
            operations: vec![put],
            rows: vec![row],
            conditions: vec![Condition::MetaIs { name: self.row_name, value: self.row }],
            ..Commit::default()
        })?;
        Ok(())
    }
}

/// Reads `Max`: a whole number, also as a string; 0 where there is none.
fn read_max(document: &StoredDocument) -> Result<u64, StoreError> {
    let properties = Properties::read(&document.body)?;
    let Some(text) = properties.get(MAX).filter(|text| *text != "null") else { return Ok(0) };
    let number = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
    number.trim().parse().map_err(|_| {
        let message = format!(
            "'{}' says \"{MAX}\": {}, which is no whole number of 0 or more; correct the document, or delete it",
            document.id,
            crate::id::cut(text)
        );
        IdError::new(message).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(body: &str) -> StoredDocument {
        StoredDocument {
            id: "Raven/Hilo/users".to_owned(),
            etag: 1,
            change_vector: "A:1-x".to_owned(),
            collection: COLLECTION.to_owned(),
            modified_micros: 0,
            flags: DocumentFlags::default(),
            metadata: "{}".to_owned(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn max_is_a_number_also_as_a_string() {
        for (body, max) in [
            (r#"{"Max":32}"#, 32),
            (r#"{"Max":"32"}"#, 32),
            (r#"{"Max":" 7 "}"#, 7),
            (r#"{"Max":null}"#, 0),
            (r#"{"Other":1}"#, 0),
        ] {
            assert_eq!(read_max(&document(body)).unwrap(), max, "{body}");
        }
        for body in [r#"{"Max":-1}"#, r#"{"Max":"x"}"#, r#"{"Max":1.5}"#, r#"{"Max":{}}"#, r#"{"Max":true}"#] {
            let error = read_max(&document(body)).unwrap_err().to_string();
            assert!(error.contains("Raven/Hilo/users") && error.contains("correct the document"), "{error}");
        }
    }
}
