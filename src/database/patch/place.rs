//! JSON pointers (RFC 6901), and where in a JSON text they point to.
//!
//! A place is found by passing over the text, without a tree of values: nothing is held but positions.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A pointer, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    names: Vec<String>,
}

impl Pointer {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let rule =
            |what: &str| format!("'{}' is no JSON pointer: {what}; write '' or '/Address/City'", crate::id::cut(text));
        let names = match text.strip_prefix('/') {
            None if text.is_empty() => Vec::new(),
            None => return Err(rule("it does not begin with '/'")),
            Some(names) => names
                .split('/')
                .map(unescape)
                .collect::<Option<_>>()
                .ok_or_else(|| rule("a '~' stands for nothing ('~0' is a tilde and '~1' a slash)"))?,
        };
        Ok(Self { text: text.to_owned(), names })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// As it was written, cut for messages.
    pub(super) fn shown(&self) -> String {
        crate::id::cut(&self.text)
    }

    /// Whether it points to the whole document.
    pub(super) fn is_root(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether it points to something inside what `other` points to.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.names.len() > other.names.len() && self.names.starts_with(&other.names)
    }
}

fn unescape(name: &str) -> Option<String> {
    let mut text = String::with_capacity(name.len());
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '~' => match letters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

/// Where the value stands that a pointer points to.
///
/// # Errors
/// There is none, in words.
pub(super) fn find(text: &str, pointer: &Pointer) -> Result<Range<usize>, String> {
    if pointer.is_root() {
        return Ok(0..text.len());
    }
    Seek::parent_of(text, pointer)?.found()
}

/// An object or array, and in it the place of a name.
#[derive(Debug)]
pub(super) struct Seek<'p> {
    /// The name looked for.
    name: &'p str,
    is_array: bool,
    /// Behind the opening bracket.
    inside: usize,
    /// Its members or elements.
    count: usize,
    /// Behind the last value.
    last_end: Option<usize>,
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    value: Range<usize>,
    /// Behind the value before it; `None` where it is the first.
    before: Option<usize>,
}

impl<'p> Seek<'p> {
    /// Finds what holds, or would hold, the value that a pointer points to.
    pub(super) fn parent_of(text: &str, pointer: &'p Pointer) -> Result<Self, String> {
        let (mut names, mut range) = (pointer.names.iter().peekable(), 0..text.len());
        while let Some(name) = names.next() {
            let seek = Self::pass(text, range, name)?;
            if names.peek().is_none() {
                return Ok(seek);
            }
            range = seek.found()?;
        }
        Err("the whole document is in nothing".to_owned())
    }

    /// Passes over one object or array.
    fn pass(text: &str, range: Range<usize>, name: &'p str) -> Result<Self, String> {
        let (start, value) = (range.start, &text[range]);
        let open = start + (value.len() - value.trim_start().len());
        let is_array = match text.as_bytes().get(open) {
            Some(b'{') => false,
            Some(b'[') => true,
            _ => return Err(format!("what holds '{}' is neither an object nor an array", crate::id::cut(name))),
        };
        let index = if is_array { index(name)? } else { None };
        let mut seek = Self { name, is_array, inside: open + 1, count: 0, last_end: None, found: None };
        let base = text.as_ptr() as usize;
        let mut note = |key: Option<&str>, raw: &RawValue| {
            // A raw value is a slice of the text it was read from.
            let start = raw.get().as_ptr() as usize - base;
            let value = start..start + raw.get().len();
            if key.map_or(index == Some(seek.count), |key| key == name) {
                seek.found = Some(Found { value: value.clone(), before: seek.last_end });
            }
            (seek.count, seek.last_end) = (seek.count + 1, Some(value.end));
        };
        serde_json::Deserializer::from_str(value)
            .deserialize_any(Pass { note: &mut note })
            .map_err(|error| format!("the document can't be read: {error}"))?;
        Ok(seek)
    }

    /// Where the value stands.
    fn found(&self) -> Result<Range<usize>, String> {
        self.found.as_ref().map(|found| found.value.clone()).ok_or_else(|| self.missing())
    }

    fn missing(&self) -> String {
        let name = crate::id::cut(self.name);
        if self.is_array {
            return format!("position {name} is out of array bounds: there are {} elements", self.count);
        }
        format!("there is no '{name}'")
    }

    /// The text with a value added: set in an object, inserted into an array.
    pub(super) fn with(&self, text: &str, value: &str, bytes_max: usize) -> Result<String, String> {
        match &self.found {
            Some(Found { value: place, .. }) if self.is_array => {
                joined(&[&text[..place.start], value, ",", &text[place.start..]], bytes_max)
            }
            Some(Found { value: place, .. }) => joined(&[&text[..place.start], value, &text[place.end..]], bytes_max),
            None if self.is_array && self.name != "-" && index(self.name)? != Some(self.count) => Err(self.missing()),
            None => {
                let key =
                    if self.is_array { String::new() } else { format!("{}:", serde_json::Value::from(self.name)) };
                let (at, comma) = self.last_end.map_or((self.inside, ""), |end| (end, ","));
                joined(&[&text[..at], comma, &key, value, &text[at..]], bytes_max)
            }
        }
    }

    /// The text without the value.
    pub(super) fn without(&self, text: &str) -> Result<String, String> {
        let Some(Found { value, before }) = &self.found else { return Err(self.missing()) };
        let behind = &text[value.end..];
        Ok(match before {
            Some(before) => [&text[..*before], behind].concat(),
            None => {
                let behind = behind.trim_start();
                [&text[..self.inside], behind.strip_prefix(',').unwrap_or(behind)].concat()
            }
        })
    }
}

/// Puts pieces of a text together.
pub(super) fn joined(pieces: &[&str], bytes_max: usize) -> Result<String, String> {
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    if bytes > bytes_max {
        return Err(format!("the document would have {bytes} bytes, and {bytes_max} are allowed"));
    }
    Ok(pieces.concat())
}

/// Reads the position of an element; `None` for `-`, which is behind the last.
fn index(name: &str) -> Result<Option<usize>, String> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if name == "-" {
        return Ok(None);
    }
    if !is_number || (name.len() > 1 && name.starts_with('0')) {
        let name = crate::id::cut(name);
        return Err(format!("'{name}' is no position in an array; write 0, 1, 2, … or, to add behind the last, -"));
    }
    // More digits than a position has: it is out of bounds.
    Ok(Some(name.parse().unwrap_or(usize::MAX)))
}

/// Tells of each value of an object or array, in order.
struct Pass<'n, N> {
    note: &'n mut N,
}

impl<'de, N: FnMut(Option<&str>, &'de RawValue)> Visitor<'de> for Pass<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            let value = map.next_value()?;
            (self.note)(Some(&key), value);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(value) = elements.next_element()? {
            (self.note)(None, value);
        }
        Ok(())
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
