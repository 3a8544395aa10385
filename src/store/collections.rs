//! Collections: their numbers, names and counts; the rule of their names.
//!
//! Numbers begin with 1, rise by one and are never reused. Names are matched by [`crate::id::lower`] and shown as first used.

use std::collections::{BTreeSet, HashMap};

use rocksdb::WriteBatch;

use super::StoreError;
use super::codec::{self, CollectionRecord};
use super::document::DocumentError;
use super::engine::Engine;
use super::keyspace::{CollectionNumber, Family, KeyRange};
use super::meta;
use super::scan::{Direction, Scan};
use crate::id::{cut, lower};

/// The collection of documents that name none.
pub const EMPTY: &str = "@empty";
/// The collection of the documents that keep `HiLo` ranges.
pub const HILO: &str = "@hilo";
/// The most bytes (UTF-8) of a collection name.
pub const NAME_BYTES_MAX: usize = 256;

/// Checks a collection name: 1 to 256 bytes, no control characters, no `@…` but `@empty` and `@hilo`.
///
/// # Errors
/// Names the collection, the rule and the way out.
pub fn check_name(name: &str) -> Result<(), DocumentError> {
    let refused = |rule: String| Err(DocumentError::Collection { name: cut(name), rule });
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return refused(format!("a name has 1 to {NAME_BYTES_MAX} bytes, and this one has {}", name.len()));
    }
    if let Some(control) = name.chars().find(|character| character.is_control()) {
        return refused(format!("it holds the control character U+{:04X}; leave it out", u32::from(control)));
    }
    if name.starts_with('@') && name != EMPTY && name != HILO {
        return refused(
            "names that begin with '@' are reserved; use another one, or none to put the document into '@empty'"
                .to_owned(),
        );
    }
    Ok(())
}

/// The names that readers need: all collections ever used.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_lower: HashMap<String, CollectionNumber>,
    /// By number, beginning with 1.
    written: Vec<String>,
}

impl Names {
    pub(super) fn number(&self, lower_name: &str) -> Option<CollectionNumber> {
        self.by_lower.get(lower_name).copied()
    }

    pub(super) fn name(&self, number: CollectionNumber) -> Option<&str> {
        self.written.get(index(number)?).map(String::as_str)
    }

    fn push(&mut self, lower_name: &str, written: &str, number: CollectionNumber) {
        self.by_lower.insert(lower_name.to_owned(), number);
        self.written.push(written.to_owned());
    }
}

/// Counts of one collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) documents: u64,
    pub(super) tombstones: u64,
    pub(super) last_etag: u64,
}

#[derive(Debug)]
struct Collection {
    lower: String,
    name: String,
    counts: Counts,
}

/// The committer's own table of collections, ahead of the database while a group is being planned.
#[derive(Debug, Default)]
pub(super) struct Collections {
    by_lower: HashMap<String, CollectionNumber>,
    /// By number, beginning with 1.
    table: Vec<Collection>,
    /// Collections whose rows differ from the database's.
    changed: BTreeSet<u32>,
    /// Collections with changes that were not yet told to those who follow them.
    touched: BTreeSet<u32>,
}

impl Collections {
    /// Reads all collections.
    pub(super) fn load(engine: &Engine) -> Result<Self, StoreError> {
        let mut scan =
            Scan::new(engine, None, Family::Meta, KeyRange::prefix(meta::COLLECTION.as_bytes()), Direction::Forward);
        let mut rows = Vec::new();
        while let Some((key, value)) = scan.next_row()? {
            let (lower, record) = decode_row(key, value)?;
            rows.push((record.number, lower, record));
        }
        rows.sort_unstable_by_key(|(number, ..)| *number);
        let mut collections = Self::default();
        for (number, lower, record) in rows {
            if usize::try_from(number) != Ok(collections.table.len() + 1) {
                let key = meta::collection(&lower);
                return Err(StoreError::corrupt(
                    Family::Meta,
                    key.as_bytes(),
                    format!("number {number} is out of turn"),
                ));
            }
            let counts =
                Counts { documents: record.documents, tombstones: record.tombstones, last_etag: record.last_etag };
            collections.push(lower, record.name, counts);
        }
        Ok(collections)
    }

    pub(super) fn find(&self, lower_name: &str) -> Option<CollectionNumber> {
        self.by_lower.get(lower_name).copied()
    }

    /// Finds a collection by a name as written.
    pub(super) fn find_written(&self, name: &str) -> Option<CollectionNumber> {
        self.find(&lower(name))
    }

    /// Adds a collection under the next number.
    pub(super) fn add(&mut self, name: &str) -> Result<CollectionNumber, StoreError> {
        check_name(name)?;
        let number = self.push(lower(name), name.to_owned(), Counts::default());
        self.changed.insert(number.0);
        Ok(number)
    }

    /// Takes the collection back that was added last.
    pub(super) fn remove_last(&mut self) {
        if let Some(collection) = self.table.pop() {
            self.by_lower.remove(&collection.lower);
        }
    }

    pub(super) fn counts(&self, number: CollectionNumber) -> Counts {
        self.get(number).map(|collection| collection.counts).unwrap_or_default()
    }

    pub(super) fn set_counts(&mut self, number: CollectionNumber, counts: Counts) {
        if let Some(collection) = index(number).and_then(|index| self.table.get_mut(index)) {
            collection.counts = counts;
            self.changed.insert(number.0);
            self.touched.insert(number.0);
        }
    }

    /// Takes the collections whose counts were set since the last call.
    pub(super) fn take_touched(&mut self) -> Vec<CollectionNumber> {
        std::mem::take(&mut self.touched).into_iter().map(CollectionNumber).collect()
    }

    pub(super) fn name(&self, number: CollectionNumber) -> &str {
        self.get(number).map_or("", |collection| &collection.name)
    }

    pub(super) fn lower_name(&self, number: CollectionNumber) -> &str {
        self.get(number).map_or("", |collection| &collection.lower)
    }

    /// Writes the rows that changed since the last call.
    pub(super) fn write_changed(&mut self, engine: &Engine, batch: &mut WriteBatch) -> Result<(), StoreError> {
        let family = engine.family(Family::Meta)?;
        for number in std::mem::take(&mut self.changed) {
            let Some(Collection { lower, name, counts }) = self.get(CollectionNumber(number)) else { continue };
            let record = CollectionRecord {
                number,
                name: name.clone(),
                documents: counts.documents,
                tombstones: counts.tombstones,
                last_etag: counts.last_etag,
            };
            batch.put_cf(family, meta::collection(lower), codec::encode(&record));
        }
        Ok(())
    }

    /// Appends the collections to `names` that it lacks.
    pub(super) fn publish(&self, names: &parking_lot::RwLock<Names>) {
        let known = names.read().written.len();
        if known == self.table.len() {
            return;
        }
        let mut names = names.write();
        for (number, collection) in (1_u32..).zip(&self.table).skip(known) {
            names.push(&collection.lower, &collection.name, CollectionNumber(number));
        }
    }

    fn get(&self, number: CollectionNumber) -> Option<&Collection> {
        self.table.get(index(number)?)
    }

    fn push(&mut self, lower: String, name: String, counts: Counts) -> CollectionNumber {
        // A number for each name that was ever used: memory ends long before 2³².
        let number = CollectionNumber(u32::try_from(self.table.len() + 1).unwrap_or(u32::MAX));
        self.by_lower.insert(lower.clone(), number);
        self.table.push(Collection { lower, name, counts });
        number
    }
}

/// Decodes a collection's row of `meta`: its lower-cased name and its record.
pub(super) fn decode_row(key: &[u8], value: &[u8]) -> Result<(String, CollectionRecord), StoreError> {
    let lower = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(meta::COLLECTION));
    let lower = lower.ok_or_else(|| StoreError::corrupt(Family::Meta, key, "the key is no collection's"))?;
    let record = codec::decode(value).map_err(|error| StoreError::corrupt(Family::Meta, key, error))?;
    Ok((lower.to_owned(), record))
}

fn index(number: CollectionNumber) -> Option<usize> {
    usize::try_from(number.0).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_1_to_256_bytes_and_no_control_characters() {
        for name in ["a", "Ünïcode 😀", EMPTY, HILO, &"x".repeat(256)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "a\nb", &"ü".repeat(129), "@mine", "@"] {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("collection '{}'", cut(name))), "{error}");
        }
    }

    #[test]
    fn numbers_rise_from_one_and_the_first_spelling_stays() {
        let mut collections = Collections::default();
        let users = collections.add("Users").unwrap();
        assert_eq!((users, collections.find_written("USERS")), (CollectionNumber(1), Some(users)));
        let other = collections.add("other").unwrap();
        assert_eq!((collections.name(users), collections.find_written("other")), ("Users", Some(other)));
        collections.remove_last();
        assert_eq!(collections.find_written("other"), None);
        assert_eq!(collections.add("third").unwrap(), other);
    }

    #[test]
    fn readers_get_the_names_they_lack() {
        let mut collections = Collections::default();
        let names = parking_lot::RwLock::default();
        for (name, number) in [("Users", 1), ("Orders", 2)] {
            collections.add(name).unwrap();
            collections.publish(&names);
            assert_eq!(names.read().name(CollectionNumber(number)), Some(name));
            assert_eq!(names.read().number(&lower(name)), Some(CollectionNumber(number)));
        }
        assert_eq!(names.read().name(CollectionNumber(0)), None);
        assert_eq!(names.read().name(CollectionNumber(3)), None);
    }
}
