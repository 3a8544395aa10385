//! `/stats`: a database at a glance.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::error::ApiError;
use super::index_reports::statuses;
use super::json::json;
use super::node;
use super::registry::Lease;
use super::router::Shared;
use super::wire::index::kind_of;
use super::wire::node::Metadata;
use super::wire::stats::{DatabaseStats, DetailedStats, Facts};

pub(crate) async fn stats(State(host): State<Shared>, lease: Lease, headers: HeaderMap) -> Result<Response, ApiError> {
    let metadata = Metadata::now(&node::url(&host, &headers), &host.node.tag);
    let tag = host.node.tag.clone();
    let stats = host.blocking(move || Ok(DatabaseStats::new(metadata, read(&lease, tag)?))).await?;
    Ok(json(StatusCode::OK, &stats))
}

pub(crate) async fn detailed(
    State(host): State<Shared>,
    lease: Lease,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let metadata = Metadata::now(&node::url(&host, &headers), &host.node.tag);
    let tag = host.node.tag.clone();
    let read = move || {
        let identities = lease.store().list_identities()?.len();
        Ok(DetailedStats::new(DatabaseStats::new(metadata, read(&lease, tag)?), identities))
    };
    Ok(json(StatusCode::OK, &host.blocking(read).await?))
}

fn read(lease: &Lease, tag: String) -> Result<Facts, ApiError> {
    let store = lease.store();
    let snapshot = store.snapshot();
    Ok(Facts {
        tag,
        incarnation: store.incarnation().to_owned(),
        progress: snapshot.progress(),
        count: snapshot.count()?,
        indexes: statuses(lease)?
            .into_iter()
            .map(|(_, status)| (kind_of(&status), status))
            .map(|(kind, status)| (status, kind))
            .collect(),
        bytes_on_disk: store.size_on_disk()?,
    })
}
