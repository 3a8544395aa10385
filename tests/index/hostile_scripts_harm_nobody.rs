//! Scripts that loop, recurse, swell, hide behind `try` or ask for what they may not have, each beside a healthy index.
//!
//! Each is refused when it is put, or fails on its documents; writes and the healthy index go on, also after a restart.

use treepie::database::DatabaseError;

use crate::models::sum_by_k;
use crate::world::World;

/// Bodies of map functions, `doc` in scope. None of them may ever emit.
const MAPS: [&str; 30] = [
    "while true {}",
    "loop { }",
    "fn_that_is_not_there(doc);",
    "again(doc);",
    "let s = \"x\"; loop { s += s; }",
    "let s = \"x\"; while s.len() < 100000000 { s = s + s; }",
    "let a = [1]; loop { a += a; }",
    "let a = []; loop { a.push(\"0123456789\"); }",
    "let m = #{}; let i = 0; loop { m[i.to_string()] = \"0123456789\"; i += 1; }",
    "let x = #{}; for i in 0..100000 { x = #{ a: x }; } emit(x, 1);",
    "let x = []; for i in 0..100000 { x = [x]; } emit(x, 1);",
    "let s = \"\"; for i in 0..60000 { s += \"x\"; } let m = #{}; for i in 0..100000 { m[i.to_string()] = s + i; }",
    "try { while true {} } catch(e) { emit(7, 7); }",
    "try { again(doc); } catch(e) { emit(7, 7); }",
    "try { let s = \"x\"; loop { s += s; } } catch(e) { loop {} }",
    "let f = |x| x; loop { f = f.curry(f); }",
    "let a = []; for i in 0..1000 { a.push(i); } a.map(|x| a.map(|y| a.map(|z| x + y + z)));",
    "for i in 0..9223372036854775807 { }",
    "let n = 2; loop { n = n * n; }",
    "let n = 10 ** 1000000000; emit(n, n);",
    "let s = \"x\"; s.pad(1000000000, \"y\"); emit(s, 1);",
    "let a = []; a.pad(1000000000, 1); emit(a, 1);",
    "loop { emit(doc.k, 1); }",
    "eval(\"while true {}\");",
    "sleep(60);",
    "let t = timestamp(); emit(t, 1);",
    "import \"x\" as y; emit(1, 1);",
    "loop { print(\"noise\"); }",
    "let a = [3, 2, 1]; a.sort(|x, y| { while true {} }); emit(a, 1);",
    "emit(doc.k / 0, doc.k + \"text\" * 3);",
];

/// Bodies of reduce functions, `key` and `values` in scope.
const REDUCES: [&str; 6] = [
    "while true {}",
    "let s = \"x\"; loop { s += s; }",
    "throw \"never\";",
    "let x = #{}; for i in 0..100000 { x = #{ a: x }; } x",
    "try { loop {} } catch { #{ n: 1 } }",
    "emit(key, 1); #{ n: 1 }",
];

fn hostile_map(number: usize, body: &str) -> (String, String) {
    let script = format!(
        r#"source("Orders");
           output("HostileMap{number}");
           fn again(doc) {{ again(doc) + again(doc) }}
           fn map(doc) {{ {body} }}
           fn reduce(key, values) {{ values[0] }}"#
    );
    (format!("HostileMap{number}"), script)
}

fn hostile_reduce(number: usize, body: &str) -> (String, String) {
    let script = format!(
        r#"source("Orders");
           output("HostileReduce{number}");
           fn map(doc) {{ emit(doc.k, #{{ n: 1 }}); }}
           fn reduce(key, values) {{ {body} }}"#
    );
    (format!("HostileReduce{number}"), script)
}

#[test]
fn hostile_scripts_fail_alone() {
    let mut world = World::new();
    world.index("Healthy", &sum_by_k("Orders", "Healthy"));
    world.put("Orders", "orders/1", r#"{"k":1,"v":1}"#);
    world.put("Orders", "orders/2", r#"{"k":2,"v":2}"#);
    let maps = MAPS.iter().enumerate().map(|(number, body)| hostile_map(number, body));
    let reduces = REDUCES.iter().enumerate().map(|(number, body)| hostile_reduce(number, body));
    let accepted: Vec<(String, String)> =
        maps.chain(reduces).filter(|(name, script)| is_accepted(&world, name, script)).collect();
    assert!(accepted.len() >= 20, "most of them can be told only when they run: {}", accepted.len());
    assert_healthy(&world, 3, r#"{"Key":1,"n":2,"v":4}"#);
    for (name, script) in &accepted {
        world.sync_only(&[name.as_str()]);
        assert!(!world.faults(name).is_empty(), "no fault of {script}");
        assert_eq!(world.bodies(name), Vec::<String>::new(), "an output of {script}");
    }
    world.reopen();
    assert_healthy(&world, 5, r#"{"Key":1,"n":3,"v":9}"#);
    for (name, _) in &accepted {
        assert!(world.database().delete_index(name).unwrap());
    }
    world.sync();
    assert_healthy(&world, 7, r#"{"Key":1,"n":4,"v":16}"#);
    assert_eq!(world.database().indexes().len(), 1);
}

/// Puts a hostile index; a refusal must be one of its script, with a place or a reason.
fn is_accepted(world: &World, name: &str, script: &str) -> bool {
    match world.try_index(name, script) {
        Ok(fresh) => fresh,
        Err(error) => {
            assert!(matches!(*error, DatabaseError::Script { .. }), "{script}: {error}");
            false
        }
    }
}

fn assert_healthy(world: &World, number: i64, expected: &str) {
    world.put("Orders", &format!("orders/{number}"), &format!(r#"{{"k":1,"v":{number}}}"#));
    world.sync_only(&["Healthy"]);
    assert_eq!(world.bodies("Healthy")[0], expected);
}
