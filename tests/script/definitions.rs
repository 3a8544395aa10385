//! Which definitions are refused, and what is said about them.

use treepie::script::{Limits, Program, SourceCollection, Texts};

use crate::support::compile;

const MAP: &str = "fn map(doc) { emit(1, 1) }";
const REDUCE: &str = "fn reduce(key, values) { values.sum() }";

#[test]
fn a_definition_tells_what_it_declares() {
    let program = compile(include_str!("monthly.rhai")).unwrap();
    assert_eq!(program.sources.len(), 1);
    assert_eq!(program.sources[0].collection, SourceCollection::Named("Orders".into()));
    assert_eq!(program.sources[0].function, "map");
    assert_eq!(program.output.as_deref(), Some("MonthlySales"));
    assert_eq!(program.reference.as_deref(), Some("sales/{Product}/{Month}"));
    assert!(program.has_reduce && program.has_finish && program.loads.is_empty());
}

#[test]
fn several_sources_make_a_multi_map_index() {
    let text = "source(\"A\"); source(\"B\", \"map_b\"); source(ALL_DOCS);
        fn map(doc) { emit(1, 1) } fn map_b(doc) { emit(2, 2) }";
    let program = compile(text).unwrap();
    assert_eq!(program.sources.iter().map(|s| s.function.as_str()).collect::<Vec<_>>(), ["map", "map_b", "map"]);
    assert_eq!(program.sources[2].collection, SourceCollection::All);
    assert!(!program.has_reduce);
}

#[test]
fn texts_may_come_apart() {
    let texts = Texts {
        maps: vec![format!("source(\"A\"); output(\"Out\"); {MAP}"), format!("source(\"B\"); {MAP}")],
        reduce: Some(REDUCE.into()),
    };
    let program = Program::compile(texts, Limits::default()).unwrap();
    assert_eq!(program.sources.iter().map(|s| s.text).collect::<Vec<_>>(), [0, 1]);
    assert!(program.has_reduce);
    for (maps, reduce) in [
        (vec![format!("source(\"A\"); {MAP} {REDUCE}")], Some(REDUCE)),
        (vec![format!("source(\"A\"); {MAP}")], Some("source(\"A\"); fn reduce(key, values) { 1 }")),
        (vec![format!("source(\"A\"); {MAP}")], Some("fn other() { 1 }")),
        (vec![format!("source(\"A\"); {MAP}"), format!("source(\"A\"); {MAP} {REDUCE}")], None),
        (vec![format!("source(\"A\"); {MAP}"), MAP.to_owned()], Some(REDUCE)),
        (vec![], Some(REDUCE)),
        (vec![], None),
    ] {
        let texts = Texts { maps, reduce: reduce.map(str::to_owned) };
        assert!(Program::compile(texts.clone(), Limits::default()).is_err(), "{texts:?}");
    }
}

#[test]
fn what_is_no_index_is_refused_with_the_way_out() {
    for (text, message, hint) in [
        (MAP.to_owned(), "no source", "source(\"Orders\")"),
        ("source(\"A\");".to_owned(), "no function map", "fn map(doc)"),
        ("source(\"A\", \"m\"); fn map(doc) {}".to_owned(), "no function m", "fn m(doc)"),
        ("source(\"A\"); fn map(a, b) {}".to_owned(), "1 parameter", "fn map(doc)"),
        (format!("source(\"A\"); {MAP} fn reduce(key) {{}}"), "2 parameter", "fn reduce(key, values)"),
        (format!("source(\"A\"); {MAP} fn finish(k, v) {{ v }}"), "`finish` without `reduce`", "reduce"),
        (format!("source(\"A\"); output(\"B\"); {MAP}"), "`output` without `reduce`", "fn reduce"),
        (format!("source(ALL_DOCS); output(\"B\"); {MAP} {REDUCE}"), "ALL_DOCS", "name the collections"),
        (format!("source(\"A\"); output(\"B\"); output(\"C\"); {MAP} {REDUCE}"), "output is called twice", ""),
        (format!("source(\"@x\"); {MAP}"), "begins with @", "Orders"),
        (format!("source(\"\"); {MAP}"), "is empty", ""),
        (format!("source(\"a\\nb\"); {MAP}"), "control characters", ""),
        (format!("source(\"{}\"); {MAP}", "x".repeat(257)), "longer than 256", ""),
        (format!("source(5); {MAP}"), "source needs a string", ""),
        ("source(\"A\"); fn map(doc) { emti(1, 1) }".to_owned(), "no function emti", "did you mean emit?"),
        ("source(\"A\"); fn map(doc) { print(1) }".to_owned(), "no function print", "cannot print"),
        ("source(\"A\"); fn map(doc) { load(\"a\", doc.B) }".to_owned(), "written out", "load(order.Company"),
        ("source(\"A\"); fn map(doc) { load(\"a\", \"@B\") }".to_owned(), "begins with @", ""),
        ("source(\"A\"); fn load(a, b) { 1 } fn map(doc) { }".to_owned(), "load exists already", ""),
        ("source(\"A\"); fn map(doc) { help(1) } fn help(a, b) { 1 }".to_owned(), "has 2 parameters", ""),
        ("source(\"A\"); emit(1, 1); fn map(doc) { }".to_owned(), "map functions only", ""),
        ("source(\"A\"); fn map(doc) { eval(\"1\") }".to_owned(), "eval", "cannot evaluate"),
        ("source(\"A\"); fn map(doc) { import \"x\" as y; }".to_owned(), "import", "load modules"),
        ("source(\"A\"); fn map(doc) { let f = |x| x; }".to_owned(), "closure cannot be kept", "where it is used"),
        ("source(\"A\"); fn map(doc) { let f = help; } fn help() { 1 }".to_owned(), "cannot be used as a value", ""),
        ("source(\"A\"); fn filter(doc) { 1 } fn map(doc) { }".to_owned(), "filter exists already", "another name"),
        ("source(\"A\"); fn map(doc) { map(doc) }".to_owned(), "called by the index", ""),
        ("source(\"A\"); fn map(doc) { `a${1}` }".to_owned(), "${", "with +"),
        ("source(\"A\"); fn map(doc) { 1.23456789012345678901234567890 }".to_owned(), "28 digits", ""),
        ("source(\"A\"); fn map(doc) { 1e400 }".to_owned(), "28 digits", ""),
        ("source(\"A\") fn map(doc) { }".to_owned(), "", ""),
        ("source(\"A\"); fn map(doc) { let 5 }".to_owned(), "", ""),
    ] {
        let fault = compile(&text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(fault.message.contains(message), "{text}\n{fault}");
        assert!(fault.hint.clone().unwrap_or_default().contains(hint), "{text}\n{fault}");
        assert_eq!(fault.script, "script");
    }
}

#[test]
fn positions_are_those_of_the_text() {
    let fault = compile("source(\"A\");\nfn map(doc) {\n    emti(1, 1);\n}").unwrap_err();
    assert_eq!((fault.line, fault.column), (Some(3), Some(5)));
    let fault = compile("source(\"A\");\n\n  frobnicate();\nfn map(doc) {}").unwrap_err();
    assert_eq!((fault.line, fault.column), (Some(3), Some(3)));
}

#[test]
fn signatures_ignore_space_and_comments_only() {
    let signature = |text: &str| compile(text).unwrap().signature;
    let base = signature("source(\"A\"); fn map(doc) { emit(doc.a, \"x y\") }");
    assert_eq!(base, signature("// sales\nsource( \"A\" );\n/* x */ fn map(doc) {\n  emit(doc.a, \"x y\")\n}"));
    for other in [
        "source(\"B\"); fn map(doc) { emit(doc.a, \"x y\") }",
        "source(\"A\"); fn map(doc) { emit(doc.a, \"x  y\") }",
        "source(\"A\"); fn map(doc) { emit(doc.b, \"x y\") }",
        "source(\"A\"); fn map(doc) { emit(doc.a, 1) }",
    ] {
        assert_ne!(base, signature(other), "{other}");
    }
    let apart = |reduce: &str| {
        let texts = Texts { maps: vec![format!("source(\"A\"); {MAP}")], reduce: Some(reduce.to_owned()) };
        Program::compile(texts, Limits::default()).unwrap().signature
    };
    assert_ne!(apart(REDUCE), apart("fn reduce(key, values) { values.count() }"));
    assert_ne!(compile(&format!("source(\"A\"); {MAP}")).unwrap().signature, apart(REDUCE));
}

#[test]
fn the_fields_of_keys_are_told_where_the_scripts_alone_tell_them() {
    let keys = |map: &str| {
        let program = compile(&format!("source(\"A\"); {map}")).unwrap();
        (program.key_names, program.plain_key)
    };
    let names = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let plain = |fields: &[(&str, &[&str])]| {
        let path = |path: &[&str]| path.iter().map(|&step| step.to_owned()).collect::<Vec<_>>();
        Some(fields.iter().map(|(name, steps)| ((*name).to_owned(), path(steps))).collect::<Vec<_>>())
    };
    assert_eq!(
        keys("fn map(d) { emit(#{ b: d.x, a: d.y.z }, 1); }"),
        (names(&["a", "b"]), plain(&[("a", &["y", "z"]), ("b", &["x"])]))
    );
    for (map, named) in [
        ("fn map(d) { if d.x > 1 { emit(#{ a: d.x }, 1); } }", names(&["a"])),
        ("fn map(d) { emit(#{ a: d.x }, 1); emit(#{ a: d.y }, 1); }", names(&["a"])),
        ("fn map(d) { emit(#{ a: d.x + 1 }, 1); }", names(&["a"])),
        ("fn map(d) { emit(#{ a: d.x }, 1); emit(#{ b: d.x }, 1); }", None),
        ("fn map(d) { let key = #{ a: d.x }; emit(key, 1); }", None),
        ("fn map(d) { emit(d.x, 1); }", None),
        ("fn key(d) { #{ a: d.x } } fn map(d) { emit(key(d), 1); }", None),
        ("fn also(d) { emit(#{ b: 1 }, 1) } fn map(d) { emit(#{ a: d.x }, 1); also(d); }", None),
    ] {
        assert_eq!(keys(map), (named, None), "{map}");
    }
}
