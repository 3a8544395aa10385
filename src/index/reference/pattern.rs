//! The pattern of reference ids, `sales/{Product}/{Month:yyyy}`: text, and fields of the result with their formats.
//!
//! `{{` and `}}` stand for braces. The fields are those of the artificial document: the key's, and the finished value's.

use super::format::Format;
use crate::id::{DocumentId, IdRules};
use crate::script::encoding::{Item, Reader, encode_json, field};
use crate::script::{Fault, Phase};

/// Nesting of a result, above what the script room lets pass.
const DEPTH_MAX: usize = 128;

/// Fields of one pattern.
const FIELDS_MAX: usize = 32;

/// Makes the ids of reference documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { name: String, format: Option<Format> },
}

impl Pattern {
    /// Reads a pattern; the reason why it is refused names the rule and the way out.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let refused = |reason: String| Err(format!("the reference pattern '{text}' {reason}"));
        let mut parts = Vec::new();
        let (mut literal, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                literal.push_str(from.get(..1).unwrap_or_default());
                rest = after;
                continue;
            }
            let Some((inside, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}')) else {
                return refused("has a brace without its other half; write {{ or }} for a brace in the id".to_owned());
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            match read_field(inside) {
                Ok(part) => parts.push(part),
                Err(reason) => return refused(reason),
            }
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        let pattern = Self { text: text.to_owned(), parts };
        match pattern.flaw() {
            Some(reason) => refused(reason),
            None => Ok(pattern),
        }
    }

    fn flaw(&self) -> Option<String> {
        let names: Vec<&str> = self.names().collect();
        if names.is_empty() {
            return Some(
                "has no field, so that all results would be listed together; add one, as in sales/{Product}".to_owned(),
            );
        }
        if names.len() > FIELDS_MAX {
            return Some(format!("has {} fields; {FIELDS_MAX} are allowed", names.len()));
        }
        let twice = names.iter().enumerate().find(|(n, name)| names.iter().take(*n).any(|other| other == *name));
        if let Some((_, name)) = twice {
            return Some(format!("has the field '{name}' twice; once is enough"));
        }
        match self.parts.last() {
            Some(Part::Text(text)) if text.ends_with(['/', '|']) => {
                Some("ends in '/' or '|', which ask for an id and name none; put something behind it".to_owned())
            }
            _ => None,
        }
    }

    /// The pattern as its author wrote it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Field { name, .. } => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The id of the reference document that lists an artificial document with this body.
    pub(super) fn apply(&self, body: &str, rules: &IdRules) -> Result<String, Fault> {
        let mut fields = Vec::with_capacity(body.len());
        if encode_json(body, DEPTH_MAX, &mut fields).is_err() {
            return Err(fault("the result can't be read".to_owned(), None));
        }
        let mut id = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => id.push_str(text),
                Part::Field { name, format } => {
                    let text = self.text_of(&fields, name, format.as_ref())?;
                    id.push_str(&text);
                }
            }
        }
        match DocumentId::new(&id, rules) {
            Ok(_) => Ok(id),
            Err(error) => Err(fault(format!("the pattern '{}' gives no id: {error}", self.text), None)),
        }
    }

    fn text_of(&self, fields: &[u8], name: &str, format: Option<&Format>) -> Result<String, Fault> {
        let wrong = |what: &str, hint: &str| {
            let message = format!("the field '{name}' of the reference pattern '{}' {what}", self.text);
            fault(message, Some(hint.to_owned()))
        };
        let Some(value) = field(fields, name) else {
            let has = names_of(fields);
            return Err(wrong(
                "is not in the result",
                &format!("the result has {has}; correct the pattern, or return the field"),
            ));
        };
        let item = Reader::new(value).item();
        if let Some(format) = format {
            return format
                .apply(item.as_ref())
                .map_err(|reason| wrong(&reason, "leave the format out, or return what it fits"));
        }
        match item {
            Some(Item::Str("")) => Err(wrong("is an empty text", "emit it only where it has a text")),
            Some(Item::Str(text)) => Ok(text.to_owned()),
            Some(Item::Number(number)) => Ok(number.to_string()),
            Some(Item::Bool(value)) => Ok(value.to_string()),
            Some(Item::Array(_)) => Err(wrong("is an array", "only texts, numbers, true and false make an id")),
            Some(Item::Object(_)) => Err(wrong("is an object", "only texts, numbers, true and false make an id")),
            Some(Item::Null) | None => Err(wrong("is null", "emit it only where it has a value")),
        }
    }
}

fn read_field(inside: &str) -> Result<Part, String> {
    let (name, format) = match inside.split_once(':') {
        Some((name, format)) => (name, Some(Format::parse(format)?)),
        None => (inside, None),
    };
    if name.trim().is_empty() || name.contains('{') {
        return Err(format!("has '{{{inside}}}', which names no field; write {{Field}} or {{Field:format}}"));
    }
    Ok(Part::Field { name: name.to_owned(), format })
}

/// The names of a result's fields, for messages.
fn names_of(fields: &[u8]) -> String {
    const SHOWN: usize = 12;
    let Some(Item::Object(fields)) = Reader::new(fields).item() else { return "no fields".to_owned() };
    let names: Vec<&str> = fields.map(|(name, _)| name).take(SHOWN + 1).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", "))
}

/// A fault of one result.
fn fault(message: String, hint: Option<String>) -> Fault {
    Fault {
        phase: Phase::Finish,
        script: String::new(),
        line: None,
        column: None,
        function: Some("reference".to_owned()),
        message: shortened(message),
        hint,
        transient: false,
    }
}

/// A message that shows values of any length, cut.
fn shortened(message: String) -> String {
    const SHOWN: usize = 400;
    match message.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(pattern: &str, body: &str) -> Result<String, String> {
        let pattern = Pattern::parse(pattern)?;
        pattern.apply(body, &IdRules::default()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn fields_stand_in_the_id_as_they_are_or_by_their_format() {
        for (pattern, body, id) in [
            ("sales/{Product}/{Month}", r#"{"Product":"a/b","Month":"1998-05"}"#, "sales/a/b/1998-05"),
            ("n/{N}", r#"{"N":1.50}"#, "n/1.5"),
            ("n/{N:0000}", r#"{"N":42}"#, "n/0042"),
            ("d/{D:yyyy/MM}-{K}", r#"{"D":"1998-05-06T10:11:12.5Z","K":true}"#, "d/1998/05-true"),
            ("{{x}}/{K}", r#"{"K":"y"}"#, "{x}/y"),
            ("日本/{K é}", r#"{"K é":"😀"}"#, "日本/😀"),
        ] {
            assert_eq!(apply(pattern, body).as_deref(), Ok(id), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_can_give_no_id_is_refused() {
        for (pattern, word) in [
            ("sales", "no field"),
            ("sales/{A", "brace"),
            ("sales/A}", "brace"),
            ("sales/{}", "names no field"),
            ("sales/{ :0}", "names no field"),
            ("sales/{A}/{A}", "twice"),
            ("sales/{A}/", "ends in"),
            ("sales/{A}|", "ends in"),
            ("sales/{A:qqq}", "format"),
        ] {
            let reason = Pattern::parse(pattern).unwrap_err();
            assert!(reason.contains(word) && reason.contains(pattern), "{reason}");
        }
    }

    #[test]
    fn a_value_that_makes_no_id_is_a_fault_that_names_the_field() {
        for (body, word) in [
            (r#"{"K":null}"#, "is null"),
            (r#"{"L":1,"M":2}"#, "the result has L, M"),
            (r#"{"K":""}"#, "empty"),
            (r#"{"K":[1]}"#, "array"),
            (r#"{"K":{}}"#, "object"),
            (r#"{"K":"a\u0000"}"#, "control character"),
            (r#"{"K":"a/"}"#, "separator"),
            (r#"{"K":"a|"}"#, "'|'"),
        ] {
            let fault = apply("r/{K}", body).unwrap_err();
            assert!(fault.contains(word), "{body}: {fault}");
        }
        assert!(apply("r/{K}", &format!("{{\"K\":\"{}\"}}", "x".repeat(600))).unwrap_err().contains("512"));
        assert!(apply("r/{K:0}", r#"{"K":"x"}"#).unwrap_err().contains("is no number"));
        assert!(apply("r/{K:yyyy-MM}", r#"{"K":"x"}"#).unwrap_err().contains("is no date"));
    }
}
