//! JSON Patch (RFC 6902): changes of parts of a document, without loading it.
//!
//! Next on the walk: `session::save`.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::ClientError;
use super::fields::raw;
use super::store::DocumentStore;

/// Operations that change parts of a document, in order, all or none of them. Paths are JSON pointers: `/Lines/0/Price`,
/// `/Lines/-` behind the last; a `/` in a name is written `~1` and a `~` is `~0` (see [`Patch::escape`]).
///
/// ```
/// use treepie::client::Patch;
///
/// let patch = Patch::new().test("/Name", &"Oren")?.replace("/Name", &"Ayende")?.remove("/Age");
/// # Ok::<(), treepie::client::ClientError>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Patch {
    #[serde(rename = "Operations")]
    operations: Vec<Operation>,
}

#[derive(Clone, Debug, Serialize)]
struct Operation {
    op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
}

/// What a patch did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patched {
    /// The document was changed, and is in this version now.
    Changed {
        /// Its change vector.
        change_vector: String,
    },
    /// The patch only tested.
    Unchanged,
}

#[derive(Deserialize)]
struct PatchAnswer {
    #[serde(rename = "ChangeVector")]
    change_vector: Option<String>,
}

impl Patch {
    /// Begins a patch without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property, or inserts an element.
    ///
    /// # Errors
    /// The value can't be written as JSON.
    pub fn add(self, path: &str, value: &impl Serialize) -> Result<Self, ClientError> {
        self.with_value("add", path, value)
    }

    /// Sets what is there already.
    ///
    /// # Errors
    /// The value can't be written as JSON.
    pub fn replace(self, path: &str, value: &impl Serialize) -> Result<Self, ClientError> {
        self.with_value("replace", path, value)
    }

    /// Refuses the whole patch unless this value is there.
    ///
    /// # Errors
    /// The value can't be written as JSON.
    pub fn test(self, path: &str, value: &impl Serialize) -> Result<Self, ClientError> {
        self.with_value("test", path, value)
    }

    /// Removes what is there.
    #[must_use]
    pub fn remove(self, path: &str) -> Self {
        self.with("remove", None, path, None)
    }

    /// Removes a value and adds it elsewhere.
    #[must_use]
    pub fn relocate(self, from: &str, path: &str) -> Self {
        self.with("move", Some(from), path, None)
    }

    /// Adds a value elsewhere too.
    #[must_use]
    pub fn copy(self, from: &str, path: &str) -> Self {
        self.with("copy", Some(from), path, None)
    }

    /// Writes a name so that it can stand in a path.
    #[must_use]
    pub fn escape(name: &str) -> String {
        name.replace('~', "~0").replace('/', "~1")
    }

    /// Adds the operations of another patch behind its own.
    pub(super) fn append(&mut self, mut other: Self) {
        self.operations.append(&mut other.operations);
    }

    fn with_value(self, op: &'static str, path: &str, value: &impl Serialize) -> Result<Self, ClientError> {
        let value = raw(value).map_err(|reason| ClientError::Usage(format!("the value of '{op} {path}': {reason}")))?;
        Ok(self.with(op, None, path, Some(value)))
    }

    fn with(mut self, op: &'static str, from: Option<&str>, path: &str, value: Option<Box<RawValue>>) -> Self {
        self.operations.push(Operation { op, from: from.map(str::to_owned), path: path.to_owned(), value });
        self
    }
}

impl DocumentStore {
    /// Changes parts of a document that is there, atomically.
    ///
    /// # Errors
    /// There is no such document, an operation does not fit it or a test fails (nothing is changed then), or the server can't
    /// be reached.
    ///
    /// # Cancel safety
    /// Dropped on the way, nobody knows whether it was done.
    pub async fn patch(&self, id: &str, patch: &Patch) -> Result<Patched, ClientError> {
        let body = serde_json::to_vec(patch).map_err(|error| ClientError::Usage(error.to_string()))?;
        let link = self.link();
        let call = link.call(Method::PATCH, "json-patch").query("id", id).body(body);
        let answer: PatchAnswer = link.send(call).await?.json()?;
        Ok(answer.change_vector.map_or(Patched::Unchanged, |change_vector| Patched::Changed { change_vector }))
    }
}
