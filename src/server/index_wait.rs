//! Waiting until indexes have taken in what a request wrote: `waitForIndexesTimeout` and its companions.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;

use super::error::{ApiError, names as error_names};
use super::host::{Host, signalled};
use super::query::Query;
use super::registry::Lease;
use super::settings::ServerLimits;
use crate::database::DatabaseError;
use crate::id;
use crate::index::status::IndexState;
use crate::store::StoreError;
use crate::store::commit::Committed;

/// What a request waits for after it has written.
#[derive(Debug)]
pub(crate) struct IndexWait {
    timeout: Duration,
    /// Whether it is an error that indexes are still stale in the end.
    throw: bool,
    /// `None`: those that the request's writes concern.
    names: Option<Vec<String>>,
}

impl IndexWait {
    /// Reads the parameters; `None` where the caller does not wait.
    ///
    /// # Errors
    /// A malformed value; 404 for an index that is not there, before anything is written.
    pub(crate) fn read(query: &Query, lease: &Lease, limits: &ServerLimits) -> Result<Option<Self>, ApiError> {
        let Some(timeout) = query.time_span("waitForIndexesTimeout")? else { return Ok(None) };
        let throw = query.switch("waitForIndexThrow", true)?;
        let names = query.all("waitForSpecificIndex").filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        if let Some(missing) = names.iter().find(|name| lease.index(name).is_none()) {
            return Err(ApiError::no_index(missing));
        }
        Ok(Some(Self { timeout: timeout.min(limits.wait_max), throw, names: Some(names).filter(|it| !it.is_empty()) }))
    }

    /// Waits until what `committed` wrote is taken in. A request that wrote nothing waits for all that was written before it, and until
    /// definitions that are changing have taken over.
    ///
    /// # Errors
    /// A time-out that says what is stored and which indexes are stale.
    pub(crate) async fn wait(self, host: &Host, lease: Lease, committed: &Committed) -> Result<(), ApiError> {
        let (mut stopping, mut closing) = (host.stop_signal(), lease.stop_signal());
        let lease = Arc::new(lease);
        let outcome = tokio::select! {
            outcome = self.wait_for_those(host, &lease, committed) => outcome,
            () = signalled(&mut stopping) => return Err(given_up("The server stops")),
            () = signalled(&mut closing) => return Err(given_up("The database closes")),
        };
        match outcome {
            Err(DatabaseError::StillStale { .. }) if !self.throw => Ok(()),
            Ok(()) if self.throw => self.check_those_named(host, lease).await,
            outcome => Ok(outcome?),
        }
    }

    async fn wait_for_those(
        &self,
        host: &Host,
        lease: &Arc<Lease>,
        committed: &Committed,
    ) -> Result<(), DatabaseError> {
        if let Some(names) = self.names.clone() {
            return lease.wait_for_results_of(names, self.timeout).await;
        }
        if committed.results.is_empty() {
            return lease.wait_for_indexes_async(None, self.timeout).await;
        }
        let (reader, committed) = (Arc::clone(lease), committed.clone());
        let touched = host.blocking(move || Ok(reader.indexes_touched_by(&committed))).await;
        let touched = touched.unwrap_or_else(|_| Err(StoreError::Closed("the server stops".to_owned()).into()))?;
        lease.wait_for_results_of_only(touched, self.timeout).await
    }

    /// An index that does not run is waited for by nobody; one that was asked for by name must be current all the same.
    async fn check_those_named(self, host: &Host, lease: Arc<Lease>) -> Result<(), ApiError> {
        let Some(names) = self.names else { return Ok(()) };
        let names: Vec<String> = names.iter().map(|name| id::lower(name)).collect();
        let statuses = host.blocking(move || Ok(lease.index_status()?)).await?;
        let behind = statuses.into_iter().find(|status| {
            status.state != IndexState::Normal && status.stale && names.contains(&id::lower(&status.name))
        });
        match behind {
            None => Ok(()),
            Some(status) => Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                error_names::TIMEOUT,
                format!(
                    "Index '{}' does not run (it is {:?}), so it does not take in what the request wrote, which is stored.",
                    status.name, status.state
                ),
            )),
        }
    }
}

fn given_up(why: &str) -> ApiError {
    let message = format!("{why}, so indexes are no longer waited for. What the request wrote is stored.");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error_names::TIMEOUT, message)
}
