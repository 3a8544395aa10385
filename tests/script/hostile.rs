//! Scripts that mean harm: each ends in a fault (or, where it is harmless, in a result) within the limits, whatever it
//! does, also inside `try`; memory stays bounded, and the runner works afterwards.
//!
//! What is counted: operations by the runner, memory by the allocator of this test binary. Nothing is timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use treepie::script::{Fault, Limits, Phase, Program, Runner, Texts};

use crate::ALLOCATOR;
use crate::support::{compile, encode, input, on_script_stack};

/// What a call may add to the process's memory at its worst.
const PEAK_BYTES_MAX: usize = 400 * 1024 * 1024;

/// What one step may use beyond `operations_max`.
const OVERSHOOT: u64 = 2_000_000;

/// Code that must end in a fault that says this. `f` and `g` call themselves.
const FAULTS: &[(&str, &str)] = &[
    ("while true {}", "operations_max"),
    ("loop { }", "operations_max"),
    ("for i in 0..9223372036854775807 { }", "operations_max"),
    ("for i in 0..=9223372036854775807 { let x = i; }", "operations_max"),
    ("let i = 0; do { i += 1; } while i >= 0;", "operations_max"),
    ("f(1)", "call_depth_max"),
    ("[1].map(|x| f(x))", "call_depth_max"),
    ("g([1])", "call_depth_max"),
    ("nested(1)", "call_depth_max"),
    ("blocks(1)", "call_depth_max"),
    ("closures([1])", "call_depth_max"),
    ("let s = \"x\"; loop { s += s; }", "string_bytes_max"),
    ("let s = \"x\"; loop { s = s + s + s; }", "string_bytes_max"),
    ("let a = [1]; loop { a += a; }", "array_elements_max"),
    ("let a = []; loop { a.push(a); }", "array_elements_max"),
    ("let a = [1]; loop { a.append(a); }", "array_elements_max"),
    ("let a = [1]; loop { a = a + a; }", "array_elements_max"),
    ("let a = []; a.pad(1000000000, 7);", "array_elements_max"),
    ("let a = [1]; loop { a.splice(0, 0, a); }", "array_elements_max"),
    ("let a = [1]; loop { a.insert(0, a); }", "array_elements_max"),
    ("let m = #{}; let i = 0; loop { m[\"k\" + i] = i; i += 1; }", "array_elements_max"),
    ("let m = #{}; let i = 0; loop { m += #{ a: m }; m = #{ b: m, c: m }; }", ""),
    ("let x = #{}; loop { x = #{ a: x }; }", "map_properties_max"),
    ("let x = []; loop { x = [x]; }", "array_elements_max"),
    ("let x = #{}; for i in 0..8000 { let y = #{}; y.a = x; x = y; } emit(1, x);", "map_properties_max"),
    ("let m = #{}; let s = big(); let i = 0; loop { m[\"k\" + i] = s + i; i += 1; }", "bytes of text"),
    ("let m = #{}; let s = big(); let i = 0; loop { m[s + i] = 1; i += 1; }", "bytes of text"),
    ("let m = #{}; let a = []; a.pad(900, 1); let i = 0; loop { m[\"k\" + i] = a; i += 1; }", "array_elements_max"),
    ("let m = #{ a: [] }; loop { m.a.push(m); }", ""),
    ("let a = []; for i in 0..900 { a.push(()); } for i in 0..900 { a[i] = a; }", "array_elements_max"),
    ("let s = big(); let n = 0; loop { n += s.index_of(\"xy\"); }", "operations_max"),
    ("let s = big(); loop { s.contains(\"xy\"); }", "operations_max"),
    ("let s = big(); loop { s.replace(\"xy\", \"z\"); }", "operations_max"),
    ("let s = big(); loop { s.to_upper(); }", "operations_max"),
    ("let s = big(); let t = big(); loop { if s == t + \"\" { 1 } }", ""),
    ("big().replace(\"x\", big())", "string_bytes_max"),
    ("\"x\".pad_start(1000000000, \"y\")", "string_bytes_max"),
    ("\"x\".pad_end(9223372036854775807, \"yy\")", "string_bytes_max"),
    ("big().split(\"x\")", "array_elements_max"),
    ("big().chars()", "array_elements_max"),
    ("let a = []; a.pad(900, 1); a.sort(|x, y| { loop { } });", "operations_max"),
    ("let a = []; a.pad(900, 1); loop { a.sort(|x, y| -1); }", "operations_max"),
    ("let a = []; a.pad(900, 1); a.map(|x| a.map(|y| a.map(|z| z)))", ""),
    ("[1, 2].map(|x| [3, 4].map(|y| { while true {} }))", "operations_max"),
    ("let a = [1]; a.for_each(|x| a.push(x));", "closure"),
    ("loop { emit(1, 1); }", "entries_max"),
    ("loop { emit(1, big()); }", "emitted_bytes_max"),
    ("let s = \"\"; loop { s += big().sub_string(0, 1000); emit(s, 1); }", ""),
    ("let x = []; for i in 0..70 { x = [x]; } emit(1, x);", "depth_max"),
    ("let x = []; for i in 0..70 { x = [x]; } emit(x, 1);", "depth_max"),
    ("emit(1, 0..5)", "range"),
    ("2 ** 9223372036854775807", "too large"),
    ("2.5 ** 1000000", "too large"),
    ("10 ** -9223372036854775807", "too large"),
    ("let x = 3; loop { x *= x; }", "too large"),
    ("1 / 0", "division by zero"),
    ("1 % 0", "division by zero"),
    ("div(1, 0)", "division by zero"),
    ("round(1.5, 9223372036854775807)", "between -28 and 28"),
    ("parse_number(big())", "not a number"),
    ("throw big() + \"y\"", ""),
    ("throw #{ a: [1] }", "object"),
    ("throw ()", ""),
    ("source(\"B\")", "top level"),
    ("output(\"B\")", "top level"),
    ("let s = \"abc\"; s[99]", ""),
    ("let s = \"abc\"; s[-9223372036854775808]", ""),
    ("[1][-9223372036854775808]", ""),
    ("doc.l[-9223372036854775808]", "no element"),
    ("let x = doc.l; loop { x += x; }", "array_elements_max"),
    ("let d = doc; let i = 0; loop { d[\"k\" + i] = d; i += 1; }", ""),
    ("switch 5 { 0..9223372036854775807 => loop { } }", "operations_max"),
    ("let a = []; loop { a.push(big()); }", ""),
    ("let a0 = 1; let a1 = 1; many()", "too many variables"),
];

/// Code that is refused before it runs, with a word of the refusal.
const REFUSED: &[(&str, &str)] = &[
    ("let f = || f.call();", "property"),
    ("let f = |x| x; f = f.curry(f);", "property"),
    ("let a = []; let f = || a; a.push(f);", "closure"),
    ("let a = (); a = [1].reduce(|s, x| s, || a);", "closure"),
    ("let m = #{ map: |f| f };", "closure"),
    ("eval(\"1 + 1\")", "eval"),
    ("import \"x\" as y;", "import"),
    ("sleep(60)", "no function sleep"),
    ("timestamp()", "no function timestamp"),
    ("print(\"x\")", "no function print"),
    ("debug(\"x\")", "no function debug"),
    ("rand()", "no function rand"),
    ("Fn(\"map\")", "Fn"),
    ("blob(1000000000)", "no function blob"),
    ("exit(1)", "no function exit"),
    ("let s = big(); let t = `${s}${s}`;", "${"),
    ("range(0, 9223372036854775807)", "no function range"),
    ("5.sleep()", "no function sleep"),
];

fn script(code: &str) -> String {
    let (open, close) = ("[".repeat(29), "]".repeat(29));
    let (ifs, ends) = ("if true { ".repeat(18), " }".repeat(18));
    let (maps, parens) = ("[1].map(|x| ".repeat(6), ")".repeat(6));
    let many: String = (0..80).fold(String::new(), |code, i| code + format!("let v{i} = {i};").as_str());
    format!(
        "source(\"O\");
        fn f(x) {{ f(x) }}
        fn g(a) {{ a.map(|x| g([x])) }}
        fn nested(x) {{ {open}nested(x){close} }}
        fn blocks(x) {{ {ifs}blocks(x){ends} }}
        fn closures(a) {{ {maps}closures([x]){parens} }}
        fn big() {{ let s = \"x\"; for i in 0..15 {{ s += s; }} s }}
        fn many() {{ {many} 1 }}
        fn map(doc) {{ if id(doc) == \"good\" {{ emit(1, 1) }} else {{ {code} }} }}"
    )
}

/// Runs a document into trouble, then a good one, and returns the trouble.
fn run(text: String) -> Result<(), Fault> {
    on_script_stack(move || {
        let program = Arc::new(compile(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}")));
        let mut runner = Runner::new(program, Arc::new(AtomicBool::new(false))).unwrap();
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let result = runner.map(0, &input(r#"{"l":[1,2,3],"t":"text"}"#)).map(|_| ());
        let used = ALLOCATOR.peak_usage().saturating_sub(before);
        assert!(used < PEAK_BYTES_MAX, "{used} bytes for {text}");
        let operations = runner.operations();
        assert!(operations <= Limits::default().operations_max + OVERSHOOT, "{operations} operations for {text}");
        let good = treepie::script::MapInput { id: "good", ..input("{}") };
        assert_eq!(runner.map(0, &good).unwrap().len(), 1, "the runner must work after {text}");
        result
    })
}

#[test]
fn scripts_cannot_escape_hang_or_bloat() {
    let mut wrong = Vec::new();
    for (code, part) in FAULTS {
        match run(script(code)) {
            Ok(()) => wrong.push(format!("{code}\n    no fault")),
            Err(fault) => {
                let short = fault.message.len() <= 1024 && fault.hint.as_ref().is_none_or(|hint| hint.len() <= 1024);
                if !fault.message.contains(part) || fault.phase != Phase::Map || fault.transient || !short {
                    wrong.push(format!("{code}\n    {fault}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn catching_does_not_evade_limits() {
    for (code, part) in FAULTS {
        if !part.ends_with("_max") || *part == "call_depth_max" {
            continue;
        }
        let caught = format!("for again in 0..3 {{ try {{ {code} }} catch (e) {{ }} }} emit(1, 7);");
        if let Err(fault) = run(script(&caught)) {
            assert_eq!(fault.phase, Phase::Map, "{code}");
        }
    }
    for code in ["while true {}", "let s = big(); loop { s.contains(\"xy\"); }", "loop { emit(1, 1); }"] {
        let fault = run(script(&format!("try {{ {code} }} catch (e) {{ 7 }}"))).expect_err(code);
        assert!(fault.message.contains("_max"), "{fault}");
    }
}

#[test]
fn harm_is_refused_when_defined_where_it_can_be_seen() {
    let mut wrong = Vec::new();
    for (code, part) in REFUSED {
        match compile(&script(code)) {
            Ok(_) => wrong.push(format!("{code}\n    accepted")),
            Err(fault) if fault.message.contains(part) && fault.line.is_some() => {}
            Err(fault) => wrong.push(format!("{code}\n    {fault}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_top_level_is_bounded_too() {
    for (code, part) in [
        ("while true {}", "operations_max"),
        ("let s = \"x\"; loop { s += s; }", "string_bytes_max"),
        ("fn f(x) { f(x) } f(1);", "call_depth_max"),
        ("loop { source(\"A\"); }", "sources at most"),
        ("const X = 1 / 0;", "division by zero"),
        ("const X = 0..5;", "constant X"),
    ] {
        let fault = compile(&format!("source(\"O\"); {code} fn map(doc) {{ }}")).expect_err(code);
        assert!(fault.message.contains(part), "{code}\n{fault}");
        assert_eq!(fault.phase, Phase::Definition);
    }
}

#[test]
fn reduce_and_finish_are_bounded_too() {
    for (code, part) in [
        ("while true {}", "operations_max"),
        ("let s = \"x\"; loop { s += s; }", "string_bytes_max"),
        ("f(1)", "call_depth_max"),
        ("emit(1, 1)", "map functions only"),
        ("let x = []; for i in 0..70 { x = [x]; } x", "depth_max"),
        ("0..5", "range"),
        ("let a = []; loop { a += values_of(key); }", "array_elements_max"),
    ] {
        for in_finish in [false, true] {
            let (reduce, finish) = if in_finish { ("1", code) } else { (code, "value") };
            let text = format!(
                "source(\"O\"); fn map(doc) {{ }} fn f(x) {{ f(x) }} fn values_of(k) {{ [k, k] }}
                fn reduce(key, values) {{ if key == 0 {{ 1 }} else {{ {reduce} }} }}
                fn finish(key, value) {{ if key == 0 {{ 1 }} else {{ {finish} }} }}"
            );
            let fault = on_script_stack(move || {
                let mut runner =
                    Runner::new(Arc::new(compile(&text).unwrap()), Arc::new(AtomicBool::new(false))).unwrap();
                let (one, zero) = (encode("1"), encode("0"));
                let result = if in_finish {
                    runner.finish(&one, &one).map(|_| ())
                } else {
                    runner.reduce(&one, &[&one, &one]).map(|_| ())
                };
                assert_eq!(runner.reduce(&zero, &[&one]).unwrap(), one);
                assert_eq!(runner.finish(&zero, &one).unwrap().unwrap(), "{\"Key\":0,\"Value\":1}");
                result.expect_err(code)
            });
            assert!(fault.message.contains(part), "{code}\n{fault}");
            assert_eq!(fault.phase, if in_finish { Phase::Finish } else { Phase::Reduce });
            assert!(fault.function.is_some());
        }
    }
}

#[test]
fn hostile_texts_are_refused() {
    let deep = |open: &str, close: &str| {
        format!("source(\"O\"); fn map(d) {{ {}1{} }}", open.repeat(100_000), close.repeat(100_000))
    };
    for text in [
        deep("(", ")"),
        deep("[", "]"),
        deep("#{a:", "}"),
        deep("{", "}"),
        deep("!", ""),
        deep("-", ""),
        deep("if true {", "}"),
        deep("[1].map(|x| ", ")"),
        format!("source(\"O\"); fn map(d) {{ {}1 }}", "1 + ".repeat(100_000)),
        format!("source(\"O\"); fn map(d) {{ d{} }}", ".a".repeat(100_000)),
        format!("source(\"O\"); fn map(d) {{ \"{}\" }}", "x".repeat(200_000)),
        format!("source(\"O\"); fn map(d) {{ {} }}", "9".repeat(100_000)),
        format!("source(\"O\"); fn map(d) {{ [{}] }}", "1,".repeat(100_000)),
        format!(
            "source(\"O\"); {}",
            (0..10_000).fold(String::new(), |code, i| code + format!("fn f{i}() {{ }} ").as_str())
        ),
        "x".repeat(10 * 1024 * 1024),
        "/*".repeat(300_000),
        "\u{0}".to_owned(),
        String::new(),
    ] {
        assert!(compile(&text).is_err(), "{}", text.chars().take(80).collect::<String>());
    }
}

#[test]
fn the_stop_flag_and_the_clock_end_a_call_for_now() {
    let text = script("while true {}");
    let faults = on_script_stack(move || {
        let limits = |wall| Limits { operations_max: u64::MAX, wall_max: wall, ..Limits::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let program = |wall| {
            let texts = Texts { maps: vec![text.clone()], reduce: None };
            Arc::new(Program::compile(texts, limits(wall)).unwrap())
        };
        let mut by_clock = Runner::new(program(std::time::Duration::from_millis(20)), Arc::clone(&stop)).unwrap();
        let clock = by_clock.map(0, &input("{}")).unwrap_err();
        stop.store(true, Ordering::Relaxed);
        let mut by_stop = Runner::new(program(std::time::Duration::from_secs(600)), Arc::clone(&stop));
        // The top level is short enough to end before the flag is looked at, or reports it; either will do.
        let stopped = match &mut by_stop {
            Ok(runner) => runner.map(0, &input("{}")).unwrap_err(),
            Err(fault) => fault.clone(),
        };
        [clock, stopped]
    });
    assert!(faults.iter().all(|fault| fault.transient), "{faults:?}");
    assert!(faults[0].message.contains("wall_max") && faults[1].message.contains("stopped"), "{faults:?}");
}

#[test]
fn extreme_arguments_never_break_the_engine() {
    let numbers =
        ["0", "-1", "9223372036854775807", "-9223372036854775807 - 1", "9223372036854775808", "0.5", "1e300", "()"];
    let mut calls = Vec::new();
    for n in numbers {
        for function in ["remove", "truncate", "chop", "extract", "get", "drain", "retain", "split", "pop", "index_of"]
        {
            calls.push(format!("let a = [1, 2, 3]; emit(1, a.{function}({n}));"));
            calls.push(format!("emit(1, doc.l.{function}({n}));"));
            for m in numbers {
                calls.push(format!("let a = [1, 2, 3]; emit(1, a.{function}({n}, {m}));"));
                calls.push(format!("let s = \"añ😀\"; emit(1, s.{function}({n}, {m}));"));
            }
        }
        for m in numbers {
            for operator in ["+", "-", "*", "/", "%", "**", "<", "==", "&", "|", "^", "<<", ">>", "..", "..="] {
                calls.push(format!("emit(1, [({n}) {operator} ({m})]);"));
            }
            for function in ["div", "round", "min", "max"] {
                calls.push(format!("emit(1, {function}({n}, {m}));"));
            }
            calls.push(format!("let s = \"añ😀\"; emit(1, s.sub_string({n}, {m}));"));
            calls.push(format!("let a = [1, 2]; a.splice({n}, {m}, [7]); emit(1, a);"));
            calls.push(format!("let a = [1, 2]; a.insert({n}, {m}); emit(1, a);"));
            calls.push(format!("let a = [1, 2]; emit(1, a.extract(({n})..({m})));"));
            calls.push(format!("let s = \"añ😀\"; emit(1, s[({n})..({m})]);"));
            calls.push(format!("let x = 5; emit(1, x[({n})..({m})]);"));
            calls.push(format!("switch ({n}) {{ 0..5 => emit(1, {m}), _ => () }}"));
        }
        for function in ["abs", "sign", "floor", "ceiling", "round", "is_number", "to_string", "type_of"] {
            calls.push(format!("emit(1, {function}({n}));"));
        }
        calls.push(format!("let s = \"añ😀\"; s[{n}] = \"x\"; emit(1, s);"));
        calls.push(format!("let a = [1]; a[{n}] = 2; emit(1, a);"));
        calls.push(format!("let x = 5; x[{n}] = true; emit(1, x);"));
        calls.push(format!("let s = \"x\"; emit(1, s.pad_start({n}, \"y\"));"));
        calls.push(format!("let l = doc.l; l[{n}] = 2; emit(1, l);"));
        calls.push(format!("emit(1, -({n}));"));
    }
    on_script_stack(move || {
        for code in calls {
            let Ok(program) = compile(&format!("source(\"O\"); fn map(doc) {{ {code} }}")) else {
                continue;
            };
            let mut runner = Runner::new(Arc::new(program), Arc::new(AtomicBool::new(false))).unwrap();
            if let Err(fault) = runner.map(0, &input("{\"l\":[1,2,3]}")) {
                assert!(!fault.message.contains("internal") && !fault.transient, "{code}\n{fault}");
            }
        }
    });
}

#[test]
fn calls_leave_nothing_behind() {
    let text = "source(\"O\"); const C = [1, #{ a: 2 }];
        fn map(doc) {
            let n = 3; let d = doc; d.x = [C, C]; let other = doc.l;
            let kept = doc.l.map(|x| other.filter(|y| y > n - x).map(|z| z * n + C.len()));
            emit(kept, doc.l.reduce(|a, x| a + x + n, 0));
            try { throw kept } catch (e) { emit(e, d) }
        }";
    on_script_stack(move || {
        let mut runner = Runner::new(Arc::new(compile(text).unwrap()), Arc::new(AtomicBool::new(false))).unwrap();
        let mut run = |times: usize| {
            for _ in 0..times {
                assert_eq!(runner.map(0, &input("{\"l\":[1,2,3]}")).unwrap().len(), 2);
            }
            ALLOCATOR.current_usage()
        };
        // Other tests of this process allocate too, now and then; what a call leaves behind would add up every time.
        let grows = |_| {
            let before = run(20);
            run(500) >= before + 64 * 1024
        };
        assert!(!(0..10).all(grows), "500 calls leave 64 KiB or more behind, every time");
    });
}
