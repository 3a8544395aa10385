//! Writing canonical bytes.

use super::super::number::Number;
use super::tag;

/// Writes `()`.
pub fn write_null(into: &mut Vec<u8>) {
    into.push(tag::NULL);
}

/// Writes a truth value.
pub fn write_bool(value: bool, into: &mut Vec<u8>) {
    into.push(if value { tag::TRUE } else { tag::FALSE });
}

/// Writes a number.
pub fn write_number(value: Number, into: &mut Vec<u8>) {
    match value {
        Number::Int(value) => {
            into.push(tag::INT);
            let zigzag = (value.unsigned_abs() << 1).wrapping_sub(u64::from(value < 0));
            write_integer(u128::from(zigzag), into);
        }
        Number::Decimal(value) => {
            // The scale is at most 28.
            let scale = u8::try_from(value.scale()).unwrap_or(0);
            into.extend([tag::DECIMAL, scale | if value.is_sign_negative() { tag::NEGATIVE } else { 0 }]);
            write_integer(value.mantissa().unsigned_abs(), into);
        }
        Number::Float(value) => {
            into.push(tag::FLOAT);
            into.extend(value.to_be_bytes());
        }
    }
}

/// Writes a string.
pub fn write_string(value: &str, into: &mut Vec<u8>) {
    into.push(tag::STRING);
    write_name(value, into);
}

/// Writes the name of an object's field; its value must follow. Names come in code-point order, each once.
pub fn write_name(name: &str, into: &mut Vec<u8>) {
    write_integer(name.len() as u128, into);
    into.extend_from_slice(name.as_bytes());
}

/// An array or object being written: its length is known at the end.
#[derive(Debug)]
#[must_use = "the length is written by `end`"]
pub struct Nest {
    start: usize,
}

impl Nest {
    /// Begins an array; its elements follow.
    pub fn array(into: &mut Vec<u8>) -> Self {
        into.push(tag::ARRAY);
        Self::begin(into)
    }

    /// Begins an object; its fields follow.
    pub fn object(into: &mut Vec<u8>) -> Self {
        into.push(tag::OBJECT);
        Self::begin(into)
    }

    fn begin(into: &mut Vec<u8>) -> Self {
        into.push(0);
        Self { start: into.len() }
    }

    /// Ends it: writes the length in front of the content.
    pub fn end(self, into: &mut Vec<u8>) {
        let length = into.len().saturating_sub(self.start);
        if let (Ok(short @ 0..=0x7f), Some(byte)) = (u8::try_from(length), into.get_mut(self.start - 1)) {
            *byte = short;
            return;
        }
        let mut bytes = Vec::new();
        write_integer(length as u128, &mut bytes);
        into.splice(self.start - 1..self.start, bytes);
    }
}

/// Base 128, least significant digits first, the top bit set on all bytes but the last.
fn write_integer(mut value: u128, into: &mut Vec<u8>) {
    if let Ok(short @ 0..=0x7f) = u8::try_from(value) {
        into.push(short);
        return;
    }
    loop {
        let digit = u8::try_from(value & 0x7f).unwrap_or(0);
        value >>= 7;
        if value == 0 {
            into.push(digit);
            return;
        }
        into.push(digit | 0x80);
    }
}
