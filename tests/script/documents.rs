//! What scripts see of documents and what comes back.

use crate::support::{encode, json, map, map_with, on_script_stack, reduced, runner, value_of};

const ORDER: &str = r#"{"OrderedAt":"1998-05-06T10:00:00.0000000Z","Customer":"customers/1","Lines":[
    {"Product":"products/11","Quantity":12,"PricePerUnit":14.00},{"Product":"products/42","Quantity":10,"PricePerUnit":9.8}]}"#;

#[test]
fn the_example_of_the_guide_maps_reduces_and_finishes() {
    let text = include_str!("monthly.rhai");
    on_script_stack(move || {
        let mut runner = runner(text);
        let entries = map_with(&mut runner, ORDER).unwrap();
        assert_eq!(
            entries,
            [
                (r#"{"Month":"1998-05","Product":"products/11"}"#.into(), r#"{"Count":1,"Total":168}"#.into()),
                (r#"{"Month":"1998-05","Product":"products/42"}"#.into(), r#"{"Count":1,"Total":98}"#.into()),
            ]
        );
        let key = encode(&entries[0].0);
        let (a, b) = (encode(r#"{"Count":1,"Total":168}"#), encode(r#"{"Count":3,"Total":0.10}"#));
        let value = runner.reduce(&key, &[&a, &b]).unwrap();
        assert_eq!(json(&value), r#"{"Count":4,"Total":168.1}"#);
        assert_eq!(
            runner.finish(&key, &value).unwrap().unwrap(),
            r#"{"Month":"1998-05","Product":"products/11","Average":42.025,"Count":4,"Total":168.1}"#
        );
    });
}

#[test]
fn missing_fields_stay_missing_down_a_chain() {
    assert_eq!(value_of("doc.a.b.c", "{}").unwrap(), "null");
    assert_eq!(value_of("doc.a[0].b[\"c\"]", "{\"a\":null}").unwrap(), "null");
    assert_eq!(value_of("doc.a ?? 7", "{}").unwrap(), "7");
    assert_eq!(
        map("for x in doc.none { emit(x, 1) } emit(2, doc.none.len())", "{}").unwrap(),
        [("2".into(), "0".into())]
    );
    assert_eq!(value_of("doc.name.to_lower()", "{}").unwrap(), "null");
    assert_eq!(value_of("doc.day.month()", "{}").unwrap(), "null");
    assert_eq!(value_of("doc.lines.sum(\"x\")", "{}").unwrap(), "0");
    assert_eq!(value_of("\"x\" in doc.tags", "{}").unwrap(), "false");
}

#[test]
fn arithmetic_on_a_missing_value_says_which_side() {
    let fault = value_of("doc.a + 1", "{}").unwrap_err();
    assert!(fault.message.contains("left side is missing"), "{fault}");
    assert_eq!((fault.line, fault.function.as_deref()), (Some(2), Some("map")));
    assert!(fault.hint.unwrap().contains("??"));
    assert!(value_of("1 < doc.a", "{}").unwrap_err().message.contains("right side"), "comparison");
    let fault = map("let x = 1; x += doc.a; emit(1, x)", "{}").unwrap_err();
    assert!(fault.message.contains("right side"), "{fault}");
}

#[test]
fn the_document_knows_its_id_collection_and_metadata() {
    assert_eq!(value_of("id(doc)", "{}").unwrap(), "\"orders/1\"");
    assert_eq!(value_of("collection(doc)", "{}").unwrap(), "\"Orders\"");
    assert_eq!(value_of("doc[\"@metadata\"]", "{}").unwrap(), r#"{"@collection":"Orders","@id":"orders/1","Tag":"x"}"#);
    assert_eq!(value_of("doc[\"@metadata\"][\"@id\"]", "{}").unwrap(), "\"orders/1\"");
    assert_eq!(value_of("doc", "{\"b\":1.0,\"a\":[{}]}").unwrap(), r#"{"a":[{}],"b":1}"#);
}

#[test]
fn a_script_changes_its_own_copy_only() {
    let code = r#"
        doc.v = 999;
        doc["w"] = [1];
        doc.tags.clear();
        doc.deep.x.y = 5;
        doc["@metadata"] = 3;
        emit(id(doc), [doc.v, doc.w, doc.tags, doc.deep, doc.keep])"#;
    let body = r#"{"v":1,"tags":[1,2],"deep":{"x":{"y":1,"z":2}},"keep":true}"#;
    let text = format!("source(\"Orders\"); fn map(doc) {{ {code} }}");
    on_script_stack(move || {
        let mut runner = runner(&text);
        for _ in 0..2 {
            let entries = map_with(&mut runner, body).unwrap();
            assert_eq!(entries, [("\"orders/1\"".into(), r#"[999,[1],[],{"x":{"y":5,"z":2}},true]"#.into())]);
        }
    });
}

#[test]
fn a_copy_of_a_part_is_independent() {
    assert_eq!(
        value_of(
            "{ let l = doc.lines; l.push(3); let d = doc; d.x = 1; [l, doc.lines, doc.x, d.x] }",
            "{\"lines\":[1]}"
        )
        .unwrap(),
        "[[1,3],[1],null,1]"
    );
}

#[test]
fn lists_work_like_arrays() {
    let body = r#"{"l":[3,1,{"n":2}],"n":[5,7]}"#;
    for (expression, value) in [
        ("doc.l[0]", "3"),
        ("doc.l[-1].n", "2"),
        ("doc.l.len", "3"),
        ("doc.l.len()", "3"),
        ("doc.n.map(|x| x * 2)", "[10,14]"),
        ("doc.n.filter(|x| x > 5)", "[7]"),
        ("doc.n.reduce(|a, x| a + x, 0)", "12"),
        ("doc.n.contains(7.0)", "true"),
        ("5.0 in doc.n", "true"),
        ("doc.n + [1]", "[5,7,1]"),
        ("[1] + doc.n", "[1,5,7]"),
        ("doc.n == [5, 7]", "true"),
        ("doc.n.index_of(7)", "1"),
        ("doc.n.some(|x| x == 7)", "true"),
        ("{ let l = doc.n; l.sort(|a, b| b - a); l }", "[7,5]"),
        ("doc.n.order_desc()", "[7,5]"),
        ("doc.keys()", r#"["l","n"]"#),
        ("doc.contains(\"l\")", "true"),
        ("\"x\" in doc", "false"),
        ("doc.len()", "2"),
    ] {
        assert_eq!(value_of(expression, body).map_err(|f| f.to_string()).as_deref(), Ok(value), "{expression}");
    }
    assert!(value_of("doc.l[3]", body).unwrap_err().message.contains("no element 3"));
    assert!(value_of("doc.l.Total", body).unwrap_err().hint.unwrap().contains("for line in"));
}

#[test]
fn closures_see_parameters_variables_and_constants() {
    let text = "source(\"O\"); const LIMIT = 5; const NAMES = [\"a\"];
        fn twice(x) { x * 2 + LIMIT - LIMIT }
        fn map(doc) { let more = 1; emit(NAMES, doc.n.filter(|x| x > LIMIT).map(|x| twice(x) + more)) }";
    on_script_stack(move || {
        let entries = map_with(&mut runner(text), "{\"n\":[5,7]}").unwrap();
        assert_eq!(entries, [("[\"a\"]".into(), "[15]".into())]);
    });
}

#[test]
fn closures_over_the_value_they_run_in_get_a_hint() {
    match map("doc.n.for_each(|x| emit(x, doc.k))", "{\"n\":[1],\"k\":2}") {
        Ok(entries) => assert_eq!(entries, [("1".into(), "2".into())]),
        Err(fault) => assert!(fault.hint.unwrap().contains("for line in")),
    }
    let fault = map("let a = [1]; a.for_each(|x| a.push(x)); emit(1, a)", "{}").unwrap_err();
    assert!(fault.hint.as_ref().is_some_and(|hint| hint.contains("`for` loop")), "{fault}");
}

#[test]
fn reserved_names_are_read_with_brackets() {
    assert_eq!(value_of("doc[\"default\"]", "{\"default\":4}").unwrap(), "4");
    for word in ["default", "new", "match", "is", "public", "super"] {
        let fault = value_of(&format!("doc.{word}"), "{}").unwrap_err();
        assert!(fault.hint.as_ref().is_some_and(|hint| hint.contains(&format!("doc[\"{word}\"]"))), "{word}: {fault}");
    }
}

#[test]
fn aggregates_skip_missing_values_and_refuse_others() {
    let values = [
        r#"{"n":1.5,"t":"b","s":{"x":1},"a":[1]}"#,
        r#"{"n":null,"t":"a","s":{"x":2},"a":[2,3]}"#,
        r#"{"n":2,"t":"b","s":{}}"#,
    ];
    for (expression, value) in [
        ("values.sum(\"n\")", "3.5"),
        ("values.count()", "3"),
        ("values.count(\"n\")", "2"),
        ("values.min(\"n\")", "1.5"),
        ("values.max(\"n\")", "2"),
        ("values.max(\"t\")", "\"b\""),
        ("values.average(\"n\")", "1.75"),
        ("values.sum(\"s.x\")", "3"),
        ("values.distinct(\"t\")", r#"["b","a"]"#),
        ("values.first(\"n\")", "1.5"),
        ("values.last(\"n\")", "2"),
        ("values.concat(\"a\")", "[1,2,3]"),
        ("values.concat(\"t\")", "\"bab\""),
        ("values.concat(\"t\", \", \")", "\"b, a, b\""),
        ("values.sum(\"none\")", "0"),
        ("values.min(\"none\")", "null"),
        ("values.filter(|v| v.n == 2).sum(\"n\")", "2"),
        ("values.map(|v| v.n ?? 0).sum()", "3.5"),
        ("values.reduce(|a, v| a + (v.n ?? 0), 0)", "3.5"),
        ("values[0].t + values.len", "\"b3\""),
        ("{ let n = 0; for v in values { n += v.n ?? 0 } n }", "3.5"),
        ("key.K", "1"),
    ] {
        assert_eq!(reduced(expression, &values).map_err(|f| f.to_string()).as_deref(), Ok(value), "{expression}");
    }
    for (expression, part) in [
        ("values.sum(\"t\")", "the field t of a value is a string"),
        ("values.sum()", "a value is an object"),
        ("values.max(\"a\")", "is an array"),
        ("values.sum(\"a\")", "is an array"),
    ] {
        let fault = reduced(expression, &values).unwrap_err();
        assert!(fault.message.contains(part), "{expression}: {fault}");
    }
    assert_eq!(reduced("values.sum()", &["9223372036854775807", "1", "0.5"]).unwrap(), "9223372036854775808.5");
}

#[test]
fn text_counts_characters_and_survives_unchanged() {
    for (text, len, lower) in
        [("a😀b", 3, "a😀b"), ("Ä", 1, "ä"), ("ß", 1, "ß"), ("İ", 1, "i̇"), ("e\u{301}", 2, "e\u{301}")]
    {
        let body = serde_json::json!({ "t": text }).to_string();
        assert_eq!(value_of("doc.t", &body).unwrap(), serde_json::to_string(text).unwrap());
        assert_eq!(value_of("doc.t.len()", &body).unwrap(), len.to_string());
        assert_eq!(value_of("doc.t.to_lower()", &body).unwrap(), serde_json::to_string(lower).unwrap());
    }
    assert_eq!(value_of("doc.t.sub_string(1, 1)", "{\"t\":\"a😀b\"}").unwrap(), "\"😀\"");
    assert_eq!(value_of("doc.t.to_upper()", "{\"t\":\"ß\"}").unwrap(), "\"SS\"");
    assert_eq!(value_of("doc.t", "{\"t\":\"\\u0000x\"}").unwrap(), "\"\\u0000x\"");
}

#[test]
fn text_functions_do_what_their_names_say() {
    for (expression, value) in [
        ("\" ab \".trim()", "\"ab\""),
        ("\"a,b\".split(\",\")", r#"["a","b"]"#),
        ("\"a b  c\".split()", r#"["a","b","c"]"#),
        ("\"aXbX\".replace(\"X\", \"--\")", "\"a--b--\""),
        ("\"abc\".index_of(\"c\")", "2"),
        ("\"abc\".index_of(\"x\")", "-1"),
        ("\"abca\".index_of(\"a\", 1)", "3"),
        ("\"abc\".sub_string(-2)", "\"bc\""),
        ("\"7\".pad_start(3, \"0\")", "\"007\""),
        ("\"ab\".starts_with(\"a\") && \"ab\".ends_with(\"b\")", "true"),
        ("\"b\" in \"abc\"", "true"),
        ("\"n: \" + 1.50 + true", "\"n: 1.5true\""),
        ("'a' + \"b\"", "\"ab\""),
        ("\"abc\"[1]", "\"b\""),
        ("(1.5).to_string()", "\"1.5\""),
        ("parse_number(\"0012.50\".sub_string(2))", "12.5"),
        ("parse_number(\" 1e3 \")", "1000"),
        ("parse_int(\"42\")", "42"),
        ("is_number(\"NA\")", "false"),
    ] {
        assert_eq!(value_of(expression, "{}").map_err(|f| f.to_string()).as_deref(), Ok(value), "{expression}");
    }
    assert!(value_of("parse_number(\"NA\")", "{}").unwrap_err().message.contains("\"NA\" is not a number"));
    assert!(value_of("parse_int(\"4.2\")", "{}").is_err());
}

#[test]
fn dates_have_periods() {
    for (expression, value) in [
        ("\"1998-05-06T10:00:00.1234567\".year()", "1998"),
        ("\"1998-05-06T23:30:00+02:00\".day()", "\"1998-05-06\""),
        ("\"1998-05-06 10:00\".month()", "\"1998-05\""),
        ("\"1998-05-06\".quarter()", "\"1998-Q2\""),
        ("\"2013-12-31\".week()", "\"2014-W01\""),
        ("\"1998-05\".year()", "1998"),
        ("\"1998-05\".quarter()", "\"1998-Q2\""),
        ("\"1998-Q2\".quarter()", "\"1998-Q2\""),
    ] {
        assert_eq!(value_of(expression, "{}").map_err(|f| f.to_string()).as_deref(), Ok(value), "{expression}");
    }
    for text in ["x", "", "1998-13-01", "1998-02-30", "1998-05-06Tx", "05/06/1998", "1998-13"] {
        assert!(value_of(&format!("\"{text}\".month()"), "{}").is_err(), "{text}");
    }
}

#[test]
fn keys_of_equal_value_are_equal_bytes() {
    let keys: Vec<_> = ["1", "1.0", "1e0", "0.5e0"]
        .iter()
        .map(|k| map("emit(doc.k * 1, 1)", &format!("{{\"k\":{k}}}")).unwrap())
        .collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[0] != keys[3]);
    for k in ["369553424691494913", "369553424691494912", "9223372036854775807", "-9223372036854775808"] {
        assert_eq!(value_of("doc.k", &format!("{{\"k\":{k}}}")).unwrap(), k);
    }
}

#[test]
fn long_keys_are_kept_apart_to_their_limit() {
    let key = |length: usize, last: &str| format!("{{\"k\":\"{}{last}\"}}", "x".repeat(length));
    let [a, b] = ["a", "b"].map(|last| map("emit(doc.k, 1)", &key(100_000, last)).unwrap());
    assert!(a != b && a[0].0.len() == 100_003);
    let fault = map("emit(doc.k, 1)", &key(131_080, "")).unwrap_err();
    assert!(fault.message.contains("larger than"), "{fault}");
    let fault = map("emit([doc.k, doc.k], 1)", &key(70_000, "")).unwrap_err();
    assert!(fault.message.contains("all texts in one array"), "{fault}");
}

#[test]
fn a_field_of_the_key_and_one_of_the_value_may_not_clash() {
    on_script_stack(|| {
        let text = "source(\"O\"); fn map(d) { emit(#{ A: 1 }, 1) } fn reduce(key, values) { values.first() }";
        let mut runner = runner(text);
        let key = encode("{\"A\":1}");
        let fault = runner.finish(&key, &encode("{\"A\":2}")).unwrap_err();
        assert!(fault.message.contains("field A"), "{fault}");
        assert!(runner.finish(&key, &encode("{\"@metadata\":{}}")).unwrap_err().message.contains("@metadata"));
        assert_eq!(runner.finish(&key, &encode("[1]")).unwrap().unwrap(), r#"{"A":1,"Value":[1]}"#);
        assert_eq!(
            runner.finish(&encode("null"), &encode("{\"b\":1,\"a\":null}")).unwrap().unwrap(),
            r#"{"Key":null,"a":null,"b":1}"#
        );
        assert_eq!(runner.finish(&key, &encode("null")).unwrap(), None);
    });
}

#[test]
fn a_bad_document_fails_alone() {
    on_script_stack(|| {
        let mut runner = runner("source(\"O\"); fn map(doc) { emit(doc.k, doc.a.b + 1); emit(doc.k, 2) }");
        assert_eq!(map_with(&mut runner, "{\"k\":1,\"a\":{\"b\":1}}").unwrap().len(), 2);
        for bad in [
            "{\"k\":1,\"a\":null}",
            "{\"k\":1,\"a\":{\"b\":\"x\"}}",
            "[]",
            "",
            "{\"a\":",
            "{\"k\":1e999,\"a\":{\"b\":1}}",
        ] {
            let fault = map_with(&mut runner, bad);
            assert!(bad.ends_with("\"x\"}}") || fault.is_err(), "{bad}");
        }
        assert_eq!(map_with(&mut runner, "{\"k\":2,\"a\":{\"b\":2}}").unwrap()[0], ("2".into(), "3".into()));
    });
}

#[test]
fn empty_values_are_groups_of_their_own() {
    let mut keys: Vec<_> = ["null", "false", "0", "\"\"", "[]", "{}"]
        .map(|k| map("emit(doc.k, 1)", &format!("{{\"k\":{k}}}")).unwrap().remove(0).0)
        .to_vec();
    assert_eq!(map("emit(doc.k, 1)", "{}").unwrap()[0].0, keys[0], "missing is null");
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 6);
}
