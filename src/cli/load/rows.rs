//! Rows of a CSV as JSON objects.
//!
//! A field becomes that very number where its text is one as JSON spells numbers, null where it is empty or one of the
//! `--null` texts, and a string otherwise; whether it was quoted makes no difference.
//!
//! Next on the walk: `shape`.

use std::cell::RefCell;
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder};

use super::lookahead::{Lookahead, Passed, is_too_long};
use super::record::{Trouble, too_long};
use super::source::Source;
use crate::cli::{Failure, json};

/// Bytes of a row.
const ROW_BYTES_MAX: u64 = 16 << 20;

/// Rows of a CSV.
pub(super) struct Rows {
    file: String,
    reader: csv::Reader<Lookahead>,
    passed: Rc<RefCell<Passed>>,
    /// The last line of the record before.
    last_line: u64,
    /// Each name as it begins a member: `"Name":`.
    names: Vec<String>,
    nulls: Vec<String>,
    row: ByteRecord,
}

impl Rows {
    /// Reads the line of names.
    ///
    /// # Errors
    /// It can't be read, or a name is missing, twice there or reserved.
    pub(super) fn new(source: Source, nulls: &[String]) -> Result<Self, Failure> {
        let passed = Rc::new(RefCell::new(Passed::default()));
        passed.borrow_mut().allow(ROW_BYTES_MAX);
        let text = Lookahead::new(source.text, Rc::clone(&passed));
        let mut reader = ReaderBuilder::new().flexible(true).buffer_capacity(1 << 16).from_reader(text);
        let header = reader.byte_headers().map_err(|error| broken(&source.name, 1, error))?;
        let mut seen: Vec<&str> = Vec::with_capacity(header.len());
        for (column, name) in header.iter().enumerate() {
            let unfit = |what: &str| Failure::failed(format!("{}:1: column {}: {what}", source.name, column + 1));
            let name = std::str::from_utf8(name).map_err(|_| unfit("its name is not UTF-8"))?;
            if name.is_empty() {
                return Err(unfit("it has no name in the first line"));
            }
            if name == "@metadata" {
                return Err(unfit("'@metadata' can't be a column; --collection and --id set what belongs there"));
            }
            if let Some(first) = seen.iter().position(|other| *other == name) {
                return Err(unfit(&format!("it is called '{name}' like column {}", first + 1)));
            }
            seen.push(name);
        }
        let names = seen.iter().map(|name| {
            let mut text = String::new();
            json::push_string(&mut text, name);
            text.push(':');
            text
        });
        let names = names.collect();
        Ok(Self {
            file: source.name,
            reader,
            passed,
            last_line: 1,
            names,
            nulls: nulls.to_vec(),
            row: ByteRecord::new(),
        })
    }

    /// Reads the next row into `document` and tells its first line; `None` at the end.
    pub(super) fn next(&mut self, document: &mut String) -> Result<Option<u64>, Trouble> {
        self.passed.borrow_mut().allow(ROW_BYTES_MAX);
        let more = self.reader.read_byte_record(&mut self.row);
        if !more.map_err(|error| Trouble::Fatal(broken(&self.file, self.last_line + 1, error)))? {
            return Ok(None);
        }
        self.last_line = self.passed.borrow_mut().line_ending_before(self.reader.position().byte());
        let breaks_inside = self.row.iter().flatten().filter(|byte| **byte == b'\n');
        let line = self.last_line - breaks_inside.fold(0, |sum, _| sum + 1).min(self.last_line);
        if self.row.len() != self.names.len() {
            let reason =
                format!("the number of its fields is {}, that of the first line {}", self.row.len(), self.names.len());
            return Err(Trouble::Bad { line, reason });
        }
        document.push('{');
        for (place, (name, field)) in self.names.iter().zip(&self.row).enumerate() {
            let Ok(field) = std::str::from_utf8(field) else {
                return Err(Trouble::Bad { line, reason: format!("column {} is not UTF-8", place + 1) });
            };
            if place > 0 {
                document.push(',');
            }
            document.push_str(name);
            push_field(document, field, &self.nulls);
        }
        document.push('}');
        Ok(Some(line))
    }
}

fn push_field(document: &mut String, field: &str, nulls: &[String]) {
    if field.is_empty() || nulls.iter().any(|null| null == field) {
        document.push_str("null");
    } else if json::is_number(field) {
        document.push_str(field);
    } else {
        json::push_string(document, field);
    }
}

fn broken(file: &str, line: u64, error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.get_ref().is_some_and(is_too_long) => too_long(file, line, ROW_BYTES_MAX),
        csv::ErrorKind::Io(error) => Failure::file(file, &error),
        other => Failure::failed(format!("{file}:{line}: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufRead, Read};

    use super::super::source::Format;
    use super::*;

    fn rows(text: &str) -> Vec<Result<(u64, String), String>> {
        let text: Box<dyn BufRead + Send> = Box::new(io::Cursor::new(text.to_owned().into_bytes()));
        let source = Source { name: "f".to_owned(), format: Format::Csv, text };
        let mut records = match Rows::new(source, &["NA".to_owned()]) {
            Ok(records) => records,
            Err(failure) => return vec![Err(failure.to_string())],
        };
        let mut all = Vec::new();
        loop {
            let mut document = String::new();
            match records.next(&mut document) {
                Ok(Some(line)) => all.push(Ok((line, document))),
                Ok(None) => return all,
                Err(Trouble::Bad { line, reason }) => all.push(Err(format!("{line}: {reason}"))),
                Err(Trouble::Fatal(failure)) => {
                    all.push(Err(failure.to_string()));
                    return all;
                }
            }
        }
    }

    fn field(field: &str) -> String {
        let mut text = String::new();
        push_field(&mut text, field, &["NA".to_owned(), "-".to_owned()]);
        text
    }

    #[test]
    fn a_field_becomes_a_number_null_or_text() {
        let table = [
            ("1", "1"),
            ("1.50", "1.50"),
            ("-0", "-0"),
            ("1e5", "1e5"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("00123", "\"00123\""),
            ("+1", "\"+1\""),
            (".5", "\".5\""),
            ("1.", "\"1.\""),
            (" 1", "\" 1\""),
            ("NaN", "\"NaN\""),
            ("true", "\"true\""),
            ("null", "\"null\""),
            ("", "null"),
            ("NA", "null"),
            ("-", "null"),
            ("na", "\"na\""),
            ("é\"\n", "\"é\\\"\\n\""),
        ];
        for (text, expected) in table {
            assert_eq!(field(text), expected, "{text}");
        }
    }

    #[test]
    fn rows_become_objects_with_the_names_of_the_first_line() {
        let found = rows("Name,N\n\"a,\nb\",1\r\n\nc,NA\n");
        let expected = [(2, r#"{"Name":"a,\nb","N":1}"#), (5, r#"{"Name":"c","N":null}"#)];
        assert_eq!(found, expected.map(|(line, document)| Ok((line, document.to_owned()))));
    }

    #[test]
    fn ragged_rows_are_named_by_line_and_the_rest_goes_on() {
        let found = rows("a,b\n1,2\n3\n4,5,6\n7,8\n");
        assert_eq!(found.get(1), Some(&Err("3: the number of its fields is 1, that of the first line 2".to_owned())));
        assert_eq!(found.get(2), Some(&Err("4: the number of its fields is 3, that of the first line 2".to_owned())));
        assert_eq!(found.get(3), Some(&Ok((5, r#"{"a":7,"b":8}"#.to_owned()))));
    }

    #[test]
    fn unfit_names_are_refused() {
        for (text, expected) in [
            ("a,b,a\n1,2,3\n", "f:1: column 3: it is called 'a' like column 1"),
            ("a,\n1,2\n", "f:1: column 2: it has no name in the first line"),
        ] {
            assert_eq!(rows(text), [Err(expected.to_owned())]);
        }
    }

    #[test]
    fn an_unclosed_quote_does_not_take_in_the_whole_file() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer.fill(b'x');
                Ok(buffer.len())
            }
        }
        let text = io::Cursor::new(b"a,b\n1,2\n\"".to_vec()).chain(Endless);
        let source = Source { name: "f".to_owned(), format: Format::Csv, text: Box::new(io::BufReader::new(text)) };
        let Ok(mut records) = Rows::new(source, &[]) else { panic!("the names are fine") };
        let mut document = String::new();
        assert!(matches!(records.next(&mut document), Ok(Some(2))));
        let Err(Trouble::Fatal(failure)) = records.next(&mut document) else { panic!("it must end") };
        assert_eq!(failure.message, "f:3: a record is longer than 16 MiB");
    }
}
