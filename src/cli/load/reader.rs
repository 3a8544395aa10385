//! The reading half of a load, on a thread of its own: files into batches.
//!
//! It is never more than a few batches ahead of the sending half, which bounds memory.
//!
//! Next on the walk: `source`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc;

use super::Shape;
use super::batch::Batch;
use super::id::IdPlan;
use super::record::{Records, Trouble};
use super::source::{Format, Source};
use crate::cli::Failure;

/// What the reading half hands over.
pub(super) enum Read {
    /// Documents of one file.
    Batch(Batch),
    /// A line that is no document and is passed over.
    Skipped(BadLine),
    /// The last item: a file can't be read on. What stands before it was handed over.
    Failed(Failure),
}

/// A line that is not stored.
#[derive(Debug)]
pub(super) struct BadLine {
    pub(super) file: Arc<str>,
    pub(super) line: u64,
    pub(super) reason: String,
}

/// The files and what is to be made of them.
pub(super) struct Reader {
    pub(super) files: Vec<String>,
    pub(super) format: Option<Format>,
    pub(super) ids: Option<IdPlan>,
    pub(super) collection: Option<String>,
    pub(super) nulls: Vec<String>,
    pub(super) skip_bad: bool,
    /// Counts the bytes read from the files.
    pub(super) read: Arc<AtomicU64>,
    pub(super) out: mpsc::Sender<Read>,
}

/// Nobody wants more batches.
struct NoListener;

impl Reader {
    /// Reads all files; ends early at the first failure, or when nobody listens any more.
    pub(super) fn run(self) {
        for file in &self.files {
            match self.file(file) {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => {
                    // Without a listener there is nobody to tell.
                    let _ = self.hand_over(Read::Failed(failure));
                    return;
                }
                Err(NoListener) => return,
            }
        }
    }

    fn file(&self, file: &str) -> Result<Result<(), Failure>, NoListener> {
        let opened = Source::open(file, self.format, Arc::clone(&self.read));
        let opened = opened.and_then(|source| {
            let (name, format) = (Arc::<str>::from(source.name.as_str()), source.format);
            Ok((name, format, Records::new(source, &self.nulls)?))
        });
        let (name, format, mut records) = match opened {
            Ok(opened) => opened,
            Err(failure) => return Ok(Err(failure)),
        };
        let shape = Shape::new(self.ids_of(format), self.collection.clone());
        let mut batch = Batch::new(Arc::clone(&name));
        let mut document = String::new();
        let result = loop {
            let (line, reason) = match records.next(&mut document) {
                Ok(None) => break Ok(()),
                Ok(Some(line)) => match batch.push(line, &document, &shape) {
                    Ok(()) if batch.is_full() => {
                        let full = std::mem::replace(&mut batch, Batch::new(Arc::clone(&name)));
                        self.hand_over(Read::Batch(full))?;
                        continue;
                    }
                    Ok(()) => continue,
                    Err(reason) => (line, reason),
                },
                Err(Trouble::Bad { line, reason }) => (line, reason),
                Err(Trouble::Fatal(failure)) => break Err(failure),
            };
            let bad = BadLine { file: Arc::clone(&name), line, reason };
            if !self.skip_bad {
                break Err(bad.into());
            }
            self.hand_over(Read::Skipped(bad))?;
        };
        if batch.len() > 0 {
            self.hand_over(Read::Batch(batch))?;
        }
        Ok(result)
    }

    /// Rows of a CSV bring no id of their own.
    fn ids_of(&self, format: Format) -> IdPlan {
        let own = if format == Format::Csv { IdPlan::Guid } else { IdPlan::Own };
        self.ids.clone().unwrap_or(own)
    }

    fn hand_over(&self, item: Read) -> Result<(), NoListener> {
        self.out.blocking_send(item).map_err(|_| NoListener)
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

impl From<BadLine> for Failure {
    fn from(bad: BadLine) -> Self {
        Self::failed(bad.to_string()).way_out("correct the line, or go on past bad ones with --skip-bad")
    }
}
