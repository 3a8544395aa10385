//! The script of a subscription: `fn filter(doc)` says which documents are delivered, `fn project(doc)` what of them.
//!
//! The same sandbox, limits and host functions as in index scripts; there is no `emit`, and nothing is declared at the top
//! level.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rhai::Dynamic;

use super::encoding::{self, Item, Reader};
use super::fault::{self, Finding};
use super::host::{About, Object};
use super::program::rewrite::SIEVE_ROLES;
use super::program::text::Text;
use super::runner::encoded;
use super::state::State;
use super::{Fault, Limits, MapInput, Phase, STACK_BYTES};

/// What faults call the script.
const LABEL: &str = "script";

/// A checked script of a subscription. `Send + Sync`.
#[derive(Debug)]
pub struct Sieve {
    text: String,
    has_filter: bool,
    has_project: bool,
    limits: Limits,
}

/// What a script makes of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sifted {
    /// It is not wanted.
    Dropped,
    /// It is wanted as it is.
    Whole,
    /// It is wanted in this shape: the JSON text of an object.
    Projected(String),
}

impl Sieve {
    /// Compiles the text, runs its top level once, and checks the shape. Runs on a thread of its own.
    ///
    /// # Errors
    /// A [`Fault`] of phase `Definition` that names line, column, rule and way out.
    ///
    /// # Cost
    /// A thread, and a few milliseconds.
    pub fn compile(text: String, limits: Limits) -> Result<Self, Fault> {
        let own = |message: String| Finding::new(message).transient().into_fault(LABEL);
        let thread = std::thread::Builder::new()
            .name("script-compile".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || catch_unwind(|| Self::build(text, limits)))
            .map_err(|error| own(format!("no thread could be started to compile the script: {error}")))?;
        match thread.join() {
            Ok(Ok(sieve)) => sieve,
            _ => Err(own("an internal error ended the compilation".to_owned())),
        }
    }

    fn build(text: String, limits: Limits) -> Result<Self, Fault> {
        let state = Rc::new(State::new(limits.clone(), Arc::new(AtomicBool::new(false))));
        let compiled = Text::compile(&text, LABEL, &state, &SIEVE_ROLES)?;
        let settings = compiled.settings();
        if !settings.sources.is_empty() || settings.output.is_some() || settings.reference.is_some() {
            return Err(Finding::new("source, output and reference belong into an index's script")
                .hint("a subscription's query says which collection it reads: from Orders")
                .into_fault(LABEL));
        }
        if !compiled.loads().is_empty() {
            return Err(Finding::new("a subscription's script sees one document, and can't load others")
                .hint("let an index put together what belongs together, and subscribe to its output")
                .into_fault(LABEL));
        }
        let has = |name: &str| match compiled.parameters(name).as_slice() {
            [] => Ok(false),
            [1] => Ok(true),
            _ => Err(Finding::new(format!("{name} must have one parameter, in one definition"))
                .hint(format!("write `fn {name}(doc) {{ … }}`"))
                .into_fault(LABEL)),
        };
        let (has_filter, has_project) = (has("filter")?, has("project")?);
        if !has_filter && !has_project {
            return Err(Finding::new("the script has neither `filter` nor `project`")
                .hint("add `fn filter(doc) { … }`, which returns true or false, or `fn project(doc) { … }`")
                .into_fault(LABEL));
        }
        Ok(Self { text, has_filter, has_project, limits })
    }
}

/// One thread's engine for one sieve. Threads that use one need [`STACK_BYTES`] of stack.
pub struct Sifter {
    sieve: Arc<Sieve>,
    text: Text,
    state: Rc<State>,
}

impl std::fmt::Debug for Sifter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sifter").field("sieve", &self.sieve).finish_non_exhaustive()
    }
}

impl Sifter {
    /// Builds the engine. `stop` ends a running script with a transient fault when it becomes true.
    ///
    /// # Errors
    /// A [`Fault`] of phase `Definition`, where the text does not compile here though it did before.
    ///
    /// # Cost
    /// About a millisecond.
    pub fn new(sieve: Arc<Sieve>, stop: Arc<AtomicBool>) -> Result<Self, Fault> {
        let state = Rc::new(State::new(sieve.limits.clone(), stop));
        let text = Text::compile(&sieve.text, LABEL, &state, &SIEVE_ROLES)?;
        Ok(Self { sieve, text, state })
    }

    /// Says what becomes of one document.
    ///
    /// # Errors
    /// A [`Fault`] of phase `Filter` or `Project`.
    ///
    /// # Cost
    /// One pass over the document's text for each function, then what the script does.
    pub fn sift(&mut self, document: &MapInput<'_>) -> Result<Sifted, Fault> {
        if self.sieve.has_filter && !self.filter(document)? {
            return Ok(Sifted::Dropped);
        }
        self.project(document)
    }

    /// Shapes one document without asking whether it is wanted.
    ///
    /// # Errors
    /// A [`Fault`] of phase `Project`.
    pub fn project(&mut self, document: &MapInput<'_>) -> Result<Sifted, Fault> {
        if !self.sieve.has_project {
            return Ok(Sifted::Whole);
        }
        let projected = self.call(Phase::Project, "project", document, encoded)?;
        if projected == encoding::NULL {
            return Ok(Sifted::Dropped);
        }
        if !matches!(Reader::new(&projected).item(), Some(Item::Object(_))) {
            return Err(Finding::new("the result is no object map")
                .hint("return an object map, as in #{ Total: doc.Total }, or () to leave the document out")
                .function("project")
                .in_phase(Phase::Project, LABEL));
        }
        let mut json = String::with_capacity(128);
        encoding::write_json(&projected, &mut json);
        Ok(Sifted::Projected(json))
    }

    fn filter(&mut self, document: &MapInput<'_>) -> Result<bool, Fault> {
        let wanted = self.call(Phase::Filter, "filter", document, |_, result| Ok(result.as_bool().ok()))?;
        wanted.ok_or_else(|| {
            Finding::new("the result is neither true nor false")
                .hint("end the function with a comparison, as in doc.Total > 100")
                .function("filter")
                .in_phase(Phase::Filter, LABEL)
        })
    }

    /// One call with a fresh budget; it ends with a result or a fault, and the next call works.
    fn call<T>(
        &mut self,
        phase: Phase,
        function: &str,
        document: &MapInput<'_>,
        take: impl FnOnce(&State, &Dynamic) -> Result<T, super::problem::Failure>,
    ) -> Result<T, Fault> {
        let about = About {
            id: document.id.into(),
            collection: document.collection.into(),
            metadata: document.metadata.into(),
        };
        let Some(object) = Object::document(document.body, about) else {
            return Err(Finding::new("the stored document is not a JSON object").in_phase(phase, LABEL));
        };
        self.state.begin(phase);
        let (text, state) = (&self.text, &self.state);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let result = text.call(function, vec![Dynamic::from(object)])?;
            take(state, &result)
        }));
        match ran {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(fault::from_failure(*error, &self.state).function(function).in_phase(phase, LABEL)),
            Err(_) => {
                // The engine may have been left in the middle of something.
                self.state = Rc::new(self.state.renewed());
                self.text = Text::compile(&self.sieve.text, LABEL, &self.state, &SIEVE_ROLES)?;
                let finding = Finding::new("an internal error ended the call").hint("please report it with the script");
                Err(finding.function(function).in_phase(phase, LABEL))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles a script and runs it on documents, on a thread with the stack for it.
    fn sift(script: &str, bodies: &[&str]) -> Vec<Result<Sifted, Fault>> {
        let sieve = Arc::new(Sieve::compile(script.to_owned(), Limits::default()).unwrap());
        let bodies: Vec<String> = bodies.iter().map(|body| (*body).to_owned()).collect();
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let mut sifter = Sifter::new(sieve, Arc::default()).unwrap();
            let input = |body| MapInput { id: "orders/1", collection: "Orders", metadata: "{}", body };
            bodies.iter().map(|body| sifter.sift(&input(body))).collect()
        });
        thread.unwrap().join().unwrap()
    }

    #[test]
    fn documents_are_dropped_kept_or_shaped() {
        let script = "const LEAST = 10; fn filter(doc) { doc.Total >= LEAST }";
        assert_eq!(sift(script, &[r#"{"Total":10.0}"#, r#"{"Total":9}"#]), [Ok(Sifted::Whole), Ok(Sifted::Dropped)]);
        let script = "fn project(doc) { if doc.Total == 0 { return (); } #{ Id: id(doc), Double: doc.Total * 2 } }";
        assert_eq!(
            sift(script, &[r#"{"Total":1.50}"#, r#"{"Total":0}"#]),
            [Ok(Sifted::Projected(r#"{"Double":3,"Id":"orders/1"}"#.into())), Ok(Sifted::Dropped)]
        );
    }

    #[test]
    fn a_failing_document_does_not_stop_the_next() {
        let found =
            sift("fn filter(doc) { doc.Total > 1 }", &[r#"{"Total":"x"}"#, r#"{"Total":2}"#, r#"{"Total":null}"#]);
        let fault = found[0].clone().unwrap_err();
        assert_eq!((fault.phase, fault.line), (Phase::Filter, Some(1)));
        assert_eq!(found[1], Ok(Sifted::Whole));
        for (script, words) in [
            ("fn filter(doc) { doc.Total }", "neither true nor false"),
            ("fn project(doc) { [doc.Total] }", "no object map"),
            ("fn filter(doc) { loop { } }", "operations"),
            ("fn filter(doc) { emit(1, 1); true }", "emit"),
        ] {
            let fault = sift(script, &[r#"{"Total":1}"#])[0].clone().unwrap_err();
            assert!(fault.to_string().contains(words), "{fault}");
        }
    }

    #[test]
    fn a_script_without_a_role_is_refused() {
        for (script, words) in [
            ("fn other(doc) { true }", "neither"),
            ("fn filter() { true }", "one parameter"),
            ("source(\"A\"); fn filter(doc) { true }", "index's script"),
            ("fn filter(doc) { load(doc.Other, \"Others\") == () }", "load"),
            ("fn filter(doc) { doc. }", "script:1:"),
        ] {
            let fault = Sieve::compile(script.to_owned(), Limits::default()).unwrap_err();
            assert!(fault.to_string().contains(words), "{fault}");
        }
    }
}
