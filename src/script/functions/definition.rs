//! `source`, `output` and `reference`: what the top level of a text declares.

use std::rc::Rc;

use rhai::{Dynamic, Engine};

use super::super::Phase;
use super::super::problem::{Failure, failure, failure_with};
use super::super::state::State;
use super::text_of;

/// Sources of one text.
const SOURCES_MAX: usize = 256;

/// Bytes of a collection's name.
const NAME_BYTES_MAX: usize = 256;

/// Bytes of a reference pattern.
const PATTERN_BYTES_MAX: usize = 1024;

/// What `ALL_DOCS` is.
#[derive(Clone, Copy, Debug)]
pub(in crate::script) struct AllDocs;

/// Registers the functions.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    let s = Rc::clone(state);
    engine.register_fn("source", move |collection: Dynamic| source(&s, &collection, "map".to_owned()));
    let s = Rc::clone(state);
    engine.register_fn("source", move |collection: Dynamic, function: Dynamic| {
        let function = text_of(&function, "source")?;
        source(&s, &collection, function.to_string())
    });
    let s = Rc::clone(state);
    engine.register_fn("output", move |collection: Dynamic| {
        at_top_level(&s, "output")?;
        let name = collection_name(&text_of(&collection, "output")?)?;
        once(&mut s.settings.borrow_mut().output, "output", name)
    });
    let s = Rc::clone(state);
    engine.register_fn("reference", move |pattern: Dynamic| reference(&s, &pattern));
    let s = Rc::clone(state);
    engine.register_fn("reference", move |pattern: Dynamic, collection: Dynamic| {
        let name = collection_name(&text_of(&collection, "reference")?)?;
        reference(&s, &pattern)?;
        s.settings.borrow_mut().reference_collection = Some(name);
        Ok::<(), Failure>(())
    });
}

fn source(state: &State, collection: &Dynamic, function: String) -> Result<(), Failure> {
    at_top_level(state, "source")?;
    let name = if collection.is::<AllDocs>() { None } else { Some(collection_name(&text_of(collection, "source")?)?) };
    let mut settings = state.settings.borrow_mut();
    if settings.sources.len() >= SOURCES_MAX {
        return Err(failure(format!("an index has {SOURCES_MAX} sources at most")));
    }
    settings.sources.push((name, function));
    Ok(())
}

fn reference(state: &State, pattern: &Dynamic) -> Result<(), Failure> {
    at_top_level(state, "reference")?;
    let pattern = text_of(pattern, "reference")?;
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX || pattern.chars().any(char::is_control) {
        let message = format!("a reference pattern has 1 to {PATTERN_BYTES_MAX} bytes and no control characters");
        return Err(failure_with(message, "reference(\"sales/{Product}/{Month}\")"));
    }
    once(&mut state.settings.borrow_mut().reference, "reference", pattern.to_string())
}

fn at_top_level(state: &State, function: &str) -> Result<(), Failure> {
    if state.phase.get() == Phase::Definition {
        return Ok(());
    }
    Err(failure_with(
        format!("{function} works at the top level of the script only"),
        "put it outside of all functions: it says what the index is, not what to do with one document",
    ))
}

fn once(setting: &mut Option<String>, function: &str, value: String) -> Result<(), Failure> {
    match setting {
        Some(_) => Err(failure(format!("{function} is called twice; an index has one"))),
        None => {
            *setting = Some(value);
            Ok(())
        }
    }
}

/// The rule that a collection's name breaks.
pub(in crate::script) fn collection_rule(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > NAME_BYTES_MAX {
        Some("is longer than 256 bytes")
    } else if name.chars().any(char::is_control) {
        Some("has control characters")
    } else if name.starts_with('@') {
        Some("begins with @, which is reserved")
    } else {
        None
    }
}

/// A collection's name by the rules.
fn collection_name(name: &str) -> Result<String, Failure> {
    let shown: String = name.chars().take(80).collect();
    let Some(rule) = collection_rule(name) else { return Ok(name.to_owned()) };
    Err(failure_with(format!("the collection name {shown:?} {rule}"), "use a plain name such as \"Orders\""))
}
