//! The names that scripts can call, for finding the one that was meant.

use super::super::functions::{aggregates, collections};

const FUNCTIONS: &[&str] = &[
    "abs",
    "ceiling",
    "chars",
    "collection",
    "contains",
    "day",
    "div",
    "emit",
    "ends_with",
    "floor",
    "id",
    "index_of",
    "is_empty",
    "is_number",
    "len",
    "load",
    "max",
    "min",
    "month",
    "output",
    "pad_end",
    "pad_start",
    "parse_int",
    "parse_number",
    "quarter",
    "reference",
    "replace",
    "round",
    "sign",
    "source",
    "split",
    "starts_with",
    "sub_string",
    "to_lower",
    "to_string",
    "to_upper",
    "trim",
    "trim_end",
    "trim_start",
    "type_of",
    "week",
    "year",
    "is_def_var",
    "is_def_fn",
];

/// Functions of other systems, and what to do instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["print", "debug", "log"], "scripts cannot print; emit what you want to see"),
    (
        &["timestamp", "now", "today", "sleep", "rand", "random", "uuid"],
        "scripts have no clock and no randomness, so that a rebuild gives the same results",
    ),
    (&["range"], "write the range itself: 0..n, or 0..=n with its end"),
    (&["eval", "import", "require"], "a script is one text; write helper functions in it"),
    (&["sqrt", "sin", "cos", "tan", "exp", "ln", "pow"], "only exact arithmetic is available: + - * / % ** div round"),
    (
        &["parse_float", "to_float", "to_decimal", "to_int", "parse_decimal"],
        "numbers are exact; use parse_number(text)",
    ),
    (&["getMetadata", "metadata"], "use doc[\"@metadata\"], id(doc) or collection(doc)"),
];

/// Whether natives of this name exist.
pub(in crate::script) fn is_native(name: &str) -> bool {
    natives().any(|native| native == name)
}

/// Whether a list or map has a function of this name, which a script's own function would hide.
pub(in crate::script) fn is_method(name: &str) -> bool {
    collections::names().chain(aggregates::names()).any(|method| method == name)
}

fn natives<'a>() -> impl Iterator<Item = &'a str> {
    FUNCTIONS.iter().copied().chain(collections::names()).chain(aggregates::names()).map(|name| -> &'a str { name })
}

/// What to say about a call of an unknown function.
pub(in crate::script) fn hint<'a>(unknown: &str, own: impl Iterator<Item = &'a str>) -> Option<String> {
    if let Some((_, hint)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&unknown)) {
        return Some((*hint).to_owned());
    }
    let near = own
        .chain(natives())
        .map(|name| (distance(unknown, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)?;
    Some(format!("did you mean {}?", near.1))
}

/// Edits between two short names, without regard to case; names beyond 40 characters are far from everything.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 40 {
        return usize::MAX;
    }
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let best = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        assert_eq!(hint("emti", std::iter::empty()).unwrap(), "did you mean emit?");
        assert_eq!(hint("toLower", std::iter::empty()).unwrap(), "did you mean to_lower?");
        assert_eq!(hint("helpr", ["helper"].into_iter()).unwrap(), "did you mean helper?");
        assert!(hint("print", std::iter::empty()).unwrap().contains("emit"));
        assert!(hint("frobnicate_everything", std::iter::empty()).is_none());
    }
}
