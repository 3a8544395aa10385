//! The lines of an exported database: one JSON object each, documents as clients read them, all else under one key with `@`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::index::Definition;

/// The version of what the lines mean.
pub(crate) const VERSION: u32 = 1;

/// A line that is no document, as it is written.
#[derive(Debug, Serialize)]
pub(crate) enum Written {
    #[serde(rename = "@treepie")]
    Head(Head),
    #[serde(rename = "@identity")]
    Identity(Number),
    #[serde(rename = "@hilo")]
    HiLo(Number),
    #[serde(rename = "@index")]
    Index(Box<Definition>),
    #[serde(rename = "@end")]
    End(End),
}

/// A line that is no document, as it is read.
#[derive(Debug, Deserialize)]
pub(crate) enum Read {
    #[serde(rename = "@treepie")]
    Head(Head),
    #[serde(rename = "@identity")]
    Identity(Number),
    #[serde(rename = "@hilo")]
    HiLo(Number),
    #[serde(rename = "@index")]
    Index(Map<String, Value>),
    #[serde(rename = "@end")]
    End(End),
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) database: String,
    /// When it was written.
    pub(crate) exported: String,
    /// The last etag of the database then.
    pub(crate) last_etag: u64,
    /// Whether artificial documents are in it, and not the indexes that make them.
    pub(crate) artificial: bool,
}

/// The last number of an identity, or of the ranges of a HiLo tag.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Number {
    pub(crate) name: String,
    pub(crate) last: u64,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct End {
    pub(crate) documents: u64,
}

/// What an import did.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Imported {
    /// Lines read, those passed over included.
    pub(crate) lines: u64,
    pub(crate) documents: u64,
    pub(crate) identities: u64,
    #[serde(rename = "HiLo")]
    pub(crate) hilo: u64,
    pub(crate) indexes: u64,
}
