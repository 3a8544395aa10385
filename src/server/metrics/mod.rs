//! `/metrics`: what the server, its databases and their indexes are doing, for Prometheus.
//!
//! Everything is read when it is asked for; nothing is kept but the counts that `counts` holds. `figures` is how a figure
//! looks, `gather` where each comes from.
//!
//! Next on the walk: `gather`.

mod counts;
mod figures;
mod gather;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::error::ApiError;
use super::router::Shared;
pub(crate) use counts::Counts;

/// The content type of Prometheus' text, as OpenMetrics has it.
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Answers with every figure.
pub(crate) async fn metrics(State(host): State<Shared>) -> Result<Response, ApiError> {
    let worker = Shared::clone(&host);
    let text = host
        .blocking(move || {
            let mut registry = Registry::with_prefix("treepie");
            registry.register_collector(Box::new(gather::gather(&worker)));
            let mut text = String::new();
            encode(&mut text, &registry)
                .map_err(|error| ApiError::internal(format!("The metrics could not be written: {error}")))?;
            Ok(text)
        })
        .await?;
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}
