//! Index scripts: Rhai in a sandbox.
//!
//! A [`Program`] is a checked definition that any thread may hold; a [`Runner`] is one thread's engine for it.
//! Values cross this room's border in one canonical encoding (`encoding`), so that equal values are equal bytes.

pub mod encoding;
pub mod fault;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use fault::{Fault, Phase};

/// What bounds a script. All explicit, the same in debug and release builds.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Operations of one call. Default 1,000,000.
    pub operations_max: u64,
    /// Nested calls. Default 32.
    pub call_depth_max: usize,
    /// Bytes of a string that a script makes. Default 64 KiB.
    pub string_bytes_max: usize,
    /// Elements of an array that a script makes. Default 1,000... at most 5,000.
    pub array_elements_max: usize,
    /// Properties of a map that a script makes. At most 5,000.
    pub map_properties_max: usize,
    /// Entries that one document may emit. Default 10,000.
    pub entries_max: usize,
    /// Encoded bytes of a key. Default 128 KiB.
    pub key_bytes_max: usize,
    /// Encoded bytes of a value or result. Default 1 MiB.
    pub value_bytes_max: usize,
    /// Nesting of keys, values and results. Default 64.
    pub depth_max: usize,
    /// Wall time of one call, a safety net; such a fault is transient. Default 5 s.
    pub wall_max: std::time::Duration,
}

/// The stack, in bytes, that a thread needs which compiles or runs scripts.
pub const STACK_BYTES: usize = 16 * 1024 * 1024;

/// The texts of an index: each of `maps` is compiled alone with its `source(…)` calls and map functions; without `reduce`
/// (one `.rhai` file) the first text may hold `reduce` and `finish` too.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Texts {
    /// Map scripts.
    pub maps: Vec<String>,
    /// A script with `reduce` and perhaps `finish`.
    pub reduce: Option<String>,
}

/// Where a map function gets its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceCollection {
    /// One collection, as spelled in `source`.
    Named(String),
    /// `ALL_DOCS`: every document that is in no `@…` collection.
    All,
}

/// One `source(…)` call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The documents.
    pub collection: SourceCollection,
    /// Which of [`Texts::maps`].
    pub text: usize,
    /// The function's name.
    pub function: String,
}

/// A checked definition. `Send + Sync`.
#[derive(Debug)]
pub struct Program {
    /// What the definition maps, in declaration order.
    pub sources: Vec<Source>,
    /// The output collection.
    pub output: Option<String>,
    /// The pattern of reference documents.
    pub reference: Option<String>,
    /// Whether there is a `reduce`.
    pub has_reduce: bool,
    /// Whether there is a `finish`.
    pub has_finish: bool,
    /// Collections that `load` names.
    pub loads: Vec<String>,
    /// A hash of the tokens of all texts: comments and white space do not change it.
    pub signature: [u8; 16],
    texts: Texts,
    limits: Limits,
}

impl Program {
    /// Compiles the texts, runs their top level once, and checks the shape. Runs on a thread of its own with [`STACK_BYTES`].
    ///
    /// # Errors
    /// A [`Fault`] of phase `Definition` that names script, line, column, rule and way out.
    pub fn compile(texts: Texts, limits: Limits) -> Result<Self, Fault> {
        todo!()
    }
}

/// A document as a map function sees it.
#[derive(Clone, Copy, Debug)]
pub struct MapInput<'a> {
    /// The id as last written.
    pub id: &'a str,
    /// The collection, spelled as in `source` (the document's own for `ALL_DOCS`).
    pub collection: &'a str,
    /// The user's own metadata, JSON text of an object.
    pub metadata: &'a str,
    /// The JSON text of the object, without `@metadata`. Checked when it was stored.
    pub body: &'a str,
}

/// One entry that a map function emitted, both canonically encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The reduce key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// One thread's engine for one program. Neither `Send` nor `Sync`; threads that use one need [`STACK_BYTES`] of stack.
pub struct Runner {
    program: Arc<Program>,
}

impl Runner {
    /// Builds the engine. `stop` ends a running script with a transient fault when it becomes true.
    pub fn new(program: Arc<Program>, stop: Arc<AtomicBool>) -> Result<Self, Fault> {
        todo!()
    }

    /// Maps one document by `program.sources[source]`: its entries in the order of `emit`, or a fault and none.
    pub fn map(&mut self, source: usize, document: &MapInput<'_>) -> Result<Vec<Emitted>, Fault> {
        todo!()
    }

    /// Reduces encoded values to one encoded value (`()` is encoded null).
    pub fn reduce(&mut self, key: &[u8], values: &[&[u8]]) -> Result<Vec<u8>, Fault> {
        todo!()
    }

    /// Makes the body of the artificial document: the key's fields (`Key` where the key is no object), then the finished value's fields, each
    /// in code-point order. `None`: no document for this group (the value, or what `finish` gave, is `()`).
    pub fn finish(&mut self, key: &[u8], value: &[u8]) -> Result<Option<String>, Fault> {
        todo!()
    }
}
impl Default for Limits {
    fn default() -> Self {
        todo!()
    }
}
