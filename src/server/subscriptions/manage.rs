//! `/subscriptions`: creating, changing, listing and deleting subscriptions, as RavenDB's clients do.

use axum::body::Body;
use axum::extract::State as Extracted;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::server::body::{self, BodyLimit};
use crate::server::error::{ApiError, names};
use crate::server::host::Host;
use crate::server::json::{self, json};
use crate::server::node;
use crate::server::query::{Query, bad};
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::tls::Tls;
use crate::server::wire::subscription::{FaultLine, Faults, Named, State, States, Task, TaskState, TcpInfo, Wanted};
use crate::subscription::{Definition, Key, Start, Status, SubscriptionError, Update, change_vector};

/// Creates a subscription, or updates the one with the number `id`.
pub(crate) async fn put(
    Extracted(host): Extracted<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let wanted = read(&host, &headers, body).await?;
    if let Some(id) = query.number("id")? {
        return change(&host, lease, Wanted { id: Some(id), ..wanted }).await;
    }
    create(&host, lease, wanted).await
}

/// Changes a subscription, by number or name; with `CreateNew` it is created where there is none.
pub(crate) async fn update(
    Extracted(host): Extracted<Shared>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let wanted = read(&host, &headers, body).await?;
    change(&host, lease, wanted).await
}

/// Lists subscriptions in name order, or the one with `name`.
pub(crate) async fn list(Extracted(host): Extracted<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let (start, size) = (query.count("start")?.unwrap_or(0), query.count("pageSize")?.unwrap_or(u64::MAX));
    let (start, size) = (usize::try_from(start).unwrap_or(usize::MAX), usize::try_from(size).unwrap_or(usize::MAX));
    let statuses = match query.text("name") {
        Some(name) => vec![lease.subscriptions().find(Key::Name(name))?.status()],
        None => lease.subscriptions().list(),
    };
    let results = statuses.into_iter().skip(start).take(size).map(|status| state_of(&host, &lease, status)).collect();
    Ok(json(StatusCode::OK, &States { results }))
}

/// How one subscription is doing.
pub(crate) async fn state(
    Extracted(host): Extracted<Shared>,
    lease: Lease,
    query: Query,
) -> Result<Response, ApiError> {
    let status = lease.subscriptions().find(Key::Name(query.required("name")?))?.status();
    Ok(json(StatusCode::OK, &state_of(&host, &lease, status)))
}

/// The last documents on which a subscription's script failed.
pub(crate) async fn faults(lease: Lease, query: Query) -> Result<Response, ApiError> {
    let live = lease.subscriptions().find(Key::Name(query.required("name")?))?;
    Ok(json(StatusCode::OK, &Faults { results: live.faults().into_iter().map(FaultLine::new).collect() }))
}

/// Deletes a subscription; a missing one is no error.
pub(crate) async fn delete(
    Extracted(host): Extracted<Shared>,
    lease: Lease,
    query: Query,
) -> Result<StatusCode, ApiError> {
    let name = query.required("taskName")?.to_owned();
    host.blocking(move || Ok(lease.subscriptions().delete(&name)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the connections of a subscription's workers, or of the one that calls itself `workerId`.
pub(crate) async fn drop_connection(lease: Lease, query: Query) -> Result<StatusCode, ApiError> {
    lease.subscriptions().drop_workers(query.required("name")?, query.text("workerId"))?;
    Ok(StatusCode::NO_CONTENT)
}

/// A subscription as a task: `task?type=Subscription&taskName=…` or `&key=…`.
pub(crate) async fn task(Extracted(host): Extracted<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let status = lease.subscriptions().find(task_key(&query)?)?.status();
    Ok(json(StatusCode::OK, &Task::new(status, &host.node.tag)))
}

/// Turns a subscription off or on.
pub(crate) async fn set_task_state(
    Extracted(host): Extracted<Shared>,
    lease: Lease,
    query: Query,
) -> Result<Response, ApiError> {
    query.required("disable")?;
    let is_disabled = query.switch("disable", false)?;
    let number = lease.subscriptions().find(task_key(&query)?)?.status().definition.number;
    let update = Update { is_disabled: Some(is_disabled), ..Update::default() };
    host.blocking(move || Ok(lease.subscriptions().update(Key::Number(number), &update)?)).await?;
    let state = TaskState { task_id: number, raft_command_index: 1, responsible_node: host.node.tag.clone() };
    Ok(json(StatusCode::OK, &state))
}

/// Where RavenDB's TCP protocol is spoken: where HTTP is.
pub(crate) async fn tcp_info(
    Extracted(host): Extracted<Shared>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    if query.switch("verify-database", false)? {
        host.databases.lease(query.required("database")?)?;
    }
    Ok(json(StatusCode::OK, &info(&host, &headers)))
}

/// The same for one database.
pub(crate) async fn tcp_info_of(
    Extracted(host): Extracted<Shared>,
    _: Lease,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, &info(&host, &headers)))
}

fn info(host: &Shared, headers: &HeaderMap) -> TcpInfo {
    let url = node::url(host, headers);
    let place = url.split_once("://").map_or(url.as_str(), |(_, place)| place);
    let place = place.split('/').next().unwrap_or(place);
    // Clients take the port of a TCP address as given.
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = if url.starts_with("https://") { 443 } else { 80 };
    let url = if has_port { format!("tcp://{place}") } else { format!("tcp://{place}:{port}") };
    let certificate = host.tls.as_ref().map(Tls::certificate);
    let (node_tag, server_id) = (host.node.tag.clone(), host.node.id.clone());
    TcpInfo { url, urls: None, certificate, node_tag, server_id }
}

fn task_key(query: &Query) -> Result<Key<'_>, ApiError> {
    let kind = query.required("type")?;
    if !kind.eq_ignore_ascii_case("Subscription") {
        return Err(ApiError::unsupported(&format!("tasks of the type '{}'", crate::id::cut(kind))));
    }
    match (query.text("taskName"), query.number("key")?) {
        (Some(name), _) => Ok(Key::Name(name)),
        (None, Some(number)) => Ok(Key::Number(number)),
        (None, None) => Err(bad("taskName", "", "the name of a subscription, or key its number")),
    }
}

async fn read(host: &Host, headers: &HeaderMap, body: Body) -> Result<Wanted, ApiError> {
    let payload = body::read(host, headers, body, BodyLimit::request(&host.settings.limits)).await?;
    json::read(payload.bytes(), "the definition of a subscription")
}

async fn create(host: &Host, lease: Lease, wanted: Wanted) -> Result<Response, ApiError> {
    let Some(query) = wanted.query.filter(|query| !query.trim().is_empty()) else {
        return Err(ApiError::argument("A subscription needs a Query, such as: from Orders."));
    };
    let definition = Definition {
        name: wanted.name.filter(|name| !name.is_empty()),
        query,
        script: wanted.script,
        include_deletes: wanted.include_deletes.unwrap_or(false),
        include_previous: wanted.include_previous.unwrap_or(false),
        is_disabled: wanted.disabled.unwrap_or(false),
        start: Start::parse(wanted.change_vector.as_deref(), lease.store())?,
    };
    let name = host.blocking(move || Ok(lease.subscriptions().create(&definition)?)).await?;
    Ok(json(StatusCode::CREATED, &Named { name, raft_command_index: 1 }))
}

async fn change(host: &Host, lease: Lease, wanted: Wanted) -> Result<Response, ApiError> {
    let start = match wanted.change_vector.as_deref() {
        None | Some("") => None,
        Some(text) => Some(Start::parse(Some(text), lease.store())?),
    };
    let key_name = wanted.name.clone().filter(|name| !name.is_empty());
    let found = match (wanted.id, &key_name) {
        (Some(id), _) => lease.subscriptions().find(Key::Number(id)),
        (None, Some(name)) => lease.subscriptions().find(Key::Name(name)),
        (None, None) => return Err(ApiError::argument("An update needs the Name or the Id of a subscription.")),
    };
    let number = match found {
        Ok(live) => live.status().definition.number,
        Err(_) if wanted.create_new == Some(true) => return create(host, lease, wanted).await,
        // Not 404, which clients take for an answer without content.
        Err(error @ SubscriptionError::Missing { .. }) => {
            let name = names::SUBSCRIPTION_MISSING;
            return Err(ApiError::new(StatusCode::BAD_REQUEST, name, error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let update = Update {
        name: key_name,
        query: wanted.query.filter(|query| !query.trim().is_empty()),
        script: wanted.script,
        include_deletes: wanted.include_deletes,
        include_previous: wanted.include_previous,
        is_disabled: wanted.disabled,
        start,
    };
    let (name, changed) =
        host.blocking(move || Ok(lease.subscriptions().update(Key::Number(number), &update)?)).await?;
    if !changed {
        return Ok((StatusCode::NOT_MODIFIED, [(header::CONTENT_LENGTH, "0")]).into_response());
    }
    Ok(json(StatusCode::OK, &Named { name, raft_command_index: 1 }))
}

fn state_of(host: &Host, lease: &Lease, status: Status) -> State {
    let through = status.cursor.through;
    let vector = (through > 0).then(|| change_vector(lease.store(), through));
    State::new(status, vector, &host.node.tag)
}
