//! What the child writes: numbered batches, each a function of its number alone, so that the state after any of them is known.
//!
//! Every batch writes its number into three marker documents, and puts, moves and deletes a few orders.

use std::collections::BTreeMap;

use treepie::database::Write;

use crate::models::{PARITIES, SHAPES, SUMS};
use crate::oracle::Model;
use crate::world::{delete, put};

/// The indexes that run: one that writes down its tree, and two levels of sums.
pub(crate) const MODELS: [Model; 3] = [SHAPES, SUMS, PARITIES];

/// The three documents that always hold the number of the last batch.
pub(crate) const MARKERS: [&str; 3] = ["markers/a", "markers/b", "markers/c"];

const ORDERS: u64 = 120;

/// A write of one order: its id, and collection and body or nothing where it is deleted.
type Change = (String, Option<(&'static str, String)>);

/// The writes of one batch.
pub(crate) fn batch(number: u64) -> Vec<Write> {
    let markers = MARKERS.iter().map(|id| put("Markers", id, &format!(r#"{{"marker":{number}}}"#)));
    let orders = changes(number).into_iter().map(|(id, change)| match change {
        Some((collection, body)) => put(collection, &id, &body),
        None => delete(&id),
    });
    markers.chain(orders).collect()
}

/// The orders as they stand after the batches 1 to `number`: id → (collection, body).
pub(crate) fn orders_after(number: u64) -> BTreeMap<String, (String, String)> {
    let mut orders = BTreeMap::new();
    for (id, change) in (1..=number).flat_map(changes) {
        match change {
            Some((collection, body)) => orders.insert(id, (collection.to_owned(), body)),
            None => orders.remove(&id),
        };
    }
    orders
}

fn changes(number: u64) -> Vec<Change> {
    (0..=mixed(number) % 12).map(|place| change(mixed(number * 100 + place))).collect()
}

fn change(random: u64) -> Change {
    let id = format!("orders/{}", random % ORDERS);
    let [key, value, kind, lines] = [(random >> 8) % 5, (random >> 16) % 100, (random >> 24) % 10, (random >> 32) % 4];
    if kind < 2 {
        return (id, None);
    }
    let collection = if kind == 2 { "Returns" } else { "Orders" };
    let lines = ["[]", r#"["x"]"#, r#"["x","x"]"#, r#"["x","y"]"#][usize::try_from(lines).unwrap()];
    let body = format!(r#"{{"k":{key},"v":{value},"name":"{},","lines":{lines}}}"#, random % ORDERS);
    (id, Some((collection, body)))
}

/// Mixes the bits of a number (the finaliser of SplitMix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
