//! What an index is asked to do.

use crate::script::Texts;

/// A definition as its author gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// The index's name, 1 to 256 bytes, compared without regard to case.
    pub name: String,
    /// The scripts.
    pub texts: Texts,
    /// The output collection, where the JSON of the definition names one; must not differ from the script's.
    pub output: Option<String>,
    /// The reference pattern, where the JSON of the definition names one.
    pub reference_pattern: Option<String>,
    /// The collection of the reference documents.
    pub reference_collection: Option<String>,
}
