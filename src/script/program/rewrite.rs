//! Names for the functions that have a role: `map`, `reduce`, `filter` are also functions of lists, and where a
//! script defines one, `lines.map(|line| …)` would call the script's. Under a name that no script can write, it cannot.

use rhai::{AST, Module, ScriptFuncDef, Shared};

/// The functions that have a role in an index's script.
pub(in crate::script) const ROLES: [&str; 3] = ["map", "reduce", "finish"];
/// The functions that have a role in a subscription's script.
pub(in crate::script) const SIEVE_ROLES: [&str; 2] = ["filter", "project"];

/// What a function is called in the tree.
pub(in crate::script) fn internal_name(name: &str) -> String {
    if ROLES.contains(&name) || SIEVE_ROLES.contains(&name) { format!("{name}$") } else { name.to_owned() }
}

/// What the script calls a function.
pub(in crate::script) fn shown_name(internal: &str) -> &str {
    internal.strip_suffix('$').unwrap_or(internal)
}

/// The functions of a text under their internal names, without its top level.
pub(in crate::script) fn functions(ast: &AST) -> AST {
    let mut module = Module::new();
    for info in ast.shared_lib().iter_script_fn_info() {
        let mut function: ScriptFuncDef = (**info.4).clone();
        function.name = internal_name(&function.name).into();
        module.set_script_fn(Shared::new(function));
    }
    AST::new([], module)
}
