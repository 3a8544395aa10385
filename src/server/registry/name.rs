//! What a database may be called.

use axum::http::StatusCode;

use crate::server::error::{ApiError, names};

/// The most bytes of a database's name.
const BYTES_MAX: usize = 128;

/// Checks the name of a database.
pub(super) fn check(name: &str) -> Result<(), ApiError> {
    let shown: String = name.chars().take(80).collect();
    let refused = |rule: &str| {
        Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            names::BAD_REQUEST,
            format!("'{shown}' can't name a database: {rule}."),
        ))
    };
    if name.is_empty() || name.len() > BYTES_MAX {
        return refused("a name has 1 to 128 bytes");
    }
    if name == "." || name == ".." {
        return refused("it names a directory of the file system");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')) {
        return refused("only letters A to Z, digits, '_', '-' and '.' are allowed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["a", "Demo", "my-data_1.0", ".hidden", &"x".repeat(128)] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "ü", "We*ird", &"x".repeat(129)] {
            assert_eq!(check(bad).unwrap_err().status(), StatusCode::BAD_REQUEST, "{bad}");
        }
    }
}
