//! A database inside a program: put, index, read, watch. Run it with `cargo run --example embedded`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use serde_json::json;
use treepie::index::definition::IndexDefinition;
use treepie::store::changes::Feed;
use treepie::{Database, DatabaseSettings};

const SALES: &str = r#"
    source("Orders");
    output("Sales");
    fn map(order) { emit(#{ Product: order.Product }, #{ Total: order.Quantity * order.Price }); }
    fn reduce(key, values) { #{ Total: values.sum("Total") } }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let database = Database::open(directory.path(), DatabaseSettings::default())?;
    let order = |product: &str, quantity: u32| json!({ "Product": product, "Quantity": quantity, "Price": 0.1, "@metadata": { "@collection": "Orders" } });
    database.put("orders/1", &order("tea", 3))?;
    let written = database.put("orders/", &order("milk", 7))?;
    println!("wrote {}", written.id);

    database.put_index(IndexDefinition::from_script("Sales", SALES))?;
    database.wait_for_indexes(None, Duration::from_secs(10))?;
    for result in database.collection("Sales")? {
        println!("{} {}", result.id, result.body);
    }

    let mut changes = database.watch(Feed::Collection("Sales".into()), database.store().progress().durable)?;
    database.put("orders/1", &order("tea", 5))?;
    if let Some(change) = changes.next_change(Duration::from_secs(10))? {
        let now = database.get(&change.id)?.ok_or("it is there")?;
        println!("changed: {} {}", change.id, now.body);
    }
    Ok(database.close()?)
}
