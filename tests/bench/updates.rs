//! Single updates: from the first byte of a PUT to the answer, on another connection, of a GET that shows the changed total.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::http::Connection;
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::workload::{Order, Orders, with_metadata};
use crate::{DATABASE, Result, await_index};

/// A group is cold when it has at most this many entries: about the smallest ones.
const COLD_MAX: u64 = 20;
/// Artificial documents read at once.
const PAGE: usize = 2_000;

/// An order to be changed and the artificial document that will show it.
struct Update<'a> {
    order: &'a Order,
    shown_by: String,
}

/// Measures updates seen in a small group of the monthly index, in the one group of the other, and a PUT alone.
pub(crate) fn measure(
    server: &Server,
    orders: &Orders,
    count: usize,
    bare: Vec<f64>,
    report: &mut Report,
) -> Result<()> {
    let mut writer = Connection::open(server.address())?;
    let mut reader = Connection::open(server.address())?;
    let cold = cold_updates(&mut reader, orders, count)?;
    let hot_document = artificial(&mut reader, "OrderTotals")?.pop().ok_or("OrderTotals has no document")?;
    let hot_orders = orders.iter().step_by((orders.len() / count.max(1)).max(1)).take(count);
    let hot: Vec<Update<'_>> = hot_orders.map(|order| Update { order, shown_by: id_of(&hot_document) }).collect();
    let bare = Quantiles::of(bare);
    let mut put_alone = Vec::new();
    for update in &cold {
        put_alone.push(put(&mut writer, update.order, 1)?);
        settle(&mut reader)?;
    }
    Quantiles::of(put_alone).report("PUT of one document", &bare, "", report);
    for (name, updates) in [("update seen in a cold group", &cold), ("update seen in the hot group", &hot)] {
        let mut times = Vec::new();
        for update in updates {
            times.push(until_visible(&mut writer, &mut reader, update, 2)?);
            settle(&mut reader)?;
        }
        Quantiles::of(times).report(name, &bare, "≤ 1", report);
    }
    Ok(())
}

/// The longest of some updates in small groups, in milliseconds; each is begun as soon as the one before was seen.
pub(crate) fn longest(server: &Server, orders: &Orders, count: usize) -> Result<f64> {
    let mut writer = Connection::open(server.address())?;
    let mut reader = Connection::open(server.address())?;
    let mut longest = 0.0_f64;
    for update in cold_updates(&mut reader, orders, count)? {
        longest = longest.max(until_visible(&mut writer, &mut reader, &update, 3)?);
    }
    Ok(longest)
}

/// Waits until both indexes are current, so that updates do not queue up.
fn settle(reader: &mut Connection) -> Result<()> {
    let pause = Duration::from_millis(2);
    await_index(reader, "ProductMonths", pause)?;
    await_index(reader, "OrderTotals", pause)
}

/// Milliseconds from the first byte of the PUT to the answer that shows it.
fn until_visible(writer: &mut Connection, reader: &mut Connection, update: &Update<'_>, more: u64) -> Result<f64> {
    let path = document_path(&update.shown_by);
    let before = reader.call("GET", &path, b"")?;
    let body = changed(update.order, more)?;
    let start = Instant::now();
    writer.send("PUT", &document_path(&update.order.id), body.as_bytes())?;
    while reader.call("GET", &path, b"")? == before {
        if start.elapsed().as_secs() > 30 {
            return Err(format!("a change of {} never showed in {}", update.order.id, update.shown_by).into());
        }
    }
    let time = start.elapsed().as_secs_f64() * 1000.0;
    expect_created(writer.receive()?)?;
    Ok(time)
}

/// Milliseconds from the first byte of a PUT to its answer.
fn put(writer: &mut Connection, order: &Order, more: u64) -> Result<f64> {
    let body = changed(order, more)?;
    let start = Instant::now();
    writer.send("PUT", &document_path(&order.id), body.as_bytes())?;
    let answer = writer.receive()?;
    let time = start.elapsed().as_secs_f64() * 1000.0;
    expect_created(answer)?;
    Ok(time)
}

fn expect_created((status, answer): (u16, Vec<u8>)) -> Result<()> {
    if status == 201 { Ok(()) } else { Err(format!("PUT: {status} {}", String::from_utf8_lossy(&answer)).into()) }
}

/// The order with a larger quantity, at its head and in its first line.
fn changed(order: &Order, more: u64) -> Result<String> {
    let mut body: Value = serde_json::from_str(&order.body)?;
    let quantity = body["Quantity"].as_u64().ok_or("an order without a quantity")? + more;
    body["Quantity"] = quantity.into();
    body["Lines"][0]["Quantity"] = quantity.into();
    Ok(with_metadata(&body.to_string()))
}

/// Orders whose first line falls into a small group, each with the document of that group.
fn cold_updates<'a>(reader: &mut Connection, orders: &'a Orders, count: usize) -> Result<Vec<Update<'a>>> {
    let mut small: HashMap<(String, String), String> = HashMap::new();
    for document in artificial(reader, "ProductMonths")? {
        if document["Count"].as_u64().is_some_and(|count| count <= COLD_MAX) {
            small.insert((text(&document["Product"]), text(&document["Month"])), id_of(&document));
        }
    }
    let mut updates = Vec::new();
    for order in orders.iter() {
        let body: Value = serde_json::from_str(&order.body)?;
        let month: String = text(&body["OrderedAt"]).chars().take(7).collect();
        if let Some(id) = small.remove(&(text(&body["Lines"][0]["Product"]), month)) {
            updates.push(Update { order, shown_by: id });
        }
        if updates.len() == count {
            return Ok(updates);
        }
    }
    Err(format!(
        "only {} orders lie in groups of at most {COLD_MAX} entries; --updates asks for {count}",
        updates.len()
    )
    .into())
}

/// All documents of an output collection.
fn artificial(reader: &mut Connection, collection: &str) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    loop {
        let after = documents.last().map(id_of).unwrap_or_default();
        let path = format!(
            "/databases/{DATABASE}/docs?startsWith={}&startAfter={}&start=0&pageSize={PAGE}",
            encoded(&format!("{collection}/")),
            encoded(&after)
        );
        let answer: Value = serde_json::from_slice(&reader.call("GET", &path, b"")?)?;
        let page = answer["Results"].as_array().cloned().unwrap_or_default();
        let last = page.len() < PAGE;
        documents.extend(page);
        if last {
            return Ok(documents);
        }
    }
}

fn document_path(id: &str) -> String {
    format!("/databases/{DATABASE}/docs?id={}", encoded(id))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn id_of(document: &Value) -> String {
    text(&document["@metadata"]["@id"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Median and 99th percentile.
pub(crate) struct Quantiles {
    median: f64,
    p99: f64,
}

impl Quantiles {
    pub(crate) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at =
            |hundredths: usize| times.get((times.len() * hundredths / 100).min(times.len().saturating_sub(1))).copied();
        Self { median: at(50).unwrap_or(f64::NAN), p99: at(99).unwrap_or(f64::NAN) }
    }

    pub(crate) fn report(&self, name: &str, bare: &Self, aim: &str, report: &mut Report) {
        let median =
            Figure::new(&format!("{name}, median"), self.median, "ms").limit(bare.median, "bare fdatasync").aim(aim);
        report.add(median);
        report.add(Figure::new(&format!("{name}, p99"), self.p99, "ms").limit(bare.p99, "bare fdatasync"));
    }
}
