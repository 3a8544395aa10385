//! `DELETE /queries`: deletes the documents of a collection, in the background.
//!
//! A query is `from 'Orders'` or `from @all_docs` and nothing more: what would choose among the documents is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json::{self, json};
use super::operations::{self, Running};
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::unsupported;
use super::wire::operation::Begun;
use crate::database::Write;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::commit::Expected;
use crate::store::scan::Direction;

/// Documents deleted in one commit.
const BATCH_DOCUMENTS: usize = 1_024;
/// Feed rows read at once.
const BATCH_CHANGES: usize = 8_192;

#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "Query")]
    query: String,
    #[serde(rename = "QueryParameters")]
    #[allow(dead_code, reason = "read so that its shape is checked; a query without conditions uses none")]
    parameters: Option<BTreeMap<String, Value>>,
}

/// Begins to delete what a query asks for.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    query.refuse(&["details", "maxOpsPerSec"], "deleting by query")?;
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let asked: Asked = json::read(payload.bytes(), "an object with \"Query\": \"from 'Orders'\"")?;
    let feed = read_query(&asked.query)?;
    let worker = Shared::clone(&host);
    let name = lease.name().to_owned();
    let id = operations::spawn(&host, &name, |running| delete(worker, Arc::new(lease), feed, running))?;
    Ok(json(StatusCode::OK, &Begun { operation_id: id, operation_node_tag: host.node.tag.clone() }))
}

/// Refuses queries, patches by query, and whatever else the path has, by name.
pub(crate) async fn refuse(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    unsupported::refusal(&method, uri.path())
}

/// Deletes what the feed has now; what is written after is left.
async fn delete(host: Shared, lease: Arc<Lease>, feed: Feed, running: Arc<Running>) -> Result<u64, ApiError> {
    let through = lease.store().progress().written;
    let (mut after, mut deleted) = (0, 0);
    let stop = lease.stop_signal();
    while after < through {
        if host.is_stopping() || *stop.borrow() {
            return Err(ApiError::busy(format!("The database closes; {deleted} documents were deleted before.")));
        }
        let (reader, feed) = (Arc::clone(&lease), feed.clone());
        let (ids, reached) = host.blocking(move || read_ids(&reader, &feed, after, through)).await?;
        after = reached;
        if ids.is_empty() {
            continue;
        }
        let count = ids.len() as u64;
        let writes = ids.into_iter().map(|id| Write::Delete { id, expected: Expected::Any });
        lease.write_async(writes.collect()).await?;
        deleted += count;
        running.advance(deleted);
    }
    Ok(deleted)
}

/// The ids of the next documents, and the etag through which they were looked for.
fn read_ids(lease: &Lease, feed: &Feed, after: u64, through: u64) -> Result<(Vec<String>, u64), ApiError> {
    let snapshot = lease.store().snapshot();
    let mut ids = Vec::new();
    for (position, change) in snapshot.changes(feed, after, through, Direction::Forward).enumerate() {
        let change = change?;
        if change.kind == ChangeKind::Put {
            ids.push(change.id);
        }
        if ids.len() >= BATCH_DOCUMENTS || position + 1 >= BATCH_CHANGES {
            return Ok((ids, change.etag));
        }
    }
    Ok((ids, through))
}

/// Reads `from Orders`, `from 'Orders'`, `from "Orders" as o` and `from @all_docs`.
fn read_query(text: &str) -> Result<Feed, ApiError> {
    let unsupported = || {
        let shown: String = text.chars().take(200).collect();
        ApiError::unsupported(&format!(
            "deleting by the query '{shown}', only by a whole collection (from 'Orders') or all documents (from @all_docs)"
        ))
    };
    let text = text.trim();
    let rest = match text.get(..4) {
        Some(word) if word.eq_ignore_ascii_case("from") => text.get(4..).unwrap_or_default(),
        _ => return Err(unsupported()),
    };
    let name = rest.trim_start();
    if name.len() == rest.len() && !name.starts_with(['\'', '"']) {
        return Err(unsupported());
    }
    let (name, rest) = match name.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let inside = name.get(1..).unwrap_or_default();
            inside.split_once(quote).ok_or_else(unsupported)?
        }
        _ => name.split_once(char::is_whitespace).unwrap_or((name, "")),
    };
    let is_alias = match rest.split_whitespace().collect::<Vec<_>>().as_slice() {
        [] => true,
        [word, alias] => word.eq_ignore_ascii_case("as") && alias.chars().all(|it| it.is_alphanumeric() || it == '_'),
        _ => false,
    };
    if name.is_empty() || name.contains(['\\', '(', ';']) || !is_alias || name.eq_ignore_ascii_case("index") {
        return Err(unsupported());
    }
    Ok(if name.eq_ignore_ascii_case("@all_docs") { Feed::All } else { Feed::Collection(name.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_collection_or_all_documents_can_be_named() {
        for text in ["from Orders", "from 'Orders'", "FROM \"Orders\" as o", " from Orders as x_1 ", "from'Orders'"] {
            assert!(matches!(read_query(text), Ok(Feed::Collection(name)) if name == "Orders"), "{text}");
        }
        assert!(matches!(read_query("from @all_docs"), Ok(Feed::All)));
        assert!(matches!(read_query("from 'Big Orders'"), Ok(Feed::Collection(name)) if name == "Big Orders"));
    }

    #[test]
    fn what_chooses_among_documents_is_refused() {
        for text in [
            "",
            "from",
            "fromOrders",
            "from Orders where x = 1",
            "from index 'Orders/Totals'",
            "from 'Orders",
            "from Orders update { }",
            "from Orders limit 5",
            "from Orders as o where o.x",
            "declare function f() {} from Orders",
        ] {
            assert_eq!(read_query(text).unwrap_err().status().as_u16(), 501, "{text}");
        }
    }
}
