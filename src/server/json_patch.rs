//! `PATCH /json-patch`: changes parts of one document by JSON Patch (RFC 6902).
//!
//! Next on the walk: [`crate::database::JsonPatch`].

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::body::{self, BodyLimit};
use super::conditions;
use super::error::ApiError;
use super::index_wait::IndexWait;
use super::json;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::settings::ServerLimits;
use super::wire::batch::write_patch_answer;
use super::wire::patch::read_patch;
use crate::database::{JsonPatch, Write};

/// Patches a document that is there, atomically; `If-Match` expects a version.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let id = query.required("id")?.to_owned();
    query.refuse(&["test", "debug", "skipPatchIfChangeVectorMismatch"], "json-patch")?;
    let expected = conditions::expected(&headers)?;
    let wait = IndexWait::read(&query, &lease, &host.settings.limits)?;
    let limits = host.settings.limits.clone();
    let payload = body::read(&host, &headers, body, BodyLimit::request(&limits)).await?;
    let patch = host.blocking(move || check(payload.bytes(), &limits)).await?;
    let done = lease.done_async(vec![Write::Patch { id, patch, expected }]).await?;
    let Some(result) = done.committed.results.first() else {
        return Err(ApiError::internal("The commit of a patch has no result."));
    };
    if let Some(wait) = wait {
        wait.wait(&host, lease, &done.committed).await?;
    }
    Ok(json::json_bytes(StatusCode::OK, write_patch_answer(result, done.patched.get(&0))))
}

/// Reads and checks a patch.
pub(crate) fn check(json: &[u8], limits: &ServerLimits) -> Result<JsonPatch, ApiError> {
    let steps = read_patch(json).map_err(|reason| ApiError::data(format!("The patch is refused: {reason}.")))?;
    let patch = JsonPatch::new(steps).map_err(|error| ApiError::argument(format!("The patch is refused: {error}.")))?;
    Ok(patch.with_document_bytes_max(limits.document_bytes_max))
}
