//! Paths into a document: `Name`, `Address.City`, `Lines[].Product`, `Lines[0]`, `@metadata.@collection`.
//!
//! A name asked of an array is asked of each of its elements, so `Lines.Product` is `Lines[].Product`.

use std::fmt;

use crate::script::json::{self, Kind};

/// The property under which a document shows what the database knows about it.
pub(crate) const METADATA: &str = "@metadata";

/// A path into a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Step>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// `.Name`.
    Name(String),
    /// `[]`: every element.
    Each,
    /// `[7]`: one element, counted from 0.
    Element(usize),
}

/// What stands at the end of a path, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Missing,
    One(&'a str),
    /// The path went through an array.
    Many(Vec<&'a str>),
}

impl Path {
    /// Whether it leads into `@metadata`.
    pub(crate) fn is_metadata(&self) -> bool {
        matches!(self.0.first(), Some(Step::Name(name)) if name == METADATA)
    }

    /// The path as it is written, without quotes.
    pub(crate) fn unquoted(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            match step {
                Step::Name(name) if text.is_empty() => text.push_str(name),
                Step::Name(name) => text.extend([".", name]),
                Step::Each => text.push_str("[]"),
                Step::Element(number) => text.extend(["[", &number.to_string(), "]"]),
            }
        }
        text
    }

    /// Whether an object has the field with which the path begins.
    pub(crate) fn begins_in(&self, object: &str) -> bool {
        matches!(self.0.first(), Some(Step::Name(name)) if json::field(object, name).is_some())
    }

    /// Whether it says by itself that it goes through an array.
    pub(crate) fn is_plural(&self) -> bool {
        self.0.contains(&Step::Each)
    }

    /// Calls `visit` with what stands at each end of the path, `None` where it leads nowhere.
    pub(crate) fn visit<'a>(&self, text: &'a str, visit: &mut dyn FnMut(Option<&'a str>)) {
        walk(text, &self.0, visit);
    }

    /// What stands at the end of the path.
    pub(crate) fn find<'a>(&self, text: &'a str) -> Found<'a> {
        let mut found = Vec::new();
        if walk(text, &self.0, &mut |end| found.extend(end)) {
            return Found::Many(found);
        }
        found.pop().map_or(Found::Missing, Found::One)
    }
}

/// Follows `steps`; true where that went through an array.
fn walk<'a>(text: &'a str, steps: &[Step], visit: &mut dyn FnMut(Option<&'a str>)) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        visit(Some(text));
        return false;
    };
    match (step, json::kind(text)) {
        (Step::Name(name), Some(Kind::Object)) => {
            if let Some(value) = json::field(text, name) {
                return walk(value, rest, visit);
            }
        }
        (Step::Name(_), Some(Kind::Array)) => return each(text, steps, visit),
        (Step::Each, Some(Kind::Array)) => return each(text, rest, visit),
        (Step::Element(number), Some(Kind::Array)) => {
            let element = json::elements(text).and_then(|elements| elements.get(*number).copied());
            if let Some(element) = element {
                return walk(element.of(text), rest, visit);
            }
        }
        _ => {}
    }
    visit(None);
    false
}

fn each<'a>(array: &'a str, steps: &[Step], visit: &mut dyn FnMut(Option<&'a str>)) -> bool {
    for element in json::elements(array).unwrap_or_default() {
        walk(element.of(array), steps, visit);
    }
    true
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) => {
                    f.write_str(if position > 0 { "." } else { "" })?;
                    write_name(name, f)?;
                }
                Step::Each => f.write_str("[]")?,
                Step::Element(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

/// Writes a name as RQL: plain where it can be, else quoted.
pub(crate) fn write_name(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if super::token::is_plain_name(name) {
        return f.write_str(name);
    }
    write_quoted(name, f)
}

/// Writes a string literal of RQL.
pub(crate) fn write_quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &[Step]) -> Path {
        Path(steps.to_vec())
    }

    fn name(text: &str) -> Step {
        Step::Name(text.to_owned())
    }

    #[test]
    fn paths_go_through_objects_and_arrays() {
        let text = r#"{"a":{"b":1},"l":[{"p":1},{"p":[2,3]},{}],"e":[],"\u0078":5}"#;
        assert_eq!(path(&[name("a"), name("b")]).find(text), Found::One("1"));
        assert_eq!(path(&[name("x")]).find(text), Found::One("5"));
        assert_eq!(path(&[name("a"), name("z")]).find(text), Found::Missing);
        assert_eq!(path(&[name("a"), name("b"), name("c")]).find(text), Found::Missing);
        assert_eq!(path(&[name("l"), name("p")]).find(text), Found::Many(vec!["1", "[2,3]"]));
        assert_eq!(path(&[name("l"), Step::Each, name("p")]).find(text), Found::Many(vec!["1", "[2,3]"]));
        assert_eq!(path(&[name("l"), Step::Element(1), name("p")]).find(text), Found::One("[2,3]"));
        assert_eq!(path(&[name("l"), Step::Element(9)]).find(text), Found::Missing);
        assert_eq!(path(&[name("e"), Step::Each]).find(text), Found::Many(vec![]));
    }
}
