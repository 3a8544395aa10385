//! The JSON of databases and their administration.

use serde::{Deserialize, Serialize};

use super::configuration::NameSettings;
use super::node::Empty;

/// What `DELETE /admin/databases` asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct Deletion {
    #[serde(rename = "DatabaseNames")]
    pub(crate) names: Vec<String>,
    /// Whether the files go too; RavenDB's default is that they stay.
    #[serde(rename = "HardDelete", default)]
    pub(crate) hard: bool,
    #[serde(rename = "TimeToWaitForConfirmation")]
    pub(crate) wait: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Deleted {
    raft_command_index: u64,
    pending_deletes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DatabaseList<T> {
    pub(crate) databases: Vec<T>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DatabaseLine {
    name: String,
    disabled: bool,
    load_error: Option<String>,
    node_tag: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Created {
    raft_command_index: u64,
    name: String,
    topology: DatabaseTopology,
    nodes_added_to: [String; 1],
}

/// Client libraries read many of these fields without asking whether they are there.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Record {
    database_name: String,
    disabled: bool,
    etag: u64,
    settings: NameSettings,
    lock_mode: &'static str,
    database_state: &'static str,
    auto_indexes: Empty,
    indexes: Empty,
    topology: DatabaseTopology,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
#[allow(clippy::struct_field_names, reason = "the names are those of the wire")]
struct DatabaseTopology {
    members: [String; 1],
    promotables: [String; 0],
    rehabs: [String; 0],
    predefined_mentors: Empty,
    demotion_reasons: Empty,
    promotables_status: Empty,
    replication_factor: u32,
    dynamic_nodes_distribution: bool,
    stamp: Stamp,
    database_topology_id_base64: &'static str,
    cluster_transaction_id_base64: &'static str,
    priority_order: [String; 0],
    nodes_modified_at: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Stamp {
    index: u64,
    term: u64,
    leaders_ticks: u64,
}

impl Deletion {
    pub(crate) fn of(names: Vec<String>) -> Self {
        Self { names, hard: false, wait: None }
    }
}

impl Deleted {
    pub(crate) fn new(pending_deletes: Vec<String>) -> Self {
        Self { raft_command_index: 1, pending_deletes }
    }
}

impl DatabaseLine {
    pub(crate) fn new(name: String, load_error: Option<String>, tag: &str) -> Self {
        Self { name, disabled: false, load_error, node_tag: tag.to_owned() }
    }
}

impl Created {
    pub(crate) fn new(name: String, tag: &str, url: String) -> Self {
        Self { raft_command_index: 1, name, topology: DatabaseTopology::single(tag), nodes_added_to: [url] }
    }
}

impl Record {
    pub(crate) fn new(name: String, settings: NameSettings, tag: &str) -> Self {
        Self {
            database_name: name,
            disabled: false,
            etag: 1,
            settings,
            lock_mode: "Unlock",
            database_state: "Normal",
            auto_indexes: Empty {},
            indexes: Empty {},
            topology: DatabaseTopology::single(tag),
        }
    }
}

impl DatabaseTopology {
    fn single(tag: &str) -> Self {
        const ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";
        Self {
            members: [tag.to_owned()],
            promotables: [],
            rehabs: [],
            predefined_mentors: Empty {},
            demotion_reasons: Empty {},
            promotables_status: Empty {},
            replication_factor: 1,
            dynamic_nodes_distribution: false,
            stamp: Stamp { index: 1, term: 1, leaders_ticks: 0 },
            database_topology_id_base64: ID,
            cluster_transaction_id_base64: ID,
            priority_order: [],
            nodes_modified_at: "0001-01-01T00:00:00.0000000Z",
        }
    }
}
