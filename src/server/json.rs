//! Answers with a JSON body: compact, with the content type that RavenDB's clients look for.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The content type of every JSON answer.
pub(crate) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// Answers with `value` as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(error) => ApiError::internal(format!("An answer could not be written as JSON: {error}")).into_response(),
    }
}

/// Answers with bytes that are JSON already.
pub(crate) fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], Body::from(bytes)).into_response()
}

/// Reads a JSON body, whatever its content type says.
///
/// # Errors
/// 400 with what was expected and the place of the fault.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::data(format!("The body is not {what}: {error}")))
}
