//! `/identity` and `/debug/identities`: numbers of identities by request, their seeds, and a list of them.
//!
//! RavenDB seeds one identity by request; a body that names many is Treepie's own.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json::{self, json};
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::wire::names::{Identities, NextIdentity, SeededIdentity, Seeds};
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

/// Sets the last number of an identity, or, by a body and without `name`, of many; lower only with `force`.
pub(crate) async fn seed(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    if query.get("name").is_none() && !payload.bytes().is_empty() {
        let seeds: Seeds = json::read(payload.bytes(), "an object with \"Identities\": {\"users|\": 5}")?;
        return seed_many(&host, lease, seeds).await;
    }
    let name = name(&query, &lease)?;
    query.required("value")?;
    let value = query.number("value")?.unwrap_or(0);
    check_number(value)?;
    let force = query.switch("force", false)?;
    let new_seed_value = host.blocking(move || Ok(lease.store().seed_identity(&name, value, force)?)).await?;
    Ok(json(StatusCode::OK, &SeededIdentity { new_seed_value }))
}

/// Checks all seeds before the first is set. Those before one that can't be stored stay set.
async fn seed_many(host: &Shared, lease: Lease, seeds: Seeds) -> Result<Response, ApiError> {
    let rules = lease.store().id_rules();
    let mut checked = Vec::with_capacity(seeds.identities.len());
    for (name, value) in seeds.identities {
        check_number(value)?;
        checked.push((IdentityName::new(&name, &rules)?, value));
    }
    let seed = move || {
        let mut seeded = BTreeMap::new();
        for (name, value) in checked {
            seeded.insert(name.key(), lease.store().seed_identity(&name, value, seeds.force)?);
        }
        Ok(seeded)
    };
    Ok(json(StatusCode::OK, &Seeds { identities: host.blocking(seed).await?, force: seeds.force }))
}

fn check_number(value: u64) -> Result<(), ApiError> {
    if value <= NUMBER_MAX {
        return Ok(());
    }
    Err(bad("value", &value.to_string(), &format!("a whole number of at most {NUMBER_MAX}")))
}

/// Lists all identities with their last numbers, in the order of their names.
pub(crate) async fn list(State(host): State<Shared>, lease: Lease) -> Result<Response, ApiError> {
    let identities = host.blocking(move || Ok(lease.store().list_identities()?)).await?;
    Ok(json(StatusCode::OK, &Identities(identities.into_iter().collect())))
}

fn name(query: &Query, lease: &Lease) -> Result<IdentityName, ApiError> {
    Ok(IdentityName::new(query.required("name")?, &lease.store().id_rules())?)
}
