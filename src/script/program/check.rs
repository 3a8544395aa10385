//! What a syntax tree must not hold: calls of functions that do not exist, and functions kept as values.
//!
//! A closure stands where it is used: as the first argument of a function of lists. Kept in a variable or a map, it
//! could hold itself, and such a ring would never be freed.

use std::collections::BTreeSet;

use rhai::{AST, ASTNode, Expr, Position, Stmt};

use super::super::fault::Finding;
use super::super::functions::definition::collection_rule;
use super::words;
use crate::id::lower;

/// Parameters of one function.
const PARAMETERS_MAX: usize = 16;

/// Collections that one index may load from.
const LOADS_MAX: usize = 64;

/// Checks a text's tree. `roles` are the functions that others call.
///
/// # Errors
/// The first finding, with its position.
pub(in crate::script) fn check(ast: &AST, roles: &[&str]) -> Result<(), Finding> {
    let own: BTreeSet<(String, usize)> =
        ast.iter_functions().map(|function| (function.name.to_owned(), function.params.len())).collect();
    for function in ast.shared_lib().iter_script_fn_info().map(|info| info.4) {
        let name = function.name.as_str();
        let position = function.body.start_position();
        if function.this_type.is_some() {
            return Err(Finding::at(position, format!("{name}: functions of a type are not supported"))
                .hint("pass the value as a parameter"));
        }
        if function.params.len() > PARAMETERS_MAX {
            return Err(Finding::at(position, format!("{name} has more than {PARAMETERS_MAX} parameters"))
                .hint("pass an object map"));
        }
        if !roles.contains(&name) && (words::is_native(name) || words::is_method(name)) {
            return Err(Finding::at(position, format!("a function named {name} exists already"))
                .hint("give yours another name"));
        }
    }
    let mut found = None;
    ast.walk(&mut |path| {
        found = node(path, &own, roles);
        found.is_none()
    });
    found.map_or(Ok(()), Err)
}

fn node(path: &[ASTNode], own: &BTreeSet<(String, usize)>, roles: &[&str]) -> Option<Finding> {
    match path.last()? {
        ASTNode::Expr(Expr::FnCall(call, position)) | ASTNode::Stmt(Stmt::FnCall(call, position)) => {
            if call.op_token.is_some() || call.name == "curry" {
                return None;
            }
            if roles.contains(&call.name.as_str()) {
                let caller = if roles.contains(&"map") { "the index" } else { "the subscription" };
                return Some(
                    Finding::at(*position, format!("{} is called by {caller}, not by the script", call.name))
                        .hint("put what both need into a function of its own"),
                );
            }
            known(&call.name, call.args.len(), *position, own)
        }
        ASTNode::Expr(Expr::MethodCall(call, position)) => known(&call.name, call.args.len(), *position, own),
        ASTNode::Expr(Expr::DynamicConstant(value, position)) if value.is_fnptr() => misplaced(path, *position),
        ASTNode::Expr(Expr::Variable(variable, _, position)) => {
            let name = variable.1.as_str();
            (variable.0.is_none() && own.iter().any(|(function, _)| function == name)).then(|| {
                Finding::at(*position, format!("{name} is a function and cannot be used as a value"))
                    .hint(format!("call it, or write a closure where it is used: .map(|x| {name}(x))"))
            })
        }
        _ => None,
    }
}

/// The collections that `load` names, each once by its lower-cased name.
///
/// # Errors
/// A call whose collection is not a plain name, known before the script runs.
pub(in crate::script) fn loads(ast: &AST) -> Result<Vec<String>, Finding> {
    let mut names: Vec<String> = Vec::new();
    let mut found = None;
    ast.walk(&mut |path| {
        let (arguments, collection, position) = match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, position)) | ASTNode::Stmt(Stmt::FnCall(call, position)))
                if call.name == "load" =>
            {
                (call.args.len(), call.args.get(1), *position)
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, position))) if call.name == "load" => {
                (call.args.len() + 1, call.args.first(), *position)
            }
            _ => return true,
        };
        match collection {
            Some(Expr::StringConstant(name, _)) if arguments == 2 => match collection_rule(name) {
                Some(rule) => found = Some(Finding::at(position, format!("the collection name {name:?} {rule}"))),
                None if names.iter().any(|known| lower(known) == lower(name)) => {}
                None => names.push(name.to_string()),
            },
            _ => {
                let finding = Finding::at(position, "load needs an id and the name of a collection, written out");
                found = Some(
                    finding
                        .hint("the index must know which collections it follows: load(order.Company, \"Companies\")"),
                );
            }
        }
        if names.len() > LOADS_MAX {
            found = Some(Finding::at(position, format!("an index loads from {LOADS_MAX} collections at most")));
        }
        found.is_none()
    });
    found.map_or(Ok(names), Err)
}

/// Functions that put something into what they are called on.
const FILLERS: [&str; 9] = ["push", "append", "insert", "pad", "splice", "set", "mixin", "fill_with", "concat"];

/// Whether a text puts things into arrays and maps of its own, whose sizes must then be watched.
pub(in crate::script) fn fills_containers(ast: &AST) -> bool {
    let mut found = false;
    ast.walk(&mut |path| {
        found |= match path.last() {
            Some(ASTNode::Stmt(Stmt::Assignment(assignment))) => {
                matches!(assignment.1.lhs, Expr::Index(..) | Expr::Dot(..) | Expr::ThisPtr(_))
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, _))) => FILLERS.contains(&call.name.as_str()),
            _ => false,
        };
        !found
    });
    found
}

fn known(name: &str, arguments: usize, position: Position, own: &BTreeSet<(String, usize)>) -> Option<Finding> {
    if words::is_native(name) || own.contains(&(name.to_owned(), arguments)) {
        return None;
    }
    let mine: Vec<usize> = own.iter().filter(|(function, _)| function == name).map(|(_, count)| *count).collect();
    let finding = if let Some(count) = mine.first() {
        let plural = if *count == 1 { "" } else { "s" };
        Finding::at(position, format!("{name} has {count} parameter{plural}, but is called with {arguments}"))
    } else {
        Finding::at(position, format!("there is no function {name}"))
    };
    let names = own.iter().map(|(function, _)| function.as_str()).filter(|function| !function.starts_with("anon$"));
    match words::hint(name, names) {
        Some(hint) if mine.is_empty() => Some(finding.hint(hint)),
        _ => Some(finding),
    }
}

/// A closure that is not the first argument of a function of lists.
fn misplaced(path: &[ASTNode], position: Position) -> Option<Finding> {
    let mut parents = path.iter().rev();
    let mut child = parents.next()?;
    for parent in parents {
        match parent {
            // What the parser puts around a closure that captures variables.
            ASTNode::Expr(Expr::FnCall(call, _)) if call.name == "curry" => {}
            ASTNode::Stmt(Stmt::Expr(_)) => {}
            ASTNode::Expr(Expr::Stmt(block)) if matches!(block.statements().first(), Some(Stmt::Share(_))) => {}
            ASTNode::Expr(Expr::MethodCall(call, _)) => {
                let is_first = matches!(child, ASTNode::Expr(expr) if call.args.first().is_some_and(|first| std::ptr::eq(first, *expr)));
                if is_first && words::is_method(&call.name) {
                    return None;
                }
                break;
            }
            _ => break,
        }
        if !matches!(parent, ASTNode::Stmt(_)) {
            child = parent;
        }
    }
    Some(
        Finding::at(position, "a closure cannot be kept or passed on")
            .hint("write it where it is used, as in lines.filter(|line| line.Total > 10), or use a `for` loop"),
    )
}
