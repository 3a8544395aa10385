//! The JSON of a node and its topology: one node that leads itself.

use std::collections::BTreeMap;

use serde::Serialize;

use super::text::now;

/// The version of RavenDB's interface that is spoken.
const PRODUCT_VERSION: &str = "7.0";

/// Where and when an answer was made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Metadata {
    date_time: String,
    web_url: String,
    node_tag: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(clippy::struct_field_names, reason = "the names are those of the wire")]
pub(crate) struct BuildVersion {
    product_version: &'static str,
    build_version: u32,
    commit_hash: &'static str,
    full_version: &'static str,
    product: &'static str,
    treepie_version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Readiness {
    pub(crate) ready: bool,
    pub(crate) databases: usize,
    pub(crate) failed: Vec<String>,
    /// Databases that take no writes any more, with the reason.
    pub(crate) refusing_writes: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ClusterTopology {
    topology: ClusterNodes,
    etag: u64,
    leader: String,
    node_tag: String,
    server_role: &'static str,
    current_state: &'static str,
    current_term: u64,
    status: Empty,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ClusterNodes {
    topology_id: String,
    all_nodes: BTreeMap<String, String>,
    members: BTreeMap<String, String>,
    promotables: Empty,
    watchers: Empty,
    last_node_id: String,
    etag: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NodeInfo {
    node_tag: String,
    server_role: &'static str,
    topology_id: String,
    server_id: String,
    current_state: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Topology {
    nodes: [TopologyNode; 1],
    etag: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TopologyNode {
    url: String,
    cluster_tag: String,
    database: String,
    server_role: &'static str,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Empty {}

impl Metadata {
    pub(crate) fn now(url: &str, tag: &str) -> Self {
        Self { date_time: now(), web_url: url.to_owned(), node_tag: tag.to_owned() }
    }
}

impl BuildVersion {
    pub(crate) fn this() -> Self {
        Self {
            product_version: PRODUCT_VERSION,
            build_version: 70,
            commit_hash: "treepie",
            full_version: "7.0.0",
            product: "Treepie",
            treepie_version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl ClusterTopology {
    pub(crate) fn single(tag: &str, id: &str, url: &str) -> Self {
        let only = BTreeMap::from([(tag.to_owned(), url.to_owned())]);
        let topology = ClusterNodes {
            topology_id: id.to_owned(),
            all_nodes: only.clone(),
            members: only,
            promotables: Empty {},
            watchers: Empty {},
            last_node_id: tag.to_owned(),
            etag: 1,
        };
        Self {
            topology,
            etag: 1,
            leader: tag.to_owned(),
            node_tag: tag.to_owned(),
            server_role: "Leader",
            current_state: "Leader",
            current_term: 1,
            status: Empty {},
        }
    }
}

impl NodeInfo {
    pub(crate) fn single(tag: &str, id: &str) -> Self {
        Self {
            node_tag: tag.to_owned(),
            server_role: "Leader",
            topology_id: id.to_owned(),
            server_id: id.to_owned(),
            current_state: "Leader",
        }
    }
}

impl Topology {
    pub(crate) fn single(tag: &str, url: &str, database: &str) -> Self {
        let node = TopologyNode {
            url: url.to_owned(),
            cluster_tag: tag.to_owned(),
            database: database.to_owned(),
            server_role: "Member",
        };
        Self { nodes: [node], etag: 1 }
    }
}
