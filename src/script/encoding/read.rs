//! Reading canonical bytes without copying them. Nothing here trusts the bytes: what is malformed reads as `None`.

use rust_decimal::Decimal;

use super::super::number::Number;
use super::tag;

/// A value, decoded one level deep.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// `()`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Str(&'a str),
    /// An array.
    Array(Elements<'a>),
    /// An object.
    Object(Fields<'a>),
}

/// A position in encoded bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of a value.
    pub fn new(encoded: &'a [u8]) -> Self {
        Self { rest: encoded }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads one value, one level deep. `None` where the bytes are malformed or at an end.
    pub fn item(&mut self) -> Option<Item<'a>> {
        Some(match self.byte()? {
            tag::NULL => Item::Null,
            tag::FALSE => Item::Bool(false),
            tag::TRUE => Item::Bool(true),
            tag::INT => Item::Number(Number::Int(self.zigzag()?)),
            tag::DECIMAL => Item::Number(self.decimal()?),
            tag::FLOAT => {
                let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
                self.rest = rest;
                Item::Number(Number::Float(f64::from_be_bytes(*bytes)))
            }
            tag::STRING => Item::Str(self.name()?),
            tag::ARRAY => Item::Array(Elements(Self { rest: self.counted()? })),
            tag::OBJECT => Item::Object(Fields(Self { rest: self.counted()? })),
            _ => return None,
        })
    }

    /// Passes over one value and returns its bytes.
    pub fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.rest;
        match self.byte()? {
            tag::NULL | tag::FALSE | tag::TRUE => {}
            tag::INT => self.skip_integer()?,
            tag::DECIMAL => {
                self.byte()?;
                self.skip_integer()?;
            }
            tag::FLOAT => self.rest = self.rest.get(8..)?,
            tag::STRING | tag::ARRAY | tag::OBJECT => {
                self.counted()?;
            }
            _ => return None,
        }
        start.get(..start.len() - self.rest.len())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A length and that many bytes.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let length = match self.rest.first()? {
            short @ 0..=0x7f => {
                self.rest = self.rest.get(1..)?;
                usize::from(*short)
            }
            _ => usize::try_from(self.integer()?).ok()?,
        };
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn name(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.counted()?).ok()
    }

    fn skip_integer(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|byte| byte & 0x80 == 0)?;
        self.rest = self.rest.get(end + 1..)?;
        Some(())
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = u64::try_from(self.integer()?).ok()?;
        let half = i64::try_from(value >> 1).ok()?;
        Some(if value & 1 == 1 { -half - 1 } else { half })
    }

    fn decimal(&mut self) -> Option<Number> {
        let head = self.byte()?;
        let mantissa = i128::try_from(self.integer()?).ok()?;
        let signed = if head & tag::NEGATIVE == 0 { mantissa } else { -mantissa };
        Decimal::try_from_i128_with_scale(signed, u32::from(head & !tag::NEGATIVE)).ok().map(Number::Decimal)
    }

    fn integer(&mut self) -> Option<u128> {
        let (mut value, mut shift) = (0u128, 0u32);
        loop {
            let byte = self.byte()?;
            value |= u128::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }
}

/// An array's elements, each as its encoded bytes.
#[derive(Clone, Debug)]
pub struct Elements<'a>(Reader<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.value()
    }
}

/// An object's fields in code-point order, each with its value's encoded bytes.
#[derive(Clone, Debug)]
pub struct Fields<'a>(Reader<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<(&'a str, &'a [u8])> {
        Some((self.0.name()?, self.0.value()?))
    }
}

/// The encoded value of an object's field; `None` where there is none, or no object.
///
/// # Cost
/// O(number of fields before it), without decoding.
pub fn field<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (first, rest) = object.split_first()?;
    if *first != tag::OBJECT {
        return None;
    }
    let mut fields = Reader { rest: Reader { rest }.counted()? };
    loop {
        let found = fields.counted()?;
        let value = fields.value()?;
        if found == name.as_bytes() {
            return Some(value);
        }
    }
}

/// What follows the first value.
pub fn skip_value(encoded: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(encoded);
    reader.value()?;
    Some(reader.rest())
}

/// How deep arrays and objects are nested: 0 for a scalar.
///
/// # Cost
/// O(bytes); recursive, so bounded by the depth that was allowed when the value was encoded.
pub fn depth(encoded: &[u8]) -> usize {
    match Reader::new(encoded).item() {
        Some(Item::Array(elements)) => 1 + elements.map(depth).max().unwrap_or(0),
        Some(Item::Object(fields)) => 1 + fields.map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}
