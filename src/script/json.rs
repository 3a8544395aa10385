//! Finding one's way in JSON text that was checked when it was stored: where fields and elements begin and end.
//!
//! Nothing is decoded that a script does not touch. Text that is not JSON after all gives `None`, never a panic.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A stretch of a text, in bytes. Texts are below 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
    }

    /// The stretch itself.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }

    /// The stretch, counted from `base` in a longer text.
    pub(super) fn moved(self, base: u32) -> Self {
        Self { start: self.start.saturating_add(base), end: self.end.saturating_add(base) }
    }
}

/// A field of an object: its name with quotes, its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: Span,
    pub(crate) value: Span,
}

/// What a value is, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number,
    String,
    Array,
    Object,
}

/// The kind of a value without space around it.
pub(crate) fn kind(text: &str) -> Option<Kind> {
    Some(match text.as_bytes().first()? {
        b'n' => Kind::Null,
        b't' => Kind::Bool(true),
        b'f' => Kind::Bool(false),
        b'"' => Kind::String,
        b'[' => Kind::Array,
        b'{' => Kind::Object,
        b'-' | b'0'..=b'9' => Kind::Number,
        _ => return None,
    })
}

/// JSON's white space.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// The fields of an object, in the order of the text.
///
/// # Cost
/// O(length of the text), once; values are passed over, not decoded.
pub(crate) fn fields(text: &str) -> Option<Vec<Field>> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    let mut fields = Vec::with_capacity(16);
    scan.expect(b'{')?;
    if scan.next_is(b'}') {
        return Some(fields);
    }
    loop {
        scan.space();
        let start = scan.at;
        scan.string()?;
        let name = Span::new(start, scan.at)?;
        scan.expect(b':')?;
        fields.push(Field { name, value: scan.value()? });
        if scan.next_is(b'}') {
            return Some(fields);
        }
        scan.expect(b',')?;
    }
}

/// The value of an object's field, by the name without escapes.
///
/// # Cost
/// O(length of the text up to the field); no memory unless a name has escapes.
pub(crate) fn field<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    scan.expect(b'{')?;
    if scan.next_is(b'}') {
        return None;
    }
    loop {
        scan.space();
        let start = scan.at;
        scan.string()?;
        let literal = text.get(start..scan.at)?;
        scan.expect(b':')?;
        let name = literal.get(1..literal.len() - 1)?;
        let is_wanted =
            name == wanted || (name.contains('\\') && unescape(literal).is_some_and(|unescaped| unescaped == wanted));
        let value = scan.value()?;
        if is_wanted {
            return Some(value.of(text));
        }
        scan.expect(b',')?;
    }
}

/// The elements of an array.
///
/// # Cost
/// O(length of the text), once.
pub(crate) fn elements(text: &str) -> Option<Vec<Span>> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    let mut elements = Vec::new();
    scan.expect(b'[')?;
    if scan.next_is(b']') {
        return Some(elements);
    }
    loop {
        elements.push(scan.value()?);
        if scan.next_is(b']') {
            return Some(elements);
        }
        scan.expect(b',')?;
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.next_is(byte).then_some(())
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Passes over a string, quotes included.
    fn string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Passes over a value, without recursion.
    fn value(&mut self) -> Option<Span> {
        self.space();
        let start = self.at;
        match self.peek()? {
            b'"' => self.string()?,
            b'{' | b'[' => self.nested()?,
            _ => self.scalar(),
        }
        (self.at > start).then_some(())?;
        Span::new(start, self.at)
    }

    fn scalar(&mut self) {
        while let Some(byte) = self.peek()
            && !matches!(byte, b',' | b']' | b'}' | b':' | b'"' | b' ' | b'\t' | b'\n' | b'\r')
        {
            self.at += 1;
        }
    }

    fn nested(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// The string that a literal (with its quotes) means.
pub(crate) fn unescape(literal: &str) -> Option<Cow<'_, str>> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let (c, after) = escaped(escape.get(1..)?)?;
        text.push(c);
        rest = after;
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// The character that an escape (behind its backslash) means, and what follows it.
fn escaped(escape: &str) -> Option<(char, &str)> {
    let rest = escape.get(1..)?;
    let c = match escape.as_bytes().first()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            let high = u32::from_str_radix(rest.get(..4)?, 16).ok()?;
            let rest = rest.get(4..)?;
            if !(0xd800..0xdc00).contains(&high) {
                return Some((char::from_u32(high)?, rest));
            }
            let low = u32::from_str_radix(rest.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
            let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            return Some((char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)?, rest.get(6..)?));
        }
        b'"' | b'\\' | b'/' => char::from(*escape.as_bytes().first()?),
        _ => return None,
    };
    Some((c, rest))
}

/// Writes a string literal. Only what JSON demands is escaped.
pub(crate) fn write_string(value: &str, into: &mut String) {
    into.push('"');
    let mut plain = 0;
    for (i, byte) in value.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        into.push_str(value.get(plain..i).unwrap_or(""));
        if escape.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(into, "\\u{byte:04x}");
        } else {
            into.push_str(escape);
        }
        plain = i + 1;
    }
    into.push_str(value.get(plain..).unwrap_or(""));
    into.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_what_json_says() {
        let text = r#""a\n\u00e9\ud83d\ude00\/\\\"\u0000""#;
        assert_eq!(unescape(text).unwrap(), "a\né😀/\\\"\0");
        for broken in ["\"\\ud83d\"", "\"\\x\"", "\"\\", "x"] {
            assert!(unescape(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn strings_come_back_as_they_went() {
        for value in ["", "a😀b", "\0\u{1f}\"\\/\n", "e\u{301}"] {
            let mut text = String::new();
            write_string(value, &mut text);
            assert_eq!(unescape(&text).unwrap(), value);
            assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
        }
    }

    #[test]
    fn spans_cover_exactly_the_values() {
        let text = r#" { "a" : [1, {"x":"}]"}] ,"b":-1.5e3,"c":"q\"," } "#;
        let found: Vec<_> = fields(text).unwrap().iter().map(|f| (f.name.of(text), f.value.of(text))).collect();
        assert_eq!(found, [("\"a\"", r#"[1, {"x":"}]"}]"#), ("\"b\"", "-1.5e3"), ("\"c\"", r#""q\",""#)]);
        let text = "[1, [2,3] ,\"]\" ]";
        let found: Vec<_> = elements(text).unwrap().iter().map(|s| s.of(text)).collect();
        assert_eq!(found, ["1", "[2,3]", "\"]\""]);
    }

    #[test]
    fn broken_text_is_no_value() {
        for text in ["", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{a:1}", "[1", "[,]", "{\"a\":}"] {
            assert!(fields(text).is_none() && elements(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_text_needs_no_stack() {
        let text = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(elements(&text).unwrap().len(), 1);
    }
}
