//! Lower-casing of ids and collection names: one character at a time, by a table that is part of the format.
//!
//! Without context, so that the lower case of a prefix is a prefix of the lower case. The table is that of the pinned
//! crate; a test pins a hash of all of it, because a changed table would make stored ids unreachable.

/// The Unicode version of the table.
pub const UNICODE_VERSION: (u64, u64, u64) = unicode_case_mapping::UNICODE_VERSION;

/// Lower-cases character by character by the format's own Unicode table.
///
/// The length in bytes may change: `İ` (2 bytes) becomes `i̇` (3 bytes), `K` (Kelvin, 3 bytes) becomes `k`.
///
/// # Cost
/// O(length); text in ASCII takes no look-up in the table.
#[must_use]
pub fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut lowered = String::with_capacity(text.len() + 4);
    for character in text.chars() {
        push_lower(&mut lowered, character);
    }
    lowered
}

fn push_lower(lowered: &mut String, character: char) {
    let mapped = unicode_case_mapping::to_lowercase(character);
    if mapped == [0; 2] {
        lowered.push(character);
    } else {
        lowered.extend(mapped.into_iter().filter(|&code| code != 0).filter_map(char::from_u32));
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use siphasher::sip::SipHasher24;

    use super::*;

    #[test]
    fn the_whole_table_is_the_one_of_format_1() {
        let mut hasher = SipHasher24::new_with_key(b"treepie/lower/01");
        for character in '\0'..=char::MAX {
            let mut lowered = String::new();
            push_lower(&mut lowered, character);
            hasher.write(lowered.as_bytes());
            hasher.write_u8(0xFF);
        }
        assert_eq!(UNICODE_VERSION, (16, 0, 0));
        assert_eq!(hasher.finish(), 12_347_503_838_242_538_696, "the table changed: a new format version");
    }

    #[test]
    fn ascii_agrees_with_the_table() {
        for byte in 0..128_u8 {
            let mut by_table = String::new();
            push_lower(&mut by_table, char::from(byte));
            assert_eq!(lower(&char::from(byte).to_string()), by_table);
        }
    }

    #[test]
    fn no_context_is_looked_at() {
        assert_eq!(lower("ΟΔΟΣ"), "οδοσ");
        assert_eq!(lower("ΟΔΟΣ/"), "οδοσ/");
    }

    #[test]
    fn a_character_may_become_two() {
        assert_eq!(lower("İ"), "i\u{307}");
        assert_eq!(lower("ß"), "ß");
        assert_eq!(lower("STRASSE"), "strasse");
        assert_eq!(lower("Straße"), "straße");
        assert_eq!(lower("É"), "é");
        assert_eq!(lower("E\u{301}"), "e\u{301}");
    }

    #[test]
    fn the_lower_case_of_a_prefix_is_a_prefix_of_the_lower_case() {
        let text = "ΑΣ/İK/Straße/ǅ/😀Σ";
        for (end, _) in text.char_indices() {
            assert!(lower(text).starts_with(&lower(&text[..end])));
        }
    }
}
