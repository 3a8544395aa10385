//! What can be done with an index besides putting and deleting it: building it anew, comparing a definition, and the
//! settings of RavenDB's indexes that have one value here.

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json::{self, json};
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::unsupported;
use super::wire::definition::read_definition;
use super::wire::index::HasChanged;

#[derive(Deserialize)]
struct Locks {
    #[serde(rename = "IndexNames")]
    names: Vec<String>,
    #[serde(rename = "Mode")]
    mode: String,
}

#[derive(Deserialize)]
struct Priorities {
    #[serde(rename = "IndexNames")]
    names: Vec<String>,
    #[serde(rename = "Priority")]
    priority: String,
}

/// Takes what routes by method alone can't tell: RESET is a method of RavenDB's own.
pub(crate) async fn reset(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    method: Method,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    if method.as_str() != "RESET" {
        return Err(unsupported::refusal(&method, uri.path()));
    }
    let name = query.required("name")?.to_owned();
    host.blocking(move || Ok(lease.reset_index(&name)?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Turns an index on.
pub(crate) async fn enable(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    turn(&host, lease, &query, false).await
}

/// Turns an index off, until it is turned on again.
pub(crate) async fn disable(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    turn(&host, lease, &query, true).await
}

async fn turn(host: &Shared, lease: Lease, query: &Query, is_disabled: bool) -> Result<Response, ApiError> {
    let name = query.required("name")?.to_owned();
    host.blocking(move || Ok(lease.set_index_disabled(&name, is_disabled)?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Says whether putting a definition would change something.
pub(crate) async fn has_changed(
    State(host): State<Shared>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let definition: Map<String, Value> = json::read(payload.bytes(), "an index definition")?;
    let definition = read_definition(&definition)?;
    let is_same = host.blocking(move || Ok(lease.has_index(definition)?)).await?;
    Ok(json(StatusCode::OK, &HasChanged { changed: !is_same }))
}

/// Takes the lock mode that every index has.
pub(crate) async fn set_lock(
    State(host): State<Shared>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let asked: Locks = json::read(payload.bytes(), "an object with \"IndexNames\" and \"Mode\"")?;
    check_names(&lease, &asked.names)?;
    match asked.mode.as_str() {
        "Unlock" => Ok(StatusCode::NO_CONTENT.into_response()),
        other => Err(ApiError::unsupported(&format!("the lock mode '{other}' of indexes, only Unlock"))),
    }
}

/// Takes a priority, which changes nothing: each index has a thread of its own.
pub(crate) async fn set_priority(
    State(host): State<Shared>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let asked: Priorities = json::read(payload.bytes(), "an object with \"IndexNames\" and \"Priority\"")?;
    check_names(&lease, &asked.names)?;
    match asked.priority.as_str() {
        "Low" | "Normal" | "High" => Ok(StatusCode::NO_CONTENT.into_response()),
        other => Err(ApiError::argument(format!("The priority '{other}' is none; use Low, Normal or High."))),
    }
}

fn check_names(lease: &Lease, names: &[String]) -> Result<(), ApiError> {
    match names.iter().find(|name| lease.index(name).is_none()) {
        Some(missing) => Err(ApiError::no_index(missing)),
        None => Ok(()),
    }
}
