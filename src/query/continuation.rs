//! Where the next page of a query begins, as a text that clients hand back.
//!
//! A token holds the place of the last row: its values in the query's order and what decides between equal ones. The next page
//! begins behind that place, whether or not the row is still there. It belongs to one query; with another it is refused.

use std::hash::Hasher;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use siphasher::sip::SipHasher24;

use super::bind::Parameters;
use super::error::QueryError;
use super::sort::{Part, Place};
use super::syntax::{Order, Query};
use super::value::Value;

#[derive(Serialize, Deserialize)]
struct Token {
    /// Of the query, its parameters and what it ran over.
    query: u64,
    key: Vec<Box<RawValue>>,
    tie: String,
}

/// What a token must belong to: the query without its page, and the parameters.
pub(crate) fn fingerprint(query: &Query, parameters: &Parameters) -> u64 {
    let query = Query { offset: None, limit: None, ..query.clone() };
    let mut text = format!("{query};");
    parameters.write_json(&mut text);
    let mut hasher = SipHasher24::new_with_key(b"treepie/page/001");
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Writes the place of a row.
///
/// # Errors
/// A value is no JSON, which no stored one is.
pub(crate) fn write(place: &Place, fingerprint: u64) -> Result<String, QueryError> {
    let broken =
        |error: serde_json::Error| QueryError::Rule(format!("the place of the last row can't be written: {error}"));
    let mut key = Vec::with_capacity(place.key.len());
    for part in &place.key {
        let mut text = String::new();
        part.value().write_json(&mut text);
        key.push(RawValue::from_string(text).map_err(broken)?);
    }
    let token = Token { query: fingerprint, key, tie: URL_SAFE_NO_PAD.encode(&place.tie) };
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).map_err(broken)?))
}

/// Reads a place.
///
/// # Errors
/// It is no token, or one of another query.
pub(crate) fn read(text: &str, fingerprint: u64, order: &[Order]) -> Result<Place, QueryError> {
    let refused = |why: &str| {
        QueryError::Rule(format!(
            "the continuation {why}; give back the one of the page before, or an empty one to begin"
        ))
    };
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused("is none"))?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|_| refused("is none"))?;
    if token.query != fingerprint || token.key.len() != order.len() {
        return Err(refused("belongs to another query, or to other parameters"));
    }
    let tie = URL_SAFE_NO_PAD.decode(&token.tie).map_err(|_| refused("is none"))?;
    let mut key = Vec::with_capacity(token.key.len());
    for (value, order) in token.key.iter().zip(order) {
        let value = Value::parse(value.get()).ok_or_else(|| refused("is none"))?.into_owned();
        key.push(if order.descending { Part::Falling(value) } else { Part::Rising(value) });
    }
    Ok(Place { key, tie })
}
