//! `/identity` and `/debug/identities`: numbers of identities by request, their seeds, and a list of them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
use super::json::json;
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::wire::names::{Identities, NextIdentity, SeededIdentity};
use crate::id::IdentityName;
use crate::id::hilo::NUMBER_MAX;

/// Takes an identity's next number; no document is written.
pub(crate) async fn next(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let name = name(&query, &lease)?;
    let numbers = host.blocking(move || Ok(lease.store().next_identities(&name, 0, 1)?)).await?;
    let Some(&new_identity_value) = numbers.first() else {
        return Err(ApiError::internal("An identity gave no number."));
    };
    Ok(json(StatusCode::OK, &NextIdentity { new_identity_value }))
}

/// Sets an identity's last number; lower only with `force`.
pub(crate) async fn seed(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let name = name(&query, &lease)?;
    query.required("value")?;
    let value = query.number("value")?.unwrap_or(0);
    if value > NUMBER_MAX {
        return Err(bad("value", &value.to_string(), &format!("a whole number of at most {NUMBER_MAX}")));
    }
    let force = query.switch("force", false)?;
    let new_seed_value = host.blocking(move || Ok(lease.store().seed_identity(&name, value, force)?)).await?;
    Ok(json(StatusCode::OK, &SeededIdentity { new_seed_value }))
}

/// Lists all identities with their last numbers, in the order of their names.
pub(crate) async fn list(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let identities = host.blocking(move || Ok(lease.store().list_identities()?)).await?;
    Ok(json(StatusCode::OK, &Identities(identities.into_iter().collect())))
}

fn name(query: &Query, lease: &Lease) -> Result<IdentityName, ApiError> {
    Ok(IdentityName::new(query.required("name")?, &lease.store().id_rules())?)
}
