//! `/indexes`: definitions come and go, as RavenDB's JSON or as one `.rhai` text.
//!
//! Several definitions in one request are taken or refused together: each is compiled before the first is put, and what
//! was put is taken back when a later one breaks a rule of the graph of indexes.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::body::{self, BodyLimit};
use super::documents::page;
use super::error::{ApiError, refused_script};
use super::index_reports::statuses;
use super::json::json;
use super::json_body::JsonBody;
use super::query::{self, Query};
use super::registry::Lease;
use super::router::Shared;
use super::wire::definition::{PutDefinition, read_definition};
use super::wire::index::{Definition, Definitions, PutIndex, Results};
use crate::database::DatabaseError;
use crate::index::definition::IndexDefinition;
use crate::index::status::LockMode;
use crate::script::{Limits, Program, Texts};

/// Puts definitions in RavenDB's JSON.
pub(crate) async fn put_definitions(
    State(host): State<Shared>,
    lease: Lease,
    JsonBody(Definitions { indexes }): JsonBody<Definitions>,
) -> Result<Response, ApiError> {
    let definitions = indexes.iter().map(read_definition).collect::<Result<Vec<_>, _>>()?;
    put_all(&host, lease, definitions).await
}

/// Puts one definition: the path's last segment is its name, the body its `.rhai` text.
pub(crate) async fn put_script(
    State(host): State<Shared>,
    lease: Lease,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let name = name_in_path(&uri)?;
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let Ok(text) = std::str::from_utf8(payload.bytes()) else {
        return Err(ApiError::data("The body is not an index script: it is not UTF-8."));
    };
    let definition = script_definition(name, text.to_owned());
    put_all(&host, lease, vec![definition.into()]).await
}

/// Lists definitions, or shows the one that is named.
pub(crate) async fn list(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let page = page(&query, false)?;
    let (name, names_only) = (query.text("name").map(str::to_owned), query.switch("namesOnly", false)?);
    host.blocking(move || {
        let mut found = statuses(&lease)?;
        if let Some(name) = name {
            found.retain(|(definition, _)| is_named(definition, &name));
            if found.is_empty() {
                return Err(ApiError::no_index(&name));
            }
        }
        let start = usize::try_from(page.start).unwrap_or(usize::MAX);
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let found = found.into_iter().skip(start).take(size);
        if names_only {
            return Ok(json(StatusCode::OK, &Results::plain(found.map(|(definition, _)| definition.name).collect())));
        }
        let definitions = found.map(|(definition, status)| Definition::new(definition, &status));
        Ok(json(StatusCode::OK, &Results::plain(definitions.collect())))
    })
    .await
}

/// Shows the definition that the path names as it was put: one script as text, all else as JSON.
pub(crate) async fn show(State(host): State<Shared>, lease: Lease, uri: Uri) -> Result<Response, ApiError> {
    let name = name_in_path(&uri)?;
    let find = move || {
        let found = statuses(&lease)?.into_iter().find(|(definition, _)| is_named(definition, &name));
        found.ok_or_else(|| ApiError::no_index(&name))
    };
    let (definition, status) = host.blocking(find).await?;
    match definition.texts.maps.as_slice() {
        [script] if definition == script_definition(definition.name.clone(), script.clone()) => {
            Ok(script.clone().into_response())
        }
        _ => Ok(json(StatusCode::OK, &Definition::new(definition, &status))),
    }
}

/// Deletes the index that the query names; of `ReplacementOf/…`, gives a change of definition up.
pub(crate) async fn delete(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let name = query.required("name")?.to_owned();
    delete_by_name(&host, lease, name, &query).await
}

/// Deletes the index that the path names.
pub(crate) async fn delete_named(
    State(host): State<Shared>,
    lease: Lease,
    uri: Uri,
    query: Query,
) -> Result<Response, ApiError> {
    delete_by_name(&host, lease, name_in_path(&uri)?, &query).await
}

/// Whether a definition has this name, without regard to case.
pub(crate) fn is_named(definition: &IndexDefinition, name: &str) -> bool {
    crate::id::lower(&definition.name) == crate::id::lower(name)
}

async fn delete_by_name(host: &Shared, lease: Lease, name: String, query: &Query) -> Result<Response, ApiError> {
    let keeps_outputs = query.switch("keepOutputs", false)?;
    let delete = move || {
        let existed = match keeps_outputs {
            true => lease.delete_index_keeping_outputs(&name),
            false => lease.delete_index(&name),
        };
        Ok(existed?)
    };
    let status = if host.blocking(delete).await? { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND };
    Ok(status.into_response())
}

async fn put_all(host: &Shared, lease: Lease, definitions: Vec<PutDefinition>) -> Result<Response, ApiError> {
    let limits = host.settings.database.script_limits.clone();
    let results = host.blocking(move || put_together(&lease, definitions, &limits)).await?;
    Ok(json(StatusCode::CREATED, &Results::plain(results)))
}

fn put_together(lease: &Lease, definitions: Vec<PutDefinition>, limits: &Limits) -> Result<Vec<PutIndex>, ApiError> {
    if definitions.len() > 1 {
        for PutDefinition { definition, .. } in &definitions {
            Program::compile(definition.texts.clone(), limits.clone())
                .map_err(|fault| refused_script(&definition.name, &fault))?;
        }
    }
    let mut results = Vec::with_capacity(definitions.len());
    let mut former = Vec::new();
    for put in definitions {
        let name = put.definition.name.clone();
        let before = lease.newest_index(&name);
        match put_one(lease, put) {
            Ok(changed) => {
                if changed {
                    former.push((name.clone(), before));
                }
                results.push(PutIndex { index: name, raft_command_index: lease.store().progress().durable, changed });
            }
            Err(error) => {
                take_back(lease, former);
                return Err(error.into());
            }
        }
    }
    Ok(results)
}

/// Puts one definition and sets what comes with it, unless the index is locked.
pub(super) fn put_one(lease: &Lease, put: PutDefinition) -> Result<bool, DatabaseError> {
    let PutDefinition { definition, lock, priority, is_disabled } = put;
    let name = definition.name.clone();
    let is_locked = lease.index_settings(&name).is_some_and(|(lock, _)| lock != LockMode::Unlock);
    let changed = lease.put_index(definition)?;
    if is_locked {
        return Ok(changed);
    }
    if is_disabled {
        lease.set_index_disabled(&name, true)?;
    }
    if let Some(priority) = priority {
        lease.set_index_priority(&name, priority)?;
    }
    if let Some(lock) = lock {
        lease.set_index_lock(&name, lock)?;
    }
    Ok(changed)
}

/// Undoes what a request that is refused has put already, the last first.
fn take_back(lease: &Lease, former: Vec<(String, Option<IndexDefinition>)>) {
    for (name, before) in former.into_iter().rev() {
        let undone = match before {
            Some(definition) => lease.put_index(definition).map(|_| ()),
            None => lease.delete_index(&name).map(|_| ()),
        };
        if let Err(error) = undone {
            tracing::error!(name: "index.undo.failed", index = %name, %error, "an index of a refused request can't be taken back");
        }
    }
}

/// The definition that is one script and nothing else.
fn script_definition(name: String, script: String) -> IndexDefinition {
    let texts = Texts { maps: vec![script], reduce: None };
    IndexDefinition { name, texts, output: None, reference_pattern: None, reference_collection: None }
}

fn name_in_path(uri: &Uri) -> Result<String, ApiError> {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    query::decode(last, false)
}
