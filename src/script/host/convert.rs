//! Encoding what scripts give back: any value of theirs to canonical bytes, within limits.

use rhai::{Dynamic, ImmutableString};

use super::super::encoding::{self, JsonError, Nest};
use super::super::json;
use super::super::number::Number;
use super::cell::{Cell, type_name, with_cell};
use super::decode::value_number;
use super::{List, Object};

/// What bounds one encoded value.
#[derive(Clone, Copy, Debug)]
pub(in crate::script) struct Bounds {
    /// Bytes, and the limit's name.
    pub(in crate::script) bytes: (usize, &'static str),
    /// Nesting.
    pub(in crate::script) depth: usize,
}

/// Why a value has no encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::script) enum EncodeError {
    #[error("a {0} cannot be stored")]
    Type(&'static str),
    #[error("is larger than {0} bytes ({1})")]
    Bytes(usize, &'static str),
    #[error("is nested deeper than {0} (depth_max)")]
    Depth(usize),
    #[error("{0}")]
    Json(JsonError),
}

type Result = std::result::Result<(), EncodeError>;

/// Encodes a value.
pub(in crate::script) fn encode(value: &Dynamic, bounds: Bounds, into: &mut Vec<u8>) -> Result {
    let mut encoder = Encoder { start: into.len(), into, bounds };
    encoder.value(value, bounds.depth)
}

struct Encoder<'a> {
    start: usize,
    into: &'a mut Vec<u8>,
    bounds: Bounds,
}

impl Encoder<'_> {
    /// The size so far, plus what is about to be written, is within bounds.
    fn check(&self, more: usize) -> Result {
        let (max, name) = self.bounds.bytes;
        if self.into.len() - self.start + more > max { Err(EncodeError::Bytes(max, name)) } else { Ok(()) }
    }

    fn deeper(&self, depth: usize) -> std::result::Result<usize, EncodeError> {
        depth.checked_sub(1).ok_or(EncodeError::Depth(self.bounds.depth))
    }

    fn value(&mut self, value: &Dynamic, depth: usize) -> Result {
        if let Ok(int) = value.as_int() {
            encoding::write_number(Number::Int(int), self.into);
        } else if let Some(text) = value.read_lock::<ImmutableString>() {
            self.check(text.len())?;
            encoding::write_string(&text, self.into);
        } else if value.is_unit() {
            encoding::write_null(self.into);
        } else if let Ok(decimal) = value.as_decimal() {
            encoding::write_number(Number::from_decimal(decimal), self.into);
        } else if let Ok(truth) = value.as_bool() {
            encoding::write_bool(truth, self.into);
        } else if value.is_map() || value.is::<Object>() {
            return with_cell(value, |cell| self.object(cell, depth));
        } else if let Ok(array) = value.as_array_ref() {
            let depth = self.deeper(depth)?;
            let nest = Nest::array(self.into);
            for element in array.iter() {
                self.value(element, depth)?;
            }
            nest.end(self.into);
        } else if let Some(list) = value.read_lock::<List>() {
            let depth = self.deeper(depth)?;
            let nest = Nest::array(self.into);
            for element in list.cells() {
                self.cell(element, depth)?;
            }
            nest.end(self.into);
        } else if let Ok(c) = value.as_char() {
            encoding::write_string(c.encode_utf8(&mut [0; 4]), self.into);
        } else if let Some(number) = value_number(value) {
            encoding::write_number(number, self.into);
        } else {
            return Err(EncodeError::Type(type_name(value)));
        }
        self.check(0)
    }

    fn object(&mut self, cell: Cell<'_>, depth: usize) -> Result {
        match cell {
            Cell::Value(value) => match value.as_map_ref() {
                Ok(map) => self.object(Cell::Map(&map), depth),
                Err(_) => Err(EncodeError::Type(type_name(value))),
            },
            Cell::Map(map) => {
                let depth = self.deeper(depth)?;
                let nest = Nest::object(self.into);
                for (name, value) in map {
                    self.check(name.len())?;
                    encoding::write_name(name, self.into);
                    self.value(value, depth)?;
                }
                nest.end(self.into);
                self.check(0)
            }
            Cell::Fields { text, fields } => {
                let depth = self.deeper(depth)?;
                let mut sorted = std::collections::BTreeMap::new();
                for field in fields {
                    let name = json::unescape(field.name.of(text)).ok_or(EncodeError::Json(JsonError::Malformed))?;
                    sorted.insert(name, field.value);
                }
                let nest = Nest::object(self.into);
                for (name, value) in sorted {
                    encoding::write_name(&name, self.into);
                    self.cell(Cell::Json(value.of(text)), depth)?;
                }
                nest.end(self.into);
                self.check(0)
            }
            other => self.cell(other, depth),
        }
    }

    fn cell(&mut self, cell: Cell<'_>, depth: usize) -> Result {
        match cell {
            Cell::Encoded(bytes) => {
                self.check(bytes.len())?;
                if encoding::depth(bytes) > depth {
                    return Err(EncodeError::Depth(self.bounds.depth));
                }
                self.into.extend_from_slice(bytes);
            }
            Cell::Json(text) => {
                // No value encodes to less than an eighth of its text, space aside: refuse before any work is done.
                self.check(text.len() / 8)?;
                encoding::encode_json(text, depth, self.into).map_err(|error| match error {
                    JsonError::Depth => EncodeError::Depth(self.bounds.depth),
                    other => EncodeError::Json(other),
                })?;
            }
            Cell::Missing => encoding::write_null(self.into),
            Cell::Value(value) => return self.value(value, depth),
            Cell::Fields { .. } | Cell::Map(_) => return self.object(cell, depth),
        }
        self.check(0)
    }
}
