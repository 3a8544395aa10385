//! Cuts a body that arrives in pieces of any size into numbered lines.

use crate::server::error::ApiError;

/// A line with its number, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
}

/// Cuts one body.
#[derive(Debug)]
pub(super) struct Lines {
    /// Lines that have begun.
    number: u64,
    /// What has arrived of the last one.
    text: Vec<u8>,
    bytes_max: usize,
}

impl Lines {
    /// A body whose lines have at most `bytes_max` bytes each.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { number: 1, text: Vec::new(), bytes_max }
    }

    /// Takes the next piece and adds the lines that end in it; blank ones are counted only.
    ///
    /// # Errors
    /// A line is too long.
    pub(super) fn push(&mut self, mut bytes: &[u8], found: &mut Vec<Line>) -> Result<(), ApiError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.extend(line)?;
            self.end(found);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes)
    }

    /// Takes the end of the body: a last line needs no line break.
    pub(super) fn finish(&mut self, found: &mut Vec<Line>) {
        if !self.text.is_empty() {
            self.end(found);
        }
    }

    /// How many lines have ended.
    pub(super) fn ended(&self) -> u64 {
        self.number - 1
    }

    fn end(&mut self, found: &mut Vec<Line>) {
        let text = std::mem::take(&mut self.text);
        if !text.trim_ascii().is_empty() {
            found.push(Line { number: self.number, text });
        }
        self.number += 1;
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        if self.text.len() + bytes.len() > self.bytes_max {
            return Err(ApiError::data(format!(
                "Line {} has more than {} bytes, which no document may have (document_bytes_max).",
                self.number, self.bytes_max
            )));
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_numbered_whatever_the_pieces() {
        let body = b"a\n\nbc\r\n  \nd";
        for size in 1..=body.len() {
            let (mut lines, mut found) = (Lines::new(4), Vec::new());
            for piece in body.chunks(size) {
                lines.push(piece, &mut found).unwrap();
            }
            lines.finish(&mut found);
            let found: Vec<_> = found.iter().map(|line| (line.number, line.text.as_slice())).collect();
            assert_eq!(found, [(1, &b"a"[..]), (3, b"bc\r"), (5, b"d")], "pieces of {size}");
            assert_eq!(lines.ended(), 5);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_named() {
        let error = Lines::new(3).push(b"a\nbcde", &mut Vec::new()).unwrap_err();
        assert!(error.message().starts_with("Line 2 "), "{}", error.message());
    }
}
