//! How indexes are doing: statistics, faults, whether they run and are stale.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::error::ApiError;
use super::indexes::is_named;
use super::json::json;
use super::node;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::wire::index::{IndexError, IndexErrors, IndexStats, IndexingStatus, Results, Staleness};
use super::wire::node::Metadata;
use crate::database::Database;
use crate::index::definition::IndexDefinition;
use crate::index::status::IndexStatus;

/// Every index with its definition and status, in name order, each replacement after the index whose place it is to take. Blocking.
pub(crate) fn statuses(database: &Database) -> Result<Vec<(IndexDefinition, IndexStatus)>, ApiError> {
    Ok(database.index_overview()?)
}

pub(crate) async fn stats(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let metadata = Metadata::now(&node::url(&host, &headers), &host.node.tag);
    let results = host.blocking(move || named(statuses(&lease)?, &query)).await?;
    let results = results.into_iter().map(|(_, status)| IndexStats::new(status)).collect();
    Ok(json(StatusCode::OK, &Results { metadata: Some(metadata), results }))
}

pub(crate) async fn errors(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let metadata = Metadata::now(&node::url(&host, &headers), &host.node.tag);
    let read = move || {
        let mut results = Vec::new();
        for (definition, _) in named(statuses(&lease)?, &query)? {
            let errors = lease.index_faults(&definition.name)?.into_iter().map(IndexError::new).collect();
            results.push(IndexErrors { name: definition.name, errors });
        }
        Ok(results)
    };
    let results = host.blocking(read).await?;
    Ok(json(StatusCode::OK, &Results { metadata: Some(metadata), results }))
}

pub(crate) async fn status(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let statuses = host.blocking(move || Ok(lease.index_status()?)).await?;
    Ok(json(StatusCode::OK, &IndexingStatus::new(statuses)))
}

pub(crate) async fn staleness(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let name = query.required("name")?.to_owned();
    let found = host.blocking(move || named(statuses(&lease)?, &query)).await?;
    match found.first() {
        Some((_, status)) => Ok(json(StatusCode::OK, &Staleness::new(status))),
        None => Err(ApiError::no_index(&name)),
    }
}

/// Keeps the indexes that the query names; all where it names none.
fn named(
    found: Vec<(IndexDefinition, IndexStatus)>,
    query: &Query,
) -> Result<Vec<(IndexDefinition, IndexStatus)>, ApiError> {
    let names: Vec<&str> = query.all("name").filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Ok(found);
    }
    if let Some(missing) = names.iter().find(|name| !found.iter().any(|(definition, _)| is_named(definition, name))) {
        return Err(ApiError::no_index(missing));
    }
    Ok(found.into_iter().filter(|(definition, _)| names.iter().any(|name| is_named(definition, name))).collect())
}
