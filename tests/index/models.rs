//! Index scripts and their Rust twins.
//!
//! `SHAPES` writes down the very tree its values went through; `SUMS` and `PARITIES` are two levels of plain sums; `FLOATS` adds
//! f64 in order, which is not associative. Each stands for a kind of reduce that users write.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::oracle::{Emit, Model, Source, compare, lower};

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
    map: |order, _| {
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
    map: |doc, _| {
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
    map: |group, _| {
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
    map: |order, _| Some(vec![float_entry(order)?]),
    reduce: |_, values| {
        let total = values.iter().try_fold(0.0, |total, value| Some(total + value["x"].as_f64()?))?;
        Some(json!({ "x": total }))
    },
};

/// Sums by what another document, which each one names, has as `k`; each result is listed under an id made of its values.
pub(crate) const FRIENDS: Model = Model {
    name: "Friends",
    script: r#"
        source("Orders");
        output("Friends");
        reference("friends/{n:00}/{v}", "Circles");
        fn map(order) {
            let friend = load(order.friend, "Returns");
            emit(#{ Friend: friend.k, Known: friend != () }, #{ n: 1, v: order.v });
        }
        fn reduce(key, values) {
            #{ n: values.sum("n"), v: values.sum("v") }
        }
    "#,
    sources: &["Orders"],
    output: "Friends",
    map: |order, others| {
        let friend = others.load(&order.body["friend"], "Returns");
        let key =
            json!({ "Friend": friend.map_or(&Value::Null, |friend| &friend.body["k"]), "Known": friend.is_some() });
        Some(vec![(key, json!({ "n": 1, "v": order.body["v"] }))])
    },
    reduce: |_, values| Some(json!({ "n": sum(values, "n"), "v": sum(values, "v") })),
};

/// The collection of the reference documents of [`FRIENDS`].
pub(crate) const CIRCLES: &str = "Circles";

/// The reference id of a result of [`FRIENDS`].
pub(crate) fn circle(body: &Value) -> String {
    format!("friends/{:02}/{}", body["n"].as_i64().unwrap(), body["v"])
}

/// A map-only index: the lines of two collections, by line and `k`.
pub(crate) const LINES: (&str, &str) = (
    "Lines",
    r#"
        source("Orders");
        source("Returns");
        fn map(doc) {
            if doc.bad == true { throw "a bad document"; }
            for line in doc.lines { emit([line, doc.k], doc.name); }
        }
    "#,
);

/// What [`LINES`] must hold, in key order: key, source and value.
pub(crate) fn lines(documents: &[Source]) -> Vec<(Value, String, Value)> {
    let mut entries = Vec::new();
    for document in documents.iter().filter(|it| ["Orders", "Returns"].contains(&it.collection.as_str())) {
        let lines = document.body["lines"].as_array().cloned().unwrap_or_default();
        for line in lines.into_iter().filter(|_| document.body["bad"] != true) {
            let key = json!([line, document.body["k"]]);
            entries.push((key, lower(&document.id), document.body["name"].clone()));
        }
    }
    entries.sort_by(|a, b| compare(&a.0, &b.0).then_with(|| a.1.cmp(&b.1)));
    entries
}

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
