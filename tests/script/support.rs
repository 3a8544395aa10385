//! Running scripts in tests: on a thread with the stated stack, with JSON on both sides.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use treepie::script::encoding::{encode_json, write_json};
use treepie::script::{Fault, Limits, MapInput, Program, Runner, STACK_BYTES, Texts};

/// Entries as JSON: key and value.
pub(crate) type Entries = Vec<(String, String)>;

/// Runs on a thread with the stack that scripts need.
pub(crate) fn on_script_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap().join().unwrap()
}

pub(crate) fn one(text: &str) -> Texts {
    Texts { maps: vec![text.to_owned()], reduce: None }
}

pub(crate) fn compile(text: &str) -> Result<Program, Fault> {
    Program::compile(one(text), Limits::default())
}

pub(crate) fn runner(text: &str) -> Runner {
    runner_with(text, Limits::default())
}

pub(crate) fn runner_with(text: &str, limits: Limits) -> Runner {
    let program = Program::compile(one(text), limits).unwrap_or_else(|fault| panic!("{fault}"));
    Runner::new(Arc::new(program), Arc::new(AtomicBool::new(false))).unwrap()
}

pub(crate) fn encode(json: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_json(json, 64, &mut bytes).unwrap();
    bytes
}

pub(crate) fn json(encoded: &[u8]) -> String {
    let mut text = String::new();
    write_json(encoded, &mut text);
    text
}

pub(crate) fn input(body: &str) -> MapInput<'_> {
    MapInput { id: "orders/1", collection: "Orders", metadata: "{\"Tag\":\"x\"}", body }
}

pub(crate) fn map_with(runner: &mut Runner, body: &str) -> Result<Entries, Fault> {
    let entries = runner.map(0, &input(body))?;
    Ok(entries.iter().map(|entry| (json(&entry.key), json(&entry.value))).collect())
}

/// Maps a document with a script whose map function has this body.
pub(crate) fn map(code: &str, body: &str) -> Result<Entries, Fault> {
    let text = format!("source(\"Orders\");\nfn map(doc) {{ {code} }}");
    let body = body.to_owned();
    on_script_stack(move || {
        let program = compile(&text)?;
        let mut runner = Runner::new(Arc::new(program), Arc::new(AtomicBool::new(false)))?;
        map_with(&mut runner, &body)
    })
}

/// The value of an expression over `doc`, as JSON.
pub(crate) fn value_of(expression: &str, body: &str) -> Result<String, Fault> {
    Ok(map(&format!("emit(1, {expression})"), body)?.remove(0).1)
}

/// The value of an expression over `values` in `reduce`, as JSON.
pub(crate) fn reduced(expression: &str, values: &[&str]) -> Result<String, Fault> {
    let text = format!("source(\"O\"); fn map(doc) {{ emit(1, 1) }}\nfn reduce(key, values) {{ {expression} }}");
    let values: Vec<_> = values.iter().map(|value| encode(value)).collect();
    on_script_stack(move || {
        let slices: Vec<_> = values.iter().map(Vec::as_slice).collect();
        let program = compile(&text)?;
        let mut runner = Runner::new(Arc::new(program), Arc::new(AtomicBool::new(false)))?;
        Ok(json(&runner.reduce(&encode("{\"K\":1}"), &slices)?))
    })
}
