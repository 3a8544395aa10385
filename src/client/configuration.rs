//! The client configuration: what a server tells all of its clients to do.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::error::ClientError;
use super::store::DocumentStore;

/// What a server tells its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ClientConfiguration {
    /// The character between a prefix and a number, anything but `|`. `None`: clients keep their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_parts_separator: Option<char>,
    /// Whether clients should not heed this configuration.
    pub disabled: bool,
}

/// The configuration as the server answers it, with its version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HeldConfiguration {
    pub(super) etag: i64,
    configuration: Option<ClientConfiguration>,
}

impl HeldConfiguration {
    /// The separator that clients should use.
    pub(super) fn separator(&self) -> Result<Option<char>, String> {
        let heeded = self.configuration.as_ref().filter(|configuration| !configuration.disabled);
        match heeded.and_then(|configuration| configuration.identity_parts_separator) {
            Some('|') => Err("the separator can't be '|', which asks for identities".to_owned()),
            separator => Ok(separator),
        }
    }
}

/// Reads and writes the client configuration.
#[derive(Clone, Debug)]
pub struct Configuration {
    store: DocumentStore,
}

impl Configuration {
    pub(super) fn new(store: DocumentStore) -> Self {
        Self { store }
    }

    /// Reads what the clients of this database are told; `None` when that is nothing.
    ///
    /// # Errors
    /// The server can't be reached, or there is no such database.
    pub async fn get(&self) -> Result<Option<ClientConfiguration>, ClientError> {
        let link = self.store.link();
        let held: HeldConfiguration = link.send(link.call(Method::GET, "configuration/client")).await?.json()?;
        Ok(held.configuration)
    }

    /// Sets what the clients of this database are told. It goes before what is set for the whole server.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the configuration.
    pub async fn put(&self, configuration: &ClientConfiguration) -> Result<(), ClientError> {
        let link = self.store.link();
        let body = body(configuration)?;
        link.send(link.call(Method::PUT, "admin/configuration/client").body(body)).await.map(|_| ())
    }

    /// Sets what the clients of every database of the server are told.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the configuration.
    pub async fn put_server_wide(&self, configuration: &ClientConfiguration) -> Result<(), ClientError> {
        let body = body(configuration)?;
        self.store.send(super::http::Call::new(Method::PUT, "/admin/configuration/client").body(body)).await.map(|_| ())
    }
}

fn body(configuration: &ClientConfiguration) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(configuration).map_err(|error| ClientError::Usage(error.to_string()))
}
