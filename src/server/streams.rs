//! `/streams/docs`: lists of documents without an end in memory, one document a line or as one JSON object.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;

use super::documents::{page, select};
use super::error::ApiError;
use super::json;
use super::listing::{self, Framing};
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::stream;

/// Streams documents by prefix in id order, or newest first.
pub(crate) async fn documents(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    query.refuse(&["include"], "a stream of documents")?;
    let (framing, content_type) = match query.text("format").unwrap_or("json") {
        "json" => (Framing::RESULTS, json::CONTENT_TYPE),
        "jsonl" => (Framing::LINES, HeaderValue::from_static("application/x-ndjson; charset=utf-8")),
        other => return Err(bad("format", other, "json or jsonl")),
    };
    let page = page(&query, query.switch("metadataOnly", false)?)?;
    let selection = select(&query)?;
    stream::listing(&host, content_type, move |sink| listing::write(&lease, &selection, page, framing, sink)).await
}
