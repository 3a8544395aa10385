//! `emit(key, value)`: what a map function is for.

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

use std::any::TypeId;
use std::rc::Rc;

use rhai::{Dynamic, Engine, NativeCallContext};

use super::super::host::convert::{Bounds, EncodeError, encode};
use super::super::problem::{Failure, failure, failure_with, limit};
use super::super::state::State;
use super::super::{Emitted, Phase};

/// Registers the function.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    let any = TypeId::of::<Dynamic>();
    let shared = Rc::clone(state);
    engine.register_raw_fn("emit", [any, any], move |_: NativeCallContext, args: &mut [&mut Dynamic]| match args {
        [key, value] => emit(&shared, key, value),
        _ => Err(failure("emit needs a key and a value")),
    });
    engine.register_fn("emit", |_: Dynamic| -> Result<(), Failure> {
        Err(failure_with("emit needs a key and a value", "emit(doc.City, #{ Count: 1 })"))
    });
}

fn emit(state: &State, key: &Dynamic, value: &Dynamic) -> Result<(), Failure> {
    if state.phase.get() != Phase::Map {
        return Err(failure_with("emit works in map functions only", "`reduce` and `finish` return their result"));
    }
    let limits = &state.limits;
    let mut emitted = state.emitted.borrow_mut();
    if emitted.len() >= limits.entries_max {
        return Err(limit(
            format!("a document may emit {} entries at most (entries_max)", limits.entries_max),
            "emit sums instead of single entries, or raise the limit",
        ));
    }
    let mut entry = Emitted { key: Vec::with_capacity(64), value: Vec::with_capacity(64) };
    let depth = limits.depth_max;
    encode(key, Bounds { bytes: (limits.key_bytes_max, "key_bytes_max"), depth }, &mut entry.key)
        .map_err(|error| refused("key", &error))?;
    encode(value, Bounds { bytes: (limits.value_bytes_max, "value_bytes_max"), depth }, &mut entry.value)
        .map_err(|error| refused("value", &error))?;
    let bytes = entry.key.len() + entry.value.len();
    state.charge_bytes(bytes)?;
    let total = state.emitted_bytes.get() + bytes;
    if total > limits.emitted_bytes_max {
        return Err(limit(
            format!("a document may emit {} bytes at most (emitted_bytes_max)", limits.emitted_bytes_max),
            "emit less per entry, or raise the limit",
        ));
    }
    state.emitted_bytes.set(total);
    emitted.push(entry);
    Ok(())
}

/// A value that has no encoding: limits end the call, other mistakes can be caught.
pub(in crate::script) fn refused(what: &str, error: &EncodeError) -> Failure {
    match error {
        EncodeError::Bytes(..) | EncodeError::Depth(_) => {
            limit(format!("the {what} {error}"), "store less in one value")
        }
        EncodeError::Type("function") => {
            failure_with(format!("the {what} holds a function, which cannot be stored"), "call it and store its result")
        }
        _ => failure(format!("the {what} cannot be stored: {error}")),
    }
}
