//! A file or standard input as a stream of text: unpacked, counted, its format guessed.
//!
//! Next on the walk: `record`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use flate2::read::MultiGzDecoder;

use crate::cli::Failure;

/// How documents are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values under a line of names
    Csv,
}

/// An open file, ready to be read from its first byte of text.
pub(super) struct Source {
    /// How messages call it.
    pub(super) name: String,
    /// How it is written.
    pub(super) format: Format,
    /// Its text, unpacked, without a byte order mark.
    pub(super) text: Box<dyn BufRead + Send>,
}

/// Bytes looked at to guess a format.
const LOOK_BYTES: usize = 4096;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

impl Source {
    /// Opens `file`, `-` for standard input. Bytes read from it, before they are unpacked, are added to `read`.
    ///
    /// # Errors
    /// It can't be read, or holds one JSON array.
    pub(super) fn open(file: &str, format: Option<Format>, read: Arc<AtomicU64>) -> Result<Self, Failure> {
        let name = if file == "-" { "standard input" } else { file };
        let failed = |error: io::Error| Failure::file(name, &error);
        let bytes: Box<dyn Read + Send> =
            if file == "-" { Box::new(io::stdin()) } else { Box::new(File::open(file).map_err(failed)?) };
        let bytes = Counted { inner: bytes, read };
        let (head, bytes) = look(bytes, |head| head.len() >= GZIP_MAGIC.len()).map_err(failed)?;
        let unpacked: Box<dyn Read + Send> = if head.starts_with(GZIP_MAGIC) {
            Box::new(MultiGzDecoder::new(BufReader::new(bytes)))
        } else {
            Box::new(bytes)
        };
        let seen_enough = |head: &[u8]| head.len() > BYTE_ORDER_MARK.len() && first_letter(head).is_some();
        let (head, mut text) = look(unpacked, seen_enough).map_err(failed)?;
        if head.starts_with(BYTE_ORDER_MARK) {
            text.read_exact(&mut [0; 3]).map_err(failed)?;
        }
        let first = first_letter(&head);
        let format = format.or_else(|| by_name(file)).unwrap_or(match first {
            Some(b'{' | b'[') | None => Format::Jsonl,
            Some(_) => Format::Csv,
        });
        if format == Format::Jsonl && first == Some(b'[') {
            return Err(Failure::failed(format!("{name}: begins with '[', but JSON lines hold one object a line"))
                .way_out(format!("turn an array into lines with: jq -c '.[]' {file} | treepie load -")));
        }
        Ok(Self { name: name.to_owned(), format, text: Box::new(BufReader::with_capacity(1 << 16, text)) })
    }
}

/// What a file's name says: `orders.csv`, `orders.jsonl.gz`.
fn by_name(file: &str) -> Option<Format> {
    let name = file.strip_suffix(".gz").unwrap_or(file);
    match Path::new(name).extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Some(Format::Csv),
        "json" | "jsonl" | "ndjson" => Some(Format::Jsonl),
        _ => None,
    }
}

fn first_letter(head: &[u8]) -> Option<u8> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    head.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// A stream whose head was looked at.
type Whole<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// Reads the head of a stream, until it is `enough`, and gives the whole stream back.
fn look<R: Read>(mut stream: R, enough: impl Fn(&[u8]) -> bool) -> io::Result<(Vec<u8>, Whole<R>)> {
    let mut head = Vec::new();
    while !enough(&head) && head.len() < LOOK_BYTES {
        let mut part = [0; 512];
        let count = match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.extend_from_slice(part.get(..count).unwrap_or_default());
    }
    Ok((head.clone(), Cursor::new(head).chain(stream)))
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_format_also_when_gzipped() {
        assert_eq!(by_name("a/orders.CSV"), Some(Format::Csv));
        assert_eq!(by_name("orders.jsonl.gz"), Some(Format::Jsonl));
        assert_eq!(by_name("orders"), None);
        assert_eq!(by_name("-"), None);
    }

    #[test]
    fn looking_at_the_head_loses_nothing() -> io::Result<()> {
        let (head, mut all) = look(Cursor::new(b"  {\"a\":1}".repeat(100)), |head| first_letter(head).is_some())?;
        assert_eq!(first_letter(&head), Some(b'{'));
        let mut text = Vec::new();
        all.read_to_end(&mut text)?;
        assert_eq!(text, b"  {\"a\":1}".repeat(100));
        Ok(())
    }
}
