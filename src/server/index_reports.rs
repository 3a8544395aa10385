//! How indexes are doing: statistics, faults, whether they run, are stale, and when they will be done.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::error::ApiError;
use super::host::{Host, InHand, signalled};
use super::indexes::is_named;
use super::json::{self, json};
use super::node;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Ended, Outlet};
use super::wire::index::{IndexError, IndexErrors, IndexStats, IndexingStatus, Progress, Results, Staleness};
use super::wire::node::Metadata;
use crate::database::Database;
use crate::index::definition::IndexDefinition;
use crate::index::status::IndexStatus;

/// The time between two reports of a stream.
const REPORT_EVERY: Duration = Duration::from_millis(500);

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
    let results = results.into_iter().map(|(definition, status)| IndexStats::new(definition, status)).collect();
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

/// Reports progress once, or, to a reader of server-sent events, twice a second until it goes.
pub(crate) async fn progress(
    State(host): State<Shared>,
    Extension(held): Extension<InHand>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let wanted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (lease, query) = (Arc::new(lease), Arc::new(query));
    if !wanted.contains("text/event-stream") {
        return Ok(json::json_bytes(StatusCode::OK, report(&host, &lease, &query).await?));
    }
    let (outlet, inlet) = stream::answer(host.settings.limits.unread_max);
    tokio::spawn(async move {
        match send_reports(&host, &lease, &query, &outlet, held).await {
            Ok(()) => drop(outlet.finish(Vec::new()).await),
            Err(ended) => outlet.fail(ended).await,
        }
    });
    inlet.into_live_response(HeaderValue::from_static("text/event-stream")).await
}

async fn send_reports(
    host: &Host,
    lease: &Arc<Lease>,
    query: &Arc<Query>,
    outlet: &Outlet,
    _held: InHand,
) -> Result<(), Ended> {
    let (mut stopping, mut closing) = (host.stop_signal(), lease.stop_signal());
    loop {
        let mut event = b"data: ".to_vec();
        event.extend_from_slice(&report(host, lease, query).await?);
        event.extend_from_slice(b"\n\n");
        outlet.send(event).await?;
        tokio::select! {
            () = signalled(&mut stopping) => return Ok(()),
            () = signalled(&mut closing) => return Ok(()),
            () = outlet.closed() => return Err(Ended::Gone),
            () = tokio::time::sleep(REPORT_EVERY) => {}
        }
    }
}

async fn report(host: &Host, lease: &Arc<Lease>, query: &Arc<Query>) -> Result<Vec<u8>, ApiError> {
    let (lease, query) = (Arc::clone(lease), Arc::clone(query));
    host.blocking(move || {
        let found = named(statuses(&lease)?, &query)?.into_iter();
        let results = Results::plain(found.map(|(_, status)| Progress::new(status)).collect());
        serde_json::to_vec(&results).map_err(|error| ApiError::internal(error.to_string()))
    })
    .await
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
