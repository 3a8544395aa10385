//! What commands print: for people on a terminal, JSON lines when piped.
//!
//! All of standard output goes through [`Output`], so that a closed pipe ends a command quietly. Notices, which are no
//! part of the result, go to standard error.

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::Args;

use super::{Failure, json};

/// For whom the output is.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON lines, also on a terminal; goes before --text
    #[arg(long)]
    json: bool,
    /// Print for people, also when piped
    #[arg(long, env = "TREEPIE_TEXT", value_parser = clap::builder::FalseyValueParser::new())]
    text: bool,
}

/// Standard output.
pub(crate) struct Output {
    for_people: bool,
    out: BufWriter<io::Stdout>,
}

impl Output {
    pub(crate) fn new(args: OutputArgs) -> Self {
        let for_people = !args.json && (args.text || io::stdout().is_terminal());
        Self { for_people, out: BufWriter::new(io::stdout()) }
    }

    /// Whether a person reads it; otherwise it must be JSON lines.
    pub(crate) fn for_people(&self) -> bool {
        self.for_people
    }

    /// Prints one line.
    ///
    /// # Errors
    /// Standard output cannot be written to; see [`Failure::output`].
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| Failure::output(&error))
    }

    /// Makes everything printed so far visible. Commands call it before they wait and before they end.
    ///
    /// # Errors
    /// Standard output cannot be written to; see [`Failure::output`].
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| Failure::output(&error))
    }

    /// Says that something is deleted: `shown` to people, its name as `member` of an object otherwise.
    ///
    /// # Errors
    /// Standard output cannot be written to; see [`Failure::output`].
    pub(crate) fn deleted(&mut self, member: &str, name: &str, shown: &str) -> Result<(), Failure> {
        if self.for_people {
            return self.line(&format!("deleted {shown}"));
        }
        let mut text = String::new();
        json::push_string(&mut text, name);
        self.line(&json::object([(member, text.as_str()), ("deleted", "true")].into_iter()))
    }

    /// Prints rows in aligned columns, numbers to the right, under a heading.
    ///
    /// # Errors
    /// Standard output cannot be written to; see [`Failure::output`].
    pub(crate) fn table(&mut self, heading: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        for line in align(heading, rows) {
            self.line(&line)?;
        }
        Ok(())
    }
}

/// Says something on standard error that is no part of the result.
pub(crate) fn notice(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr(), "treepie: {text}");
}

/// The width of the terminal in characters; no limit where there is none.
pub(crate) fn width() -> usize {
    match console::Term::stdout().size_checked() {
        Some((_, columns)) if columns > 0 => usize::from(columns).max(40),
        _ => usize::MAX,
    }
}

/// Writes a count with commas between the thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Cuts a text to `characters`, with an ellipsis where something is missing.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

fn align(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    let columns = heading.len();
    let width_of = |column: usize| {
        std::iter::once(&heading).chain(rows).filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width_of(column).unwrap_or(0)).collect();
    let is_number = |cell: &String| cell.starts_with(|first: char| first.is_ascii_digit());
    let right: Vec<bool> = (0..columns)
        .map(|column| !rows.is_empty() && rows.iter().filter_map(|row| row.get(column)).all(is_number))
        .collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for ((cell, &width), &right) in row.iter().zip(&widths).zip(&right) {
            let gap = " ".repeat(width - cell.chars().count());
            let (before, after) = if right { (gap, String::new()) } else { (String::new(), gap) };
            line.extend([&before, cell, &after, "  "]);
        }
        line.trim_end().to_owned()
    };
    std::iter::once(&heading).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_get_commas() {
        let pairs = [(0, "0"), (999, "999"), (1000, "1,000"), (27_004, "27,004"), (1_234_567, "1,234,567")];
        for (count, text) in pairs {
            assert_eq!(grouped(count), text);
        }
    }

    #[test]
    fn a_table_is_aligned_with_numbers_to_the_right() {
        let rows = vec![vec!["a".to_owned(), "5".to_owned()], vec!["long".to_owned(), "1,000".to_owned()]];
        assert_eq!(align(&["NAME", "LAG"], &rows), ["NAME    LAG", "a         5", "long  1,000"]);
    }

    #[test]
    fn a_long_text_is_cut_by_characters() {
        assert_eq!(cut("übermut", 4), "übe…");
        assert_eq!(cut("über", 4), "über");
    }
}
