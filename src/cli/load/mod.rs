//! `treepie load`: documents from files, in bounded memory.
//!
//! One thread (`reader`) reads records (`source`, `record`, `rows`) and makes batches (`shape`, `batch`); a few of them are under way to the server at
//! a time (`sender`). What can be seen of the order is the order of the lines: of two lines with one id the later one
//! wins, and numbers that the server gives rise with the lines.
//!
//! Next on the walk: `reader`.

mod batch;
mod id;
mod lookahead;
mod progress;
mod reader;
mod record;
mod rows;
mod samples;
mod sender;
mod shape;
mod source;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::Args;
use tokio::sync::mpsc;

use super::api::{ANSWER_TIMEOUT, Api};
use super::output::{Output, OutputArgs, grouped, notice};
use super::{Failure, Target};
use id::IdPlan;
use progress::Progress;
use reader::{Read, Reader};
pub(crate) use samples::samples;
use sender::{Outcome, Sender};
use shape::Shape;
use source::Format;

/// Batches that wait between reading and sending.
const BATCHES_WAITING: usize = 2;

/// Load documents from JSON lines or CSV, plain or gzipped
#[derive(Debug, Args)]
#[command(after_help = "\
Formats: JSON lines (one object a line) and CSV with a line of names, by the file's name or else its first character; each
may be gzipped. A CSV field whose text is a number as JSON spells numbers becomes that very number (1.50 and 1e5 do; 00123,
+1 and .5 stay text), an empty one or one equal to --null becomes null, all else is text; quoted or not makes no difference.

Ids, by --id:
  'orders/{OrderId}'  made from fields, with dots into nested objects: 'orders/{Customer.Id}/{Line}'
  'orders/'           made by the server: orders/0000000000000000042-A
  'orders|'           numbered by the server: orders/7
  ''                  a GUID
Without --id, a JSON line is stored under its own @metadata.@id, or else the text in its field 'id', or else a GUID; a CSV
row gets a GUID.

A bad line is named and ends the load; all lines before it are stored. A document that is there already is replaced.
The database is created if it is missing.")]
pub(crate) struct Load {
    /// Files; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The collection of all documents, instead of their own @metadata.@collection or none
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Where ids come from, see below
    #[arg(long, value_name = "ID", value_parser = IdPlan::parse)]
    id: Option<IdPlan>,
    /// Text of a CSV field that means null; may be given more than once
    #[arg(long, value_name = "TEXT")]
    null: Vec<String>,
    /// How the files are written, instead of a guess
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Go on past bad lines, and count them
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Load {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.files.iter().filter(|file| *file == "-").count() > 1 {
            return Err(Failure::usage("standard input can be read only once"));
        }
        // A mistyped name must not leave an empty database behind.
        for file in self.files.iter().filter(|file| *file != "-") {
            let found = std::fs::metadata(file).map_err(|error| Failure::file(file, &error))?;
            if found.is_dir() {
                return Err(Failure::failed(format!("{file}: is a directory"))
                    .way_out(format!("name the files in it: treepie load {}/*", file.trim_end_matches('/'))));
            }
        }
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        api.ensure_database().await?;
        let read = Arc::new(AtomicU64::new(0));
        let mut loading = Loading {
            progress: Progress::new(size(&self.files), Arc::clone(&read)),
            sender: Sender::new(api, self.skip_bad),
            skip_bad: self.skip_bad,
            repeatable: true,
        };
        let (out, batches) = mpsc::channel(BATCHES_WAITING);
        let reader = Reader {
            files: self.files,
            format: self.format,
            ids: self.id,
            collection: self.collection,
            nulls: self.null,
            skip_bad: self.skip_bad,
            read,
            out,
        };
        // It ends by itself when nobody listens; one that waits for standard input ends with the process.
        std::thread::spawn(move || reader.run());
        loading.run(batches).await?;
        let mut out = Output::new(self.output);
        let summary = if out.for_people() { loading.progress.summary() } else { loading.progress.json() };
        out.line(&summary)?;
        out.flush()
    }
}

/// The sending half of a load.
struct Loading {
    progress: Progress,
    sender: Sender,
    skip_bad: bool,
    /// Loading the same again would store no document twice.
    repeatable: bool,
}

impl Loading {
    /// Stores what is read until the end or the first failure, which then tells how much is stored.
    async fn run(&mut self, mut read: mpsc::Receiver<Read>) -> Result<(), Failure> {
        let mut result = self.store(&mut read).await;
        read.close();
        let mut stored_before = self.progress.stored;
        while let Some(outcome) = self.sender.next().await {
            let taken = self.take(outcome);
            // A batch under way stands before the line that could not be read, and behind a batch that failed.
            if !matches!(&result, Err(Stop::Batch(_))) {
                stored_before = self.progress.stored;
                result = taken.map_err(Stop::Batch).and(result);
            }
        }
        self.progress.finish();
        result.map_err(|(Stop::Batch(failure) | Stop::Read(failure))| self.explain(failure, stored_before))
    }

    async fn store(&mut self, read: &mut mpsc::Receiver<Read>) -> Result<(), Stop> {
        while let Some(item) = read.recv().await {
            match item {
                Read::Failed(failure) => return Err(Stop::Read(failure)),
                Read::Skipped(bad) => self.progress.skip(&bad.to_string(), notice),
                Read::Batch(batch) => {
                    while self.sender.must_wait(&batch) {
                        if let Some(outcome) = self.sender.next().await {
                            self.take(outcome).map_err(Stop::Batch)?;
                        }
                    }
                    self.repeatable &= batch.repeatable;
                    self.sender.send(batch);
                }
            }
        }
        Ok(())
    }

    /// Counts what became of a batch.
    fn take(&mut self, outcome: Outcome) -> Result<(), Failure> {
        self.progress.stored += outcome.stored;
        self.progress.show();
        for bad in outcome.bad {
            if !self.skip_bad {
                return Err(bad.into());
            }
            self.progress.skip(&bad.to_string(), notice);
        }
        outcome.failure.map_or(Ok(()), Err)
    }

    /// Adds to a failure what is stored and how to go on.
    fn explain(&self, failure: Failure, stored_before: u64) -> Failure {
        let after = self.progress.stored - stored_before;
        let stored = match (stored_before, after) {
            (0, 0) => "nothing is stored".to_owned(),
            (1, 0) => "1 document is stored: the one before it".to_owned(),
            (_, 0) => format!("{} documents are stored: all before it", grouped(stored_before)),
            _ => format!(
                "{} documents are stored: all before it, and {} that were under way behind it",
                grouped(self.progress.stored),
                grouped(after)
            ),
        };
        let twice = "; load only the rest: their ids were made by the server, so loading them again stores them twice";
        let twice = if self.progress.stored > 0 && !self.repeatable { twice } else { "" };
        let text = match &failure.way_out {
            Some(way_out) => format!("{way_out}\n  {stored}{twice}"),
            None => format!("{stored}{twice}"),
        };
        failure.way_out(text)
    }
}

/// Why a load stopped.
enum Stop {
    /// A batch was not stored, or not whole.
    Batch(Failure),
    /// A file could not be read on; every batch before it is under way.
    Read(Failure),
}

/// Bytes of all files; `None` with standard input or a pipe among them.
fn size(files: &[String]) -> Option<u64> {
    let size = |file: &String| std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file).map(|data| data.len());
    files.iter().map(size).sum()
}
