//! From what the engine reports to a [`Fault`].

use rhai::{EvalAltResult, LexError, ParseError, ParseErrorType, Position};

use super::super::problem::Problem;
use super::super::program::rewrite::shown_name;
use super::super::state::{Ended, State};
use super::{Fault, Phase, shortened};

/// A failure whose text and phase are not filled in yet.
#[derive(Debug)]
pub(in crate::script) struct Finding {
    position: Position,
    function: Option<String>,
    message: String,
    hint: Option<String>,
    transient: bool,
}

impl Finding {
    /// A finding without a position.
    pub(in crate::script) fn new(message: impl Into<String>) -> Self {
        Self::at(Position::NONE, message)
    }

    /// A finding at a position.
    pub(in crate::script) fn at(position: Position, message: impl Into<String>) -> Self {
        Self { position, function: None, message: message.into(), hint: None, transient: false }
    }

    /// Adds the way out.
    pub(in crate::script) fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        self.hint = (!hint.is_empty()).then_some(hint);
        self
    }

    /// Names the function, where the engine did not.
    pub(in crate::script) fn function(mut self, name: &str) -> Self {
        self.function.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Marks it as one that may not come again.
    pub(in crate::script) fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// A fault of the definition.
    pub(in crate::script) fn into_fault(self, script: &str) -> Fault {
        self.in_phase(Phase::Definition, script)
    }

    /// A fault of a phase.
    pub(in crate::script) fn in_phase(self, phase: Phase, script: &str) -> Fault {
        let number = |n: Option<usize>| n.and_then(|n| u32::try_from(n).ok());
        Fault {
            phase,
            script: script.to_owned(),
            line: number(self.position.line()),
            column: number(self.position.position()),
            function: self.function.map(shortened),
            message: shortened(self.message),
            hint: self.hint.map(shortened),
            transient: self.transient,
        }
    }
}

/// What parsing reported.
pub(in crate::script) fn from_parse_error(error: &ParseError) -> Finding {
    let finding = Finding::at(error.position(), plain(&error.err_type().to_string()));
    match parse_hint(error.err_type()) {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

fn parse_hint(error: &ParseErrorType) -> Option<String> {
    Some(match error {
        ParseErrorType::Reserved(word) | ParseErrorType::BadInput(LexError::ImproperSymbol(word, _)) => reserved(word),
        ParseErrorType::PropertyExpected | ParseErrorType::VariableExpected => {
            "names that Rhai reserves are read as doc[\"name\"]; eval, call, curry and Fn are not available".to_owned()
        }
        ParseErrorType::BadInput(LexError::Runtime(message)) if message.contains("${") => {
            "join texts with +, as in \"a\" + b".to_owned()
        }
        ParseErrorType::ExprTooDeep => "split the expression with `let`".to_owned(),
        ParseErrorType::AssignmentToConstant(_) => "use `let` for what changes".to_owned(),
        ParseErrorType::WrongFnDefinition => "write functions at the top level, none inside another".to_owned(),
        _ => return None,
    })
}

/// What to do about a word that Rhai keeps for itself.
fn reserved(word: &str) -> String {
    match word {
        "eval" | "import" | "export" | "curry" | "Fn" | "call" | "is_shared" => {
            "index scripts cannot evaluate text, load modules or keep functions as values".to_owned()
        }
        word if word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            let word: String = word.chars().take(60).collect();
            format!("read a field of this name as doc[\"{word}\"]")
        }
        _ => String::new(),
    }
}

/// What running reported. Limits are known from the state, not from the error: nothing the script did can hide them.
pub(in crate::script) fn from_failure(error: EvalAltResult, state: &State) -> Finding {
    let (error, position, function) = innermost(error);
    let finding = match state.ended() {
        Some(ended) => by_end(ended, state),
        None => by_error(error),
    };
    Finding { position, function, ..finding }
}

/// The error where it arose, with the nearest position and function known.
fn innermost(mut error: EvalAltResult) -> (EvalAltResult, Position, Option<String>) {
    let (mut position, mut function) = (Position::NONE, None);
    loop {
        if !error.position().is_none() {
            position = error.position();
        }
        match error {
            EvalAltResult::ErrorInFunctionCall(name, _, inner, _) => {
                if !name.starts_with("anon$") {
                    function = Some(shown_name(&name).to_owned());
                }
                error = *inner;
            }
            EvalAltResult::ErrorInModule(_, inner, _) => error = *inner,
            other => return (other, position, function),
        }
    }
}

fn by_end(ended: Ended, state: &State) -> Finding {
    match ended {
        Ended::Operations => Finding::new(format!(
            "the call needs more than {} operations (operations_max)",
            state.limits.operations_max
        ))
        .hint("look for a loop that does not end; use sum(\"Field\") and the like instead of loops over many values"),
        Ended::Wall => Finding::new(format!("the call took longer than {:?} (wall_max)", state.limits.wall_max))
            .hint("it is tried again by itself; if it stays, let the script do less")
            .transient(),
        Ended::Stopped => Finding::new("the call was stopped").transient(),
        Ended::Unread => Finding::new("a document that the call loads could not be read").transient(),
    }
}

fn by_error(error: EvalAltResult) -> Finding {
    match error {
        EvalAltResult::ErrorRuntime(value, _) | EvalAltResult::ErrorTerminated(value, _) => {
            match value.try_cast_result::<Problem>() {
                Ok(problem) => Finding::new(problem.message).hint(problem.hint.unwrap_or_default()),
                Err(value) => thrown(&value),
            }
        }
        EvalAltResult::ErrorStackOverflow(_) => {
            Finding::new("calls are nested too deep (call_depth_max)").hint("use a loop instead of recursion")
        }
        EvalAltResult::ErrorDataTooLarge(what, _) => {
            let (what, name) = match what.as_str() {
                "Length of string" => ("a text, or all texts in one array or map,", "string_bytes_max, key_bytes_max"),
                "Size of object map" => ("a map", "map_properties_max"),
                _ => ("an array", "array_elements_max"),
            };
            Finding::new(format!("{what} is larger than allowed ({name})"))
                .hint("emit entries instead of collecting them")
        }
        EvalAltResult::ErrorTooManyVariables(_) => {
            Finding::new("a function has too many variables").hint("split it, or use a map")
        }
        EvalAltResult::ErrorDataRace(..) => Finding::new("a closure uses the value whose function it is passed to")
            .hint("use a `for` loop: for line in order.Lines { emit(order.Customer, line.Total); }"),
        EvalAltResult::ErrorVariableNotFound(name, _) => Finding::new(format!("there is no variable {name}"))
            .hint("functions see their parameters and the script's constants (`const`), not its variables"),
        EvalAltResult::ErrorFor(_) => {
            Finding::new("`for` cannot go through this value").hint("it goes through arrays, ranges and texts")
        }
        EvalAltResult::ErrorFunctionNotFound(signature, _) => not_found(&signature),
        EvalAltResult::ErrorMismatchDataType(wanted, found, _) => {
            let finding =
                Finding::new(format!("{} is needed here, but the value is {}", named(&wanted), named(&found)));
            if found == "()" { finding.hint("the value is missing or null: give a default with ??") } else { finding }
        }
        EvalAltResult::ErrorParsing(kind, position) => {
            Finding { position, ..Finding::new(plain(&kind.to_string())) }.hint(parse_hint(&kind).unwrap_or_default())
        }
        other => {
            let mut other = other;
            other.clear_position();
            Finding::new(plain(&other.to_string()))
        }
    }
}

/// A value that the script threw itself.
fn thrown(value: &rhai::Dynamic) -> Finding {
    if value.is_unit() {
        return Finding::new("the script threw ()");
    }
    let text = if value.is_string() || value.is_int() || value.is_decimal() || value.is_bool() {
        value.to_string()
    } else {
        format!("a value of type {}", super::super::host::cell::type_name(value))
    };
    Finding::new(text)
}

fn not_found(signature: &str) -> Finding {
    let (name, types) = signature.split_once(" (").unwrap_or((signature, ""));
    let types: Vec<_> = types.trim_end_matches(')').split(", ").filter(|t| !t.is_empty()).map(named).collect();
    let finding = Finding::new(if types.is_empty() {
        format!("{} takes arguments", shown_name(name))
    } else {
        format!("{} cannot be applied to {}", shown_name(name), types.join(", "))
    });
    if types.iter().any(|name| name.starts_with("()")) {
        return finding.hint("a value is missing or null: give a default with ??");
    }
    finding
}

/// A type of Rhai's in our words.
fn named(name: &str) -> String {
    match name {
        "()" => "() (missing or null)",
        "i64" | "decimal" | "f64" | "int" | "float" => "a number",
        "bool" => "true or false",
        "&str | ImmutableString | String" | "string" | "char" => "text",
        "array" => "an array",
        "map" | "object" => "an object",
        "Fn" => "a closure",
        name if name.contains("Range") || name.contains("range") => "a range",
        other => other,
    }
    .to_owned()
}

/// The engine's words without its internal names.
fn plain(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let mut text = message.replace("$'", "'").replace("$ ", " ");
    if let Some(first) = text.get(..1).map(str::to_ascii_lowercase) {
        text.replace_range(..1, &first);
    }
    text
}
