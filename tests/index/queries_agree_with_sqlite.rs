//! Conditions, orders and pages over generated documents, against SQLite's JSON functions, which share no code with Treepie.
//!
//! SQLite is asked in words of its own: each condition is written once as RQL and once as SQL. Numbers stay where a double
//! holds them exactly; numbers beyond have tests with answers worked out by hand.

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::Value;
use treepie::query::Request;

use crate::world::World;

const WORDS: [&str; 8] = ["", "a", "A", "ab", "b", "ünï", "\u{fffd}", "😀"];

/// Keys of map-only indexes that may stand in for a scan.
const INDEXES: [&str; 5] = ["a: d.a", "b: d.b, a: d.a", "t: d.t", "t: d.t, b: d.b", "x: d.b"];

/// A condition in both languages.
#[derive(Clone, Debug)]
struct Condition {
    rql: String,
    sql: String,
}

/// An order in both languages.
#[derive(Clone, Debug)]
struct Order {
    rql: String,
    sql: String,
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (-20_i32..20).prop_map(|n| n.to_string()),
        (-20_i32..20).prop_map(|n| format!("{}", f64::from(n) / 4.0)),
        (-20_i32..20).prop_map(|n| format!("{n}.0")),
        Just("9007199254740991".to_owned()),
        Just("1e3".to_owned()),
    ]
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&WORDS[..])
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => number(),
        4 => word().prop_map(|word| format!("\"{word}\"")),
        1 => Just("null".to_owned()),
        1 => any::<bool>().prop_map(|value| value.to_string()),
    ]
}

/// The properties of a document: `a` is anything, `b` mostly a number, `o.c` is nested, `t` is a list, each may be missing.
fn document() -> impl Strategy<Value = String> {
    let field = |name: &'static str, value: BoxedStrategy<String>| {
        prop::option::weighted(0.8, value).prop_map(move |value| value.map(|value| format!("\"{name}\":{value}")))
    };
    let list = prop::collection::vec(scalar(), 0..4).prop_map(|items| format!("[{}]", items.join(",")));
    let nested = scalar().prop_map(|value| format!("{{\"c\":{value}}}"));
    (
        field("a", scalar().boxed()),
        field("b", prop_oneof![4 => number(), 1 => scalar()].boxed()),
        field("o", prop_oneof![4 => nested, 1 => number()].boxed()),
        field("t", prop_oneof![4 => list, 1 => scalar()].boxed()),
    )
        .prop_map(|(a, b, o, t)| format!("{{{}}}", [a, b, o, t].into_iter().flatten().collect::<Vec<_>>().join(",")))
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b", "o.c", "t"][..])
}

/// A literal as RQL, with the SQL that finds the same among the rows of `json_each`.
#[derive(Clone, Debug)]
struct Literal {
    rql: String,
    types: &'static str,
    value: String,
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        4 => number().prop_map(|number| Literal { rql: number.clone(), types: "('integer','real')", value: number }),
        4 => word().prop_map(|word| Literal { rql: format!("'{word}'"), types: "('text')", value: format!("'{word}'") }),
        1 => any::<bool>().prop_map(|value| Literal {
            rql: value.to_string(),
            types: "('true','false')",
            value: u8::from(value).to_string(),
        }),
    ]
}

/// Whether a value at the path, or an element of the list there, is so.
fn some(path: &str, test: &str) -> String {
    format!("EXISTS (SELECT 1 FROM json_each(d, '$.{path}') WHERE {test})")
}

fn leaf() -> impl Strategy<Value = Condition> {
    let compare = (path(), prop::sample::select(&["=", "<", "<=", ">", ">="][..]), literal()).prop_map(
        |(path, comparison, literal)| Condition {
            rql: format!("{path} {comparison} {}", literal.rql),
            sql: some(path, &format!("type IN {} AND value {comparison} {}", literal.types, literal.value)),
        },
    );
    let differs = (path(), literal()).prop_map(|(path, literal)| Condition {
        rql: format!("{path} != {}", literal.rql),
        sql: format!("NOT {}", some(path, &format!("type IN {} AND value = {}", literal.types, literal.value))),
    });
    let null = path().prop_map(|path| Condition {
        rql: format!("{path} = null"),
        sql: format!("(json_type(d, '$.{path}') IS NULL OR {})", some(path, "type = 'null'")),
    });
    let exists = path().prop_map(|path| Condition {
        rql: format!("exists({path})"),
        sql: format!("json_type(d, '$.{path}') IS NOT NULL"),
    });
    let between = (path(), number(), number()).prop_map(|(path, low, high)| Condition {
        rql: format!("{path} between {low} and {high}"),
        sql: some(path, &format!("type IN ('integer','real') AND value BETWEEN {low} AND {high}")),
    });
    let is = |literal: &Literal| format!("(type IN {} AND value = {})", literal.types, literal.value);
    let one_of = (path(), prop::collection::vec(literal(), 0..4)).prop_map(move |(path, literals)| Condition {
        rql: format!("{path} in ({})", literals.iter().map(|l| l.rql.as_str()).collect::<Vec<_>>().join(", ")),
        sql: match literals.is_empty() {
            true => "0".to_owned(),
            false => some(path, &literals.iter().map(is).collect::<Vec<_>>().join(" OR ")),
        },
    });
    let all_of = (path(), prop::collection::vec(literal(), 1..3)).prop_map(move |(path, literals)| Condition {
        rql: format!("{path} all in ({})", literals.iter().map(|l| l.rql.as_str()).collect::<Vec<_>>().join(", ")),
        sql: literals.iter().map(|literal| some(path, &is(literal))).collect::<Vec<_>>().join(" AND "),
    });
    let starts = (path(), word()).prop_map(|(path, word)| Condition {
        rql: format!("startsWith({path}, '{word}')"),
        sql: some(path, &format!("type = 'text' AND substr(value, 1, length('{word}')) = '{word}'")),
    });
    let ends = (path(), word()).prop_map(|(path, word)| Condition {
        rql: format!("endsWith({path}, '{word}')"),
        sql: some(
            path,
            &format!("type = 'text' AND length(value) >= length('{word}') AND substr(value, length(value) - length('{word}') + 1) = '{word}'"),
        ),
    });
    let ids = (0_usize..40, 0_usize..40).prop_map(|(a, b)| Condition {
        rql: format!("id() between 'Docs/{a:02}' and 'docs/{b:02}'"),
        sql: format!("id BETWEEN 'docs/{a:02}' AND 'docs/{b:02}'"),
    });
    prop_oneof![4 => compare, 1 => differs, 1 => null, 1 => exists, 1 => between, 1 => one_of, 1 => all_of, 1 => starts, 1 => ends, 1 => ids]
}

fn condition() -> impl Strategy<Value = Condition> {
    leaf().prop_recursive(3, 8, 2, |inner| {
        let two = (inner.clone(), prop::sample::select(&["and", "or"][..]), inner.clone());
        prop_oneof![
            two.prop_map(|(a, word, b)| Condition {
                rql: format!("({}) {word} ({})", a.rql, b.rql),
                sql: format!("(({}) {word} ({}))", a.sql, b.sql),
            }),
            inner.prop_map(|inner| Condition {
                rql: format!("not ({})", inner.rql),
                sql: format!("NOT ({})", inner.sql),
            }),
        ]
    })
}

fn order() -> impl Strategy<Value = Order> {
    let field = (prop::sample::select(&["a", "b", "o.c"][..]), any::<bool>()).prop_map(|(path, descending)| {
        let direction = if descending { " desc" } else { "" };
        let kind = format!("json_type(d, '$.{path}')");
        let rank = format!(
            "CASE {kind} WHEN 'false' THEN 1 WHEN 'true' THEN 2 WHEN 'integer' THEN 3 WHEN 'real' THEN 3 WHEN 'text' THEN 4 ELSE 0 END"
        );
        Order {
            rql: format!("{path}{direction}"),
            sql: format!("{rank}{direction}, CASE WHEN {kind} <> 'null' THEN json_extract(d, '$.{path}') END{direction}"),
        }
    });
    let id = any::<bool>().prop_map(|descending| {
        let direction = if descending { " desc" } else { "" };
        Order { rql: format!("id(){direction}"), sql: format!("id{direction}") }
    });
    prop_oneof![4 => field, 1 => id]
}

fn sqlite(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn treepie(world: &World, rql: &str) -> (Vec<String>, Option<u64>) {
    let mut ids = Vec::new();
    let summary = world.database().query(&Request::new(rql), |row| {
        let row: Value = serde_json::from_str(row).unwrap();
        ids.push(row["@metadata"]["@id"].as_str().unwrap().to_owned());
    });
    (ids, summary.unwrap_or_else(|error| panic!("{error}: {rql}")).total)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_documents_come_in_the_same_order_on_the_same_pages(
        documents in prop::collection::vec(document(), 1..40),
        questions in prop::collection::vec(
            (condition(), prop::collection::vec(order(), 0..3), prop::option::of((0_u64..6, 0_u64..12))), 12
        ),
        others in 0_usize..60,
        indexes in prop::collection::vec(prop::sample::select(&INDEXES[..]), 0..3),
        (lag, rewritten) in (0_usize..12, prop::collection::vec(document(), 12)),
    ) {
        let world = World::new();
        let connection = Connection::open_in_memory().unwrap();
        connection.execute("CREATE TABLE docs (id TEXT, d TEXT)", []).unwrap();
        for (number, body) in documents.iter().enumerate() {
            let id = format!("docs/{number:02}");
            world.put("Docs", &id, body);
            connection.execute("INSERT INTO docs VALUES (?1, ?2)", [&id, body]).unwrap();
        }
        // Documents of another collection, more or fewer, so that the collection is read in every way.
        let others = (0..others * 12).map(|number| crate::world::put("Others", &format!("docs/{number:02}x"), "{}"));
        world.write(others.collect());
        for (number, keys) in indexes.iter().enumerate() {
            world.index(&format!("Index{number}"), &format!("source(\"Docs\"); fn map(d) {{ emit(#{{ {keys} }}, 0); }}"));
        }
        world.sync();
        // From here on the indexes lag.
        world.database().pause_indexes(None).unwrap();
        for (number, body) in rewritten.iter().take(lag).enumerate() {
            let id = format!("docs/{:02}", number * 7 % 40);
            connection.execute("DELETE FROM docs WHERE id = ?1", [&id]).unwrap();
            if number % 5 == 4 {
                world.delete(&id);
            } else {
                world.put("Docs", &id, body);
                connection.execute("INSERT INTO docs VALUES (?1, ?2)", [&id, body]).unwrap();
            }
        }
        for (condition, orders, page) in questions {
            let (mut rql, mut sql) = (format!("from Docs where {}", condition.rql), format!("SELECT id FROM docs WHERE {}", condition.sql));
            let total = sqlite(&connection, &sql).len() as u64;
            let list = |orders: Vec<&str>| orders.join(", ");
            if !orders.is_empty() {
                rql += &format!(" order by {}", list(orders.iter().map(|order| order.rql.as_str()).collect()));
            }
            let parts = orders.iter().map(|order| order.sql.as_str()).chain(["id"]).collect();
            sql += &format!(" ORDER BY {}", list(parts));
            if let Some((offset, limit)) = page {
                rql += &format!(" limit {offset}, {limit}");
                sql += &format!(" LIMIT {limit} OFFSET {offset}");
            }
            let (found, counted) = treepie(&world, &rql);
            prop_assert_eq!(&found, &sqlite(&connection, &sql), "{}\n{}", rql, sql);
            prop_assert_eq!(counted, Some(total), "{}", rql);
        }
    }
}
