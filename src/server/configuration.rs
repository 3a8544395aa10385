//! `/configuration/client`: what clients are told about separators and limits, by the server and by each database; and a
//! database's settings about ids.
//!
//! Next on the walk: `registry::naming`, which puts them together.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json::{self, json};
use super::registry::{Lease, read_names};
use super::router::Shared;
use super::wire::configuration::{ClientConfiguration, ClientSettings, Configuration};

/// Tells clients of a database the configuration that holds for it.
pub(crate) async fn client(State(host): State<Shared>, lease: Lease) -> Response {
    let (settings, etag) = host.databases.client_configuration(&lease);
    json(StatusCode::OK, &ClientConfiguration::new(settings.as_ref(), etag))
}

/// Puts a database's own configuration of clients.
pub(crate) async fn put_client(
    State(host): State<Shared>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let settings = read(&host, &headers, body).await?;
    let worker = Shared::clone(&host);
    host.blocking(move || worker.databases.put_client(&lease, &settings)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Shows the server-wide configuration of clients.
pub(crate) async fn server_wide(State(host): State<Shared>) -> Response {
    let present = host.databases.server_wide();
    match present.settings {
        Some(settings) => json(StatusCode::OK, &Configuration::new(&settings, present.etag)),
        None => json(StatusCode::OK, &None::<Configuration>),
    }
}

/// Puts the server-wide configuration of clients.
pub(crate) async fn put_server_wide(
    State(host): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let settings = read(&host, &headers, body).await?;
    let worker = Shared::clone(&host);
    host.blocking(move || worker.databases.put_server_wide(&worker.settings.data, settings)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Shows a database's settings about ids.
pub(crate) async fn settings(lease: Lease) -> Response {
    json(StatusCode::OK, &lease.names())
}

/// Puts a database's settings about ids; one that is not named has its default again.
pub(crate) async fn put_settings(
    State(host): State<Shared>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let all: BTreeMap<String, Option<String>> =
        json::read(payload.bytes(), "an object of settings, {\"guid\":\"v7\"}")?;
    let names = read_names(&all)?;
    let worker = Shared::clone(&host);
    host.blocking(move || worker.databases.put_names(&lease, &names)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn read(host: &Shared, headers: &HeaderMap, body: Body) -> Result<ClientSettings, ApiError> {
    let payload = body::read(host, headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let what = "a client configuration, {\"IdentityPartsSeparator\":\"-\"}";
    // By way of an object: an array would be read as the fields in their order.
    let fields: Map<String, Value> = json::read(payload.bytes(), what)?;
    ClientSettings::deserialize(Value::Object(fields))
        .map_err(|error| ApiError::data(format!("The body is not {what}: {error}")))
}
