//! What an index is asked to do: as its author gives it, and checked.

use std::sync::Arc;

use super::context::same_name;
use super::graph::Node;
use super::records::DefinitionRecord;
use crate::script::{Fault, Limits, Program, Texts};

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

impl IndexDefinition {
    /// A definition from one `.rhai` text.
    #[must_use]
    pub fn from_script(name: impl Into<String>, script: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            texts: Texts { maps: vec![script.into()], reduce: None },
            output: None,
            reference_pattern: None,
            reference_collection: None,
        }
    }

    /// The definition that `meta` keeps.
    pub(crate) fn from_record(record: &DefinitionRecord) -> Self {
        Self {
            name: record.name.clone(),
            texts: Texts { maps: record.maps.clone(), reduce: record.reduce.clone() },
            output: record.output.clone(),
            reference_pattern: None,
            reference_collection: None,
        }
    }
}

/// Why a definition is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Its script.
    Script(Fault),
    /// A rule.
    Rule(String),
}

/// A definition that was compiled and checked by itself.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub definition: IndexDefinition,
    pub program: Arc<Program>,
    pub output: Option<String>,
}

/// Names are at most this long.
const NAME_BYTES_MAX: usize = 256;

/// Compiles a definition and checks its name and settings.
pub(crate) fn check(definition: IndexDefinition, limits: &Limits) -> Result<Checked, Refused> {
    check_name("index name", &definition.name).map_err(Refused::Rule)?;
    let program = Program::compile(definition.texts.clone(), limits.clone()).map_err(Refused::Script)?;
    let output = match (&program.output, &definition.output) {
        (Some(script), Some(json)) if !same_name(script, json) => {
            return Err(Refused::Rule(format!(
                "its script says output(\"{script}\") and its JSON OutputReduceToCollection \"{json}\"; keep one of them"
            )));
        }
        (Some(output), _) | (None, Some(output)) => Some(output.clone()),
        (None, None) => None,
    };
    if let Some(output) = &output {
        check_name("output collection", output).map_err(Refused::Rule)?;
    }
    check_supported(&definition, &program, output.as_ref()).map_err(Refused::Rule)?;
    Ok(Checked { definition, program: Arc::new(program), output })
}

/// Refuses what the design has and this version does not.
fn check_supported(definition: &IndexDefinition, program: &Program, output: Option<&String>) -> Result<(), String> {
    if program.reference.is_some()
        || definition.reference_pattern.is_some()
        || definition.reference_collection.is_some()
    {
        return Err("reference documents are not supported yet; leave the pattern out".to_owned());
    }
    if !program.has_reduce {
        return Err("an index without reduce(key, values) is not supported yet; add one".to_owned());
    }
    let maps_all = program.sources.iter().any(|source| source.collection == crate::script::SourceCollection::All);
    if maps_all && output.is_some() {
        return Err(
            "an index over all documents would feed on its own output; leave the output out, or name the sources"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let shown: String = name.chars().take(80).collect();
    if name.trim().is_empty() {
        return Err(format!("the {what} is empty; give it a name"));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the {what} '{shown}…' has {} bytes; at most {NAME_BYTES_MAX} are allowed", name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err(format!("the {what} '{}' holds a control character; leave it out", shown.escape_debug()));
    }
    if name.starts_with('@') {
        return Err(format!("the {what} '{shown}' begins with '@', which is reserved; choose another"));
    }
    Ok(())
}

impl Checked {
    /// Whether it asks for the same as a definition that is there already: the same scripts, comments and white space aside.
    pub(crate) fn is_same(&self, other: &Checked) -> bool {
        self.program.signature == other.program.signature && self.output == other.output
    }

    /// The index as the graph sees it.
    pub(crate) fn node(&self) -> Node {
        Node {
            name: self.definition.name.clone(),
            sources: self.program.sources.iter().map(|source| source.collection.clone()).collect(),
            output: self.output.clone(),
        }
    }
}
