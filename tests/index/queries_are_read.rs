//! The text of queries: what is printed reads back as the same query, what is wrong is told with its place, what RavenDB has and
//! Treepie has not is refused by name, and no text whatever does harm.

use proptest::prelude::*;
use treepie::query::{
    Comparison, Condition, Field, From, Group, Operand, Order, Path, Query, QueryError, Reading, Select, Step, Subject,
    parse,
};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z_][A-Za-z0-9_]{0,6}",
        1 => "@[a-z][a-z-]{0,6}",
        1 => Just("order".to_owned()),
        1 => Just("Index".to_owned()),
        1 => "[a-z ü'\"\\\\\n$%]{1,6}",
    ]
}

fn path() -> impl Strategy<Value = Path> {
    let step = prop_oneof![
        6 => name().prop_map(Step::Name),
        1 => Just(Step::Each),
        1 => (0_usize..12).prop_map(Step::Element),
    ];
    (name(), prop::collection::vec(step, 0..3)).prop_map(|(first, rest)| {
        let mut steps = vec![Step::Name(first)];
        steps.extend(rest);
        Path(steps)
    })
}

fn plain_path() -> impl Strategy<Value = Path> {
    prop::collection::vec(name().prop_map(Step::Name), 1..3).prop_map(Path)
}

fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        6 => path().prop_map(Subject::Path),
        1 => Just(Subject::Id),
        1 => Just(Subject::Etag),
        1 => Just(Subject::Key),
        1 => Just(Subject::Count),
        1 => path().prop_map(Subject::Sum),
    ]
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        "[a-z0-9_]{1,4}".prop_map(Operand::Parameter),
        Just(Operand::Null),
        any::<bool>().prop_map(Operand::Bool),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?".prop_map(Operand::Number),
        any::<String>().prop_map(Operand::String),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual),
    ];
    let values = || prop::collection::vec(operand(), 0..3);
    let leaf = prop_oneof![
        Just(Condition::True),
        Just(Condition::False),
        (subject(), comparison, operand()).prop_map(|(s, c, o)| Condition::Compare(s, c, o)),
        (subject(), operand(), operand()).prop_map(|(s, a, b)| Condition::Between(s, a, b)),
        (subject(), values()).prop_map(|(s, v)| Condition::In(s, v)),
        (subject(), values()).prop_map(|(s, v)| Condition::AllIn(s, v)),
        (subject(), operand()).prop_map(|(s, o)| Condition::StartsWith(s, o)),
        (subject(), operand()).prop_map(|(s, o)| Condition::EndsWith(s, o)),
        path().prop_map(Condition::Exists),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Condition::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Condition::And),
            prop::collection::vec(inner, 2..4).prop_map(Condition::Or),
        ]
    })
}

fn filter() -> impl Strategy<Value = Option<Condition>> {
    prop::option::of(condition()).prop_map(|filter| filter.filter(|filter| *filter != Condition::True))
}

fn query() -> impl Strategy<Value = Query> {
    let from =
        prop_oneof!["[^\0]{1,8}".prop_map(From::Collection), Just(From::AllDocs), "[^\0]{1,8}".prop_map(From::Index),];
    let reading = prop_oneof![Just(Reading::Typed), Just(Reading::String), Just(Reading::Long), Just(Reading::Double)];
    let order =
        (subject(), reading, any::<bool>()).prop_map(|(by, reading, descending)| Order { by, reading, descending });
    let field = (subject(), prop::option::of(name())).prop_map(|(value, alias)| Field { value, alias });
    let select =
        (any::<bool>(), prop::collection::vec(field, 1..3)).prop_map(|(distinct, fields)| Select { distinct, fields });
    let group = (prop::collection::vec(plain_path(), 1..3), prop::option::of(condition()))
        .prop_map(|(by, having)| Group { by, having });
    let include = (prop::collection::vec(path(), 0..3), any::<bool>());
    let page = (prop::option::of(operand()), prop::option::of(operand()));
    let rest = (prop::option::of(select), include, page);
    (from, filter(), prop::option::of(group), prop::collection::vec(order, 0..3), rest).prop_map(
        |(from, filter, group, order, (select, (include, timings), (offset, limit)))| Query {
            from,
            filter,
            group,
            order,
            select,
            include,
            timings,
            offset,
            limit,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_query_reads_back_as_the_same(query in query()) {
        let text = query.to_string();
        prop_assert_eq!(parse(&text).map_err(|error| error.to_string()), Ok(query), "{}", text);
    }

    #[test]
    fn no_text_does_harm(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn a_query_with_a_piece_missing_or_too_much_does_no_harm(
        query in query(), at in 0_usize..300, length in 0_usize..8, extra in "['\"$()\\[\\]{},.;*/<>=!a-z0-9 \\\\]{0,3}"
    ) {
        let text: Vec<char> = query.to_string().chars().collect();
        let (at, end) = (at.min(text.len()), (at + length).min(text.len()));
        let changed: String = text[..at].iter().copied().chain(extra.chars()).chain(text[end..].iter().copied()).collect();
        if let Ok(read) = parse(&changed) {
            prop_assert_eq!(parse(&read.to_string()).map_err(|error| error.to_string()), Ok(read));
        }
    }
}

#[test]
fn what_clients_write_is_read() {
    for text in [
        "from 'Users'",
        "from index 'Rhai/Users'",
        "from index Rhai/Users",
        "from @all_docs",
        "FROM Users AS u WHERE u.name = $p0 ORDER BY u.age AS long DESC",
        "from 'Users' where exact(name = $p0)",
        "from 'Users' where true and not (a = $p0)",
        "from 'Users' where exists(a) and not a in ($p0)",
        "from 'Users' where exists(a) and not startsWith(a, $p0)",
        "from 'Users' where name = $p0 and age > $p1 or name != $p2",
        "from 'Users' where 'order' = $p0 and tags[].x all in ($p1)",
        "from 'Users' where age between $p0 and $p1 limit $p2, $p3",
        "from 'Users' select name, age, @metadata.@nested-object-types as __PROJECTED_NESTED_OBJECT_TYPES__",
        "from 'Users' as u where id(u) = $p0 select distinct u.name include u.friends, 'Lines[].Product'",
        "from 'Orders' group by name, Address.City where count() > 5 order by count() as long select key(), count() as count;",
        "from Users where a = 'it''s' and b = \"x\\\"y\" // and so on",
        "from Users limit 5 offset 10",
    ] {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
    }
    let quoted = parse("from U where 'Address.the city' = 1").unwrap();
    let plain = parse("from U where Address.'the city' = 1").unwrap();
    assert_eq!(quoted, plain);
}

#[test]
fn not_binds_tighter_than_and_and_and_than_or() {
    let same = |a: &str, b: &str| {
        let (a, b) = (format!("from U where {a}"), format!("from U where {b}"));
        assert_eq!(parse(&a).unwrap(), parse(&b).unwrap(), "{a}");
    };
    same("not a = 1 and b = 2 or c = 3", "((not (a = 1)) and b = 2) or c = 3");
    same("a = 1 or b = 2 and c = 3", "a = 1 or (b = 2 and c = 3)");
    same("a not in (1)", "not a in (1)");
}

#[test]
fn what_is_wrong_is_told_with_line_and_column() {
    for (text, place, words) in [
        ("frm Orders", "1:1 ", "'from'"),
        ("from index 'Sales/ByProductMonth' where", "1:40 ", "ends"),
        ("from Orders\nwhere Total >", "2:14 ", "value"),
        ("from Orders where Total ~ 5", "1:25 ", "'~'"),
        ("from Orders where order = 5", "1:19 ", "quotes"),
        ("from Orders where (a = 1", "1:25 ", "')'"),
        ("from Orders order Total", "1:19 ", "'by'"),
        ("from Orders where a in 5", "1:24 ", "'('"),
        ("from Orders select a select b", "1:22 ", "in this order"),
        ("from 'Orders", "1:6 ", "no end"),
        ("", "1:1 ", "'from'"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, QueryError::Syntax { .. }), "{text}: {error:?}");
        let message = error.to_string();
        assert!(message.starts_with(place) && message.contains(words), "{text}: {message}");
    }
}

#[test]
fn what_ravendb_has_and_treepie_has_not_is_refused_by_name() {
    for (text, what) in [
        ("from Orders where search(Name, 'x')", "search("),
        ("from Orders where lucene(Name, 'x')", "lucene("),
        ("from Orders where boost(Name = 'x', 2)", "boost("),
        ("from Orders order by score()", "score("),
        ("from Orders order by random()", "random("),
        ("from Orders order by Name as alphaNumeric", "alphaNumeric"),
        ("from Orders load Company as c", "load"),
        ("from Orders as o select { Name: o.Name }", "select {"),
        ("from Orders update { this.x = 1 }", "update"),
        ("declare function f() { } from Orders", "declare"),
        ("from Orders filter Total > 5", "filter"),
        ("from Orders include counters('x')", "counters("),
        ("from Orders group by array(Lines)", "array("),
        ("from Orders group by Lines[].Product select count()", "Lines[].Product"),
        ("from Orders where a = b", "'b'"),
        ("from Orders as o select o", "'o'"),
        ("from Orders select facet(a)", "facet("),
        ("from Orders where avg(a) > 1", "avg("),
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, QueryError::Unsupported { .. }), "{text}: {error:?}");
        assert!(error.to_string().contains(what), "{text}: {error}");
    }
}

#[test]
fn depth_and_length_have_a_bound() {
    let deep = format!("from U where {}a = 1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(parse(&deep).unwrap_err().to_string().contains("deep"));
    let nots = format!("from U where {}a = 1", "not ".repeat(10_000));
    assert!(parse(&nots).unwrap_err().to_string().contains("deep"));
    let long = format!("from U where a = '{}'", "x".repeat(1 << 20));
    assert!(parse(&long).unwrap_err().to_string().contains("bytes"));
    let many = format!("from U where {}", vec!["a = 1"; 2_000].join(" or "));
    assert!(parse(&many).is_ok());
}
