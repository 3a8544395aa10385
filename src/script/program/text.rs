//! One text, compiled: its engine, its functions, and what its top level declared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rhai::{AST, CallFnOptions, Dynamic, Engine, Scope};

use super::super::functions::definition::AllDocs;
use super::super::host::convert::{Bounds, encode};
use super::super::state::{Settings, State};
use super::super::{Fault, Limits, Phase, engine, fault};
use super::shape::Shape;
use super::tokens::{Seen, observe};
use super::{check, rewrite};

/// A compiled text. Its state is the engine's own.
pub(in crate::script) struct Text {
    engine: Engine,
    functions: AST,
    label: String,
    state: Rc<State>,
    settings: Settings,
    loads: Vec<String>,
    signature: [u8; 16],
    shape: Shape,
}

impl Text {
    /// Compiles, checks, and runs the top level once. `roles` are the functions that others call.
    pub(in crate::script) fn compile(
        text: &str,
        label: &str,
        state: &Rc<State>,
        roles: &[&str],
    ) -> Result<Self, Fault> {
        let refuse = |finding: fault::Finding| finding.into_fault(label);
        check_length(text, &state.limits).map_err(refuse)?;
        let seen = Rc::new(RefCell::new(Seen::new()));
        let mut engine = engine::bare(state);
        observe(&mut engine, &seen);
        let ast = engine.compile(text).map_err(|error| fault::from_parse_error(&error).into_fault(label))?;
        check::check(&ast, roles).map_err(refuse)?;
        let loads = check::loads(&ast).map_err(refuse)?;
        engine::equip(&mut engine, state, &seen.borrow().names);
        let functions = rewrite::functions(&ast);
        let shape = Shape::of(&ast);
        let settings = Settings::default();
        let signature = seen.borrow().signature();
        let (label, state_of_text) = (label.to_owned(), Rc::clone(state));
        let mut compiled = Self { engine, functions, label, state: state_of_text, settings, loads, signature, shape };
        let constants = compiled.run_top_level(&ast)?;
        if !constants.is_empty() || check::fills_containers(&ast) {
            engine::watch_variables(&mut compiled.engine, state, constants);
        }
        Ok(compiled)
    }

    fn run_top_level(&mut self, ast: &AST) -> Result<BTreeMap<String, Dynamic>, Fault> {
        let state = Rc::clone(&self.state);
        state.begin(Phase::Definition);
        state.settings.replace(Settings::default());
        let mut scope = Scope::new();
        scope.push_constant("ALL_DOCS", AllDocs);
        let run = self.engine.run_ast_with_scope(&mut scope, ast);
        run.map_err(|error| fault::from_failure(*error, &state).into_fault(&self.label))?;
        self.settings = state.settings.take();
        let bounds = Bounds { bytes: (state.limits.value_bytes_max, "value_bytes_max"), depth: state.limits.depth_max };
        let mut constants = BTreeMap::new();
        for (name, is_constant, value) in scope.iter() {
            if !is_constant || value.is::<AllDocs>() {
                continue;
            }
            let value = value.flatten();
            encode(&value, bounds, &mut Vec::new()).map_err(|error| {
                fault::Finding::new(format!("the constant {name}: the value {error}"))
                    .hint("constants hold plain values: numbers, texts, arrays, maps")
                    .into_fault(&self.label)
            })?;
            constants.insert(name.to_owned(), value);
        }
        Ok(constants)
    }

    /// What the top level declared.
    pub(in crate::script) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The collections that it loads from.
    pub(in crate::script) fn loads(&self) -> &[String] {
        &self.loads
    }

    /// What is known of the keys that the text emits.
    pub(in crate::script) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The hash of the text's tokens.
    pub(in crate::script) fn signature(&self) -> [u8; 16] {
        self.signature
    }

    /// What faults call this text.
    pub(in crate::script) fn label(&self) -> &str {
        &self.label
    }

    /// The numbers of parameters that functions of this name have.
    pub(in crate::script) fn parameters(&self, function: &str) -> Vec<usize> {
        let internal = rewrite::internal_name(function);
        self.functions.iter_functions().filter(|f| f.name == internal).map(|f| f.params.len()).collect()
    }

    /// Calls a function. The caller has begun the call in the state.
    pub(in crate::script) fn call(
        &self,
        function: &str,
        arguments: Vec<Dynamic>,
    ) -> Result<Dynamic, Box<rhai::EvalAltResult>> {
        let options = CallFnOptions::new().eval_ast(false).rewind_scope(true);
        self.engine.call_fn_with_options(
            options,
            &mut Scope::new(),
            &self.functions,
            rewrite::internal_name(function),
            arguments,
        )
    }
}

fn check_length(text: &str, limits: &Limits) -> Result<(), fault::Finding> {
    if text.len() <= limits.text_bytes_max {
        return Ok(());
    }
    let message =
        format!("the script is {} bytes long, the limit is {} (text_bytes_max)", text.len(), limits.text_bytes_max);
    Err(fault::Finding::new(message).hint("keep data out of scripts: store it in documents"))
}
