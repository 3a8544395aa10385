//! Which id each loaded document asks for.

use super::super::json::{self, Members};

/// Where the ids come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IdPlan {
    /// The document's own: `@metadata.@id`, or else a text in `id`, or else a GUID. Without `own`, always a GUID.
    Own,
    /// A text with fields in braces: `orders/{OrderId}`; without fields it must ask the server: `orders/`, `orders|`.
    Template(Vec<Part>),
    /// A GUID.
    Guid,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// The path of a field: `Customer.Id`.
    Field(Vec<String>),
}

impl IdPlan {
    /// Reads `--id`.
    ///
    /// # Errors
    /// Braces that do not match, an empty field, or an id that all documents would share.
    pub(super) fn parse(id: &str) -> Result<Self, String> {
        if id.trim().is_empty() {
            return Ok(Self::Guid);
        }
        let parts = parts(id)?;
        if let [Part::Text(text)] = parts.as_slice()
            && is_final(text)
        {
            return Err(format!(
                "every document would be called '{text}'; use fields ('{text}/{{Field}}') or a form that the server completes ('{text}/', '{text}|')"
            ));
        }
        Ok(Self::Template(parts))
    }

    /// The id that a document asks for; `None` for a GUID.
    ///
    /// # Errors
    /// A field is missing, or is no text, number or boolean.
    pub(super) fn of(&self, document: &Members<'_>) -> Result<Option<String>, String> {
        match self {
            Self::Guid => Ok(None),
            Self::Own => own(document),
            Self::Template(parts) => {
                let mut id = String::new();
                for part in parts {
                    match part {
                        Part::Text(text) => id.push_str(text),
                        Part::Field(path) => id.push_str(&field(document, path)?),
                    }
                }
                Ok(Some(id))
            }
        }
    }
}

/// Whether an id is complete, so that storing under it twice is the same as once. Any sign at the end may be the separator
/// by which the server is asked to complete it.
pub(super) fn is_final(id: &str) -> bool {
    id.chars().next_back().is_some_and(char::is_alphanumeric)
}

fn own(document: &Members<'_>) -> Result<Option<String>, String> {
    let metadata = document.get("@metadata").map(Members::parse).transpose();
    let metadata = metadata.map_err(|error| format!("its @metadata is no object: {error}"))?.unwrap_or_default();
    for (name, value) in [("@metadata.@id", metadata.get("@id")), ("id", document.get("id"))] {
        match value {
            None | Some("null") => {}
            Some(value) => {
                let id = json::as_string(value);
                let wrong = || {
                    format!(
                        "its '{name}' is no text; make an id from fields with --id 'things/{{{name}}}', or a GUID with --id ''"
                    )
                };
                return id.ok_or_else(wrong).map(Some);
            }
        }
    }
    Ok(None)
}

fn parts(template: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let end = rest.find(['{', '}']).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        rest = match after.strip_prefix('{') {
            Some(after) => {
                let (name, after) = after.split_once('}').ok_or("a '{' without its '}'")?;
                let path: Vec<String> = name.split('.').map(str::to_owned).collect();
                if path.iter().any(String::is_empty) || name.contains('{') {
                    return Err(format!("'{{{name}}}' names no field"));
                }
                parts.push(Part::Field(path));
                after
            }
            None if after.is_empty() => after,
            None => return Err("a '}' without its '{'".to_owned()),
        };
    }
    Ok(parts)
}

fn field(document: &Members<'_>, path: &[String]) -> Result<String, String> {
    let whole = path.join(".");
    let missing = || format!("it has no field '{whole}', which its id needs");
    let (last, outer) = path.split_last().ok_or_else(missing)?;
    let mut inner;
    let mut members = document;
    for name in outer {
        let value = members.get(name).ok_or_else(missing)?;
        inner = Members::parse(value).map_err(|_| missing())?;
        members = &inner;
    }
    let value = members.get(last).ok_or_else(missing)?;
    match value.as_bytes().first() {
        Some(b'"') => match json::as_string(value) {
            Some(text) if text.is_empty() => Err(format!("its field '{whole}', which its id needs, is empty")),
            Some(text) => Ok(text),
            None => Err(format!("its field '{whole}' is no text that can be read")),
        },
        Some(b'{' | b'[') => Err(format!("its field '{whole}', which its id needs, is no text or number")),
        Some(b'n') => Err(format!("its field '{whole}', which its id needs, is null")),
        _ => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(plan: &str, document: &str) -> Result<Option<String>, String> {
        let members = Members::parse(document).map_err(|error| error.to_string())?;
        IdPlan::parse(plan)?.of(&members)
    }

    fn own_id(document: &str) -> Result<Option<String>, String> {
        IdPlan::Own.of(&Members::parse(document).map_err(|error| error.to_string())?)
    }

    #[test]
    fn templates_take_fields_at_any_depth() {
        let document = r#"{"A":"x","N":1.50,"B":true,"C":{"D":{"E":"deep"}}}"#;
        for (plan, expected) in [
            ("a/{A}", "a/x"),
            ("{N}-{B}", "1.50-true"),
            ("{C.D.E}/{A}/", "deep/x/"),
            ("orders/", "orders/"),
            ("orders|", "orders|"),
        ] {
            assert_eq!(id(plan, document), Ok(Some(expected.to_owned())));
        }
        assert_eq!(id("", document), Ok(None));
    }

    #[test]
    fn a_field_that_gives_no_id_is_named() {
        for field in ["X", "C.X", "C.D.E.F", "O", "L", "Z", "C", "Empty"] {
            let document = r#"{"O":{},"L":[1],"Z":null,"C":{"D":{"E":1}},"Empty":""}"#;
            let refused = id(&format!("a/{{{field}}}"), document);
            assert!(refused.clone().is_err_and(|reason| reason.contains(&format!("'{field}'"))), "{refused:?}");
        }
    }

    #[test]
    fn templates_that_can_not_work_are_refused() {
        for plan in ["orders", "a/{X", "a/X}", "a/{}", "a/{X.}", "a/{{X}"] {
            assert!(IdPlan::parse(plan).is_err(), "{plan}");
        }
    }

    #[test]
    fn a_document_may_bring_its_own_id() {
        assert_eq!(own_id(r#"{"id":"b","@metadata":{"@id":"a"}}"#), Ok(Some("a".to_owned())));
        assert_eq!(own_id(r#"{"id":"b"}"#), Ok(Some("b".to_owned())));
        assert_eq!(own_id(r#"{"id":null}"#), Ok(None));
        assert_eq!(own_id("{}"), Ok(None));
        assert!(own_id(r#"{"id":5}"#).is_err_and(|reason| reason.contains("--id")));
    }
}
