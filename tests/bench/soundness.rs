//! What trust costs: verifying an index, a fault of a script, and a neighbour whose script never ends.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::Connection;
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::workload::{COLLECTION, Orders};
use crate::{DATABASE, Result, await_index, updates};

/// One document of this many fails: few enough that the index goes on.
const FAULTS_ONE_IN: u64 = 10;

/// Measures all three, on a server that has loaded the orders and built its indexes.
pub(crate) fn measure(
    server: &Server,
    orders: &Orders,
    count: usize,
    bare_map: f64,
    report: &mut Report,
) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    verify(&mut connection, bare_map, report)?;
    fault(&mut connection, orders, report)?;
    beside_an_endless_loop(server, &mut connection, orders, count, report)
}

fn verify(connection: &mut Connection, bare_map: f64, report: &mut Report) -> Result<()> {
    let path = format!("/databases/{DATABASE}/indexes/verify?name=ProductMonths");
    let told = String::from_utf8(connection.call("GET", &path, b"")?)?;
    let lines: Vec<Value> = told.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    if lines.last().is_none_or(|line| line["Event"] != "Done" || line["Differences"] != 0) {
        return Err(format!("the verification of a sound index ended with {:?}", lines.last()).into());
    }
    let verified = lines.iter().find(|line| line["Event"] == "Verified").ok_or("nothing was verified")?;
    let (documents, seconds) = (verified["Documents"].as_f64(), verified["Seconds"].as_f64());
    let rate = documents.unwrap_or(f64::NAN) / seconds.unwrap_or(f64::NAN);
    report.add(Figure::new("verify ProductMonths, one thread", rate, "docs/s").limit(bare_map, "bare parse and map"));
    Ok(())
}

/// Builds an index twice, once with a script that fails for some documents.
fn fault(connection: &mut Connection, orders: &Orders, report: &mut Report) -> Result<()> {
    let script = |fails: &str| {
        format!(
            "source(\"{COLLECTION}\");\nfn map(order) {{ {fails} emit(order.Quantity, 1); }}\n\
             fn reduce(key, values) {{ values.sum() }}"
        )
    };
    let sound = build(connection, "Sound", &script(""))?;
    let fails = format!(
        "let number = parse_int(id(order).split(\"/\")[1]); if number % {FAULTS_ONE_IN} == 3 {{ throw \"bad\"; }}"
    );
    let counted = fails.replace("throw \"bad\";", "");
    let counted = build(connection, "Counted", &script(&counted))?;
    let faulty = build(connection, "Faulty", &script(&fails))?;
    let path = format!("/databases/{DATABASE}/indexes/stats?name=Faulty");
    let stats: Value = serde_json::from_slice(&connection.call("GET", &path, b"")?)?;
    let faults = stats["Results"][0]["MapErrors"].as_f64().unwrap_or(f64::NAN);
    report.add(Figure::new("build without faults", orders.len() as f64 / sound, "docs/s"));
    report.add(Figure::new("build with one fault in ten", orders.len() as f64 / faulty, "docs/s"));
    let micros = (faulty - counted) / faults * 1_000_000.0;
    report.add(Figure::new("cost of a fault, beside a document that maps", micros, "µs"));
    for name in ["Sound", "Counted", "Faulty"] {
        connection.call("DELETE", &format!("/databases/{DATABASE}/indexes?name={name}"), b"")?;
    }
    Ok(())
}

/// Seconds from putting an index until it is current.
fn build(connection: &mut Connection, name: &str, script: &str) -> Result<f64> {
    let start = Instant::now();
    connection.call("PUT", &format!("/databases/{DATABASE}/indexes/{name}"), script.as_bytes())?;
    await_index(connection, name, Duration::from_millis(20))?;
    Ok(start.elapsed().as_secs_f64())
}

/// Single updates while another index runs a script that never ends, from document to document.
fn beside_an_endless_loop(
    server: &Server,
    connection: &mut Connection,
    orders: &Orders,
    count: usize,
    report: &mut Report,
) -> Result<()> {
    let script = format!("source(\"{COLLECTION}\");\nfn map(order) {{ loop {{ }} }}\nfn reduce(key, values) {{ 1 }}");
    connection.call("PUT", &format!("/databases/{DATABASE}/indexes/Endless"), script.as_bytes())?;
    let most = updates::longest(server, orders, count)?;
    let path = format!("/databases/{DATABASE}/indexes/stats?name=Endless");
    let stats: Value = serde_json::from_slice(&connection.call("GET", &path, b"")?)?;
    let attempts = stats["Results"][0]["MapAttempts"].as_f64().unwrap_or(f64::NAN);
    report.add(Figure::new("update beside an endless loop, longest", most, "ms").aim("< 1,000"));
    report.add(Figure::new("  endless calls meanwhile", attempts, ""));
    connection.call("DELETE", &format!("/databases/{DATABASE}/indexes?name=Endless"), b"")?;
    Ok(())
}
