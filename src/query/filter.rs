//! Conditions with their values put in, asked of rows.
//!
//! Missing is null. A condition on an array holds where it holds for the array or for one of its elements. A range holds only
//! values of its bound's kind: no string is above 5, and nothing missing is below it. Ids are compared without regard to case.

use std::cmp::Ordering;

use super::path::Path;
use super::row::Row;
use super::syntax::{Comparison, Subject};
use super::value::Value;

/// A condition with its values.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Always(bool),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
    Compare(Subject, Comparison, Value<'static>),
    Between(Subject, Value<'static>, Value<'static>),
    /// The values are in order.
    In(Subject, Vec<Value<'static>>),
    AllIn(Subject, Vec<Value<'static>>),
    StartsWith(Subject, String),
    EndsWith(Subject, String),
    Exists(Path),
}

impl Test {
    /// Whether a row passes.
    ///
    /// # Cost
    /// For each path one pass over the document's text up to its end.
    pub(crate) fn matches(&self, row: &Row<'_>) -> bool {
        match self {
            Self::Always(holds) => *holds,
            Self::Not(inner) => !inner.matches(row),
            Self::All(tests) => tests.iter().all(|test| test.matches(row)),
            Self::Any(tests) => tests.iter().any(|test| test.matches(row)),
            Self::Compare(subject, Comparison::NotEqual, wanted) => !any(row, subject, |value| value == wanted),
            Self::Compare(subject, comparison, bound) => any(row, subject, |value| compare(value, *comparison, bound)),
            Self::Between(subject, low, high) => any(row, subject, |value| {
                compare(value, Comparison::GreaterOrEqual, low) && compare(value, Comparison::LessOrEqual, high)
            }),
            Self::In(subject, wanted) => any(row, subject, |value| wanted.binary_search(value).is_ok()),
            Self::AllIn(subject, wanted) => wanted.iter().all(|wanted| any(row, subject, |value| value == wanted)),
            Self::StartsWith(subject, start) => {
                any(row, subject, |value| matches!(value, Value::String(text) if text.starts_with(start.as_str())))
            }
            Self::EndsWith(subject, end) => {
                any(row, subject, |value| matches!(value, Value::String(text) if text.ends_with(end.as_str())))
            }
            Self::Exists(path) => row.has(path),
        }
    }

    /// The tests that all must pass.
    pub(crate) fn conjuncts(&self) -> &[Test] {
        match self {
            Self::All(tests) => tests,
            other => std::slice::from_ref(other),
        }
    }
}

fn any(row: &Row<'_>, subject: &Subject, holds: impl Fn(&Value<'_>) -> bool) -> bool {
    let mut found = false;
    row.visit(subject, &mut |value| found = found || holds(value));
    found
}

fn compare(value: &Value<'_>, comparison: Comparison, bound: &Value<'_>) -> bool {
    if comparison == Comparison::Equal {
        return value == bound;
    }
    if !value.is_comparable(bound) {
        return false;
    }
    let order = value.cmp(bound);
    match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    }
}
