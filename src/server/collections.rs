//! `/collections`: how many documents each has, and its documents, newest first.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::documents::page;
use super::error::ApiError;
use super::json::{self, json};
use super::listing::{self, Framing, Selection};
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::stream;
use super::wire::stats::{CollectionStats, DetailedCollectionStats};
use crate::store::changes::Feed;
use crate::store::snapshot::{CollectionCount, DatabaseCount};

pub(crate) async fn stats(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let (total, counts) = host.blocking(move || count(&lease)).await?;
    Ok(json(StatusCode::OK, &CollectionStats::new(&total, &counts)))
}

pub(crate) async fn stats_detailed(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let (total, counts) = host.blocking(move || count(&lease)).await?;
    Ok(json(StatusCode::OK, &DetailedCollectionStats::new(&total, &counts)))
}

pub(crate) async fn documents(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let selection = Selection::Newest(Feed::Collection(query.required("name")?.to_owned()));
    let page = page(&query, query.switch("metadataOnly", false)?)?;
    stream::listing(&host, json::CONTENT_TYPE, move |sink| {
        listing::write(&lease, &selection, page, Framing::RESULTS, sink)
    })
    .await
}

fn count(lease: &Lease) -> Result<(DatabaseCount, Vec<CollectionCount>), ApiError> {
    let snapshot = lease.store().snapshot();
    Ok((snapshot.count()?, snapshot.collections()?))
}
