//! Index scripts and their Rust twins.
//!
//! `SHAPES` writes down the very tree its values went through; `SUMS` and `PARITIES` are two levels of plain sums; `FLOATS` adds
//! f64 in order, which is not associative. Each stands for a kind of reduce that users write.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::oracle::{Emit, Model, Source};

/// Concatenates names per line: a document emits one entry a line, equal lines included.
pub(crate) const SHAPES: Model = Model {
    name: "Shapes",
    script: r#"
        source("Orders");
        output("Shapes");
        fn map(order) {
            for line in order.lines { emit(line, #{ s: order.name }); }
        }
        fn reduce(key, values) {
            let text = "(";
            for value in values { text += value.s; }
            #{ s: text + ")" }
        }
    "#,
    sources: &["Orders"],
    output: "Shapes",
    map: |order| {
        let lines = order.body["lines"].as_array().cloned().unwrap_or_default();
        Some(lines.into_iter().map(|line| (line, json!({ "s": order.body["name"] }))).collect())
    },
    reduce: |_, values| {
        let names: Option<String> = values.iter().map(|value| value["s"].as_str()).collect();
        Some(json!({ "s": format!("({})", names?) }))
    },
};

/// Counts and sums by `k`, over two collections. A document with `bad` fails in the map; the group `"poison"` in the reduce.
pub(crate) const SUMS: Model = Model {
    name: "Sums",
    script: r#"
        source("Orders");
        source("Returns");
        output("Sums");
        fn map(doc) {
            if doc.bad == true { throw "a bad document"; }
            emit(doc.k, #{ n: 1, v: doc.v });
        }
        fn reduce(key, values) {
            if key == "poison" { throw "a bad group"; }
            #{ n: values.sum("n"), v: values.sum("v") }
        }
    "#,
    sources: &["Orders", "Returns"],
    output: "Sums",
    map: |doc| {
        let entry = (doc.body["k"].clone(), json!({ "n": 1, "v": doc.body["v"] }));
        (doc.body["bad"] != true).then(|| vec![entry])
    },
    reduce: |key, values| (key != "poison").then(|| json!({ "n": sum(values, "n"), "v": sum(values, "v") })),
};

/// Over the artificial documents of [`SUMS`]: how many groups have an odd count, how many an even one, and their sums.
pub(crate) const PARITIES: Model = Model {
    name: "Parities",
    script: r#"
        source("Sums");
        output("Parities");
        fn map(group) {
            emit(#{ Odd: group.n % 2 == 1 }, #{ Groups: 1, Total: group.v });
        }
        fn reduce(key, values) {
            #{ Groups: values.sum("Groups"), Total: values.sum("Total") }
        }
    "#,
    sources: &["Sums"],
    output: "Parities",
    map: |group| {
        let odd = group.body["n"].as_i64()? % 2 == 1;
        Some(vec![(json!({ "Odd": odd }), json!({ "Groups": 1, "Total": group.body["v"] }))])
    },
    reduce: |_, values| Some(json!({ "Groups": sum(values, "Groups"), "Total": sum(values, "Total") })),
};

/// Adds `x`, whose magnitude only an f64 can hold, in the order in which values come.
pub(crate) const FLOATS: Model = Model {
    name: "Floats",
    script: r#"
        source("Orders");
        output("Floats");
        fn map(order) { emit(order.k, #{ x: order.x }); }
        fn reduce(key, values) {
            let total = 0;
            for value in values { total += value.x; }
            #{ x: total }
        }
    "#,
    sources: &["Orders"],
    output: "Floats",
    map: |order| Some(vec![float_entry(order)?]),
    reduce: |_, values| {
        let total = values.iter().try_fold(0.0, |total, value| Some(total + value["x"].as_f64()?))?;
        Some(json!({ "x": total }))
    },
};

/// The script of an index that counts and sums one collection by `k`.
pub(crate) fn sum_by_k(source: &str, output: &str) -> String {
    format!(
        r#"
            source("{source}");
            output("{output}");
            fn map(doc) {{ emit(doc.k, #{{ n: 1, v: doc.v }}); }}
            fn reduce(key, values) {{ #{{ n: values.sum("n"), v: values.sum("v") }} }}
        "#
    )
}

/// Adds up a field; fields that are missing or null count nothing.
pub(crate) fn sum(values: &[Value], field: &str) -> i64 {
    values.iter().filter_map(|value| value[field].as_i64()).sum()
}

/// Reads a number of a document's text as the f64 next to it.
pub(crate) fn float(text: &str, field: &str) -> Option<f64> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    fields.get(field)?.get().parse().ok()
}

fn float_entry(order: &Source) -> Option<Emit> {
    Some((order.body["k"].clone(), json!({ "x": float(&order.text, "x")? })))
}
