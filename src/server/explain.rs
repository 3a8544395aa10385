//! `/explain`: why a document is what it is, and what it feeds.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::error::{ApiError, names};
use super::json::json;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::wire::explain::ExplanationBody;
use crate::index::explain::{CONTRIBUTIONS_MAX, ExplainError, Page};

/// Contributions of a page whose size nobody asked for.
const PAGE_SIZE: usize = 100;

/// Explains the document with `id`, or the group of `index` with the reduce key `key`; contributions in pages.
pub(crate) async fn run(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let size = query.count("pageSize")?.map_or(PAGE_SIZE, |size| usize::try_from(size).unwrap_or(usize::MAX));
    let page = Page { size: size.min(CONTRIBUTIONS_MAX), after: query.text("after").map(str::to_owned) };
    let index = query.text("index").map(str::to_owned);
    let (id, key) = match &index {
        Some(_) => (None, Some(query.required("key")?.to_owned())),
        None => (Some(query.required("id")?.to_owned()), None),
    };
    let explain = move || {
        let explained = match (id, index, key) {
            (Some(id), _, _) => lease.explain(&id, &page),
            (None, Some(index), Some(key)) => lease.explain_group(&index, &key, &page),
            _ => return Err(ApiError::argument("Ask for ?id=… or for ?index=…&key=….")),
        };
        Ok(json(StatusCode::OK, &ExplanationBody::new(explained?)))
    };
    host.blocking(explain).await
}

impl From<ExplainError> for ApiError {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::Store(error) => error.into(),
            ExplainError::Missing(what) => {
                Self::new(StatusCode::NOT_FOUND, names::DOCUMENT_MISSING, format!("Nothing to explain: {what}."))
            }
            ExplainError::Refused(what) => Self::argument(format!("It can't be explained: {what}.")),
        }
    }
}
