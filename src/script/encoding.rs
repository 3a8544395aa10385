//! The canonical encoding of values: equal values are equal bytes, whatever they looked like.

/// The encoding of `()` and JSON null.
pub const NULL: &[u8] = &[0x01];

/// Writes an encoded value as JSON text: objects in code-point order, numbers as an integer when whole and below 10²¹.
pub fn write_json(encoded: &[u8], into: &mut String) {
    todo!()
}
