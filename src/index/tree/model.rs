//! The reduce tree in memory, written plainly from its definition, and the property that `update` and `build` agree with it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::update::Changes;
use super::*;
use crate::script::Phase;

/// Rows of one group in memory.
#[derive(Default, Clone, Debug, PartialEq)]
struct Rows {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    nodes: BTreeMap<(u8, Vec<u8>), Vec<u8>>,
    height: u8,
}

impl Tree for Rows {
    fn entries(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.entries.range(from.to_vec()..).all(|(k, v)| visit(k, v));
        Ok(())
    }

    fn nodes(&self, level: u8, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.nodes.range((level, from.to_vec())..(level + 1, Vec::new())).all(|((_, k), v)| visit(k, v));
        Ok(())
    }

    fn last_node(&self, level: u8, before: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let before = self.nodes.range((level, Vec::new())..(level, before.to_vec())).next_back();
        Ok(before.map(|((_, start), _)| start.clone()))
    }
}

/// Joins values with brackets around them, so that the result shows the shape; fails on values with an `x`.
struct Brackets {
    values_read: usize,
    calls: usize,
}

impl Reduce for Brackets {
    fn reduce(&mut self, values: &[&[u8]]) -> Result<Partial, TreeError> {
        self.values_read += values.len();
        self.calls += 1;
        if values.iter().any(|value| *value == b"x") {
            return Ok(Partial::Fault(fault()));
        }
        Ok(Partial::Value([b"(".as_slice(), &values.join(&b' '), b")"].concat()))
    }
}

fn brackets() -> Brackets {
    Brackets { values_read: 0, calls: 0 }
}

fn fault() -> Fault {
    Fault {
        phase: Phase::Reduce,
        script: "script".into(),
        line: None,
        column: None,
        function: None,
        message: "x".into(),
        hint: None,
        transient: false,
    }
}

/// The definition, word by word: which entries start nodes, which values they cover.
fn model(entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> (Rows, Option<Partial>) {
    let mut rows = Rows { entries: entries.clone(), ..Rows::default() };
    let mut layer: Vec<(Vec<u8>, Vec<u8>)> = entries.clone().into_iter().collect();
    if layer.is_empty() {
        return (rows, None);
    }
    let fold = |values: &[&(Vec<u8>, Vec<u8>)], is_node: bool| {
        if let [(_, only)] = values
            && is_node
        {
            return only.clone();
        }
        if values.iter().any(|(_, value)| value[0] == 0 || value == b"x") {
            return Partial::Fault(fault()).encode();
        }
        let texts: Vec<_> = values.iter().map(|(_, value)| String::from_utf8(value.clone()).unwrap()).collect();
        format!("({})", texts.join(" ")).into_bytes()
    };
    if layer.len() as u64 <= SMALL_GROUP_ENTRIES {
        let result = fold(&layer.iter().collect::<Vec<_>>(), false);
        return (rows, Some(Partial::decode(&result).unwrap()));
    }
    for at in 1.. {
        let mut nodes: Vec<Vec<&(Vec<u8>, Vec<u8>)>> = Vec::new();
        for child in &layer {
            match nodes.last_mut() {
                Some(open) if level(&child.0) < at => open.push(child),
                _ => nodes.push(vec![child]),
            }
        }
        let next: Vec<_> = nodes.iter().map(|node| (node[0].0.clone(), fold(node, true))).collect();
        rows.nodes.extend(next.iter().map(|(start, value)| ((at, start.clone()), value.clone())));
        if let [(_, root)] = next.as_slice() {
            rows.height = at;
            let root = Partial::decode(root).unwrap();
            return (rows, Some(root));
        }
        layer = next;
    }
    unreachable!("some level has one node")
}

fn key(n: u32) -> Vec<u8> {
    crate::store::keyspace::entry(&format!("orders/{n:05}"), 0)
}

/// Applies changes through `update`.
fn apply(rows: &mut Rows, changes: &[(u32, Option<String>)], reduce: &mut Brackets) -> Option<Partial> {
    let mut planned = Changes::new();
    for (n, value) in changes {
        let was_present = rows.entries.contains_key(&key(*n));
        planned.insert(key(*n), Change { was_present, value: value.clone().map(String::into_bytes) });
    }
    let count = rows.entries.len() as u64;
    let updated = update(rows, count, rows.height, &planned, reduce).unwrap();
    for (entry, change) in planned {
        match change.value {
            Some(value) => drop(rows.entries.insert(entry, value)),
            None => drop(rows.entries.remove(&entry)),
        }
    }
    if updated.clear_nodes {
        rows.nodes.clear();
    }
    for (node, stored) in updated.nodes {
        match stored {
            Some(stored) => drop(rows.nodes.insert(node, stored)),
            None => assert!(rows.nodes.remove(&node).is_some(), "deletes a node that is not there"),
        }
    }
    rows.height = updated.height;
    assert_eq!(updated.count, rows.entries.len() as u64);
    updated.result
}

fn change() -> impl Strategy<Value = (u32, Option<String>)> {
    let value = prop_oneof![6 => "[a-c]".prop_map(Some), 1 => Just(Some("x".to_owned())), 6 => Just(None)];
    (0..700u32, value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_updates_gives_the_tree_of_the_entries_alone(
        batches in prop::collection::vec(prop::collection::vec(change(), 1..150), 1..30)
    ) {
        let mut rows = Rows::default();
        for batch in batches {
            let result = apply(&mut rows, &batch, &mut brackets());
            let (expected, expected_result) = model(&rows.entries);
            prop_assert_eq!(&rows, &expected);
            prop_assert_eq!(result, expected_result);
        }
    }
}

#[test]
fn levels_are_those_of_the_published_model() {
    let levels: Vec<u8> = (0..2000).map(|n| level(&crate::store::keyspace::entry(&format!("orders/{n}"), 0))).collect();
    let high: Vec<usize> = levels.iter().enumerate().filter(|(_, l)| **l >= 2).map(|(n, _)| n).collect();
    assert_eq!(high, EXPECTED_LEVEL_2);
}

/// Made with `reduce_tree_model.level((f"orders/{n}", 0))`.
const EXPECTED_LEVEL_2: &[usize] = &[171, 321, 455, 617, 1181, 1489, 1503, 1794, 1987];

#[test]
fn one_update_reads_a_logarithmic_number_of_values() {
    let entries: BTreeMap<_, _> = (0..100_000).map(|n| (key(n), b"a".to_vec())).collect();
    let mut rows = model(&entries).0;
    let mut most = 0;
    for n in (0..100_000).step_by(1_999) {
        let mut reduce = brackets();
        apply(&mut rows, &[(n, Some("b".into()))], &mut reduce);
        most = most.max(reduce.values_read);
    }
    assert!(most < 400, "{most} values for one update");
}

#[test]
fn building_reads_each_value_little_more_than_once() {
    let mut builder = TreeBuilder::default();
    let (mut reduce, mut nodes) = (brackets(), 0);
    for n in 0..50_000 {
        builder.push(&key(n), b"a", &mut reduce, &mut |_, _, _| nodes += 1).unwrap();
    }
    builder.finish(&mut reduce, &mut |_, _, _| nodes += 1).unwrap();
    assert!(reduce.calls <= 50_000 / (FANOUT as usize - 1) + 50, "{} calls", reduce.calls);
    assert!(nodes > reduce.calls, "only children are not reduced");
}
