//! The engine of one text: named functions only, every limit set, operations counted.
//!
//! A raw engine has no functions at all. It gets the array and map packages and what `functions` registers; there is no
//! clock, no randomness, no output, no file, no way to evaluate text. Next: `program`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rhai::{Dynamic, Engine, EvalContext, OptimizationLevel};

use super::Limits;
use super::functions;
use super::host::Object;
use super::state::State;

/// Nesting of expressions, at top level and in functions. A script of this depth fits the stated stack.
const EXPRESSION_DEPTH_MAX: usize = 128;

/// Variables in view of one function.
const VARIABLES_MAX: usize = 64;

/// Functions of one text, closures included.
const FUNCTIONS_MAX: usize = 256;

/// Elements and properties: Rhai has no limit on nesting, and values of more levels than this overflow a stack.
const ELEMENTS_MAX: usize = 5_000;

/// Short strings that are kept to be shared.
const INTERNED_MAX: usize = 256;

/// Words that reach outside a script or keep state between calls.
const DISABLED: [&str; 6] = ["eval", "curry", "Fn", "call", "is_shared", "export"];

impl Limits {
    pub(super) fn array_elements(&self) -> usize {
        self.array_elements_max.clamp(1, ELEMENTS_MAX)
    }

    pub(super) fn map_properties(&self) -> usize {
        self.map_properties_max.clamp(1, ELEMENTS_MAX)
    }

    /// The longest string that the engine lets pass: one that a script makes, or one it reads to use as a key.
    pub(super) fn engine_string_bytes(&self) -> usize {
        self.string_bytes_max.max(self.key_bytes_max).max(1)
    }
}

/// An engine without functions, for compiling.
pub(super) fn bare(state: &Rc<State>) -> Engine {
    let limits = &state.limits;
    let mut engine = Engine::new_raw();
    engine
        .set_optimization_level(OptimizationLevel::None)
        .set_fast_operators(false)
        .set_allow_shadowing(true)
        .set_strict_variables(false)
        .set_fail_on_invalid_map_property(false)
        .set_max_expr_depths(EXPRESSION_DEPTH_MAX, EXPRESSION_DEPTH_MAX)
        .set_max_call_levels(limits.call_depth_max)
        // Counted by `State` instead: the engine does not see the callbacks of native functions.
        .set_max_operations(0)
        .set_max_variables(VARIABLES_MAX)
        .set_max_functions(FUNCTIONS_MAX)
        .set_max_strings_interned(INTERNED_MAX)
        .set_max_string_size(limits.engine_string_bytes())
        .set_max_array_size(limits.array_elements())
        .set_max_map_size(limits.map_properties());
    for word in DISABLED {
        engine.disable_symbol(word);
    }
    let shared = Rc::clone(state);
    engine.on_progress(move |_| shared.step());
    engine
}

/// Registers all functions; `names` are the properties that the text mentions.
pub(super) fn equip(engine: &mut Engine, state: &Rc<State>, names: &BTreeSet<String>) {
    functions::collections::register(engine, state);
    functions::operators::register(engine, state);
    functions::numbers::register(engine);
    functions::strings::register(engine, state);
    functions::dates::register(engine);
    functions::sort::register(engine);
    functions::aggregates::register(engine, state);
    functions::document::register(engine, state, names);
    functions::emit::register(engine, state);
    functions::load::register(engine, state);
    functions::definition::register(engine, state);
}

/// Makes the top level's constants visible in all functions, and checks the sizes of containers as they are reached.
/// Both cost a look at every variable, so only texts that need one of them get this.
pub(super) fn watch_variables(engine: &mut Engine, state: &Rc<State>, constants: BTreeMap<String, Dynamic>) {
    let state = Rc::clone(state);
    let resolve = move |name: &str, offset: usize, context: EvalContext| {
        let scope = context.scope();
        let value = match offset {
            0 => scope.get(name),
            offset => scope.iter_raw().nth(scope.len().saturating_sub(offset)).map(|(_, _, value)| value),
        };
        match value {
            None => Ok(constants.get(name).cloned()),
            Some(value) => {
                if value.is_array() || value.is_map() || value.is::<Object>() {
                    functions::collections::check_size(&state, value)?;
                }
                Ok(None)
            }
        }
    };
    #[expect(deprecated, reason = "not deprecated, but marked so because it may change; the version is pinned")]
    engine.on_var(resolve);
}
