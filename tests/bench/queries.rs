//! Questions over HTTP: how long one takes, and how many documents a scan reads in a second.

use std::time::Instant;

use serde_json::{Value, json};

use crate::http::Connection;
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::workload::Orders;
use crate::{DATABASE, Result};

/// How often a quick question is asked.
const REPEATS: usize = 200;

/// Measures the ways in which documents and results are asked for.
pub(crate) fn measure(server: &Server, orders: &Orders, report: &mut Report) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    let middle = orders.len() / 2;
    for (name, query) in [
        ("query by id", format!("from Orders where id() = 'orders/{middle}'")),
        ("query by id range, 100 documents", format!("from Orders where id() > 'orders/{middle}' limit 100")),
        ("first 100 in id order", "from Orders limit 100".to_owned()),
    ] {
        let mut times = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            // Nobody counts what a page leaves out.
            let start = Instant::now();
            ask(&mut connection, &json!({ "Query": query, "Continuation": "" }))?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        report.add(Figure::new(&format!("{name}, median"), times.get(REPEATS / 2).copied().unwrap_or(0.0), "ms"));
    }
    for (name, query) in [
        ("scan, one condition, no document found", "from Orders where Company = 'companies/0'"),
        ("scan, order by a value, first 100", "from Orders order by PricePerUnit desc limit 100"),
        ("scan, group by with count and sum", "from Orders group by Company select Company, count(), sum(Quantity)"),
        (
            "results of a group by reduce key, all looked at",
            "from index ProductMonths where Month = '2025-06' and Product = 'products/1'",
        ),
    ] {
        let start = Instant::now();
        let answer = ask(&mut connection, &json!({ "Query": query }))?;
        let seconds = start.elapsed().as_secs_f64();
        let read = answer["ScannedResults"].as_f64().unwrap_or(0.0);
        report.add(Figure::new(name, read / seconds, "docs/s"));
        report.add(Figure::new("  in all", seconds * 1e3, "ms"));
    }
    Ok(())
}

fn ask(connection: &mut Connection, query: &Value) -> Result<Value> {
    let answer = connection.call("POST", &format!("/databases/{DATABASE}/queries"), query.to_string().as_bytes())?;
    Ok(serde_json::from_slice(&answer)?)
}
