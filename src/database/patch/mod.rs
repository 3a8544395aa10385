//! JSON Patch (RFC 6902) on the text of a document: what an operation does not touch keeps its text to the last digit, so
//! no number is ever changed by a patch of another property. That is why this is not a library that patches parsed values.
//!
//! A patch is checked when it is made and applied whole or not at all. The document it sees has its properties and an
//! `@metadata` with `@collection` and the user's own keys.
//!
//! Next on the walk: `place`, then `equal`.

mod equal;
mod place;

use crate::store::document::{Document, ParsedDocument};
use place::{Pointer, Seek, find};

/// Bytes that the operations of one patch may pass over, all together: some ten seconds.
const WORK_BYTES_MAX: usize = 4 << 30;
/// A document that grows beyond is refused.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// One operation of a patch. Paths are JSON pointers (`/Lines/0/Price`, `/Lines/-` behind the last); a value is JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchStep {
    /// Sets a property, or inserts an element.
    Add {
        /// Where.
        path: String,
        /// What.
        value: String,
    },
    /// Removes what is there.
    Remove {
        /// Where.
        path: String,
    },
    /// Sets what is there already.
    Replace {
        /// Where.
        path: String,
        /// What.
        value: String,
    },
    /// Removes a value and adds it elsewhere.
    Move {
        /// Where it is.
        from: String,
        /// Where it goes.
        path: String,
    },
    /// Adds a value elsewhere too.
    Copy {
        /// Where it is.
        from: String,
        /// Where it goes too.
        path: String,
    },
    /// Refuses the patch unless this value is there: numbers compare by value, exactly, objects without regard to order.
    Test {
        /// Where.
        path: String,
        /// What.
        value: String,
    },
}

/// A checked patch.
///
/// ```
/// use treepie::database::{JsonPatch, PatchStep};
/// use treepie::store::document::Document;
///
/// let document = Document::parse(br#"{"Price":1.10,"Tags":["a"]}"#)?.document;
/// let add = PatchStep::Add { path: "/Tags/-".into(), value: "\"b\"".into() };
/// let patched = JsonPatch::new(vec![add])?.apply(&document)?;
/// assert_eq!(patched.document.body, r#"{"Price":1.10,"Tags":["a","b"]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPatch {
    steps: Vec<Step>,
    document_bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    deed: Deed,
    path: Pointer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Deed {
    Add(String),
    Remove,
    Replace(String),
    Move(Pointer),
    Copy(Pointer),
    Test(String),
}

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch itself is wrong, or it does not fit the document.
    #[error("operation {position} of the patch, counted from 0 ({op} '{path}'): {reason}")]
    Operation {
        /// The operation, from 0.
        position: usize,
        /// `add`, `remove`, `replace`, `move`, `copy` or `test`.
        op: &'static str,
        /// Its path, cut to 80 characters.
        path: String,
        /// The rule, and the way out.
        reason: String,
    },
    /// The patch as a whole, or what it makes of the document.
    #[error("{0}")]
    Whole(String),
}

impl JsonPatch {
    /// Operations of one patch.
    pub const OPERATIONS_MAX: usize = 10_000;

    /// Checks the operations of a patch.
    ///
    /// # Errors
    /// More than 10,000 operations, a path that is no JSON pointer, a value that could not stand in a document.
    ///
    /// # Cost
    /// One pass over the values.
    pub fn new(steps: Vec<PatchStep>) -> Result<Self, PatchError> {
        if steps.len() > Self::OPERATIONS_MAX {
            return Err(PatchError::Whole(format!(
                "the patch has {} operations, and {} are allowed; send several",
                steps.len(),
                Self::OPERATIONS_MAX
            )));
        }
        let checked = steps.into_iter().enumerate().map(|(position, step)| {
            let (op, path) = (step.op(), step.path().to_owned());
            Step::check(step).map_err(|reason| refused(position, op, &path, reason))
        });
        Ok(Self { steps: checked.collect::<Result<_, _>>()?, document_bytes_max: DOCUMENT_BYTES_MAX })
    }

    /// Refuses to make a document longer than `bytes`; the default is 64 MiB.
    #[must_use]
    pub fn with_document_bytes_max(mut self, bytes: usize) -> Self {
        self.document_bytes_max = bytes;
        self
    }

    /// Whether it only tests, so that the document stays as it is.
    #[must_use]
    pub fn only_tests(&self) -> bool {
        self.steps.iter().all(|step| matches!(step.deed, Deed::Test(_)))
    }

    /// Makes the patched document.
    ///
    /// # Errors
    /// An operation finds nothing at its path, a test fails, or what comes of it is no document.
    ///
    /// # Cost
    /// O(operations · length of the document); refused where that is beyond 4 GiB.
    pub fn apply(&self, document: &Document) -> Result<ParsedDocument, PatchError> {
        let mut text = document.to_json();
        let mut work = 0_usize;
        for (position, step) in self.steps.iter().enumerate() {
            work = work.saturating_add(text.len());
            let applied = if work > WORK_BYTES_MAX {
                Err("the patch has too many operations for a document of this size; send several".to_owned())
            } else {
                step.apply(&text, self.document_bytes_max)
            };
            match applied {
                Ok(None) => {}
                Ok(Some(changed)) => text = changed,
                Err(reason) => return Err(refused(position, step.deed.op(), step.path.text(), reason)),
            }
        }
        Document::parse(text.as_bytes()).map_err(|error| PatchError::Whole(format!("what the patch makes: {error}")))
    }
}

impl PatchStep {
    fn op(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Replace { .. } => "replace",
            Self::Move { .. } => "move",
            Self::Copy { .. } => "copy",
            Self::Test { .. } => "test",
        }
    }

    fn path(&self) -> &str {
        match self {
            Self::Add { path, .. }
            | Self::Remove { path }
            | Self::Replace { path, .. }
            | Self::Move { path, .. }
            | Self::Copy { path, .. }
            | Self::Test { path, .. } => path,
        }
    }
}

impl Deed {
    fn op(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Remove => "remove",
            Self::Replace(_) => "replace",
            Self::Move(_) => "move",
            Self::Copy(_) => "copy",
            Self::Test(_) => "test",
        }
    }
}

impl Step {
    fn check(step: PatchStep) -> Result<Self, String> {
        let path = Pointer::parse(step.path())?;
        let deed = match step {
            PatchStep::Add { value, .. } => Deed::Add(check_value(value)?),
            PatchStep::Replace { value, .. } => Deed::Replace(check_value(value)?),
            PatchStep::Test { value, .. } => Deed::Test(check_value(value)?),
            PatchStep::Remove { .. } if path.is_root() => {
                return Err("the whole document can't be removed by a patch; delete it".to_owned());
            }
            PatchStep::Remove { .. } => Deed::Remove,
            PatchStep::Copy { from, .. } => Deed::Copy(Pointer::parse(&from)?),
            PatchStep::Move { from, .. } => {
                let from = Pointer::parse(&from)?;
                if path.is_below(&from) {
                    return Err(format!("'{}' can't be moved into itself; copy it", from.shown()));
                }
                Deed::Move(from)
            }
        };
        Ok(Self { deed, path })
    }

    /// The text that comes of it; `None` where it stays.
    fn apply(&self, text: &str, bytes_max: usize) -> Result<Option<String>, String> {
        let changed = match &self.deed {
            Deed::Test(value) => {
                let present = &text[find(text, &self.path)?];
                if equal::is_equal(present, value) {
                    return Ok(None);
                }
                return Err(format!("the value there is {}, and not {}", shown(present), shown(value)));
            }
            Deed::Add(value) => add(text, &self.path, value, bytes_max)?,
            Deed::Remove => remove(text, &self.path)?,
            Deed::Replace(value) => {
                let place = find(text, &self.path)?;
                place::joined(&[&text[..place.start], value, &text[place.end..]], bytes_max)?
            }
            Deed::Copy(from) => add(text, &self.path, &text[find(text, from)?], bytes_max)?,
            Deed::Move(from) => {
                let value = &text[find(text, from)?];
                if *from == self.path {
                    return Ok(None);
                }
                add(&remove(text, from)?, &self.path, value, bytes_max)?
            }
        };
        Ok(Some(changed))
    }
}

fn add(text: &str, path: &Pointer, value: &str, bytes_max: usize) -> Result<String, String> {
    if path.is_root() {
        return place::joined(&[value], bytes_max);
    }
    Seek::parent_of(text, path)?.with(text, value, bytes_max)
}

fn remove(text: &str, path: &Pointer) -> Result<String, String> {
    Seek::parent_of(text, path)?.without(text)
}

/// Checks that a value could stand in a document.
fn check_value(value: String) -> Result<String, String> {
    match Document::parse(format!("{{\"value\":{value}}}").as_bytes()) {
        Ok(_) => Ok(value),
        Err(error) => Err(format!("its value can't stand in a document: {error}")),
    }
}

fn refused(position: usize, op: &'static str, path: &str, reason: String) -> PatchError {
    PatchError::Operation { position, op, path: crate::id::cut(path), reason }
}

fn shown(json: &str) -> String {
    crate::id::cut(json)
}

#[cfg(test)]
mod tests;
