//! A script's failure: data that is recorded and shown, not an error of the server.

use serde::Serialize;

/// When a script failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, bincode::Encode, bincode::Decode)]
pub enum Phase {
    /// While the definition was checked.
    Definition,
    /// In a map function.
    Map,
    /// In `reduce`.
    Reduce,
    /// In `finish`, or while the artificial document was made.
    Finish,
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
    /// What happened.
    pub message: String,
    /// What to do about it, where the cause is known.
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
