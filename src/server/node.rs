//! Who this server is: its tag, an id that outlives restarts, and what clients ask first.
//!
//! There is one node; the answers have the shape of a cluster's because clients build every later URL from them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::files;
use super::json::json;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::wire::node::{BuildVersion, ClusterTopology, NodeInfo, Readiness, Topology};
use crate::id::IdRules;

/// The file in the data directory that holds the server's id.
const FILE: &str = "server.json";

/// Who this server is.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The node's tag in change vectors and ids.
    pub(crate) tag: String,
    /// A GUID made with the data directory.
    pub(crate) id: String,
}

#[derive(Serialize, Deserialize)]
struct ServerFile {
    #[serde(rename = "ServerId")]
    id: String,
}

impl Node {
    /// Reads the server's id, making one in a new data directory. Blocking.
    pub(crate) fn open(data: &Path, rules: &IdRules) -> io::Result<Self> {
        let path = data.join(FILE);
        let id = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<ServerFile>(&bytes)?.id,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let id = uuid::Uuid::new_v4().to_string();
                files::write_durably(&path, &serde_json::to_vec(&ServerFile { id: id.clone() })?)?;
                id
            }
            Err(error) => return Err(error),
        };
        Ok(Self { tag: rules.node_tag.clone(), id })
    }
}

/// The URL that a client should use from now on: the configured one, or the one it used.
pub(crate) fn url(host: &Shared, headers: &HeaderMap) -> String {
    if let Some(url) = &host.settings.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let scheme = if host.tls.is_some() { "https" } else { "http" };
    match headers.get(header::HOST).and_then(|value| value.to_str().ok()) {
        Some(name) => format!("{scheme}://{name}"),
        None => format!("{scheme}://{}", host.settings.listen),
    }
}

pub(crate) async fn build_version() -> Response {
    json(StatusCode::OK, &BuildVersion::this())
}

/// The process lives.
pub(crate) async fn healthz() -> Response {
    (StatusCode::OK, "ok\n").into_response()
}

/// Whether requests are welcome: 503 from the moment the server is told to stop, and while a database takes no writes
/// because one of them, or a sync, has failed.
pub(crate) async fn readyz(State(host): State<Shared>) -> Response {
    let refusing_writes: BTreeMap<_, _> = host.databases.refusing_writes().into_iter().collect();
    let ready = !host.is_stopping() && refusing_writes.is_empty();
    let failed = host.databases.failed();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &Readiness { ready, databases: host.databases.names().len(), failed, refusing_writes })
}

pub(crate) async fn cluster_topology(State(host): State<Shared>, headers: HeaderMap) -> Response {
    json(StatusCode::OK, &ClusterTopology::single(&host.node.tag, &host.node.id, &url(&host, &headers)))
}

pub(crate) async fn node_info(State(host): State<Shared>) -> Response {
    json(StatusCode::OK, &NodeInfo::single(&host.node.tag, &host.node.id))
}

pub(crate) async fn topology(
    State(host): State<Shared>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let lease = host.databases.lease(query.required("name")?)?;
    Ok(json(StatusCode::OK, &Topology::single(&host.node.tag, &url(&host, &headers), lease.name())))
}

pub(crate) async fn database_health(_: Lease) -> StatusCode {
    StatusCode::NO_CONTENT
}
