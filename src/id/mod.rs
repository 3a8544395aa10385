//! The ways to name a document, and the rules every id keeps.

pub mod artificial;

/// How one database reads ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdRules {
    /// The character that asks for a server-side id and stands before identity numbers. Default `/`.
    pub separator: char,
    /// The tag of this node in server-side ids. Default `A`.
    pub node_tag: String,
    /// Whether a trailing separator asks for an identity, as in old RavenDB, and not for a server-side id. Default false.
    pub trailing_slash_is_identity: bool,
    /// Whether GUIDs are time-ordered (v7). Default false (v4).
    pub guid_v7: bool,
}

/// A finished id: checked, in the caller's spelling and lower-cased.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentId {
    written: String,
    lower: String,
}

impl DocumentId {
    /// Checks a finished id: 1 to 512 bytes when lower-cased, no control characters, not ending in `|` or the separator.
    pub fn new(id: &str, rules: &IdRules) -> Result<Self, IdError> {
        todo!()
    }

    /// The id as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The id as compared and sorted.
    #[must_use]
    pub fn lower(&self) -> &str {
        &self.lower
    }
}

/// What a caller's id asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdRequest {
    /// This very id (also a GUID that was made just now, see `is_new`).
    Given(DocumentId),
    /// A server-side id under this prefix, separator included.
    ServerSide(String),
    /// The next number of an identity.
    Identity(IdentityName),
}

impl IdRequest {
    /// Reads a caller's id: nothing, `""` or blanks give a GUID, a trailing separator a server-side id, a trailing `|` an identity.
    pub fn parse(id: Option<&str>, rules: &IdRules) -> Result<Self, IdError> {
        todo!()
    }
}

/// The name of an identity: `users|`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityName {
    prefix: String,
}

impl IdentityName {
    /// Reads `users|` or `users`.
    pub fn new(name: &str, rules: &IdRules) -> Result<Self, IdError> {
        todo!()
    }

    /// Lower-cased, with the `|`: the key under which it counts.
    #[must_use]
    pub fn key(&self) -> String {
        todo!()
    }

    /// Makes the finished id of `number`: `users/7`.
    pub fn finish(&self, number: u64, rules: &IdRules) -> Result<DocumentId, IdError> {
        todo!()
    }
}

/// Lower-cases character by character by the format's own Unicode table.
#[must_use]
pub fn lower(text: &str) -> String {
    todo!()
}

/// Why an id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdError(String);
