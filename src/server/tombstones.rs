//! `/admin/tombstones`: cleaning up now, and who still needs the tombstones of which collection.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
use super::json::json;
use super::registry::Lease;
use super::router::Shared;
use super::wire::index::Results;
use super::wire::tombstones::{CleanedUp, Tombstones};

/// Removes the tombstones that nobody needs; answers how many there were.
pub(crate) async fn clean_up(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let value = host.blocking(move || Ok(lease.clean_up_tombstones()?)).await?;
    Ok(json(StatusCode::OK, &CleanedUp { value }))
}

/// Shows the tombstones of each collection.
pub(crate) async fn state(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let statuses = host.blocking(move || Ok(lease.tombstones()?)).await?;
    Ok(json(StatusCode::OK, &Results::plain(statuses.into_iter().map(Tombstones::new).collect())))
}
