//! The shape in which a group's entries are reduced, written from the description of the reduce tree: a copy that shares
//! nothing with the product, and builds from nothing each time.
//!
//! Up to [`THRESHOLD`] entries there is no tree. Above it, an entry of level ≥ L (trailing zero digits, in base [`FANOUT`], of
//! its hash) starts a node at every level 1..L, the first entry starts one at every level, and the root is the only node of the
//! first level that has just one. A node with an only child passes it on without a reduce. The level's hash is SipHash-2-4 as its
//! paper describes it.

use std::collections::BTreeMap;

use serde_json::Value;

/// The base in which levels count: how many children a node has on average.
pub(crate) const FANOUT: u64 = 16;
/// The largest group that has no tree.
pub(crate) const THRESHOLD: usize = 32;

/// Reduces the entries of one group, (lower-cased source id, ordinal) → value; `None` where a reduce fails on the way.
pub(crate) fn fold(
    entries: &BTreeMap<(String, u32), Value>,
    reduce: &dyn Fn(&[Value]) -> Option<Value>,
) -> Option<Value> {
    let mut nodes: Vec<(u32, Value)> =
        entries.iter().map(|((id, ordinal), value)| (level(id, *ordinal), value.clone())).collect();
    if nodes.len() <= THRESHOLD {
        return reduce(&nodes.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
    }
    for height in 1.. {
        nodes = one_level(&nodes, height, reduce)?;
        if let [(_, root)] = nodes.as_slice() {
            return Some(root.clone());
        }
    }
    None
}

fn one_level(
    children: &[(u32, Value)],
    height: u32,
    reduce: &dyn Fn(&[Value]) -> Option<Value>,
) -> Option<Vec<(u32, Value)>> {
    let mut nodes = Vec::new();
    let mut from = 0;
    while from < children.len() {
        let width = children[from + 1..].iter().take_while(|(level, _)| *level < height).count() + 1;
        let values: Vec<Value> = children[from..from + width].iter().map(|(_, value)| value.clone()).collect();
        let node = if let [only] = values.as_slice() { only.clone() } else { reduce(&values)? };
        nodes.push((children[from].0, node));
        from += width;
    }
    Some(nodes)
}

/// The level of an entry.
pub(crate) fn level(lower_id: &str, ordinal: u32) -> u32 {
    let mut bytes = lower_id.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&ordinal.to_be_bytes());
    let mut hash = siphash24(b"treepie/level/v1", &bytes);
    let mut level = 0;
    while hash.is_multiple_of(FANOUT) && level < 16 {
        hash /= FANOUT;
        level += 1;
    }
    level
}

fn siphash24(key: &[u8; 16], data: &[u8]) -> u64 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut padded = data.to_vec();
    padded.resize(data.len() / 8 * 8 + 7, 0);
    padded.push(data.len().to_le_bytes()[0]);
    for block in padded.chunks(8) {
        let block = word(block);
        v[3] ^= block;
        rounds(&mut v, 2);
        v[0] ^= block;
    }
    v[2] ^= 0xff;
    rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn rounds(v: &mut [u64; 4], count: usize) {
    for _ in 0..count {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    }
}

#[test]
fn the_hash_gives_the_vector_of_its_paper() {
    let key = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let data: Vec<u8> = (0..15).collect();
    assert_eq!(siphash24(&key, &data), 0xa129_ca61_49be_45e5);
}

#[test]
fn a_group_above_the_threshold_is_reduced_in_parts() {
    let entries: BTreeMap<(String, u32), Value> =
        (0..200).map(|number| ((format!("orders/{number:04}"), 0), Value::from(1))).collect();
    let widths = std::cell::RefCell::new(Vec::new());
    let sum = fold(&entries, &|values| {
        widths.borrow_mut().push(values.len());
        values.iter().map(Value::as_i64).sum::<Option<i64>>().map(Value::from)
    });
    assert_eq!(sum, Some(Value::from(200)));
    let read: usize = widths.borrow().iter().sum();
    assert_eq!(read, 200 + widths.borrow().len() - 1, "every value but the root is read once");
    assert!(widths.borrow().len() > 3 && !widths.borrow().contains(&1));
}

#[test]
fn levels_are_those_of_the_executable_model() {
    let of = |id: &str, range: std::ops::Range<u32>| -> Vec<(u32, u32)> {
        range.map(|number| (number, level(id, number))).filter(|(_, level)| *level > 0).collect()
    };
    assert_eq!(of("gespräche/1", 235..300), [(240, 3), (249, 1), (252, 1), (291, 1), (294, 1)]);
    let orders: Vec<u32> = (0..200).filter(|number| level(&format!("orders/{number:04}"), 0) > 0).collect();
    assert_eq!(orders, [19, 43, 90, 96, 124, 144, 161, 168, 173, 187, 190, 198]);
    assert_eq!(level("orders/0187", 0), 2);
}

#[test]
fn a_concatenation_shows_the_nodes_of_the_executable_model() {
    let name = |number: u32| Value::from(format!("{number},"));
    let entries = |count| (0..count).map(|number| ((format!("orders/{number:04}"), 0), name(number))).collect();
    let concatenate = |values: &[Value]| {
        let names: Option<String> = values.iter().map(Value::as_str).collect();
        Some(Value::from(format!("({})", names?)))
    };
    let part = |range: std::ops::Range<u32>| {
        let names: Vec<String> = range.map(|number| format!("{number},")).collect();
        format!("({})", names.concat())
    };
    let tree = format!("({}{}{})", part(0..19), part(19..43), part(43..60));
    assert_eq!(fold(&entries(60), &concatenate), Some(Value::from(tree)));
    assert_eq!(fold(&entries(32), &concatenate), Some(Value::from(part(0..32))), "no tree at the threshold");
}
