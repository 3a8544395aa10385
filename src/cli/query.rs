//! `treepie query`: asks a query and prints its rows as they come: a table, JSON lines, or CSV.

use std::time::Duration;

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api::Api;
use super::json::{self, Members};
use super::lines::Lines;
use super::output::{Output, OutputArgs, cut, grouped, notice};
use super::{Failure, Target};

/// How long the server may read before it has found a row.
const SILENCE: Duration = Duration::from_secs(3_600);
/// Rows that are laid out together; of CSV, those that say which columns there are.
const BATCH_ROWS: usize = 1_000;
/// Characters of one cell of a table.
const CELL_CHARACTERS: usize = 40;

/// Ask a query in RQL: from Orders where Total > 100 order by Total desc limit 10
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The query
    #[arg(value_name = "RQL")]
    query: String,
    /// The value of a $parameter, as JSON; what is no JSON is a string
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
    /// Wait until the index behind the results has taken in what is written
    #[arg(long)]
    wait: bool,
    /// Tell how the query is run and how many rows it reads, instead of printing them
    #[arg(long)]
    explain: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "explain")]
    csv: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Explained {
    plan: String,
    rows_read: u64,
    rows_shown: u64,
    total_results: i64,
    duration_in_ms: u64,
    index_name: String,
}

/// A line of the stream.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line<'a> {
    stats: Option<Stats>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Stats {
    index_name: String,
    is_stale: bool,
}

impl Query {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, SILENCE)?;
        let body = self.body();
        if self.explain {
            let request = api.request(Method::POST, "queries").query(&[("debug", "explain")]).body(body);
            return explain(&api.text(request).await?, Output::new(self.output));
        }
        let request = api.request(Method::POST, "streams/queries").query(&[("format", "jsonl")]).body(body);
        let response = api.send(request).await.map_err(|error| api.failure(error))?;
        let mut lines = Lines::new(&api, response);
        let out = Output::new(self.output);
        let shape = match () {
            () if self.csv => Shape::Csv,
            () if out.for_people() => Shape::Table,
            () => Shape::Json,
        };
        let mut printer = Printer { out, shape, waiting: Vec::new(), columns: Vec::new(), rows: 0 };
        while let Some(line) = lines.next().await? {
            if line.is_empty() {
                continue;
            }
            let line: Line<'_> = serde_json::from_str(&line)
                .map_err(|error| Failure::failed(format!("the server's answer is not understood: {error}")))?;
            if let Some(Stats { index_name, is_stale: true }) = line.stats {
                notice(&format!("the results of '{index_name}' are behind what is written; --wait waits for them"));
            }
            if let Some(row) = line.item {
                printer.row(row.get())?;
            }
        }
        printer.end()
    }

    fn body(&self) -> String {
        let mut query = String::new();
        json::push_string(&mut query, &self.query);
        let parameters = self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let parameters = json::object(parameters);
        let wait = self.wait;
        format!("{{\"Query\":{query},\"QueryParameters\":{parameters},\"WaitForNonStaleResults\":{wait}}}")
    }
}

fn explain(answer: &str, mut out: Output) -> Result<(), Failure> {
    if out.for_people() {
        let explained: Explained = serde_json::from_str(answer)
            .map_err(|error| Failure::failed(format!("the server's answer is not understood: {error}")))?;
        let total = u64::try_from(explained.total_results).map_or_else(|_| "not counted".to_owned(), grouped);
        for (name, value) in [
            ("from", explained.index_name),
            ("plan", explained.plan),
            ("read", grouped(explained.rows_read)),
            ("found", total),
            ("shown", grouped(explained.rows_shown)),
            ("took", format!("{} ms", grouped(explained.duration_in_ms))),
        ] {
            out.line(&format!("{name:<6} {value}"))?;
        }
    } else {
        out.line(answer)?;
    }
    out.flush()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Table,
    Json,
    Csv,
}

/// Prints rows; those that are laid out together wait for each other.
struct Printer {
    out: Output,
    shape: Shape,
    waiting: Vec<Vec<(String, String)>>,
    columns: Vec<String>,
    rows: u64,
}

impl Printer {
    fn row(&mut self, row: &str) -> Result<(), Failure> {
        self.rows += 1;
        if self.shape == Shape::Json {
            return self.out.line(&json::one_line(row));
        }
        self.waiting.push(cells(row)?);
        if self.waiting.len() >= BATCH_ROWS { self.lay_out() } else { Ok(()) }
    }

    fn end(mut self) -> Result<(), Failure> {
        if !self.waiting.is_empty() {
            self.lay_out()?;
        }
        self.out.flush()
    }

    fn lay_out(&mut self) -> Result<(), Failure> {
        let rows = std::mem::take(&mut self.waiting);
        let is_first = self.columns.is_empty();
        if self.shape == Shape::Table || is_first {
            self.columns.clear();
            for (name, _) in rows.iter().flatten() {
                if !self.columns.contains(name) {
                    self.columns.push(name.clone());
                }
            }
        }
        if self.shape == Shape::Table { self.table(&rows) } else { self.csv(&rows, is_first) }
    }

    fn table(&mut self, rows: &[Vec<(String, String)>]) -> Result<(), Failure> {
        let heading: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let cell = |row: &[(String, String)], column: &str| {
            let cell = row.iter().find(|(name, _)| name == column).map_or("", |(_, cell)| cell.as_str());
            cut(&cell.replace(char::is_control, " "), CELL_CHARACTERS)
        };
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| heading.iter().map(|column| cell(row, column)).collect()).collect();
        self.out.table(&heading, &rows)
    }

    fn csv(&mut self, rows: &[Vec<(String, String)>], with_heading: bool) -> Result<(), Failure> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let failed = |error: csv::Error| Failure::failed(format!("a row can't be written as CSV: {error}"));
        if with_heading {
            writer.write_record(&self.columns).map_err(failed)?;
        }
        for row in rows {
            // A column that is told too late would be lost without a word.
            if let Some((name, _)) = row.iter().find(|(name, _)| !self.columns.contains(name)) {
                let message = format!("a row has the field '{name}', which none of the first {BATCH_ROWS} rows has");
                return Err(Failure::failed(message).way_out("name the columns: … select A, B"));
            }
            let cells = self.columns.iter().map(|column| row.iter().find(|(name, _)| name == column));
            let cells = cells.map(|cell| cell.map_or("", |(_, cell)| cell.as_str()));
            writer.write_record(cells).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|error| Failure::failed(error.to_string()))?;
        self.out.line(String::from_utf8_lossy(&bytes).trim_end_matches('\n'))
    }
}

/// The cells of a row: the id of a whole document, then its fields. Strings without quotes, null as nothing, the rest as JSON.
fn cells(row: &str) -> Result<Vec<(String, String)>, Failure> {
    let not_understood = |error: serde_json::Error| Failure::failed(format!("a row is not understood: {error}"));
    let members = Members::parse(row).map_err(not_understood)?;
    let mut cells = Vec::with_capacity(members.0.len());
    if let Some(metadata) = members.get("@metadata") {
        let metadata = Members::parse(metadata).map_err(not_understood)?;
        if let (Some(id), None) = (metadata.get("@id").and_then(json::as_string), metadata.get("@projection")) {
            cells.push(("@id".to_owned(), id));
        }
    }
    for (name, value) in members.0.iter().filter(|(name, _)| name != "@metadata") {
        let cell = match value.get() {
            "null" => String::new(),
            text => json::as_string(text).unwrap_or_else(|| json::one_line(text)),
        };
        cells.push((name.clone().into_owned(), cell));
    }
    Ok(cells)
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    let name = name.trim_start_matches('$');
    if name.is_empty() {
        return Err("it must be NAME=VALUE".to_owned());
    }
    if serde_json::from_str::<&RawValue>(value).is_ok() {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let mut quoted = String::new();
    json::push_string(&mut quoted, value);
    Ok((name.to_owned(), quoted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_json_is_a_string() {
        for (text, value) in
            [("a=5", "5"), ("$a=x y", "\"x y\""), ("a=\"5\"", "\"5\""), ("a=", "\"\""), ("a=[1]", "[1]")]
        {
            assert_eq!(parameter(text), Ok(("a".to_owned(), value.to_owned())));
        }
        assert!(parameter("=5").is_err() && parameter("a").is_err());
    }

    #[test]
    fn cells_are_an_id_and_the_fields() {
        let row = r#"{"n":1.50,"s":"a\"b","z":null,"o":{"x":[1]},"@metadata":{"@id":"users/1"}}"#;
        let found = cells(row).unwrap();
        let expected = [("@id", "users/1"), ("n", "1.50"), ("s", "a\"b"), ("z", ""), ("o", "{\"x\":[1]}")];
        assert_eq!(found, expected.map(|(name, cell)| (name.to_owned(), cell.to_owned())));
    }
}
