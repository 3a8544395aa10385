//! Ids made of nothing: GUIDs.

/// Makes a GUID in lower case with dashes: random (version 4), or time-ordered (version 7).
#[must_use]
pub fn guid(time_ordered: bool) -> String {
    let guid = if time_ordered { uuid::Uuid::now_v7() } else { uuid::Uuid::new_v4() };
    guid.hyphenated().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_asked_for() {
        for (time_ordered, version) in [(false, '4'), (true, '7')] {
            let guid = guid(time_ordered);
            assert_eq!(guid.chars().nth(14), Some(version));
            assert_eq!(guid, guid.to_ascii_lowercase());
        }
    }
}
