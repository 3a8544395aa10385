//! `/indexes/progress`: how far indexes have come, once or as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::error::ApiError;
use super::host::{Host, InHand, signalled};
use super::json;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Ended, Outlet};
use super::wire::index::Results;
use super::wire::progress::Progress;

/// The time between two reports of a stream.
const REPORT_EVERY: Duration = Duration::from_millis(500);

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
        let mut found = lease.index_progress()?;
        let names: Vec<&str> = query.all("name").filter(|name| !name.is_empty()).collect();
        let is_named = |name: &str, shown: &str| crate::id::lower(name) == crate::id::lower(shown);
        if let Some(missing) = names.iter().find(|name| !found.iter().any(|it| is_named(name, &it.status.name))) {
            return Err(ApiError::no_index(missing));
        }
        found.retain(|it| names.is_empty() || names.iter().any(|name| is_named(name, &it.status.name)));
        let lines = found.into_iter().map(Progress::new).collect();
        serde_json::to_vec(&Results::plain(lines)).map_err(|error| ApiError::internal(error.to_string()))
    })
    .await
}
