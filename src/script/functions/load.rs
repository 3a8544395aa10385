//! `load(id, "Collection")`: another document, as it was when the run began.
//!
//! What was asked for is noted, found or not: when one of these documents changes, the one that is being mapped is mapped
//! again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rhai::{Dynamic, Engine};

use super::super::host::{About, Object};
use super::super::problem::{Failure, failure, failure_with, limit};
use super::super::state::State;
use super::super::{Loader, Phase};
use super::text_of;
use crate::id::{DocumentId, lower};

/// Operations that a load costs, besides those for the document's size.
const LOAD_OPERATIONS: usize = 20;

/// What a thread's calls load from, and what the last call has loaded.
#[derive(Clone, Default)]
pub(in crate::script) struct Loads {
    loader: RefCell<Option<Rc<dyn Loader>>>,
    /// By lower-cased id; `None` where there was no such document.
    documents: RefCell<BTreeMap<String, Option<Object>>>,
}

impl std::fmt::Debug for Loads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loads").field("documents", &self.documents.borrow().len()).finish_non_exhaustive()
    }
}

impl Loads {
    /// Loads from here from now on.
    pub(in crate::script) fn from(&self, loader: Option<Rc<dyn Loader>>) {
        self.begin();
        self.loader.replace(loader);
    }

    /// Begins a call.
    pub(in crate::script) fn begin(&self) {
        self.documents.borrow_mut().clear();
    }

    /// The lower-cased ids that the last call asked for, in order.
    pub(in crate::script) fn ids(&self) -> Vec<String> {
        self.documents.borrow().keys().cloned().collect()
    }
}

/// Registers the function.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    let state = Rc::clone(state);
    engine.register_fn("load", move |id: Dynamic, collection: Dynamic| load(&state, &id, &collection));
}

fn load(state: &State, id: &Dynamic, collection: &Dynamic) -> Result<Dynamic, Failure> {
    if state.phase.get() != Phase::Map {
        return Err(failure_with(
            "load works in map functions only",
            "put what `reduce` needs into the value that map emits",
        ));
    }
    if id.is_unit() {
        return Ok(Dynamic::UNIT);
    }
    let (written, collection) = (text_of(id, "load")?, text_of(collection, "load")?);
    // What can be no document's id names none, today or later.
    let Ok(id) = DocumentId::existing(&written) else { return Ok(Dynamic::UNIT) };
    let known = state.loads.documents.borrow().get(id.lower()).cloned();
    let document = match known {
        Some(document) => document,
        None => fetch(state, &id)?,
    };
    let found =
        document.filter(|found| found.about().is_some_and(|about| lower(&about.collection) == lower(&collection)));
    Ok(found.map_or(Dynamic::UNIT, |found| Dynamic::from(found.named(&collection))))
}

/// Reads a document for the first time in this call.
fn fetch(state: &State, id: &DocumentId) -> Result<Option<Object>, Failure> {
    let max = state.limits.loads_max;
    if state.loads.documents.borrow().len() >= max {
        return Err(limit(
            format!("a document may load {max} others at most (loads_max)"),
            "load fewer, or index them by what they have in common",
        ));
    }
    let Some(loader) = state.loads.loader.borrow().clone() else {
        return Err(failure("there are no documents to load from here"));
    };
    let loaded = match loader.load(id) {
        Ok(loaded) => loaded,
        Err(reason) => {
            state.interrupt();
            return Err(limit(format!("'{}' could not be read: {reason}", id.as_str()), ""));
        }
    };
    state.charge(LOAD_OPERATIONS)?;
    state.charge_bytes(loaded.as_ref().map_or(0, |loaded| loaded.body.len()))?;
    let object = match loaded {
        None => None,
        Some(loaded) => {
            let about = About {
                id: loaded.id.into(),
                collection: loaded.collection.into(),
                metadata: loaded.metadata.as_str().into(),
            };
            let object = Object::document(&loaded.body, about);
            Some(object.ok_or_else(|| failure(format!("the document '{}' is not a JSON object", id.as_str())))?)
        }
    };
    state.loads.documents.borrow_mut().insert(id.lower().to_owned(), object.clone());
    Ok(object)
}
