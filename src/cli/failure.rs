//! Why a command failed: a message, the way out, and the exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// What the shell is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Whoever read our output has seen enough; not a failure.
    Enough,
    /// The server refused, a file could not be read, or an index is in error.
    Failed,
    /// The command line asks for something impossible.
    Usage,
    /// The document, index or database is not there.
    NotFound,
    /// The server could not be reached, or went away.
    Unreachable,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What happened, naming the thing.
    pub(crate) message: String,
    /// What to do about it, where that is known.
    pub(crate) way_out: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), way_out: None }
    }

    /// The command could not do what it was asked to.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The arguments make no sense together.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds what to do about it.
    pub(crate) fn way_out(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }

    /// A failure to write to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Enough, "");
        }
        Self::failed(format!("standard output: {error}"))
    }

    /// A failure to read `file`.
    pub(crate) fn file(file: &str, error: &io::Error) -> Self {
        Self::failed(format!("{file}: {error}"))
    }

    /// The code for the shell.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.exit {
            Exit::Enough => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Unreachable => 4,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(way_out) = &self.way_out {
            write!(f, "\n  {way_out}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
