//! Index definitions and how indexes are doing.

use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::ClientError;
use super::http::encode;
use super::store::DocumentStore;

/// An index, as it is put and listed. An index that is one script can also be put with [`Indexes::put_script`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct IndexDefinition {
    /// The name, 1 to 256 bytes.
    pub name: String,
    /// The scripts with `source` and `map`.
    pub maps: Vec<String>,
    /// The script with `reduce` and perhaps `finish`, where it is not in the only one of `maps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduce: Option<String>,
    /// The collection of the artificial documents, where the script does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_reduce_to_collection: Option<String>,
    /// The pattern of the ids of reference documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_for_output_reduce_to_collection_references: Option<String>,
    /// The collection of the reference documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_references_collection_name: Option<String>,
}

/// Whether an index's definition may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockMode {
    /// It may.
    Unlock,
    /// Another definition is passed over without a word.
    LockedIgnore,
    /// Another definition is refused.
    LockedError,
}

/// How much an index gives way to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// It rests as long as it works.
    Low,
    /// It works while there is something to do.
    Normal,
    /// As normal.
    High,
}

/// How an index is doing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct IndexStats {
    /// Its name.
    pub name: String,
    /// Whether it has not taken in all documents yet.
    pub is_stale: bool,
    /// `Normal`, `Disabled` or `Error`.
    pub state: String,
    /// `Running`, `Paused`, …
    pub status: String,
    /// Whether its definition may change.
    pub lock_mode: LockMode,
    /// How much it gives way to others.
    pub priority: Priority,
    /// Results or entries that it has.
    pub entries_count: u64,
    /// Documents and groups that its scripts failed on.
    pub errors_count: u64,
}

/// The indexes of a database.
#[derive(Clone, Debug)]
pub struct Indexes {
    store: DocumentStore,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Results<T> {
    results: Vec<T>,
}

impl Indexes {
    pub(super) fn new(store: DocumentStore) -> Self {
        Self { store }
    }

    /// Puts an index that is one Rhai script.
    ///
    /// # Errors
    /// The script is refused, with its place, or the server can't be reached.
    pub async fn put_script(&self, name: &str, script: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        let call = link.call(Method::PUT, &format!("indexes/{}", encode(name))).body(script.as_bytes().to_vec());
        link.send(call).await.map(|_| ())
    }

    /// Puts indexes, all or none of them.
    ///
    /// # Errors
    /// A definition is refused, or the server can't be reached.
    pub async fn put(&self, definitions: &[IndexDefinition]) -> Result<(), ClientError> {
        let link = self.store.link();
        let body = json!({ "Indexes": definitions }).to_string().into_bytes();
        link.send(link.call(Method::PUT, "indexes").body(body)).await.map(|_| ())
    }

    /// Reads the definition of an index; `None` where there is none of that name.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn get(&self, name: &str) -> Result<Option<IndexDefinition>, ClientError> {
        let link = self.store.link();
        match link.send(link.call(Method::GET, "indexes").query("name", name)).await {
            Ok(answer) => Ok(answer.json::<Results<IndexDefinition>>()?.results.into_iter().next()),
            Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists all definitions, by name.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn list(&self) -> Result<Vec<IndexDefinition>, ClientError> {
        let link = self.store.link();
        Ok(link.send(link.call(Method::GET, "indexes")).await?.json::<Results<_>>()?.results)
    }

    /// Deletes an index with its artificial documents, and says whether there was one. When the first answer was
    /// lost, the second may say no although this call has deleted it.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn delete(&self, name: &str) -> Result<bool, ClientError> {
        self.delete_with(name, false).await
    }

    /// The same, but its artificial documents stay and become ordinary ones.
    ///
    /// # Errors
    /// They are changing over to another definition just now, or the server can't be reached.
    pub async fn delete_keeping_outputs(&self, name: &str) -> Result<bool, ClientError> {
        self.delete_with(name, true).await
    }

    async fn delete_with(&self, name: &str, keeps_outputs: bool) -> Result<bool, ClientError> {
        let link = self.store.link();
        let mut call = link.call(Method::DELETE, "indexes").query("name", name);
        if keeps_outputs {
            call = call.query("keepOutputs", "true");
        }
        match link.send(call).await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(refusal)) if refusal.status == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Builds an index anew, beside its present results.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn reset(&self, name: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        let method = Method::from_bytes(b"RESET").unwrap_or(Method::POST);
        link.send(link.call(method, "indexes").query("name", name)).await.map(|_| ())
    }

    /// Has the changed definition of an index take over now, before it has taken in all documents.
    ///
    /// # Errors
    /// Its definition is not changing, or does not run; there is no such index; the server can't be reached.
    pub async fn swap_now(&self, name: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        link.send(link.call(Method::POST, "indexes/replace").query("name", name)).await.map(|_| ())
    }

    /// Gives up the change of an index's definition, and says whether it was changing.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn cancel_change(&self, name: &str) -> Result<bool, ClientError> {
        self.delete(&format!("ReplacementOf/{name}")).await
    }

    /// Goes back to the definition that an index had before its present one.
    ///
    /// # Errors
    /// It had none, is changing already, or is locked; there is no such index; the server can't be reached.
    pub async fn roll_back(&self, name: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        link.send(link.call(Method::POST, "indexes/rollback").query("name", name)).await.map(|_| ())
    }

    /// Turns an index on again.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn enable(&self, name: &str) -> Result<(), ClientError> {
        self.command("admin/indexes/enable", name).await
    }

    /// Turns an index off, restarts of the server included. Its results stay as they are.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn disable(&self, name: &str) -> Result<(), ClientError> {
        self.command("admin/indexes/disable", name).await
    }

    /// Sets whether the definitions of indexes may change.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn set_lock(&self, names: &[&str], mode: LockMode) -> Result<(), ClientError> {
        self.set("indexes/set-lock", &json!({ "IndexNames": names, "Mode": mode })).await
    }

    /// Sets how much indexes give way to others.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn set_priority(&self, names: &[&str], priority: Priority) -> Result<(), ClientError> {
        self.set("indexes/set-priority", &json!({ "IndexNames": names, "Priority": priority })).await
    }

    /// Forgets the recorded faults of an index.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn clear_errors(&self, name: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        link.send(link.call(Method::DELETE, "indexes/errors").query("name", name)).await.map(|_| ())
    }

    /// Lets an index go on that was stopped.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn start(&self, name: &str) -> Result<(), ClientError> {
        self.command("admin/indexes/start", name).await
    }

    /// Stops an index until it is started.
    ///
    /// # Errors
    /// There is no such index, or the server can't be reached.
    pub async fn stop(&self, name: &str) -> Result<(), ClientError> {
        self.command("admin/indexes/stop", name).await
    }

    /// Says how all indexes are doing.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn stats(&self) -> Result<Vec<IndexStats>, ClientError> {
        let link = self.store.link();
        Ok(link.send(link.call(Method::GET, "indexes/stats")).await?.json::<Results<_>>()?.results)
    }

    /// Waits until every running index has taken in what is stored now.
    ///
    /// # Errors
    /// The time is up, or the server can't be reached.
    pub async fn wait(&self, timeout: Duration) -> Result<(), ClientError> {
        let link = self.store.link();
        let call = link
            .call(Method::POST, "bulk_docs")
            .query("waitForIndexesTimeout", time_span(timeout))
            .query("waitForIndexThrow", "true")
            .body(b"{\"Commands\":[]}".to_vec());
        link.send(call.extra_wait(timeout).repeatable(true)).await.map(|_| ())
    }

    async fn set(&self, path: &str, body: &serde_json::Value) -> Result<(), ClientError> {
        let link = self.store.link();
        let call = link.call(Method::POST, path).body(body.to_string().into_bytes());
        link.send(call.repeatable(true)).await.map(|_| ())
    }

    async fn command(&self, path: &str, name: &str) -> Result<(), ClientError> {
        let link = self.store.link();
        link.send(link.call(Method::POST, path).query("name", name).repeatable(true)).await.map(|_| ())
    }
}

/// A time as the server reads it: `hh:mm:ss.fffffff`.
pub(super) fn time_span(time: Duration) -> String {
    let (seconds, ticks) = (time.as_secs(), time.subsec_nanos() / 100);
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    format!("{days}.{hours:02}:{:02}:{:02}.{ticks:07}", seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_days_and_ticks() {
        assert_eq!(time_span(Duration::from_millis(93_784_005)), "1.02:03:04.0050000");
    }
}
