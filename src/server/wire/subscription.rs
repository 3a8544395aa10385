//! The JSON of subscriptions: definitions, states, and the messages of RavenDB's TCP protocol.

use serde::{Deserialize, Serialize};

use super::text::time;
use crate::subscription::{FaultRow, Status};

/// What is asked for when a subscription is created or updated.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Wanted {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) query: Option<String>,
    /// Rhai: `fn filter(doc)`, `fn project(doc)`.
    pub(crate) script: Option<String>,
    pub(crate) include_deletes: Option<bool>,
    pub(crate) include_previous: Option<bool>,
    pub(crate) change_vector: Option<String>,
    pub(crate) disabled: Option<bool>,
    pub(crate) create_new: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Named {
    pub(crate) name: String,
    /// There is no cluster: it means nothing, and clients want it.
    pub(crate) raft_command_index: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct States {
    pub(crate) results: Vec<State>,
}

/// How a subscription is doing.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct State {
    subscription_id: u64,
    subscription_name: String,
    query: String,
    script: Option<String>,
    include_deletes: bool,
    include_previous: bool,
    disabled: bool,
    change_vector_for_next_batch_starting_point: Option<String>,
    last_batch_ack_time: Option<String>,
    last_client_connection_time: Option<String>,
    mentor_node: Option<String>,
    node_tag: String,
    delivered: u64,
    faults: u64,
    connections: Vec<Connection>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Connection {
    worker_id: String,
    strategy: &'static str,
    since: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Faults {
    pub(crate) results: Vec<FaultLine>,
}

/// A document that a subscription's script failed on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct FaultLine {
    timestamp: String,
    id: String,
    etag: u64,
    error: String,
}

/// A subscription as a task of the server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Task {
    task_type: &'static str,
    task_id: u64,
    task_name: String,
    disabled: bool,
    query: String,
    responsible_node: NodeTag,
    last_batch_ack_time: Option<String>,
    last_client_connection_time: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TaskState {
    pub(crate) task_id: u64,
    pub(crate) raft_command_index: u64,
    pub(crate) responsible_node: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeTag {
    node_tag: String,
}

/// Where RavenDB's TCP protocol is spoken.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TcpInfo {
    pub(crate) url: String,
    pub(crate) urls: Option<Vec<String>>,
    pub(crate) certificate: Option<String>,
    pub(crate) node_tag: String,
    pub(crate) server_id: String,
}

impl State {
    pub(crate) fn new(status: Status, change_vector: Option<String>, node_tag: &str) -> Self {
        let Status { definition, cursor, workers } = status;
        let connection = |(worker_id, strategy, since): (String, crate::subscription::Strategy, i64)| Connection {
            worker_id,
            strategy: strategy.name(),
            since: time(since),
        };
        Self {
            subscription_id: definition.number,
            subscription_name: definition.name,
            query: definition.query,
            script: definition.script,
            include_deletes: definition.include_deletes,
            include_previous: definition.include_previous,
            disabled: definition.is_disabled,
            change_vector_for_next_batch_starting_point: change_vector,
            last_batch_ack_time: cursor.acknowledged_micros.map(time),
            last_client_connection_time: cursor.connected_micros.map(time),
            mentor_node: None,
            node_tag: node_tag.to_owned(),
            delivered: cursor.delivered,
            faults: cursor.faults,
            connections: workers.into_iter().map(connection).collect(),
        }
    }
}

impl FaultLine {
    pub(crate) fn new(row: FaultRow) -> Self {
        Self { timestamp: time(row.at_micros), id: row.id, etag: row.etag, error: row.fault.to_string() }
    }
}

impl Task {
    pub(crate) fn new(status: Status, node_tag: &str) -> Self {
        Self {
            task_type: "Subscription",
            task_id: status.definition.number,
            task_name: status.definition.name,
            disabled: status.definition.is_disabled,
            query: status.definition.query,
            responsible_node: NodeTag { node_tag: node_tag.to_owned() },
            last_batch_ack_time: status.cursor.acknowledged_micros.map(time),
            last_client_connection_time: status.cursor.connected_micros.map(time),
        }
    }
}

/// The first message of RavenDB's TCP protocol.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TcpHeader {
    #[serde(default)]
    pub(crate) database_name: Option<String>,
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) operation_version: i64,
}

/// The answer to it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TcpReply {
    pub(crate) status: &'static str,
    pub(crate) version: i64,
    pub(crate) message: Option<String>,
    pub(crate) licensed_features: Option<()>,
}

/// What a worker asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TcpOptions {
    pub(crate) subscription_name: String,
    #[serde(default)]
    pub(crate) strategy: Option<String>,
    #[serde(default)]
    pub(crate) max_docs_per_batch: Option<i64>,
    #[serde(default)]
    pub(crate) close_when_no_docs_left: Option<bool>,
    #[serde(default)]
    pub(crate) worker_id: Option<String>,
}

/// What a worker says later.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TcpMessage {
    pub(crate) r#type: String,
    #[serde(default)]
    pub(crate) change_vector: Option<String>,
}

/// How a worker's connection stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ConnectionStatus {
    r#type: &'static str,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
    pub(crate) data: Option<Closing>,
    pub(crate) exception: Option<String>,
    pub(crate) message: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Closing {
    pub(crate) can_reconnect: bool,
    /// The worker asked to be closed when everything was delivered, and it was.
    pub(crate) no_docs_left: bool,
}

impl ConnectionStatus {
    pub(crate) fn accepted(worker: Option<String>) -> Self {
        Self { r#type: "ConnectionStatus", status: "Accepted", worker, data: None, exception: None, message: None }
    }

    pub(crate) fn refused(status: &'static str, reason: String, can_reconnect: bool) -> Self {
        Self {
            r#type: "ConnectionStatus",
            status,
            worker: None,
            data: Some(Closing { can_reconnect, no_docs_left: false }),
            exception: Some(reason.clone()),
            message: Some(reason),
        }
    }

    pub(crate) fn no_docs_left() -> Self {
        let reason = "The subscription has no documents left, and was asked to close then.".to_owned();
        let data = Some(Closing { can_reconnect: false, no_docs_left: true });
        Self { data, ..Self::refused("Closed", reason, false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_is_read() {
        let header = r#"{"DatabaseName":"X","Operation":"Subscription","OperationVersion":53000,"AuthorizeInfo":null,"LicensedFeatures":{"dataCompression":false}}"#;
        let header: TcpHeader = serde_json::from_str(header).unwrap();
        assert_eq!((header.database_name.as_deref(), header.operation_version), (Some("X"), 53_000));
        let options = r#"{"SubscriptionName":"s","TimeToWaitBeforeConnectionRetry":"00:00:05","IgnoreSubscriberErrors":null,"Strategy":"TakeOver","MaxDocsPerBatch":4096,"CloseWhenNoDocsLeft":null,"ReceiveBufferSize":4096}"#;
        let options: TcpOptions = serde_json::from_str(options).unwrap();
        assert_eq!((options.max_docs_per_batch, options.close_when_no_docs_left), (Some(4096), None));
        let wanted: Wanted =
            serde_json::from_str(r#"{"Query":"from A","MentorNode":null,"Includes":{},"Name":null}"#).unwrap();
        assert_eq!((wanted.query.as_deref(), wanted.name), (Some("from A"), None));
    }
}
