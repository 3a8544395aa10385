//! Identities by request: `users|` gives 1, 2, 3, …, and never a number twice.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::error::ClientError;
use super::store::DocumentStore;
use crate::id::lower;

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

#[derive(Deserialize, Serialize)]
struct Seeds {
    #[serde(rename = "Identities")]
    identities: BTreeMap<String, u64>,
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

    /// Seeds several identities in one request, and returns the numbers that then hold, in their order.
    ///
    /// # Errors
    /// The server can't be reached, or refuses a name or a number; nothing is seeded then.
    pub async fn seed_many(&self, seeds: &[(&str, u64)]) -> Result<Vec<u64>, ClientError> {
        let key = |name: &str| format!("{}|", lower(name.strip_suffix('|').unwrap_or(name)));
        let mut identities = BTreeMap::new();
        for (name, value) in seeds {
            let highest = identities.entry(key(name)).or_insert(*value);
            *highest = (*highest).max(*value);
        }
        let body = serde_json::to_vec(&Seeds { identities }).map_err(|error| ClientError::Usage(error.to_string()))?;
        let link = self.store.link();
        let answer = link.send(link.call(Method::POST, "identity/seed").body(body).repeatable(true)).await?;
        let Seeds { identities } = answer.json()?;
        let value = |name: &str| identities.get(&key(name)).copied();
        let values =
            seeds.iter().map(|(name, _)| value(name).ok_or_else(|| answer.wrong(format!("'{name}' is missing"))));
        values.collect()
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
