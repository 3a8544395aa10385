//! English plurals, for the names of collections: `User` → `Users`, `Category` → `Categories`, `Person` → `People`.

/// Endings that don't follow a rule, in lower case.
const IRREGULAR: [(&str, &str); 12] = [
    ("person", "people"),
    ("child", "children"),
    ("goose", "geese"),
    ("mouse", "mice"),
    ("datum", "data"),
    ("analysis", "analyses"),
    ("criterion", "criteria"),
    ("leaf", "leaves"),
    ("shelf", "shelves"),
    ("knife", "knives"),
    ("life", "lives"),
    ("half", "halves"),
];

/// Words that are their own plural, in lower case.
const UNCHANGED: [&str; 8] = ["data", "people", "children", "news", "series", "species", "equipment", "information"];

/// Makes the plural of the last word of `name`, which is in CamelCase or small letters.
pub(super) fn plural(name: &str) -> String {
    let at = name.char_indices().rev().find(|(_, letter)| letter.is_uppercase()).map_or(0, |(at, _)| at);
    let (before, last) = name.split_at(at);
    let word = last.to_ascii_lowercase();
    if UNCHANGED.contains(&word.as_str()) {
        return name.to_owned();
    }
    if let Some((_, plural)) = IRREGULAR.iter().find(|(singular, _)| *singular == word) {
        let capital = last.starts_with(|letter: char| letter.is_ascii_uppercase());
        let (first, rest) = plural.split_at(1);
        let first = if capital { first.to_ascii_uppercase() } else { first.to_owned() };
        return format!("{before}{first}{rest}");
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if let (Some(stem), false) = (name.strip_suffix('y'), ends(&["ay", "ey", "iy", "oy", "uy"])) {
        return format!("{stem}ies");
    }
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{name}es");
    }
    format!("{name}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_english() {
        for (singular, expected) in [
            ("User", "Users"),
            ("Category", "Categories"),
            ("Day", "Days"),
            ("Box", "Boxes"),
            ("Address", "Addresses"),
            ("Branch", "Branches"),
            ("Person", "People"),
            ("SalesPerson", "SalesPeople"),
            ("OrderLine", "OrderLines"),
            ("News", "News"),
            ("user", "users"),
            ("Ä", "Äs"),
            ("", "s"),
        ] {
            assert_eq!(plural(singular), expected);
        }
    }
}
