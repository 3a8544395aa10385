//! What an index is asked to do: as its author gives it, and checked.

use std::sync::Arc;

use super::context::same_name;
use super::graph::Node;
use super::records::DefinitionRecord;
use super::reference::{Pattern, Reference};
use crate::script::{Fault, Limits, Program, SourceCollection, Texts};

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
            reference_pattern: record.reference_pattern.clone(),
            reference_collection: record.reference_name.clone(),
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
    pub reference: Option<Arc<Reference>>,
}

/// Names are at most this long.
const NAME_BYTES_MAX: usize = 256;

/// Compiles a definition and checks its name and settings.
pub(crate) fn check(definition: IndexDefinition, limits: &Limits) -> Result<Checked, Refused> {
    check_name("index name", &definition.name).map_err(Refused::Rule)?;
    let program = Program::compile(definition.texts.clone(), limits.clone()).map_err(Refused::Script)?;
    let output =
        one_of(program.output.as_ref(), definition.output.as_ref(), same_name, ["output", "OutputReduceToCollection"]);
    let output = output.map_err(Refused::Rule)?;
    check_output(&program, output.as_deref()).map_err(Refused::Rule)?;
    let reference = check_reference(&definition, &program, output.as_deref()).map_err(Refused::Rule)?;
    Ok(Checked { definition, program: Arc::new(program), output, reference: reference.map(Arc::new) })
}

/// A setting that script and JSON may make, and not differently.
fn one_of(
    script: Option<&String>,
    json: Option<&String>,
    is_same: fn(&str, &str) -> bool,
    [function, setting]: [&str; 2],
) -> Result<Option<String>, String> {
    match (script, json) {
        (Some(script), Some(json)) if !is_same(script, json) => {
            Err(format!("its script says {function}(\"{script}\") and its JSON {setting} \"{json}\"; keep one of them"))
        }
        (Some(value), _) | (None, Some(value)) => Ok(Some(value.clone())),
        (None, None) => Ok(None),
    }
}

fn check_output(program: &Program, output: Option<&str>) -> Result<(), String> {
    let Some(output) = output else { return Ok(()) };
    check_name("output collection", output)?;
    if !program.has_reduce {
        return Err(format!(
            "it has an output collection '{output}' and no reduce: only reduced results become documents; add \
             reduce(key, values), or leave the output out and query the index"
        ));
    }
    if program.sources.iter().any(|source| source.collection == SourceCollection::All) {
        return Err(
            "an index over all documents would feed on its own output; leave the output out, or name the sources"
                .to_owned(),
        );
    }
    Ok(())
}

/// Reads the pattern of reference documents, and their collection: by default `<output>/References`.
fn check_reference(
    definition: &IndexDefinition,
    program: &Program,
    output: Option<&str>,
) -> Result<Option<Reference>, String> {
    let settings = ["reference", "PatternForOutputReduceToCollectionReferences"];
    let pattern = one_of(program.reference.as_ref(), definition.reference_pattern.as_ref(), |a, b| a == b, settings)?;
    let settings = ["reference(…, ", "PatternReferencesCollectionName"];
    let collection =
        one_of(program.reference_collection.as_ref(), definition.reference_collection.as_ref(), same_name, settings)?;
    let (pattern, output) = match (pattern, output) {
        (Some(pattern), Some(output)) => (Pattern::parse(&pattern)?, output),
        (Some(_), None) => {
            return Err(
                "it has a reference pattern and no output collection: there are no documents to refer to; name one"
                    .to_owned(),
            );
        }
        (None, _) if collection.is_some() => {
            return Err("it has a collection of reference documents and no pattern for their ids; add one".to_owned());
        }
        (None, _) => return Ok(None),
    };
    let collection = collection.unwrap_or_else(|| format!("{output}/References"));
    check_name("reference collection", &collection)?;
    if same_name(&collection, output) {
        return Err(format!(
            "its output and its reference documents share the collection '{output}'; name another for one"
        ));
    }
    Ok(Some(Reference { pattern, collection }))
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
        self.program.signature == other.program.signature
            && self.output == other.output
            && self.reference == other.reference
    }

    /// The collections that it writes: its output, and its reference documents.
    pub(crate) fn written(&self) -> Vec<String> {
        self.output.iter().chain(self.reference.iter().map(|reference| &reference.collection)).cloned().collect()
    }

    /// The reason why it can't take another's place: one would find the other's documents of another kind in its collection.
    pub(crate) fn clash(&self, former: &Checked) -> Option<String> {
        let of_references =
            |checked: &Checked| checked.reference.as_ref().map(|reference| reference.collection.clone());
        let is_same = |a: Option<String>, b: Option<String>| a.zip(b).filter(|(a, b)| same_name(a, b)).map(|(a, _)| a);
        let clash = is_same(self.output.clone(), of_references(former))
            .or_else(|| is_same(of_references(self), former.output.clone()))?;
        Some(format!(
            "the collection '{clash}' would change between output and reference documents; choose another one, or delete the \
             index first"
        ))
    }

    /// The index as the graph sees it.
    pub(crate) fn node(&self) -> Node {
        Node {
            name: self.definition.name.clone(),
            sources: self.program.sources.iter().map(|source| source.collection.clone()).collect(),
            loads: self.program.loads.clone(),
            outputs: self.written(),
        }
    }
}
