//! Documents in a server's answers, and how a person sees them.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Failure;
use super::json::{self, Members};

/// `{"Results":[…]}`: documents, or null for what is not there.
#[derive(Deserialize)]
pub(crate) struct Results<'a> {
    #[serde(borrow, rename = "Results")]
    pub(crate) results: Vec<Option<&'a RawValue>>,
}

/// One document of an answer.
pub(crate) struct Shown<'a> {
    /// Its id, from `@metadata.@id`.
    pub(crate) id: String,
    /// Its collection, from `@metadata.@collection`.
    pub(crate) collection: Option<String>,
    members: Members<'a>,
}

impl<'a> Results<'a> {
    /// Reads an answer.
    ///
    /// # Errors
    /// It has another shape: the server is no Treepie.
    pub(crate) fn parse(answer: &'a str) -> Result<Self, Failure> {
        serde_json::from_str(answer).map_err(|error| not_understood(&error))
    }
}

impl<'a> Shown<'a> {
    /// Reads a document.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn parse(document: &'a str) -> Result<Self, Failure> {
        let read = || {
            let members = Members::parse(document)?;
            let metadata = members.get("@metadata").map(Members::parse).transpose()?.unwrap_or_default();
            let text = |name| metadata.get(name).and_then(json::as_string);
            Ok(Self { id: text("@id").unwrap_or_default(), collection: text("@collection"), members })
        };
        read().map_err(|error| not_understood(&error))
    }

    /// The document without its metadata, on one line.
    pub(crate) fn body(&self) -> String {
        self.without(&["@metadata"])
    }

    /// The document without some of its members, on one line.
    pub(crate) fn without(&self, names: &[&str]) -> String {
        json::one_line(&self.members.write(|name| !names.contains(&name)))
    }
}

/// The failure for an answer of an unexpected shape.
pub(crate) fn not_understood(error: &serde_json::Error) -> Failure {
    Failure::failed(format!("the server's answer is not understood: {error}"))
        .way_out("is it a Treepie server, of this version?")
}
