//! Reduce keys as bytes that sort like the keys: what puts groups, and the entries of map-only indexes, in key order.
//!
//! The order is the one of the whole product: null, false, true, numbers by value, strings by code point, arrays element by
//! element, objects field by field (name, then value; fields by code point). Each value says where it ends, arrays and objects by
//! a 0, so that no key is the beginning of another one, and can be read back. Part of the format, pinned by golden bytes.
//!
//! | tag | value | then |
//! | --- | --- | --- |
//! | 1, 2, 3, 5 | null, false, true, 0 | nothing |
//! | 4, 6 | number below, above 0 | see `push_magnitude` |
//! | 7, 8, 9 | string, array, object | escaped text (see `push_text`); elements; name as a string, value |

use std::fmt::Write as _;

use crate::script::encoding::{Item, Nest, Reader, write_bool, write_name, write_null, write_number, write_string};
use crate::script::number::{Exact, Number};
use crate::store::keyspace::{Generation, GroupHash, reduce_key};

/// Bytes of an ordered key that stand in a row's key. Where two longer ones agree so far, whole keys must be compared.
pub(crate) const CUT_BYTES: usize = 1_024;

mod tag {
    pub(super) const END: u8 = 0;
    pub(super) const NULL: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const NEGATIVE: u8 = 4;
    pub(super) const ZERO: u8 = 5;
    pub(super) const POSITIVE: u8 = 6;
    pub(super) const STRING: u8 = 7;
    pub(super) const ARRAY: u8 = 8;
    pub(super) const OBJECT: u8 = 9;
}

/// What is added to the number of digits before the point, so that it is never negative.
const SIZE_BIAS: i64 = 0x8000;

/// The bytes 0 and 1 of a text are written as this and themselves plus one; 0 ends the text.
const ESCAPE: u8 = 1;

/// The ordered key of a canonically encoded value.
///
/// # Cost
/// O(bytes). Up to twice as long as the canonical encoding where a string is all U+0000 and U+0001, else about as long.
pub(crate) fn ordered_key(canonical: &[u8]) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(canonical.len() + 8);
    push_value(canonical, &mut ordered);
    ordered
}

/// The part of an ordered key that stands in a row's key.
pub(crate) fn cut(ordered: &[u8]) -> &[u8] {
    ordered.get(..CUT_BYTES).unwrap_or(ordered)
}

/// The `reduce_keys` row of a group with this canonical key.
pub(crate) fn keyed_group(generation: Generation, canonical: &[u8], group: &GroupHash) -> Vec<u8> {
    reduce_key(generation, cut(&ordered_key(canonical)), group)
}

/// Reads the ordered key at the beginning of `bytes` back into its canonical encoding; returns it with what follows. `None`
/// where there is none that is whole.
///
/// # Cost
/// O(bytes of the key).
pub(crate) fn canonical_key(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut ordered = Ordered { rest: bytes };
    let mut canonical = Vec::new();
    ordered.value(&mut canonical)?;
    Some((canonical, ordered.rest))
}

/// Writes one value. Malformed bytes, which the script room never makes, count as null.
fn push_value(canonical: &[u8], into: &mut Vec<u8>) {
    match Reader::new(canonical).item() {
        None | Some(Item::Null) => into.push(tag::NULL),
        Some(Item::Bool(value)) => into.push(if value { tag::TRUE } else { tag::FALSE }),
        Some(Item::Number(number)) => push_number(number, into),
        Some(Item::Str(text)) => push_text(text, into),
        Some(Item::Array(elements)) => {
            into.push(tag::ARRAY);
            elements.for_each(|element| push_value(element, into));
            into.push(tag::END);
        }
        Some(Item::Object(fields)) => {
            into.push(tag::OBJECT);
            for (name, value) in fields {
                push_text(name, into);
                push_value(value, into);
            }
            into.push(tag::END);
        }
    }
}

/// Below 0 all bytes behind the tag are inverted, and so is their order.
fn push_number(number: Number, into: &mut Vec<u8>) {
    let exact = Exact::from(number).stripped();
    if exact.mantissa == 0 {
        into.push(tag::ZERO);
        return;
    }
    into.push(if exact.negative { tag::NEGATIVE } else { tag::POSITIVE });
    let start = into.len();
    push_magnitude(&exact, into);
    if exact.negative {
        into.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

/// Writes a number's magnitude as 0.d₁d₂… × 10^size with d₁ > 0: the size, biased, in 2 bytes; pairs of digits, each plus 1;
/// a 0.
fn push_magnitude(exact: &Exact, into: &mut Vec<u8>) {
    let mut digits = String::with_capacity(40);
    // Writing to a string cannot fail.
    let _ = write!(digits, "{}", exact.mantissa);
    // An f64 lies between 10^-324 and 10^309.
    let size = exact.exponent + i64::try_from(digits.len()).unwrap_or(0) + SIZE_BIAS;
    into.extend(u16::try_from(size).unwrap_or(u16::MAX).to_be_bytes());
    for pair in digits.as_bytes().chunks(2) {
        let digit = |place: usize| pair.get(place).map_or(0, |digit| digit - b'0');
        into.push(digit(0) * 10 + digit(1) + 1);
    }
    into.push(0);
}

/// Writes a string: UTF-8 sorts by code point already; the bytes 0 and 1 are escaped, so that 0 can end it.
fn push_text(text: &str, into: &mut Vec<u8>) {
    into.push(tag::STRING);
    for byte in text.bytes() {
        match byte {
            0 | 1 => into.extend([ESCAPE, byte + 1]),
            _ => into.push(byte),
        }
    }
    into.push(0);
}

/// A position in an ordered key.
struct Ordered<'a> {
    rest: &'a [u8],
}

impl Ordered<'_> {
    /// Reads one value and writes it canonically.
    fn value(&mut self, into: &mut Vec<u8>) -> Option<()> {
        match self.byte()? {
            tag::NULL => write_null(into),
            tag::FALSE => write_bool(false, into),
            tag::TRUE => write_bool(true, into),
            tag::ZERO => write_number(Number::Int(0), into),
            tag::NEGATIVE => write_number(self.number(true)?, into),
            tag::POSITIVE => write_number(self.number(false)?, into),
            tag::STRING => write_string(&self.text()?, into),
            tag::ARRAY => {
                let nest = Nest::array(into);
                while !self.is_at_end()? {
                    self.value(into)?;
                }
                nest.end(into);
            }
            tag::OBJECT => {
                let nest = Nest::object(into);
                while !self.is_at_end()? {
                    (self.byte()? == tag::STRING).then_some(())?;
                    write_name(&self.text()?, into);
                    self.value(into)?;
                }
                nest.end(into);
            }
            _ => return None,
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Passes over the end of an array or object, where it is here.
    fn is_at_end(&mut self) -> Option<bool> {
        let is_end = *self.rest.first()? == tag::END;
        if is_end {
            self.byte()?;
        }
        Some(is_end)
    }

    fn number(&mut self, negative: bool) -> Option<Number> {
        let invert = if negative { u8::MAX } else { 0 };
        let size = i64::from(u16::from_be_bytes([self.byte()? ^ invert, self.byte()? ^ invert])) - SIZE_BIAS;
        let mut exact = Exact { negative, mantissa: 0, exponent: size, more: false };
        while let Some(pair) = (self.byte()? ^ invert).checked_sub(1) {
            exact.mantissa = exact.mantissa.checked_mul(100)?.checked_add(u128::from(pair))?;
            exact.exponent -= 2;
        }
        exact.round().ok().or_else(|| Number::from_f64(exact.to_f64()))
    }

    fn text(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => return String::from_utf8(text).ok(),
                ESCAPE => text.push(self.byte()?.checked_sub(1)?),
                byte => text.push(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::collections::BTreeMap;

    use num_bigint::BigInt;
    use num_rational::Ratio;
    use proptest::prelude::*;

    use super::*;
    use crate::script::encoding::encode_json;

    fn canonical(json: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_json(json, 64, &mut bytes).unwrap();
        bytes
    }

    fn ordered(json: &str) -> Vec<u8> {
        ordered_key(&canonical(json))
    }

    #[test]
    fn golden_bytes() {
        for (json, bytes) in [
            ("null", "01"),
            ("false", "02"),
            ("true", "03"),
            ("0", "05"),
            ("1", "0680010b00"),
            ("-1", "047ffef4ff"),
            ("12", "0680020d00"),
            ("1.25", "0680010d3300"),
            ("0.001", "067ffe0b00"),
            ("9223372036854775807", "0680135d1826152556304c514700"),
            ("1e300", "06812d0b00"),
            ("\"\"", "0700"),
            ("\"é\"", "07c3a900"),
            ("\"\\u0000\\u0001\\u0002\"", "07010101020200"),
            ("[]", "0800"),
            ("[null,[\"\"]]", "080108070000 00"),
            ("{}", "0900"),
            ("{\"b\":1,\"a\":true}", "09076100030762000680010b0000"),
        ] {
            let hex = ordered(json).iter().fold(String::new(), |hex, byte| hex + format!("{byte:02x}").as_str());
            assert_eq!(hex, bytes.replace(' ', ""), "{json}");
        }
    }

    #[test]
    fn a_key_sorts_before_its_continuations_whatever_follows_it_in_a_row() {
        for (less, more) in [
            ("\"a\"", "\"a\\u0000\""),
            ("\"a\\u0000\"", "\"a\\u0001\""),
            ("[1]", "[1,null]"),
            ("[[]]", "[[null]]"),
            ("[[1],2]", "[[1,0]]"),
            ("{}", "{\"\":null}"),
            ("{\"a\":[]}", "{\"a\":[],\"b\":null}"),
            ("1", "1.01"),
            ("-1.01", "-1"),
            ("-10", "-9.9"),
        ] {
            let row = |json, suffix| [ordered(json), vec![suffix; 16]].concat();
            assert!(row(less, 0xFF) < row(more, 0x00), "{less} against {more}");
        }
    }

    #[test]
    fn what_is_cut_or_damaged_is_read_as_nothing() {
        let whole = ordered("{\"a\":[1.5,\"x\",{\"b\":-7}]}");
        for end in 0..whole.len() {
            assert_eq!(canonical_key(&whole[..end]), None, "{end}");
        }
        assert_eq!(canonical_key(&[9, 8]), None);
        assert_eq!(canonical_key(&[7, 0xFF, 0]), None);
        assert_eq!(cut(&vec![7; 2_000]).len(), CUT_BYTES);
    }

    /// A value as the oracle knows it: numbers by their text.
    #[derive(Clone, Debug)]
    enum Value {
        Null,
        Bool(bool),
        Number { mantissa: i128, exponent: i32 },
        Text(String),
        Array(Vec<Value>),
        Object(BTreeMap<String, Value>),
    }

    impl Value {
        fn json(&self) -> String {
            let text = |text: &String| serde_json::to_string(text).unwrap();
            match self {
                Self::Null => "null".to_owned(),
                Self::Bool(value) => value.to_string(),
                Self::Number { mantissa, exponent } => format!("{mantissa}e{exponent}"),
                Self::Text(value) => text(value),
                Self::Array(values) => {
                    format!("[{}]", values.iter().map(Self::json).collect::<Vec<_>>().join(","))
                }
                Self::Object(fields) => {
                    let fields = fields.iter().rev().map(|(name, value)| format!("{}:{}", text(name), value.json()));
                    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
                }
            }
        }

        fn rank(&self) -> u8 {
            match self {
                Self::Null => 0,
                Self::Bool(false) => 1,
                Self::Bool(true) => 2,
                Self::Number { .. } => 3,
                Self::Text(_) => 4,
                Self::Array(_) => 5,
                Self::Object(_) => 6,
            }
        }

        fn compare(&self, other: &Self) -> Ordering {
            match (self, other) {
                (Self::Number { mantissa: a, exponent: power_a }, Self::Number { mantissa: b, exponent: power_b }) => {
                    rational(*a, *power_a).cmp(&rational(*b, *power_b))
                }
                (Self::Text(a), Self::Text(b)) => a.chars().cmp(b.chars()),
                (Self::Array(a), Self::Array(b)) => compare_all(a.iter(), b.iter(), Self::compare),
                (Self::Object(a), Self::Object(b)) => {
                    compare_all(a.iter(), b.iter(), |a, b| a.0.chars().cmp(b.0.chars()).then_with(|| a.1.compare(b.1)))
                }
                _ => self.rank().cmp(&other.rank()),
            }
        }
    }

    fn rational(mantissa: i128, exponent: i32) -> Ratio<BigInt> {
        let power = BigInt::from(10).pow(exponent.unsigned_abs());
        let mantissa = BigInt::from(mantissa);
        if exponent < 0 { Ratio::new(mantissa, power) } else { Ratio::from(mantissa * power) }
    }

    fn compare_all<T>(
        mut a: impl Iterator<Item = T>,
        mut b: impl Iterator<Item = T>,
        compare: impl Fn(T, T) -> Ordering,
    ) -> Ordering {
        loop {
            match (a.next(), b.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => return Ordering::Less,
                (Some(_), None) => return Ordering::Greater,
                (Some(a), Some(b)) => match compare(a, b) {
                    Ordering::Equal => {}
                    unequal => return unequal,
                },
            }
        }
    }

    /// Numbers whose every digit is kept: 15 digits survive an f64 at any size, 28 a decimal.
    fn numbers() -> impl Strategy<Value = Value> {
        let number = |(mantissa, exponent)| Value::Number { mantissa, exponent };
        prop_oneof![
            (-20i128..20, -2i32..3).prop_map(number),
            (-999_999_999_999_999i128..=999_999_999_999_999, -280i32..280).prop_map(number),
            (-9_999_999_999_999_999_999_999_999_999i128..=9_999_999_999_999_999_999_999_999_999, -28i32..=0)
                .prop_map(number),
            (any::<i64>().prop_map(i128::from), Just(0)).prop_map(number),
        ]
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof!["[ab\u{0}\u{1}\u{2}]{0,3}", "[a\u{7f}é\u{fffd}\u{10000}\u{10ffff}]{0,3}", any::<String>()]
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            1 => Just(Value::Null),
            1 => any::<bool>().prop_map(Value::Bool),
            4 => numbers(),
            3 => texts().prop_map(Value::Text),
        ];
        scalar.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map(texts(), inner, 0..3).prop_map(Value::Object),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes_sort_like_the_values(a in values(), b in values()) {
            let (left, right) = (ordered(&a.json()), ordered(&b.json()));
            prop_assert_eq!(left.cmp(&right), a.compare(&b), "{} against {}", a.json(), b.json());
            prop_assert!(left == right || !left.starts_with(&right), "{} begins {}", b.json(), a.json());
        }

        #[test]
        fn numbers_sort_by_their_exact_value(a in numbers(), b in numbers()) {
            prop_assert_eq!(ordered(&a.json()).cmp(&ordered(&b.json())), a.compare(&b));
        }

        #[test]
        fn a_key_is_read_back_and_what_follows_is_left(value in values(), rest in prop::collection::vec(any::<u8>(), 0..4)) {
            let canonical = canonical(&value.json());
            let row = [ordered_key(&canonical), rest.clone()].concat();
            prop_assert_eq!(canonical_key(&row), Some((canonical, rest.as_slice())));
        }
    }
}
