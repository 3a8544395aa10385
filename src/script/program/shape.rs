//! What can be told of reduce keys from the scripts alone: which fields they have, and which of them are fields of the document.
//!
//! Queries read ranges of keys where this is known, and everything where it is not; it decides about speed, never about answers.

use std::collections::BTreeMap;

use rhai::{AST, ASTNode, Expr, FnCallExpr, ScriptFuncDef, Stmt};

use super::super::PlainKey;

/// What is known of the keys that a text emits.
#[derive(Debug)]
pub(in crate::script) struct Shape {
    /// The names of the fields of every key, in code-point order.
    pub(in crate::script) key_names: Option<Vec<String>>,
    /// By the name of a function that emits once, always, and only properties of the document as they are.
    pub(in crate::script) plain_keys: BTreeMap<String, PlainKey>,
}

impl Shape {
    pub(in crate::script) fn of(ast: &AST) -> Self {
        let functions = ast.shared_lib().iter_script_fn_info().map(|info| info.4);
        let plain = functions.filter_map(|function| Some((function.name.to_string(), plain_key(ast, function)?)));
        Self { key_names: key_names(ast), plain_keys: plain.collect() }
    }
}

/// The names of the fields that every `emit` of a text gives its key, in code-point order. `None`: they are not the same
/// everywhere, or not written out.
fn key_names(ast: &AST) -> Option<Vec<String>> {
    let mut names: Option<Vec<String>> = None;
    let mut is_known = true;
    ast.walk(&mut |path| {
        let call = match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _)))
                if call.name == "emit" =>
            {
                call
            }
            _ => return true,
        };
        let found = call.args.first().and_then(map_names);
        is_known &= found.is_some() && names.as_ref().is_none_or(|names| Some(names) == found.as_ref());
        names = found;
        is_known
    });
    names.filter(|_| is_known)
}

/// The key of a function that emits once, always, and only properties of the document as they are.
fn plain_key(ast: &AST, function: &ScriptFuncDef) -> Option<PlainKey> {
    let document = function.params.first()?;
    let (start, end) = (function.body.start_position(), function.body.end_position());
    let (mut statements, mut key) = (0, None);
    ast.walk(&mut |path| {
        // What stands alone in its path is a statement of a function's own, or of the top level.
        if let [ASTNode::Stmt(statement)] = path
            && start <= statement.position()
            && statement.position() <= end
        {
            statements += 1;
            key = match statement {
                Stmt::FnCall(call, _) => emitted(call, document),
                Stmt::Expr(expr) => match expr.as_ref() {
                    Expr::FnCall(call, _) => emitted(call, document),
                    _ => None,
                },
                _ => None,
            };
        }
        true
    });
    key.filter(|_| statements == 1)
}

/// The key of a call of `emit`, where it holds properties of the document as they are.
fn emitted(call: &FnCallExpr, document: &str) -> Option<PlainKey> {
    let Some(Expr::Map(map, _)) = call.args.first().filter(|_| call.name == "emit") else { return None };
    let fields = map.0.iter().map(|(name, value)| Some((name.name.to_string(), property(value, document)?)));
    let mut fields = fields.collect::<Option<Vec<_>>>()?;
    fields.sort();
    (!fields.is_empty()).then_some(fields)
}

fn map_names(key: &Expr) -> Option<Vec<String>> {
    let mut names: Vec<String> = match key {
        Expr::Map(map, _) => map.0.iter().map(|(name, _)| name.name.to_string()).collect(),
        _ => return None,
    };
    names.sort();
    (!names.is_empty()).then_some(names)
}

/// `doc.A.B` as its path.
fn property(value: &Expr, document: &str) -> Option<Vec<String>> {
    let Expr::Dot(chain, ..) = value else { return None };
    match &chain.lhs {
        Expr::Variable(variable, ..) if variable.1 == document => {}
        _ => return None,
    }
    let mut path = Vec::new();
    let mut rest = &chain.rhs;
    loop {
        match rest {
            Expr::Property(property, _) => {
                path.push(property.2.to_string());
                return Some(path);
            }
            Expr::Dot(chain, ..) => {
                let Expr::Property(property, _) = &chain.lhs else { return None };
                path.push(property.2.to_string());
                rest = &chain.rhs;
            }
            _ => return None,
        }
    }
}
