//! The databases of a server: create, delete, list.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::error::ClientError;
use super::http::Call;
use super::store::DocumentStore;

/// The databases of the store's server.
#[derive(Clone, Debug)]
pub struct Databases {
    store: DocumentStore,
}

#[derive(Deserialize)]
struct Names {
    #[serde(rename = "Databases")]
    names: Vec<String>,
}

impl Databases {
    pub(super) fn new(store: DocumentStore) -> Self {
        Self { store }
    }

    /// Creates a database.
    ///
    /// # Errors
    /// There is one of that name ([`ClientError::is_conflict`]), the name is refused, or the server can't be reached.
    pub async fn create(&self, name: &str) -> Result<(), ClientError> {
        let body = json!({ "DatabaseName": name }).to_string().into_bytes();
        // A second run would call the first one's database a conflict.
        let call = Call::new(Method::PUT, "/admin/databases").query("name", name).body(body).repeatable(false);
        self.store.send(call).await.map(|_| ())
    }

    /// Creates a database where there is none of that name, and says whether it did.
    ///
    /// # Errors
    /// The name is refused, or the server can't be reached.
    pub async fn create_if_missing(&self, name: &str) -> Result<bool, ClientError> {
        match self.create(name).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a database and everything in it.
    ///
    /// # Errors
    /// The server can't be reached, or refuses.
    pub async fn delete(&self, name: &str) -> Result<(), ClientError> {
        let body = json!({ "DatabaseNames": [name], "HardDelete": true }).to_string().into_bytes();
        self.store.send(Call::new(Method::DELETE, "/admin/databases").body(body).repeatable(false)).await.map(|_| ())
    }

    /// Lists the names of all databases.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn list(&self) -> Result<Vec<String>, ClientError> {
        let call = Call::new(Method::GET, "/databases").query("namesOnly", "true");
        Ok(self.store.send(call).await?.json::<Names>()?.names)
    }
}
