//! Running a program: one thread's engines, and the three calls that an index makes.
//!
//! Each call gets a fresh budget and leaves nothing behind. Whatever a script does, a call ends with a result or a
//! [`Fault`], and the next call works. Next on the walk: `index::tree`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rhai::Dynamic;

use super::encoding::{self, Item, Reader};
use super::fault::{self, Finding};
use super::functions::emit::refused;
use super::host::convert::{Bounds, encode};
use super::host::decode::encoded_value;
use super::host::object::METADATA;
use super::host::{About, List, Object};
use super::json::{self, Span};
use super::program::definition::Compiled;
use super::state::State;
use super::{Emitted, Fault, Loader, MapInput, Phase, Program, UnknownField};

/// One thread's engine for one program. Neither `Send` nor `Sync`; threads that use one need [`super::STACK_BYTES`] of
/// stack.
pub struct Runner {
    program: Arc<Program>,
    compiled: Compiled,
    state: Rc<State>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Runner {
    /// Builds the engine. `stop` ends a running script with a transient fault when it becomes true.
    ///
    /// # Errors
    /// A [`Fault`] of phase `Definition`, where the texts do not compile here though they did before.
    ///
    /// # Cost
    /// About a millisecond per text.
    pub fn new(program: Arc<Program>, stop: Arc<AtomicBool>) -> Result<Self, Fault> {
        let state = Rc::new(State::new(program.limits.clone(), stop));
        let compiled = Compiled::new(&program.texts, &state)?;
        Ok(Self { program, compiled, state })
    }

    /// Notes from now on which fields the script reads; see [`Runner::unknown_fields`].
    pub fn watch_fields(&self) {
        self.state.watch.get_or_init(Rc::default);
    }

    /// The fields that the script has read since [`Runner::watch_fields`] and that no document, key or value had, at most
    /// 1,000; in the order of the phases and by path.
    pub fn unknown_fields(&self) -> Vec<UnknownField> {
        self.state.watch.get().map(|watch| watch.unknown()).unwrap_or_default()
    }

    /// Operations that the last call used, of at most `operations_max` and those of one step.
    pub fn operations(&self) -> u64 {
        self.state.operations()
    }

    /// Lets `load` find documents here from now on, or (`None`) nowhere.
    pub fn load_from(&self, loader: Option<Rc<dyn Loader>>) {
        self.state.loads.from(loader);
    }

    /// The lower-cased ids that the last call loaded or looked for in vain, in order, each once. Also after a fault.
    pub fn loaded(&self) -> Vec<String> {
        self.state.loads.ids()
    }

    /// Maps one document by `program.sources[source]`: its entries in the order of `emit`, or a fault and none.
    ///
    /// # Errors
    /// A [`Fault`] of phase `Map`.
    ///
    /// # Cost
    /// One pass over the document's text, then what the script does.
    pub fn map(&mut self, source: usize, document: &MapInput<'_>) -> Result<Vec<Emitted>, Fault> {
        let program = Arc::clone(&self.program);
        let Some(source) = program.sources.get(source) else {
            return Err(Finding::new(format!("there is no source {source}")).in_phase(Phase::Map, "script"));
        };
        let about = About {
            id: document.id.into(),
            collection: document.collection.into(),
            metadata: document.metadata.into(),
        };
        let Some(object) = Object::document(document.body, about) else {
            let finding = Finding::new("the stored document is not a JSON object");
            return Err(finding.in_phase(Phase::Map, "script"));
        };
        if let Some(watch) = self.state.watch.get() {
            watch.begin(&object);
        }
        self.call(Phase::Map, Some(source.text), &source.function, |_| Ok(vec![Dynamic::from(object)]), |_, _| Ok(()))?;
        Ok(self.state.emitted.take())
    }

    /// Reduces encoded values to one encoded value (`()` is encoded null).
    ///
    /// # Errors
    /// A [`Fault`] of phase `Reduce`.
    pub fn reduce(&mut self, key: &[u8], values: &[&[u8]]) -> Result<Vec<u8>, Fault> {
        self.call(
            Phase::Reduce,
            None,
            "reduce",
            |_| Ok(vec![decoded(key)?, Dynamic::from(List::group(values)?)]),
            |state, result| encoded(state, &result),
        )
    }

    /// Makes the body of the artificial document: the key's fields (`Key` where the key is no object), then the finished
    /// value's fields (`Value` where it is no object), each in code-point order. `None`: no document for this group
    /// (the value, or what `finish` gave, is `()`).
    ///
    /// # Errors
    /// A [`Fault`] of phase `Finish`: also where a field of the value has the name of a field of the key, or is named
    /// `@metadata`.
    pub fn finish(&mut self, key: &[u8], value: &[u8]) -> Result<Option<String>, Fault> {
        if value == encoding::NULL {
            return Ok(None);
        }
        let label = self.compiled.reducer().map_or_else(|| "script".to_owned(), |text| text.label().to_owned());
        if !self.program.has_finish {
            return document(key, value).map_err(|finding| finding.function("reduce").in_phase(Phase::Finish, &label));
        }
        let finished = self.call(
            Phase::Finish,
            None,
            "finish",
            |_| Ok(vec![decoded(key)?, decoded(value)?]),
            |state, result| encoded(state, &result),
        )?;
        if finished == encoding::NULL {
            return Ok(None);
        }
        document(key, &finished).map_err(|finding| finding.function("finish").in_phase(Phase::Finish, &label))
    }

    /// One call, into a map script or, without its number, into the one that reduces: a fresh budget, arguments made and result taken inside the same guard.
    fn call<T>(
        &mut self,
        phase: Phase,
        map: Option<usize>,
        function: &str,
        arguments: impl FnOnce(&State) -> Result<Vec<Dynamic>, super::problem::Failure>,
        take: impl FnOnce(&State, Dynamic) -> Result<T, super::problem::Failure>,
    ) -> Result<T, Fault> {
        let text = map.map_or_else(|| self.compiled.reducer(), |map| self.compiled.maps.get(map));
        let Some(text) = text else {
            return Err(Finding::new(format!("there is no function {function}")).in_phase(phase, "script"));
        };
        let label = text.label().to_owned();
        self.state.begin(phase);
        let state = &self.state;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let result = text.call(function, arguments(state)?)?;
            take(state, result)
        }));
        match ran {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => {
                let finding = fault::from_failure(*error, state);
                self.state.emitted.borrow_mut().clear();
                Err(finding.function(function).in_phase(phase, &label))
            }
            Err(_) => {
                // The engine may have been left in the middle of something.
                self.state = Rc::new(self.state.renewed());
                self.compiled = Compiled::new(&self.program.texts, &self.state)?;
                let finding = Finding::new("an internal error ended the call").hint("please report it with the script");
                Err(finding.function(function).in_phase(phase, &label))
            }
        }
    }
}

fn decoded(bytes: &[u8]) -> Result<Dynamic, super::problem::Failure> {
    let end = u32::try_from(bytes.len()).map_err(|_| super::problem::failure("the value is larger than 4 GiB"))?;
    encoded_value(&bytes.into(), Span { start: 0, end })
}

pub(super) fn encoded(state: &State, value: &Dynamic) -> Result<Vec<u8>, super::problem::Failure> {
    let bounds = Bounds { bytes: (state.limits.value_bytes_max, "value_bytes_max"), depth: state.limits.depth_max };
    let mut bytes = Vec::with_capacity(64);
    encode(value, bounds, &mut bytes).map_err(|error| refused("result", &error))?;
    Ok(bytes)
}

/// The text of the artificial document.
fn document(key: &[u8], value: &[u8]) -> Result<Option<String>, Finding> {
    let key_fields: Vec<(&str, &[u8])> = fields_or(key, "Key");
    let value_fields: Vec<(&str, &[u8])> = fields_or(value, "Value");
    let mut text = String::with_capacity(128);
    text.push('{');
    for (i, (name, field)) in key_fields.iter().chain(&value_fields).enumerate() {
        if *name == METADATA {
            return Err(Finding::new(format!("a result cannot have a field {METADATA}"))
                .hint("documents' metadata is the database's; name the field otherwise"));
        }
        if i >= key_fields.len() && key_fields.iter().any(|(other, _)| other == name) {
            return Err(Finding::new(format!("the result has a field {name}, and so has the key"))
                .hint("the key's fields are part of the document already; leave them out of the result"));
        }
        if i > 0 {
            text.push(',');
        }
        json::write_string(name, &mut text);
        text.push(':');
        encoding::write_json(field, &mut text);
    }
    text.push('}');
    Ok(Some(text))
}

fn fields_or<'a>(encoded: &'a [u8], name: &'a str) -> Vec<(&'a str, &'a [u8])> {
    match Reader::new(encoded).item() {
        Some(Item::Object(fields)) => fields.collect(),
        _ => vec![(name, encoded)],
    }
}
