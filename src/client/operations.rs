//! Work that a server does in the background, asked about until it is done.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{ClientError, Refusal};
use super::link::Link;
use super::store::DocumentStore;

/// How long to wait before the first question, and at most between two.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Query<'a> {
    query: &'a str,
    query_parameters: &'a BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Begun {
    operation_id: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    status: String,
    #[serde(default)]
    result: Option<Outcome>,
}

/// What came of it: a count, or an error.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Outcome {
    total: u64,
    r#type: String,
    message: String,
    status_code: u16,
}

impl DocumentStore {
    /// Deletes the documents that a query selects (`from 'Orders'`), waits for the end, and says how many those were. What is
    /// written while it runs may stay.
    ///
    /// # Errors
    /// The server does not have such a query, it is ended by somebody, or the server can't be reached.
    ///
    /// # Cancel safety
    /// Dropped on the way, the server goes on deleting.
    pub async fn delete_by_query(&self, query: &str, parameters: &BTreeMap<String, Value>) -> Result<u64, ClientError> {
        let query = Query { query, query_parameters: parameters };
        let body = serde_json::to_vec(&query).map_err(|error| ClientError::Usage(error.to_string()))?;
        let link = self.link();
        // Deleting a second time what a lost answer was about does no harm.
        let begun: Begun = link.send(link.call(Method::DELETE, "queries").body(body)).await?.json()?;
        let mut pause = PAUSES.0;
        loop {
            tokio::time::sleep(pause).await;
            if let Some(done) = outcome(link, begun.operation_id).await? {
                return Ok(done);
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// What has come of an operation: the number of documents; `None` while it runs.
///
/// # Errors
/// It has failed, as it would have been answered; or it was ended.
pub(super) async fn outcome(link: &Link, operation: u64) -> Result<Option<u64>, ClientError> {
    let call = link.call(Method::GET, "operations/state").query("id", operation.to_string());
    let answer = link.send(call).await?;
    let State { status, result } = answer.json()?;
    let result = result.unwrap_or_default();
    match status.as_str() {
        "InProgress" => Ok(None),
        "Completed" => Ok(Some(result.total)),
        "Faulted" => Err(ClientError::Refused(Refusal {
            status: result.status_code,
            type_name: result.r#type,
            message: result.message,
            database_missing: false,
        })),
        "Canceled" => Err(ClientError::Usage(format!("operation {operation} was ended by somebody"))),
        other => Err(answer.wrong(format!("'{other}' is no state of an operation"))),
    }
}
