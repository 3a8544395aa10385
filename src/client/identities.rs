//! Identities by request: `users|` gives 1, 2, 3, …, and never a number twice.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;

use super::error::ClientError;
use super::store::DocumentStore;

/// Reads, takes and seeds identities. Their names are compared without regard to case, and `users` means `users|`.
#[derive(Clone, Debug)]
pub struct Identities {
    store: DocumentStore,
}

#[derive(Deserialize)]
struct Next {
    #[serde(rename = "NewIdentityValue")]
    value: u64,
}

#[derive(Deserialize)]
struct Seeded {
    #[serde(rename = "NewSeedValue")]
    value: u64,
}

impl Identities {
    pub(super) fn new(store: DocumentStore) -> Self {
        Self { store }
    }

    /// Takes the next number. When the answer is lost, the request is sent again and the first number is never used.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the name.
    pub async fn next(&self, name: &str) -> Result<u64, ClientError> {
        let link = self.store.link();
        let call = link.call(Method::POST, "identity/next").query("name", name).repeatable(true);
        Ok(link.send(call).await?.json::<Next>()?.value)
    }

    /// Sets the last number that counts as taken, never downwards, and returns the one that then holds.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the name.
    pub async fn seed(&self, name: &str, value: u64) -> Result<u64, ClientError> {
        self.seed_as(name, value, false).await
    }

    /// Sets the last number that counts as taken, also downwards, which may give numbers a second time.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the name.
    pub async fn seed_forced(&self, name: &str, value: u64) -> Result<u64, ClientError> {
        self.seed_as(name, value, true).await
    }

    /// Seeds several identities, one after the other, and returns the numbers that then hold, in their order. Those before one
    /// that is refused stay seeded.
    ///
    /// # Errors
    /// The server can't be reached, or refuses a name.
    pub async fn seed_many(&self, seeds: &[(&str, u64)]) -> Result<Vec<u64>, ClientError> {
        let mut values = Vec::with_capacity(seeds.len());
        for (name, value) in seeds {
            values.push(self.seed(name, *value).await?);
        }
        Ok(values)
    }

    /// Lists the identities with their last numbers.
    ///
    /// # Errors
    /// The server can't be reached.
    pub async fn list(&self) -> Result<BTreeMap<String, u64>, ClientError> {
        let link = self.store.link();
        link.send(link.call(Method::GET, "debug/identities")).await?.json()
    }

    async fn seed_as(&self, name: &str, value: u64, force: bool) -> Result<u64, ClientError> {
        let link = self.store.link();
        let mut call = link.call(Method::POST, "identity/seed").query("name", name).query("value", value.to_string());
        if force {
            call = call.query("force", "true");
        }
        // What a forced seed sets could be raised by others before it is sent again.
        Ok(link.send(call.repeatable(!force)).await?.json::<Seeded>()?.value)
    }
}
