//! What a CSV reader has read ahead of its records: bounded, and with the line breaks counted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// Counts lines, and refuses to read on when `left` is used up: a quote that is never closed would otherwise take in the
/// rest of the file.
pub(super) struct Lookahead {
    inner: Box<dyn BufRead + Send>,
    passed: Rc<RefCell<Passed>>,
}

/// What was read ahead of the records.
#[derive(Default)]
pub(super) struct Passed {
    /// Bytes that may still be read for the record in hand.
    left: u64,
    /// Bytes read.
    bytes: u64,
    /// Where line breaks were read that no record has passed.
    breaks: VecDeque<u64>,
    /// Line breaks that records have passed.
    lines: u64,
}

impl Lookahead {
    /// Reads `inner` and keeps `passed` up to date.
    pub(super) fn new(inner: Box<dyn BufRead + Send>, passed: Rc<RefCell<Passed>>) -> Self {
        Self { inner, passed }
    }
}

impl Passed {
    /// Sets how many bytes may be read for the next record.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.left = bytes;
    }

    /// The line of the last byte of a record that ends before the byte at `end`, its line break included. The CSV reader's
    /// own count is wrong behind blank lines and `\r\n`.
    pub(super) fn line_ending_before(&mut self, end: u64) -> u64 {
        while self.breaks.front().is_some_and(|place| place + 1 < end) {
            self.breaks.pop_front();
            self.lines += 1;
        }
        self.lines + 1
    }
}

impl Read for Lookahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut passed = self.passed.borrow_mut();
        if passed.left == 0 {
            return Err(io::Error::other(TooLong));
        }
        let count = self.inner.read(buffer)?;
        let start = passed.bytes;
        passed.left = passed.left.saturating_sub(count as u64);
        passed.bytes += count as u64;
        let read = (start..).zip(buffer.iter().take(count));
        passed.breaks.extend(read.filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place));
        Ok(count)
    }
}

/// A record longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("too long")]
struct TooLong;

/// Whether a reader failed because a record is too long.
pub(super) fn is_too_long(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    cause.is::<TooLong>()
}
