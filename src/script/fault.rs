//! A script's failure: data that is recorded and shown, not an error of the server.
//!
//! `translate` makes one of what the engine reports: in plain words, with a position and, where the cause is known, the
//! way out.

mod translate;

use serde::Serialize;

pub(super) use translate::{Finding, from_failure, from_parse_error};

/// Bytes of a message or hint.
const TEXT_BYTES_MAX: usize = 1024;

/// When a script failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, bincode::Encode, bincode::Decode)]
pub enum Phase {
    /// While the definition was checked.
    Definition,
    /// In a map function.
    Map,
    /// In `reduce`.
    Reduce,
    /// In `finish`, or while the artificial document was made.
    Finish,
    /// While a reference document was made.
    Reference,
    /// In a subscription's `filter`.
    Filter,
    /// In a subscription's `project`.
    Project,
}

/// A script's failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, bincode::Encode, bincode::Decode)]
pub struct Fault {
    /// When.
    pub phase: Phase,
    /// Which text: `Maps[0]`, `Reduce`, or `script` where there is but one.
    pub script: String,
    /// The line, from 1; `None` where the engine gives none.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The function, where known.
    pub function: Option<String>,
    /// What happened. At most 1 KiB.
    pub message: String,
    /// What to do about it, where the cause is known. At most 1 KiB.
    pub hint: Option<String>,
    /// Whether trying again may succeed (wall time, a stop).
    pub transient: bool,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.script)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(function) = &self.function {
            write!(f, " in {function}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// Cuts a text at a character's border, marking the cut.
fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let mut end = TEXT_BYTES_MAX - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}
