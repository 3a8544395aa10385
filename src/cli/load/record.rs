//! Records of a file, one JSON object each, with the line where they stand: JSON lines here, CSV in `rows`.
//!
//! Next on the walk: `rows`.

use std::io::{BufRead, Read};

use super::rows::Rows;
use super::source::{Format, Source};
use crate::cli::Failure;

/// Bytes of a JSON line; a document must fit into one request.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// What keeps a record from being read.
#[derive(Debug)]
pub(super) enum Trouble {
    /// This record is no document; the next one may be.
    Bad { line: u64, reason: String },
    /// The file can't be read on.
    Fatal(Failure),
}

/// The records of one file.
pub(super) enum Records {
    Lines(Lines),
    Rows(Rows),
}

impl Records {
    /// Begins to read `source`; fields of a CSV that equal one of `nulls` are null.
    ///
    /// # Errors
    /// A CSV's line of names can't be read, or is unfit.
    pub(super) fn new(source: Source, nulls: &[String]) -> Result<Self, Failure> {
        match source.format {
            Format::Jsonl => {
                Ok(Self::Lines(Lines { name: source.name, text: source.text, line: 0, bytes: Vec::new() }))
            }
            Format::Csv => Rows::new(source, nulls).map(Self::Rows),
        }
    }

    /// Reads the next record into `document` and tells its line, from 1; `None` at the end.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(super) fn next(&mut self, document: &mut String) -> Result<Option<u64>, Trouble> {
        document.clear();
        match self {
            Self::Lines(lines) => lines.next(document),
            Self::Rows(rows) => rows.next(document),
        }
    }
}

/// JSON lines; blank ones are passed over.
pub(super) struct Lines {
    name: String,
    text: Box<dyn BufRead + Send>,
    line: u64,
    bytes: Vec<u8>,
}

impl Lines {
    fn next(&mut self, document: &mut String) -> Result<Option<u64>, Trouble> {
        loop {
            self.bytes.clear();
            let mut limited = (&mut self.text).take(LINE_BYTES_MAX);
            let count = limited
                .read_until(b'\n', &mut self.bytes)
                .map_err(|error| Trouble::Fatal(Failure::file(&self.name, &error)))?;
            if count == 0 {
                return Ok(None);
            }
            self.line += 1;
            if count as u64 == LINE_BYTES_MAX {
                return Err(Trouble::Fatal(too_long(&self.name, self.line, LINE_BYTES_MAX)));
            }
            let Ok(line) = std::str::from_utf8(&self.bytes) else {
                return Err(Trouble::Bad { line: self.line, reason: "it is not UTF-8".to_owned() });
            };
            let line = line.trim();
            if !line.is_empty() {
                document.push_str(line);
                return Ok(Some(self.line));
            }
        }
    }
}

/// The failure for a record longer than `bytes_max`.
pub(super) fn too_long(file: &str, line: u64, bytes_max: u64) -> Failure {
    Failure::failed(format!("{file}:{line}: a record is longer than {} MiB", bytes_max >> 20))
        .way_out("is a quote never closed, or a line break missing?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_json_lines_are_passed_over_but_counted() {
        let text = Box::new(std::io::Cursor::new("{\"a\":1}\r\n\n  \n{\"b\":2}"));
        let source = Source { name: "f".to_owned(), format: Format::Jsonl, text };
        let mut records = Records::new(source, &[]).unwrap();
        let mut document = String::new();
        assert_eq!(records.next(&mut document).unwrap(), Some(1));
        assert_eq!(document, "{\"a\":1}");
        assert_eq!(records.next(&mut document).unwrap(), Some(4));
        assert_eq!(document, "{\"b\":2}");
        assert_eq!(records.next(&mut document).unwrap(), None);
    }
}
