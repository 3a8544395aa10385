//! A failure inside a script, on its way through Rhai: message and hint, until it becomes a [`super::Fault`].

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

use rhai::{Dynamic, EvalAltResult, Position};

/// What native functions return on failure.
pub(super) type Failure = Box<EvalAltResult>;

/// A failure of ours: what a `catch` gets.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// A failure that a script may catch. The engine adds the position.
pub(super) fn failure(message: impl Into<String>) -> Failure {
    problem(Problem { message: message.into(), hint: None })
}

/// A failure with a hint that says the way out.
pub(super) fn failure_with(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    problem(Problem { message: message.into(), hint: Some(hint.into()) })
}

fn problem(problem: Problem) -> Failure {
    Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(problem), Position::NONE))
}

/// The end of a call, which no `catch` can stop: a limit was reached.
pub(super) fn limit(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    let problem = Problem { message: message.into(), hint: Some(hint.into()) };
    Box::new(EvalAltResult::ErrorTerminated(Dynamic::from(problem), Position::NONE))
}
