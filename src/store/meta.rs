//! Names of the rows that the store itself keeps in `meta`. All begin with `store/`; other rooms use other names.

/// The beginning of every name in this file; no other room's row may begin with it.
pub(super) const OWN: &str = "store/";

/// The format version, u32.
pub(super) const FORMAT: &str = "store/format";
/// The incarnation, a string.
pub(super) const INCARNATION: &str = "store/incarnation";
/// Present when the database was closed cleanly.
pub(super) const CLEAN: &str = "store/clean";
/// Last etag and counts of the whole database.
pub(super) const TOTALS: &str = "store/totals";
/// An etag, durable before it was given out, that a group larger than the unsynced tail goes up to; u64.
pub(super) const RESERVED: &str = "store/reserved";
/// Before the lower-cased names of collections.
pub(super) const COLLECTION: &str = "store/collection/";
/// Before the lower-cased names of claimed collections.
pub(super) const CLAIM: &str = "store/claim/";
/// Before the lower-cased names of identities.
pub(super) const IDENTITY: &str = "store/identity/";
/// The etag of the newest tombstone that was removed, u64; with `/` and a collection's lower-cased name that of the collection.
pub(super) const PURGED: &str = "store/purged";
/// Before the numbers of indexes: how complete what they wrote is.
pub(super) const COMPLETE: &str = "store/complete/";
/// Before names of configuration values.
pub(super) const CONFIGURATION: &str = "store/configuration/";

/// The row of a collection.
pub(super) fn collection(lower_name: &str) -> String {
    format!("{COLLECTION}{lower_name}")
}

/// The row of a claim.
pub(super) fn claim(lower_collection: &str) -> String {
    format!("{CLAIM}{lower_collection}")
}

/// The row that says through which etag of its sources an index's results are complete, and with which of its runs.
pub(super) fn complete(owner: u32) -> String {
    format!("{COMPLETE}{owner:010}")
}

/// The row of an identity.
pub(super) fn identity(key: &str) -> String {
    format!("{IDENTITY}{key}")
}

/// The row that says which tombstones of a collection were removed.
pub(super) fn purged(lower_collection: &str) -> String {
    format!("{PURGED}/{lower_collection}")
}

/// The row of a configuration value.
pub(super) fn configuration(name: &str) -> String {
    format!("{CONFIGURATION}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_format_1() {
        assert_eq!(
            [FORMAT, INCARNATION, CLEAN, TOTALS, RESERVED],
            ["store/format", "store/incarnation", "store/clean", "store/totals", "store/reserved"]
        );
        assert_eq!(
            [collection("users"), claim("out"), identity("users|"), configuration("client")],
            ["store/collection/users", "store/claim/out", "store/identity/users|", "store/configuration/client"]
        );
        assert_eq!([PURGED, &purged("users")], ["store/purged", "store/purged/users"]);
        assert_eq!(complete(7), "store/complete/0000000007");
    }
}
