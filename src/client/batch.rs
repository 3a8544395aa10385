//! `bulk_docs`: many writes, stored whole or not at all.
//!
//! Next on the walk: `http`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::ClientError;
use super::fields::{Fields, METADATA, raw};
use super::http::Answer;
use super::patch::Patch;

/// Whether the server finishes an id.
pub(super) fn is_unfinished(id: &str, separator: char) -> bool {
    id.trim().is_empty() || id.ends_with('|') || id.ends_with(separator)
}

/// The body of a batch, written command by command.
#[derive(Debug, Default)]
pub(super) struct BatchBody {
    commands: Vec<u8>,
    count: usize,
}

impl BatchBody {
    pub(super) fn add(&mut self, command: &Command<'_>) -> Result<(), ClientError> {
        let before = self.commands.len();
        if self.count > 0 {
            self.commands.push(b',');
        }
        if let Err(error) = serde_json::to_writer(&mut self.commands, command) {
            self.commands.truncate(before);
            return Err(ClientError::Usage(error.to_string()));
        }
        self.count += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<u8> {
        [b"{\"Commands\":[".as_slice(), &self.commands, b"]}"].concat()
    }
}

/// One write of a batch.
#[derive(Serialize)]
#[serde(tag = "Type")]
pub(super) enum Command<'a> {
    /// Stores a document.
    #[serde(rename = "PUT")]
    Put {
        #[serde(rename = "Id")]
        id: &'a str,
        /// The version that is expected; empty: there must be none.
        #[serde(rename = "ChangeVector")]
        change_vector: Option<&'a str>,
        #[serde(rename = "Document")]
        document: Fields,
    },
    /// Deletes one.
    #[serde(rename = "DELETE")]
    Delete {
        #[serde(rename = "Id")]
        id: &'a str,
        #[serde(rename = "ChangeVector")]
        change_vector: Option<&'a str>,
    },
    /// Changes parts of one.
    #[serde(rename = "JsonPatch")]
    Patch {
        #[serde(rename = "Id")]
        id: &'a str,
        #[serde(rename = "JsonPatch")]
        patch: &'a Patch,
        #[serde(rename = "ReturnDocument")]
        return_document: bool,
    },
}

#[derive(Deserialize)]
struct Results {
    #[serde(rename = "Results")]
    results: Vec<CommandResult>,
}

/// What became of one write; of a deletion nothing is read.
#[derive(Debug, Deserialize)]
pub(super) struct CommandResult {
    #[serde(rename = "@id")]
    pub(super) id: Option<String>,
    #[serde(rename = "@change-vector")]
    pub(super) change_vector: Option<String>,
    #[serde(rename = "@last-modified")]
    pub(super) last_modified: Option<String>,
    /// What a patch made.
    #[serde(rename = "ModifiedDocument")]
    pub(super) modified_document: Option<Box<RawValue>>,
}

/// Reads the answer to a batch of `count` writes.
pub(super) fn read_results(answer: &Answer, count: usize) -> Result<Vec<CommandResult>, ClientError> {
    let Results { results } = answer.json()?;
    if results.len() == count {
        return Ok(results);
    }
    Err(answer.wrong(format!("{} results for {count} writes", results.len())))
}

/// A document with its metadata.
pub(super) fn with_metadata(mut document: Fields, metadata: &Fields) -> Result<Fields, ClientError> {
    if !metadata.is_empty() {
        let metadata: Box<RawValue> = raw(metadata).map_err(ClientError::Usage)?;
        document.insert(METADATA.to_owned(), metadata);
    }
    Ok(document)
}
