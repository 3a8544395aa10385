//! Ids of artificial documents: `OutputCollection/<hash of the reduce key>`.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// The key of the hash, part of the format.
const KEY: &[u8; 16] = b"treepie/output/1";

/// Hashes the canonical encoding of a reduce key: 128 bits of SipHash-2-4.
#[must_use]
pub fn group_hash(canonical_key: &[u8]) -> GroupHash {
    let mut hasher = SipHasher24::new_with_key(KEY);
    hasher.write(canonical_key);
    GroupHash(hasher.finish128().as_u128().to_be_bytes())
}

/// Names the artificial document of a group: `MonthlySales/0123…` with 32 lower-case hex digits.
#[must_use]
pub fn artificial_id(output: &str, group: &GroupHash) -> String {
    format!("{output}/{:032x}", u128::from_be_bytes(group.0))
}

/// Takes a lower-cased id apart that has the form of an artificial document's: collection and hash.
#[must_use]
pub fn artificial_parts(lower_id: &str) -> Option<(&str, GroupHash)> {
    let (collection, hex) = lower_id.rsplit_once('/')?;
    let is_hash = hex.len() == 32 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    let hash = is_hash.then(|| u128::from_str_radix(hex, 16).ok()).flatten()?;
    Some((collection, GroupHash(hash.to_be_bytes())))
}

/// The 128-bit hash of a reduce key: `artificial_id` shows it, keys hold it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupHash(pub [u8; 16]);

impl std::fmt::Debug for GroupHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}
