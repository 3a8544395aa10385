//! The first documents of a file, for trying an index out.

use std::sync::Arc;

use super::record::{Records, Trouble};
use super::source::Source;
use crate::cli::Failure;

/// Bytes of the documents that are read.
const BYTES_MAX: usize = 64 << 20;

/// Reads at most `count` documents, 64 MiB together; each with its line. Fields of a CSV that
/// equal one of `nulls` are null.
///
/// # Errors
/// The file can't be read, or a line is no record.
pub(crate) fn samples(file: &str, count: usize, nulls: &[String]) -> Result<Vec<(u64, String)>, Failure> {
    let mut records = Records::new(Source::open(file, None, Arc::default())?, nulls)?;
    let (mut read, mut bytes) = (Vec::new(), 0);
    while read.len() < count && bytes < BYTES_MAX {
        let mut text = String::new();
        match records.next(&mut text) {
            Ok(Some(line)) => {
                bytes += text.len();
                read.push((line, text));
            }
            Ok(None) => break,
            Err(Trouble::Bad { line, reason }) => return Err(Failure::failed(format!("{file}:{line}: {reason}"))),
            Err(Trouble::Fatal(failure)) => return Err(failure),
        }
    }
    Ok(read)
}
