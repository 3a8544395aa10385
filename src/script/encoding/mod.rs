//! The canonical encoding of values: equal values are equal bytes, whatever they looked like.
//!
//! Part of the on-disk format, pinned by golden bytes. A value is a tag byte and what the tag says; lengths are in
//! bytes, as little-endian base-128 integers of the least possible length. Arrays and objects carry their length, so
//! that a field is found and skipped without decoding. Next on the walk: `document`.
//!
//! | tag | value | then |
//! | --- | --- | --- |
//! | 1, 2, 3 | null, false, true | nothing |
//! | 4 | integer within `i64` | zigzag, base 128 |
//! | 5 | other decimal | scale (0–28) + 128 if negative, mantissa in base 128 |
//! | 6 | other number | `f64`, 8 bytes, big-endian |
//! | 7 | string | length, UTF-8 |
//! | 8 | array | length, elements |
//! | 9 | object | length, fields: length of the name, name, value; by code point, each name once |

mod json;
mod read;
mod write;

pub use json::{JsonError, encode_json, write_json};
pub use read::{Elements, Fields, Item, Reader, depth, field, skip_value};
pub use write::{Nest, write_bool, write_name, write_null, write_number, write_string};

/// The encoding of `()` and JSON null.
pub const NULL: &[u8] = &[0x01];

/// The first byte of a value.
mod tag {
    pub(super) const NULL: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const INT: u8 = 4;
    pub(super) const DECIMAL: u8 = 5;
    pub(super) const FLOAT: u8 = 6;
    pub(super) const STRING: u8 = 7;
    pub(super) const ARRAY: u8 = 8;
    pub(super) const OBJECT: u8 = 9;
    /// Added to a decimal's scale.
    pub(super) const NEGATIVE: u8 = 0x80;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(json: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_json(json, 64, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn golden_bytes() {
        for (json, bytes) in [
            ("null", "01"),
            ("false", "02"),
            ("true", "03"),
            ("0", "0400"),
            ("-1", "0401"),
            ("1", "0402"),
            ("64", "048001"),
            ("9223372036854775807", "04feffffffffffffffff01"),
            ("-9223372036854775808", "04ffffffffffffffffff01"),
            ("9223372036854775808", "050080808080808080808001"),
            ("1.5", "05010f"),
            ("-0.25", "058219"),
            ("1e300", "067e37e43c8800759c"),
            ("\"\"", "0700"),
            ("\"é\"", "0702c3a9"),
            ("[]", "0800"),
            ("[1,[null]]", "08050402080101"),
            ("{}", "0900"),
            ("{\"b\":1,\"a\":[]}", "090801610800016204 02"),
        ] {
            let hex = encoded(json).iter().fold(String::new(), |hex, byte| hex + format!("{byte:02x}").as_str());
            assert_eq!(hex, bytes.replace(' ', ""), "{json}");
        }
    }

    #[test]
    fn equal_values_are_equal_bytes() {
        for (a, b) in [
            ("1", "1.0"),
            ("[1e0]", "[10e-1]"),
            ("{\"a\":1,\"b\":2}", "{\"b\":2.0,\"a\":1}"),
            ("\"\\u0041\"", "\"A\""),
            ("-0.0", "0"),
        ] {
            assert_eq!(encoded(a), encoded(b));
        }
    }

    #[test]
    fn parts_are_never_glued_together() {
        for (a, b) in [
            ("[\"ab\",\"\"]", "[\"a\",\"b\"]"),
            ("[\"a\",\"b/c\"]", "[\"a/b\",\"c\"]"),
            ("[\"a\\u0000\",\"b\"]", "[\"a\",\"\\u0000b\"]"),
            ("[\"1\",2]", "[1,\"2\"]"),
            ("[\"a|b\"]", "[\"a\",\"b\"]"),
            ("\"é\"", "\"e\\u0301\""),
            ("null", "[]"),
            ("[]", "{}"),
            ("\"\"", "0"),
            ("false", "0"),
        ] {
            assert_ne!(encoded(a), encoded(b));
        }
    }

    #[test]
    fn long_values_carry_long_lengths() {
        let json = format!("[\"{}\",{{\"{}\":[1]}}]", "x".repeat(300), "k".repeat(20_000));
        let bytes = encoded(&json);
        let mut text = String::new();
        write_json(&bytes, &mut text);
        assert_eq!(text, json);
        assert_eq!(skip_value(&bytes).map(<[u8]>::len), Some(0));
    }

    #[test]
    fn a_field_is_found_without_decoding_the_others() {
        let bytes = encoded("{\"Total\":2.5,\"Count\":3,\"a\":{\"b\":null}}");
        assert_eq!(field(&bytes, "Count"), Some(&[4, 6][..]));
        assert_eq!(field(&bytes, "b"), None);
        assert_eq!(field(&encoded("[1]"), "Count"), None);
    }
}
