//! Cuts a JSON array that arrives in pieces of any size into its elements, without reading what is in them.
//!
//! Clients keep the request open for as long as they have documents, so the end of the array, not that of the request,
//! ends an insert.

use crate::server::error::ApiError;

/// Cuts one array.
#[derive(Debug)]
pub(super) struct Elements {
    place: Place,
    /// Open braces and brackets inside the element.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// What has arrived of the element.
    element: Vec<u8>,
    bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before `[`.
    Start,
    /// After `[`.
    First,
    /// After `,`.
    Next,
    /// Inside an element.
    Inside,
    /// After an element.
    After,
    /// After `]`.
    End,
}

impl Elements {
    /// An array whose elements have at most `bytes_max` bytes each.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { place: Place::Start, depth: 0, in_string: false, escaped: false, element: Vec::new(), bytes_max }
    }

    /// Whether the array has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.place == Place::End
    }

    /// Takes the next piece and adds the elements that end in it. What comes after the array is not looked at.
    ///
    /// # Errors
    /// It is no array of objects, or an element is too long.
    pub(super) fn push(&mut self, bytes: &[u8], found: &mut Vec<Vec<u8>>) -> Result<(), ApiError> {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            match (self.place, byte) {
                (Place::Inside, _) => {
                    let taken = self.take(rest);
                    let (inside, behind) = rest.split_at(taken);
                    if self.element.len() + inside.len() > self.bytes_max {
                        let max = self.bytes_max;
                        return Err(ApiError::data(format!("An element of the array has more than {max} bytes.")));
                    }
                    self.element.extend_from_slice(inside);
                    rest = behind;
                    if self.depth == 0 {
                        found.push(std::mem::take(&mut self.element));
                        self.place = Place::After;
                    }
                    continue;
                }
                (Place::End, _) => return Ok(()),
                (_, b' ' | b'\t' | b'\r' | b'\n') => {}
                (Place::Start, b'[') => self.place = Place::First,
                (Place::First | Place::After, b']') => self.place = Place::End,
                (Place::After, b',') => self.place = Place::Next,
                (Place::First | Place::Next, b'{') => {
                    self.place = Place::Inside;
                    // The brace is taken as the element's first byte.
                    continue;
                }
                (place, other) => return Err(unexpected(place, other)),
            }
            rest = behind;
        }
        Ok(())
    }

    /// Counts the bytes of the element at the beginning of `bytes`.
    fn take(&mut self, bytes: &[u8]) -> usize {
        for (position, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return position + 1;
                    }
                }
                _ => {}
            }
        }
        bytes.len()
    }
}

fn unexpected(place: Place, byte: u8) -> ApiError {
    let wanted = match place {
        Place::Start => "the array's '['",
        Place::First => "an object or ']'",
        Place::Next => "an object",
        Place::Inside | Place::After | Place::End => "',' or ']'",
    };
    let found = char::from(byte).escape_default();
    ApiError::data(format!("The body is not an array of objects [{{…}},…]: '{found}' stands where {wanted} must."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&str]) -> Result<(Vec<String>, bool), ApiError> {
        let (mut elements, mut found) = (Elements::new(64), Vec::new());
        for piece in pieces {
            elements.push(piece.as_bytes(), &mut found)?;
        }
        let texts = found.into_iter().map(|element| String::from_utf8(element).unwrap()).collect();
        Ok((texts, elements.has_ended()))
    }

    #[test]
    fn the_pieces_may_end_anywhere() {
        let text = r#" [ {"a":"}\"]{"} ,{"b":[1,{"c":"\\"}]}, {} ] and more"#;
        let whole = cut(&[text]).unwrap();
        assert_eq!(whole.0, [r#"{"a":"}\"]{"}"#, r#"{"b":[1,{"c":"\\"}]}"#, "{}"]);
        assert!(whole.1);
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(cut(&bytes).unwrap(), whole);
        for split in 0..text.len() {
            assert_eq!(cut(&[&text[..split], &text[split..]]).unwrap(), whole, "{split}");
        }
        assert_eq!(cut(&["[]"]).unwrap(), (vec![], true));
        assert_eq!(cut(&["[{}"]).unwrap(), (vec!["{}".to_owned()], false));
    }

    #[test]
    fn what_is_no_array_of_objects_is_refused() {
        for text in ["{}", "[1]", "[{},]", "[,{}]", "[{}{}]", "[[]]", "x"] {
            assert!(cut(&[text]).unwrap_err().message().contains("array of objects"), "{text}");
        }
        assert!(cut(&[&format!("[{{\"a\":\"{}\"}}]", "x".repeat(64))]).unwrap_err().message().contains("64 bytes"));
    }
}
