//! `treepie watch`: the changes of a collection as they commit, deletes included.
//!
//! One long answer of `_changes`, a row a line; empty lines are the server's sign of life.

use std::time::Duration;

use bytes::BytesMut;
use clap::Args;
use futures_util::StreamExt;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api::{Api, unanswered};
use super::document::{Shown, not_understood};
use super::failure::Exit;
use super::output::{Output, OutputArgs, cut, notice, width};
use super::{Failure, Target};

/// How often an idle server shows that it is there.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// How long a silent server counts as alive.
const SILENCE: Duration = Duration::from_secs(60);

/// Bytes of one row; a document is at most a quarter of that.
const ROW_BYTES_MAX: usize = 256 << 20;

/// Print the changes of a collection as they commit, deletes included
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The collection, artificial documents' too
    #[arg(value_name = "COLLECTION")]
    collection: String,
    /// Begin after this sequence number; 0 begins with all that is there
    #[arg(long, default_value = "now", value_name = "SEQ", value_parser = since)]
    since: String,
    /// End after so many changes
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// A row of the feed, or its last line.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    seq: Option<&'a RawValue>,
    id: Option<String>,
    #[serde(default)]
    deleted: bool,
    #[serde(borrow)]
    doc: Option<&'a RawValue>,
}

impl Watch {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.limit == 0 {
            return Ok(());
        }
        let api = Api::new(&self.target, SILENCE)?;
        let heartbeat = HEARTBEAT.as_millis().to_string();
        let request = api.request(Method::GET, "_changes").query(&[
            ("feed", "continuous"),
            ("since", &self.since),
            ("include_docs", "true"),
            ("collection", &self.collection),
            ("heartbeat", &heartbeat),
        ]);
        let response = api.send(request).await.map_err(|error| api.failure(error))?;
        notice(&format!("watching '{}'", self.collection));
        let mut chunks = response.bytes_stream();
        let mut printer = Printer { out: Output::new(self.output), left: self.limit, last: self.since };
        let mut buffer = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| printer.ended(&api.failure(unanswered(&error)).message))?;
            buffer.extend_from_slice(&chunk);
            if !chunk.contains(&b'\n') && buffer.len() <= ROW_BYTES_MAX {
                continue;
            }
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                printer.row(&buffer.split_to(end + 1))?;
                if printer.left == 0 {
                    return Ok(());
                }
            }
            if buffer.len() > ROW_BYTES_MAX {
                return Err(printer.ended(&format!("a row of the feed is longer than {ROW_BYTES_MAX} bytes")));
            }
        }
        Err(printer.ended("the server ended the feed"))
    }
}

/// Prints rows and remembers how far it came.
struct Printer {
    out: Output,
    left: u64,
    last: String,
}

impl Printer {
    fn row(&mut self, line: &[u8]) -> Result<(), Failure> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if line.is_empty() {
            return Ok(());
        }
        let row: Row<'_> = serde_json::from_str(line).map_err(|error| not_understood(&error))?;
        let Some(id) = row.id else { return Ok(()) };
        if self.out.for_people() {
            let text = match row.doc {
                Some(document) if !row.deleted => {
                    format!("{id}  {}", Shown::parse(document.get())?.without(&["@metadata", "_id", "_rev"]))
                }
                _ if row.deleted => format!("{id}  deleted"),
                _ => id,
            };
            self.out.line(&cut(&text, width()))?;
        } else {
            self.out.line(line)?;
        }
        self.out.flush()?;
        self.left -= 1;
        if let Some(seq) = row.seq {
            seq.get().trim_matches('"').clone_into(&mut self.last);
        }
        Ok(())
    }

    fn ended(&self, cause: &str) -> Failure {
        Failure::new(Exit::Unreachable, cause).way_out(format!("go on where it ended with --since {}", self.last))
    }
}

fn since(text: &str) -> Result<String, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if text == "now" || text.splitn(2, '-').all(is_number) {
        Ok(text.to_owned())
    } else {
        Err("it must be a sequence number or 'now'".to_owned())
    }
}
