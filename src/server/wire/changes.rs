//! The messages of the changes socket, both ways.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operation::State;

/// What a client asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Command {
    /// Comes back in the confirmation.
    #[serde(default)]
    pub(crate) command_id: u64,
    pub(crate) command: String,
    /// An id, a prefix, a name, the number of an operation.
    #[serde(default)]
    pub(crate) param: Value,
}

/// What the server says.
#[derive(Debug, Serialize)]
#[serde(tag = "Type")]
pub(crate) enum Message {
    /// A command counts from now on.
    Confirm {
        #[serde(rename = "CommandId")]
        command_id: u64,
    },
    /// A command was refused.
    Error {
        #[serde(rename = "Exception")]
        exception: String,
        #[serde(rename = "CommandId")]
        command_id: u64,
    },
    DocumentChange {
        #[serde(rename = "Value")]
        value: DocumentChange,
    },
    IndexChange {
        #[serde(rename = "Value")]
        value: IndexChange,
    },
    OperationStatusChange {
        #[serde(rename = "Value")]
        value: OperationChange,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DocumentChange {
    pub(crate) r#type: &'static str,
    pub(crate) id: String,
    pub(crate) collection_name: String,
    pub(crate) change_vector: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IndexChange {
    pub(crate) r#type: &'static str,
    pub(crate) name: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct OperationChange {
    pub(crate) operation_id: u64,
    pub(crate) state: State,
}

impl Message {
    /// A frame: one message in an array. The Python client strips the first and the last character of every frame.
    pub(crate) fn frame(&self) -> String {
        serde_json::to_string(&[self]).unwrap_or_else(|_| "[]".to_owned())
    }
}
