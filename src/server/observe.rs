//! Around every request: a span, the bound on requests in hand, the body of an error, and what is logged about it.
//!
//! Who must act decides the level: a fault of the server is an error, a caller's a debug line.
//!
//! Next on the walk: `error`, then `documents`.

use std::any::Any;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tracing::{Instrument, Span, field};

use super::access::{self, Peer};
use super::conditions;
use super::couch;
use super::drain;
use super::error::ApiError;
use super::json::CONTENT_TYPE;
use super::query;
use super::router::Shared;

/// The paths that answer however busy the server is.
const ALWAYS: [&str; 2] = ["/healthz", "/readyz"];

#[derive(Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "Url")]
    url: &'a str,
    #[serde(rename = "Type")]
    type_name: &'a str,
    #[serde(rename = "Message")]
    message: &'a str,
    #[serde(rename = "Error")]
    error: String,
    #[serde(flatten)]
    versions: Option<VersionsBody<'a>>,
    #[serde(flatten)]
    couch: Option<CouchBody<'a>>,
}

#[derive(Serialize)]
struct CouchBody<'a> {
    error: &'static str,
    reason: &'a str,
}

#[derive(Serialize)]
struct VersionsBody<'a> {
    #[serde(rename = "Id")]
    id: &'a str,
    #[serde(rename = "ExpectedChangeVector")]
    expected: &'a str,
    #[serde(rename = "ActualChangeVector")]
    actual: Option<&'a str>,
}

/// The middleware around every route.
pub(crate) async fn observe(State(host): State<Shared>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let uri = request.uri().clone();
    let span = tracing::info_span!(
        "http.request",
        method = %request.method(),
        route = field::Empty,
        database = field::Empty,
        status = field::Empty,
    );
    if let Some(route) = request.extensions().get::<MatchedPath>() {
        span.record("route", route.as_str());
    }
    if let Some(database) = database_of(uri.path()) {
        span.record("database", database);
    }
    let held_configuration = conditions::client_configuration(request.headers());
    let mut response = answer(&host, request, next).instrument(span.clone()).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = with_body(response, &error, &uri);
        span.in_scope(|| log_error(&error));
    }
    let present = database_of(uri.path()).and_then(|name| host.databases.configuration_etag(name));
    if let (Some(held), Some(present)) = (held_configuration, present)
        && held != present
    {
        let name = HeaderName::from_static("refresh-client-configuration");
        response.headers_mut().insert(name, HeaderValue::from_static("true"));
    }
    host.counts.answered(response.status(), begun.elapsed());
    log_end(&span, response.status(), begun);
    response
}

async fn answer(host: &Shared, request: Request, next: Next) -> Response {
    if let Err(error) = query::check(request.uri()) {
        return error.into_response();
    }
    let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
    let caller = match access::admit(host, &peer, request.method(), request.uri(), request.headers()) {
        Ok(caller) => caller,
        Err(error) => {
            drop(drain::drained(request));
            return error.into_response();
        }
    };
    if ALWAYS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let mut request = drain::drained(request);
    request.extensions_mut().insert(caller);
    match host.take_request(request.method(), request.uri().path()) {
        Ok(held) => {
            // Held here too: a handler lets go of the request's extensions before it begins.
            request.extensions_mut().insert(held.clone());
            let response = next.run(request).await;
            drop(held);
            response
        }
        Err(error) => error.into_response(),
    }
}

/// Makes the answer of a handler that panicked.
#[allow(clippy::needless_pass_by_value, reason = "the signature is that of the layer that catches panics")]
pub(crate) fn panicked(payload: Box<dyn Any + Send + 'static>) -> Response {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(name: "http.request.panicked", panic = %text, "a request made the server panic; this is a fault of Treepie");
    ApiError::internal("The server failed in a way that it should not; its log has the details.").into_response()
}

/// Gives an answer the body of its error.
pub(crate) fn with_body(response: Response, error: &ApiError, uri: &Uri) -> Response {
    let url = uri.path_and_query().map_or(uri.path(), |url| url.as_str());
    let versions = error.versions().map(|versions| VersionsBody {
        id: &versions.id,
        expected: &versions.expected,
        actual: versions.actual.as_deref(),
    });
    let (type_name, message) = (error.type_name(), error.message());
    let couch =
        couch::is_path(uri.path()).then(|| CouchBody { error: couch::error_name(error.status()), reason: message });
    let body = ErrorBody { url, type_name, message, error: error.detail(), versions, couch };
    let (mut parts, _) = response.into_parts();
    parts.headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(serde_json::to_vec(&body).unwrap_or_default()))
}

fn log_error(error: &ApiError) {
    let (status, detail) = (error.status(), error.detail());
    if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::NOT_IMPLEMENTED || !status.is_server_error() {
        tracing::debug!(name: "http.request.refused", error = %detail, "a request was refused");
    } else {
        tracing::error!(name: "http.request.failed", error = %detail, "a request failed");
    }
}

fn log_end(span: &Span, status: StatusCode, begun: Instant) {
    span.record("status", status.as_u16());
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    span.in_scope(|| {
        tracing::debug!(name: "http.request.answered", duration_micros = micros, "a request was answered");
    });
}

fn database_of(path: &str) -> Option<&str> {
    path.strip_prefix("/databases/")?.split('/').next().filter(|name| !name.is_empty())
}
