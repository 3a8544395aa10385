//! API keys, and digests: what is kept instead of what opens the door.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A new API key. It is shown once; the server keeps its digest.
pub struct ApiKey(String);

impl ApiKey {
    /// Makes a key of 256 random bits.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new() -> Result<Self, std::io::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(format!("treepie_{}", URL_SAFE_NO_PAD.encode(secret))))
    }

    /// The key itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the server keeps.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

/// Shows nothing of the key.
impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// A SHA-256 digest, written in hex.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Digests bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut bytes = [0; 32];
        let pairs = text.as_bytes().chunks(2);
        let is_whole = text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_whole {
            return Err(format!("'{}' is no SHA-256 digest in hex", crate::id::cut(&text)));
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let pair = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).map_err(|error| error.to_string())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_and_read_alike() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(Digest::try_from(text.to_owned()), Ok(digest));
        for text in ["", "ba78", "é", &"zz".repeat(32), &"é".repeat(32)] {
            assert!(Digest::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_differ_and_do_not_show_themselves() {
        let (a, b) = (ApiKey::new().unwrap(), ApiKey::new().unwrap());
        assert_ne!(a.expose(), b.expose());
        assert!(!format!("{a:?}").contains(a.expose()));
    }
}
