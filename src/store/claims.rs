//! Claims: which collections, and with them which ids, belong to an index.

use std::collections::HashMap;

use super::StoreError;
use super::codec::{self, ClaimRecord};
use super::engine::Engine;
use super::keyspace::{Family, KeyRange};
use super::meta;
use super::scan::{Direction, Scan};

/// The hex digits of an artificial document's id after its collection and `/`.
const HASH_DIGITS: usize = 32;

/// All claims, by lower-cased collection.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_collection: HashMap<String, ClaimRecord>,
}

impl Claims {
    /// Reads all claims.
    pub(super) fn load(engine: &Engine) -> Result<Self, StoreError> {
        let range = KeyRange::prefix(meta::CLAIM.as_bytes());
        let mut scan = Scan::new(engine, None, Family::Meta, range, Direction::Forward);
        let mut claims = Self::default();
        while let Some((key, value)) = scan.next_row()? {
            let collection = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(meta::CLAIM));
            let collection =
                collection.ok_or_else(|| StoreError::corrupt(Family::Meta, key, "the key is no claim's"))?;
            let claim = codec::decode(value).map_err(|error| StoreError::corrupt(Family::Meta, key, error))?;
            claims.by_collection.insert(collection.to_owned(), claim);
        }
        Ok(claims)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_collection.is_empty()
    }

    pub(super) fn of_collection(&self, lower_collection: &str) -> Option<&ClaimRecord> {
        self.by_collection.get(lower_collection)
    }

    /// The claim on an id of the form `<claimed collection>/<32 hex digits>`, lower-cased.
    pub(super) fn of_id(&self, lower_id: &str) -> Option<&ClaimRecord> {
        let (head, hash) = lower_id.split_at_checked(lower_id.len().checked_sub(HASH_DIGITS)?)?;
        let collection = head.strip_suffix('/')?;
        let is_hash = hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if is_hash { self.of_collection(collection) } else { None }
    }

    /// Sets or removes a claim and returns the former one.
    pub(super) fn set(&mut self, lower_collection: &str, claim: Option<ClaimRecord>) -> Option<ClaimRecord> {
        match claim {
            Some(claim) => self.by_collection.insert(lower_collection.to_owned(), claim),
            None => self.by_collection.remove(lower_collection),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_belongs_to_the_claim_only_with_32_hex_digits() {
        let mut claims = Claims::default();
        let claim = ClaimRecord { owner: 1, owner_name: "ix".into(), collection: "a/Out".into() };
        claims.set("a/out", Some(claim.clone()));
        assert_eq!(claims.of_id("a/out/0123456789abcdef0123456789abcdef"), Some(&claim));
        for id in [
            "a/out/0123456789abcdef0123456789abcde",
            "a/out/0123456789abcdef0123456789abcdef0",
            "a/out/0123456789abcdef0123456789abcdeg",
            "out/0123456789abcdef0123456789abcdef",
            "a/out0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdef",
            "a/out/ü23456789abcdef0123456789abcdef",
            "",
        ] {
            assert_eq!(claims.of_id(id), None, "{id}");
        }
        assert_eq!(claims.set("a/out", None), Some(claim));
        assert!(claims.is_empty());
    }
}
