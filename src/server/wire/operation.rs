//! The JSON of operations.

use serde::Serialize;

use crate::server::error::ApiError;
use crate::server::operations::Progress;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NextId {
    pub(crate) id: u64,
    pub(crate) node_tag: String,
}

/// The number of an operation that runs in the background.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Begun {
    pub(crate) operation_id: u64,
    pub(crate) operation_node_tag: String,
}

/// How an operation stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct State {
    status: &'static str,
    progress: Option<Processed>,
    result: Option<Outcome>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Processed {
    processed: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Outcome {
    Done(Done),
    Failed(Failed),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Done {
    total: u64,
    message: String,
    documents_processed: u64,
    details: [String; 0],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Failed {
    r#type: String,
    message: String,
    error: String,
    status_code: u16,
}

impl State {
    pub(crate) fn new(progress: &Progress) -> Self {
        let (status, progress, result) = match progress {
            Progress::Running(processed) => ("InProgress", Some(Processed { processed: *processed }), None),
            Progress::Done(total) => ("Completed", None, Some(Outcome::Done(Done::new(*total)))),
            Progress::Killed => ("Canceled", None, None),
            Progress::Failed(error) => ("Faulted", None, Some(Outcome::Failed(Failed::new(error)))),
        };
        Self { status, progress, result }
    }
}

impl Done {
    fn new(total: u64) -> Self {
        Self { total, message: format!("Processed {total} items."), documents_processed: total, details: [] }
    }
}

impl Failed {
    fn new(error: &ApiError) -> Self {
        Self {
            r#type: error.type_name().to_owned(),
            message: error.message().to_owned(),
            error: error.detail(),
            status_code: error.status().as_u16(),
        }
    }
}
