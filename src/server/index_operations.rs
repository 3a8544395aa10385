//! What can be done with an index besides putting and deleting it: pausing it, turning it off, building it anew, swapping and
//! rolling back a changed definition, its lock mode and priority, its recorded faults.

use axum::extract::{OriginalUri, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use super::json::json;
use super::json_body::JsonBody;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::unsupported;
use super::wire::definition::{lock_mode, priority, read_definition};
use super::wire::index::{DefinitionBody, HasChanged, Locks, Priorities};
use crate::database::{Database, DatabaseError};

/// Takes what routes by method alone can't tell: RESET is a method of RavenDB's own.
pub(crate) async fn reset(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    method: Method,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, ApiError> {
    if method.as_str() != "RESET" {
        return Err(unsupported::refusal(&method, uri.path()));
    }
    operate(&host, lease, &query, Database::reset_index).await
}

/// Lets one index, or all, go on.
pub(crate) async fn start(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    pause(&host, lease, &query, Database::resume_indexes).await
}

/// Pauses one index, or all.
pub(crate) async fn stop(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    pause(&host, lease, &query, Database::pause_indexes).await
}

/// Turns an index on.
pub(crate) async fn enable(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    operate(&host, lease, &query, |database, name| database.set_index_disabled(name, false)).await
}

/// Turns an index off, until it is turned on again.
pub(crate) async fn disable(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    operate(&host, lease, &query, |database, name| database.set_index_disabled(name, true)).await
}

/// Has a changed definition take over now.
pub(crate) async fn replace(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    operate(&host, lease, &query, Database::swap_index).await
}

/// Goes back to the definition before the present one.
pub(crate) async fn roll_back(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    operate(&host, lease, &query, |database, name| database.roll_back_index(name).map(|_| ())).await
}

/// Forgets the recorded faults of the indexes that the query names; of all, where it names none.
pub(crate) async fn clear_errors(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let names: Vec<String> = query.all("name").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let clear = move || {
        if let Some(missing) = names.iter().find(|name| lease.index(name).is_none()) {
            return Err(ApiError::no_index(missing));
        }
        let all = || lease.index_status().map(|all| all.into_iter().map(|status| status.name).collect());
        let names = if names.is_empty() { all()? } else { names };
        for name in names {
            match lease.clear_index_faults(&name) {
                // It was deleted meanwhile, or its script is refused: what says so is no record of a run.
                Ok(()) | Err(DatabaseError::NoIndex { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    host.blocking(clear).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Says whether putting a definition would change something.
pub(crate) async fn has_changed(
    State(host): State<Shared>,
    lease: Lease,
    JsonBody(DefinitionBody(fields)): JsonBody<DefinitionBody>,
) -> Result<Response, ApiError> {
    let put = read_definition(&fields)?;
    let changed = move || {
        let present = lease.index_settings(&put.definition.name);
        let differs = present.is_some_and(|(lock, priority)| {
            put.lock.is_some_and(|wanted| wanted != lock) || put.priority.is_some_and(|wanted| wanted != priority)
        });
        Ok(differs || !lease.has_index(put.definition)?)
    };
    Ok(json(StatusCode::OK, &HasChanged { changed: host.blocking(changed).await? }))
}

/// Sets the lock mode of indexes.
pub(crate) async fn set_lock(
    State(host): State<Shared>,
    lease: Lease,
    JsonBody(Locks { names, mode }): JsonBody<Locks>,
) -> Result<Response, ApiError> {
    let lock = lock_mode(&mode).ok_or_else(|| {
        ApiError::argument(format!("The lock mode '{mode}' is none; use Unlock, LockedIgnore or LockedError."))
    })?;
    set_all(&host, lease, names, move |database, name| database.set_index_lock(name, lock)).await
}

/// Sets the priority of indexes.
pub(crate) async fn set_priority(
    State(host): State<Shared>,
    lease: Lease,
    JsonBody(Priorities { names, priority: asked }): JsonBody<Priorities>,
) -> Result<Response, ApiError> {
    let priority = priority(&asked)
        .ok_or_else(|| ApiError::argument(format!("The priority '{asked}' is none; use Low, Normal or High.")))?;
    set_all(&host, lease, names, move |database, name| database.set_index_priority(name, priority)).await
}

/// Does something with the index that the query names.
async fn operate(
    host: &Shared,
    lease: Lease,
    query: &Query,
    operation: impl FnOnce(&Database, &str) -> Result<(), DatabaseError> + Send + 'static,
) -> Result<Response, ApiError> {
    let name = query.required("name")?.to_owned();
    host.blocking(move || Ok(operation(&lease, &name)?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn pause(
    host: &Shared,
    lease: Lease,
    query: &Query,
    operation: fn(&Database, Option<&str>) -> Result<(), DatabaseError>,
) -> Result<Response, ApiError> {
    let name = query.text("name").map(str::to_owned);
    host.blocking(move || Ok(operation(&lease, name.as_deref())?)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Sets something of several indexes, if all of them exist.
async fn set_all(
    host: &Shared,
    lease: Lease,
    names: Vec<String>,
    set: impl Fn(&Database, &str) -> Result<(), DatabaseError> + Send + 'static,
) -> Result<Response, ApiError> {
    let set_all = move || {
        if let Some(missing) = names.iter().find(|name| lease.index(name).is_none()) {
            return Err(ApiError::no_index(missing));
        }
        names.iter().try_for_each(|name| Ok(set(&lease, name)?))
    };
    host.blocking(set_all).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
