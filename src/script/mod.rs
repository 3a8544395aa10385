#![doc = include_str!("guide.md")]
//!
//! # In the code
//!
//! A [`Program`] is a checked definition that any thread may hold; a [`Runner`] is one thread's engine for it.
//! Values cross this room's border in one canonical encoding ([`encoding`]), so that equal values are equal bytes. The
//! walk: `program` compiles, `runner` calls, `sieve` does both for subscriptions, `host` shows documents, `functions` is what scripts can call.

pub mod encoding;
mod engine;
pub mod fault;
mod functions;
mod host;
pub(crate) mod json;
pub mod number;
mod problem;
mod program;
mod runner;
pub mod sieve;
mod state;
mod watch;

pub use fault::{Fault, Phase};
pub use runner::Runner;

use crate::id::DocumentId;

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
    /// Encoded bytes of all entries that one document may emit. Default 16 MiB.
    pub emitted_bytes_max: usize,
    /// Bytes of one script. Default 1 MiB.
    pub text_bytes_max: usize,
    /// Documents that one call may load. Default 1,000.
    pub loads_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            operations_max: 1_000_000,
            call_depth_max: 32,
            string_bytes_max: 64 * 1024,
            array_elements_max: 1_000,
            map_properties_max: 1_000,
            entries_max: 10_000,
            key_bytes_max: 128 * 1024,
            value_bytes_max: 1024 * 1024,
            depth_max: 64,
            wall_max: std::time::Duration::from_secs(5),
            emitted_bytes_max: 16 * 1024 * 1024,
            text_bytes_max: 1024 * 1024,
            loads_max: 1_000,
        }
    }
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

/// Fields of a key that are properties of the document: name and path, by name.
pub type PlainKey = Vec<(String, Vec<String>)>;

/// A checked definition. `Send + Sync`.
#[derive(Debug)]
pub struct Program {
    /// What the definition maps, in declaration order.
    pub sources: Vec<Source>,
    /// The output collection.
    pub output: Option<String>,
    /// The pattern of reference documents.
    pub reference: Option<String>,
    /// The collection of reference documents, where the script names one.
    pub reference_collection: Option<String>,
    /// Whether there is a `reduce`.
    pub has_reduce: bool,
    /// Whether there is a `finish`.
    pub has_finish: bool,
    /// Collections that `load` names, each once.
    pub loads: Vec<String>,
    /// The names of the fields of every reduce key, in code-point order; `None` where the scripts alone do not tell.
    pub key_names: Option<Vec<String>>,
    /// The fields of the key of every document, where the only map function emits once and properties of the document as they are.
    pub plain_key: Option<PlainKey>,
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
    ///
    /// # Cost
    /// A thread, and a few milliseconds per text.
    pub fn compile(texts: Texts, limits: Limits) -> Result<Self, Fault> {
        let own = |message: String| fault::Finding::new(message).transient().into_fault("script");
        let thread = std::thread::Builder::new()
            .name("script-compile".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || std::panic::catch_unwind(|| Self::build(texts, limits)))
            .map_err(|error| own(format!("no thread could be started to compile the script: {error}")))?;
        match thread.join() {
            Ok(Ok(program)) => program,
            _ => Err(own("an internal error ended the compilation".to_owned())),
        }
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

/// Where `load` finds documents: all calls of one run must see the same.
pub trait Loader {
    /// The document with this id, compared without regard to case. `None`: there is none.
    ///
    /// # Errors
    /// The reason why it could not be read; the call then ends with a transient fault.
    fn load(&self, id: &DocumentId) -> Result<Option<LoadedDocument>, String>;
}

/// A document that a script loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedDocument {
    /// The id as last written.
    pub id: String,
    /// Its collection.
    pub collection: String,
    /// The user's own metadata, JSON text of an object.
    pub metadata: String,
    /// The JSON text of the object, without `@metadata`. Checked when it was stored.
    pub body: String,
}

/// One entry that a map function emitted, both canonically encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The reduce key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// A field that a script read and that nothing had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// When it was read.
    pub phase: Phase,
    /// In a map the way from the document, `Lines[].Product`; in `reduce` and `finish` the name.
    pub path: String,
    /// How often it was read.
    pub reads: u64,
}
