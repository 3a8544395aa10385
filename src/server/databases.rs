//! `/admin/databases` and `/databases`: creating, deleting and listing databases.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::body::{self, BodyLimit};
use super::documents::page;
use super::error::{ApiError, names};
use super::json::{self, json};
use super::node;
use super::query::{Query, bad};
use super::registry::{Databases, Lease, read_names};
use super::router::Shared;
use super::wire::configuration::NameSettings;
use super::wire::database::{Created, DatabaseLine, DatabaseList, Deleted, Deletion, Record};
use super::wire::text::time_span;
use crate::access::{Caller, Level};

/// How long a deletion is waited for where the caller names no time.
const DELETION_WAIT: Duration = Duration::from_secs(15);

/// Creates a database. Settings in the record that say how RavenDB stores or indexes are accepted and mean nothing here.
pub(crate) async fn create(
    State(host): State<Shared>,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let name = query.required("name")?.to_owned();
    if query.number("replicationFactor")?.is_some_and(|factor| factor > 1) {
        return Err(ApiError::argument("The query parameter 'replicationFactor' can only be 1: there is one node."));
    }
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let mut naming = NameSettings::default();
    if !payload.bytes().is_empty() {
        let record: Value = json::read(payload.bytes(), "a database record")?;
        check_record(&record, &name)?;
        naming = naming_in(&record)?;
    }
    Databases::create(&host, &name, naming).await?;
    let url = node::url(&host, &headers);
    Ok(json(StatusCode::CREATED, &Created::new(name, &host.node.tag, url)))
}

/// Shows a database's record.
pub(crate) async fn record(State(host): State<Shared>, query: Query) -> Result<Response, ApiError> {
    let name = query.required("name")?;
    Ok(match host.databases.find(name) {
        Some((name, _)) => {
            let settings = host.databases.lease(&name).map(|lease| lease.names()).unwrap_or_default();
            json(StatusCode::OK, &Record::new(name, settings, &host.node.tag))
        }
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

/// Shows the record of the database that the path names.
pub(crate) async fn record_of(State(host): State<Shared>, lease: Lease) -> Response {
    json(StatusCode::OK, &Record::new(lease.name().to_owned(), lease.names(), &host.node.tag))
}

/// Deletes databases: all that are named exist, or none is deleted.
pub(crate) async fn delete(
    State(host): State<Shared>,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let deletion: Deletion = if payload.bytes().is_empty() {
        Deletion::of(query.all("name").map(str::to_owned).collect())
    } else {
        json::read(payload.bytes(), "an object with \"DatabaseNames\": [\"…\"]")?
    };
    if deletion.names.is_empty() {
        return Err(ApiError::argument("The body names no database: {\"DatabaseNames\":[\"…\"],\"HardDelete\":true}."));
    }
    if let Some(name) = deletion.names.iter().find(|name| host.databases.find(name).is_none()) {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            names::DATABASE_MISSING,
            format!("There is no database '{name}'; nothing was deleted."),
        ));
    }
    let wait = match deletion.wait.as_deref() {
        None => DELETION_WAIT,
        Some(text) => {
            time_span(text).ok_or_else(|| bad("TimeToWaitForConfirmation", text, "a time span such as 00:00:15"))?
        }
    };
    let mut pending = Vec::new();
    for name in deletion.names {
        let wait = wait.min(host.settings.limits.wait_max);
        if !Databases::delete(&host, &name, !deletion.hard, wait).await? {
            pending.push(name);
        }
    }
    Ok(json(StatusCode::OK, &Deleted::new(pending)))
}

/// Lists the databases that the caller may read, by name.
pub(crate) async fn list(
    State(host): State<Shared>,
    Extension(caller): Extension<Caller>,
    query: Query,
) -> Result<Response, ApiError> {
    let page = page(&query, false)?;
    let (start, size) =
        (usize::try_from(page.start).unwrap_or(usize::MAX), usize::try_from(page.size).unwrap_or(usize::MAX));
    let mut names = host.databases.names();
    names.retain(|name| caller.may(Level::Read, Some(name)));
    if let Some(name) = query.text("name") {
        names.retain(|found| found.eq_ignore_ascii_case(name));
    }
    let names = names.into_iter().skip(start).take(size);
    if query.switch("namesOnly", false)? {
        return Ok(json(StatusCode::OK, &DatabaseList { databases: names.collect::<Vec<_>>() }));
    }
    let lines = names.filter_map(|name| host.databases.find(&name));
    let lines = lines.map(|(name, error)| DatabaseLine::new(name, error, &host.node.tag));
    Ok(json(StatusCode::OK, &DatabaseList { databases: lines.collect::<Vec<_>>() }))
}

/// The settings about ids of a record. What other settings say is about RavenDB's storage and indexing.
fn naming_in(record: &Value) -> Result<NameSettings, ApiError> {
    let Some(settings) = record.get("Settings").and_then(Value::as_object) else { return Ok(NameSettings::default()) };
    let texts = settings.iter().filter_map(|(name, value)| Some((name.clone(), Some(value.as_str()?.to_owned()))));
    read_names(&texts.collect())
}

/// Refuses a record that asks for what a Treepie database can't be.
fn check_record(record: &Value, name: &str) -> Result<(), ApiError> {
    let Some(fields) = record.as_object() else {
        return Err(ApiError::data("The body is not a database record: it must be a JSON object."));
    };
    match fields.get("DatabaseName") {
        None | Some(Value::Null) => {}
        Some(Value::String(inner)) if inner.eq_ignore_ascii_case(name) => {}
        Some(other) => {
            return Err(ApiError::argument(format!(
                "The record's DatabaseName is {other}, but the query's name is '{name}'."
            )));
        }
    }
    for flag in ["Disabled", "Encrypted"] {
        if fields.get(flag) == Some(&Value::Bool(true)) {
            return Err(ApiError::unsupported(&format!("databases with \"{flag}\": true")));
        }
    }
    for part in ["Indexes", "Sharding", "Revisions", "Expiration", "Refresh", "Sorters", "Analyzers"] {
        let asked = match fields.get(part) {
            Some(Value::Object(inner)) => !inner.is_empty(),
            Some(Value::Array(inner)) => !inner.is_empty(),
            None | Some(Value::Null) => false,
            Some(_) => true,
        };
        if asked {
            return Err(ApiError::unsupported(&format!("\"{part}\" in the record of a new database")));
        }
    }
    Ok(())
}
