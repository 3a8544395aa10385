//! `DELETE /queries`: deletes the documents that a query chooses, in the background.
//!
//! What was written after the call is left. Each document is deleted only in the version that the query chose: one that
//! changes in between is asked again.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::error::ApiError;
use super::json::json;
use super::operations::{self, Running};
use super::queries;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::wire::operation::Begun;
use crate::database::{DatabaseError, Write};
use crate::query::Prepared;
use crate::store::StoreError;
use crate::store::commit::Expected;
use crate::store::document::StoredDocument;

/// Documents deleted in one commit.
const BATCH_DOCUMENTS: u64 = 1_024;

/// Begins to delete what a query asks for.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    query.refuse(&["details", "maxOpsPerSec"], "deleting by query")?;
    let allows_stale = query.switch("allowStale", false)?;
    let asked = queries::asked_in_body(&host, &headers, body).await?;
    let request = queries::request(&asked, &host)?;
    let prepare = move || {
        let prepared = lease.prepare_query(&request).and_then(Prepared::choosing_documents);
        let prepared = prepared.map_err(|error| queries::refused(error, &request.text))?;
        let index = lease.index_behind(&prepared)?;
        let standing = index.as_deref().map(|index| lease.index_standing(index)).transpose()?.flatten();
        if standing.is_some_and(|standing| standing.is_stale) && !allows_stale {
            return Err(ApiError::argument(format!(
                "Index '{}' has not taken in everything that was written, so the query might choose wrong documents; wait \
                 for it, or allow it with ?allowStale=true.",
                index.unwrap_or_default()
            )));
        }
        Ok((lease, prepared))
    };
    let (lease, prepared) = host.blocking(prepare).await?;
    let worker = Shared::clone(&host);
    let name = lease.name().to_owned();
    let id = operations::spawn(&host, &name, |running| delete(worker, Arc::new(lease), prepared, running))?;
    Ok(json(StatusCode::OK, &Begun { operation_id: id, operation_node_tag: host.node.tag.clone() }))
}

/// Deletes page by page. A page in which a document has changed meanwhile is read again, smaller.
async fn delete(host: Shared, lease: Arc<Lease>, query: Prepared, running: Arc<Running>) -> Result<u64, ApiError> {
    let through = lease.store().progress().written;
    let (mut place, mut deleted, mut size) = (String::new(), 0, BATCH_DOCUMENTS);
    let stop = lease.stop_signal();
    loop {
        if host.is_stopping() || *stop.borrow() {
            return Err(ApiError::busy(format!("The database closes; {deleted} documents were deleted before.")));
        }
        let (reader, page) = (Arc::clone(&lease), query.page(size, &place));
        let stopping = Shared::clone(&host);
        let (chosen, next) = host.blocking(move || choose(&stopping, &reader, &page, through)).await?;
        let count = chosen.len() as u64;
        if count > 0 {
            let writes =
                chosen.into_iter().map(|(id, version)| Write::Delete { id, expected: Expected::ChangeVector(version) });
            match lease.write_async(writes.collect()).await {
                Ok(_) => {}
                Err(DatabaseError::Store(StoreError::Concurrency { .. })) => {
                    size = (size / 2).max(1);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
        }
        deleted += count;
        running.advance(deleted);
        size = BATCH_DOCUMENTS;
        match next {
            Some(next) => place = next,
            None => return Ok(deleted),
        }
    }
}

/// Documents by id and version, and where the next page begins.
type Chosen = (Vec<(String, String)>, Option<String>);

/// The documents of a page.
fn choose(host: &Shared, lease: &Lease, page: &Prepared, through: u64) -> Result<Chosen, ApiError> {
    let (mut chosen, closing) = (Vec::new(), lease.stop_signal());
    let cancelled = || host.is_stopping() || *closing.borrow();
    let mut take = |document: &StoredDocument| {
        if document.etag <= through {
            chosen.push((document.id.clone(), document.change_vector.clone()));
        }
    };
    let next = page.documents(&lease.store().snapshot(), &cancelled, &mut take)?;
    Ok((chosen, next))
}
