//! A database at its own path, as CouchDB has it: what it holds, making and deleting one; and the list of all.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::lease::{CouchLease, missing_is_not_found};
use crate::access::{Caller, Level};
use crate::server::error::{ApiError, names};
use crate::server::json::json_bytes;
use crate::server::registry::Databases;
use crate::server::router::Shared;
use crate::server::wire::configuration::NameSettings;
use crate::server::wire::couch::{DatabaseInfo, Done};
use crate::store::changes::Feed;

/// Tells what a database holds.
pub(crate) async fn info(State(host): State<Shared>, CouchLease(lease): CouchLease) -> Result<Response, ApiError> {
    let read = move || {
        let snapshot = lease.store().snapshot();
        let (count, update_seq) = (snapshot.count()?, snapshot.progress().durable);
        let (purged, bytes) = (snapshot.purged_through(&Feed::All)?, lease.store().size_on_disk()?);
        Ok(DatabaseInfo::new(lease.name().to_owned(), &count, update_seq, purged, bytes))
    };
    line(StatusCode::OK, &host.blocking(read).await?)
}

/// Lists the names of all databases that the caller may read.
pub(crate) async fn list(
    State(host): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    let mut names = host.databases.names();
    names.retain(|name| caller.may(Level::Read, Some(name)));
    line(StatusCode::OK, &names)
}

/// Makes a database; 412 where there is one of that name.
pub(crate) async fn create(State(host): State<Shared>, Path(name): Path<String>) -> Result<Response, ApiError> {
    match Databases::create(&host, &name, NameSettings::default()).await {
        Ok(()) => line(StatusCode::CREATED, &Done::OK),
        Err(error) if error.status() == StatusCode::CONFLICT => {
            Err(ApiError::new(StatusCode::PRECONDITION_FAILED, names::CONCURRENCY, error.message()))
        }
        Err(error) => Err(error),
    }
}

/// Deletes a database with its files.
pub(crate) async fn delete(State(host): State<Shared>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let wait = host.settings.limits.wait_max;
    Databases::delete(&host, &name, false, wait).await.map_err(missing_is_not_found)?;
    line(StatusCode::OK, &Done::OK)
}

/// Answers with JSON on a line, as CouchDB does: many read its answers on a terminal.
fn line(status: StatusCode, value: &impl Serialize) -> Result<Response, ApiError> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| ApiError::internal(error.to_string()))?;
    bytes.push(b'\n');
    Ok(json_bytes(status, bytes))
}
