//! The orders, made by `scripts/gen-orders`, and the index scripts of `scripts/indexes`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The collection of the orders.
pub(crate) const COLLECTION: &str = "Orders";
/// Documents in one batch.
pub(crate) const BATCH: usize = 1_000;

/// A generated order.
#[derive(Debug)]
pub(crate) struct Order {
    /// Its id.
    pub(crate) id: String,
    /// The text of its JSON object, without metadata.
    pub(crate) body: String,
}

impl Order {
    /// The JSON that a client sends: with its collection.
    pub(crate) fn with_metadata(&self) -> String {
        with_metadata(&self.body)
    }
}

/// Adds the metadata that names the collection to the text of an object.
pub(crate) fn with_metadata(body: &str) -> String {
    let fields = body.strip_suffix('}').unwrap_or(body);
    format!("{fields},\"@metadata\":{{\"@collection\":\"{COLLECTION}\"}}}}")
}

/// All orders of a run.
#[derive(Debug)]
pub(crate) struct Orders(Vec<Order>);

impl Orders {
    /// Runs the generator.
    pub(crate) fn generate(count: usize) -> Result<Self> {
        let mut command = Command::new("python3");
        command.arg(scripts().join("gen-orders")).args(["--n", &count.to_string()]).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| format!("scripts/gen-orders needs python3: {error}"))?;
        if !output.status.success() {
            return Err(format!("scripts/gen-orders failed: {}", output.status).into());
        }
        let text = String::from_utf8(output.stdout)?;
        text.lines().map(order).collect::<Result<Vec<_>>>().map(Self)
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Order> {
        self.0.iter()
    }

    /// In batches of [`BATCH`].
    pub(crate) fn batches(&self) -> std::slice::Chunks<'_, Order> {
        self.0.chunks(BATCH)
    }

    /// The bytes of all bodies.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|order| order.body.len()).sum()
    }

    /// The elements of a bulk insert, with commas between them, a piece for each batch.
    pub(crate) fn insert_elements(&self) -> Vec<Vec<u8>> {
        let element = |order: &Order| {
            format!("{{\"Id\":\"{}\",\"Type\":\"PUT\",\"Document\":{}}}", order.id, order.with_metadata())
        };
        let piece = |batch: &[Order]| batch.iter().map(element).collect::<Vec<_>>().join(",").into_bytes();
        self.batches().map(piece).collect()
    }

    /// One body of a bulk request for each batch.
    pub(crate) fn bulk_bodies(&self) -> Vec<Vec<u8>> {
        let command = |order: &Order| {
            format!(
                "{{\"Type\":\"PUT\",\"Id\":\"{}\",\"ChangeVector\":null,\"Document\":{}}}",
                order.id,
                order.with_metadata()
            )
        };
        let body = |batch: &[Order]| {
            format!("{{\"Commands\":[{}]}}", batch.iter().map(command).collect::<Vec<_>>().join(",")).into_bytes()
        };
        self.batches().map(body).collect()
    }
}

fn order(line: &str) -> Result<Order> {
    let parts = line.strip_prefix("{\"id\":\"").and_then(|rest| rest.split_once("\","));
    let (id, fields) = parts.ok_or_else(|| format!("scripts/gen-orders wrote a line without an id: {line}"))?;
    Ok(Order { id: id.to_owned(), body: format!("{{{fields}") })
}

/// An index script.
#[derive(Debug)]
pub(crate) struct Script {
    /// The index's name, and its output collection's.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: String,
}

impl Script {
    /// Reads `scripts/indexes/<name>.rhai`.
    pub(crate) fn read(name: &'static str) -> Result<Self> {
        Ok(Self { name, text: std::fs::read_to_string(scripts().join("indexes").join(format!("{name}.rhai")))? })
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}
