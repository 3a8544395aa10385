//! How the databases of a server name documents: the server's rules, the client configuration of the server and of each
//! database, and each database's own settings, put together.
//!
//! A database's client configuration wins over the server's as a whole, unless it is disabled. What is put is durable
//! before it counts, and counts for open databases at once; counters go on, and stored ids stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::open::OpenDatabase;
use super::{Databases, Entry, Lease};
use crate::database::Database;
use crate::id::IdRules;
use crate::server::error::ApiError;
use crate::server::files;
use crate::server::wire::configuration::{ClientSettings, NameSettings, Versioned};
use crate::store::StoreError;

/// The file in the data directory that keeps the server-wide client configuration.
const FILE: &str = "client-configuration.json";
/// The name of a database's client configuration among its configuration values.
const CLIENT: &str = "client";
/// The name of a database's settings about ids.
const NAMES: &str = "names";
/// How often a value is put again when somebody else was first.
const TRIES_MAX: usize = 16;

/// What one database says about names.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    client: Versioned,
    names: NameSettings,
}

impl Own {
    pub(super) fn load(database: &Database) -> Result<Self, ApiError> {
        let coordinator = database.store().coordinator();
        Ok(Self {
            client: decode(CLIENT, coordinator.value(CLIENT)?.as_deref())?,
            names: decode(NAMES, coordinator.value(NAMES)?.as_deref())?,
        })
    }
}

impl Databases {
    /// Reads the server-wide client configuration.
    pub(super) fn read_server_wide(data: &Path) -> io::Result<Versioned> {
        match fs::read(data.join(FILE)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Versioned::default()),
            Err(error) => Err(error),
        }
    }

    /// The server-wide client configuration.
    pub(crate) fn server_wide(&self) -> Versioned {
        self.server_wide.read().clone()
    }

    /// Puts the server-wide client configuration. Blocking.
    ///
    /// # Errors
    /// Its separator is refused, or the file can't be written; nothing has changed then.
    pub(crate) fn put_server_wide(&self, data: &Path, settings: ClientSettings) -> Result<(), ApiError> {
        settings.separator()?;
        let _changing = self.naming.lock();
        let next = Versioned { etag: self.server_wide.read().etag + 1, settings: Some(settings) };
        files::write_durably(&data.join(FILE), &encode(&next)?)
            .map_err(|error| ApiError::internal(format!("The client configuration could not be written: {error}")))?;
        *self.server_wide.write() = next;
        self.apply_all();
        Ok(())
    }

    /// Puts a database's client configuration. Blocking.
    ///
    /// # Errors
    /// Its separator is refused, or it can't be stored; nothing has changed then.
    pub(crate) fn put_client(&self, lease: &Lease, settings: &ClientSettings) -> Result<(), ApiError> {
        settings.separator()?;
        let _changing = self.naming.lock();
        let client = put_value(&lease.open.database, CLIENT, |former: Versioned| Versioned {
            etag: former.etag + 1,
            settings: Some(settings.clone()),
        })?;
        lease.open.own.write().client = client;
        self.apply(&lease.open)
    }

    /// Puts a database's settings about ids. Blocking.
    ///
    /// # Errors
    /// They can't be stored; nothing has changed then.
    pub(crate) fn put_names(&self, lease: &Lease, names: &NameSettings) -> Result<(), ApiError> {
        let _changing = self.naming.lock();
        let names = put_value(&lease.open.database, NAMES, |_: NameSettings| names.clone())?;
        lease.open.own.write().names = names;
        self.apply(&lease.open)
    }

    /// Gives a new database, which nobody uses yet, its settings about ids. Blocking.
    pub(super) fn begin_naming(&self, open: &OpenDatabase, names: &NameSettings) -> Result<(), ApiError> {
        if *names != NameSettings::default() {
            let names = put_value(&open.database, NAMES, |_: NameSettings| names.clone())?;
            open.own.write().names = names;
        }
        self.apply(open)
    }

    /// The client configuration that holds for a database and its version.
    pub(crate) fn client_configuration(&self, lease: &Lease) -> (Option<ClientSettings>, u64) {
        (self.effective(&lease.open), self.etag(&lease.open))
    }

    /// The version of the client configuration that holds for a database; `None` where there is no such database.
    pub(crate) fn configuration_etag(&self, name: &str) -> Option<u64> {
        match self.entries.read().get(&name.to_ascii_lowercase()) {
            Some(Entry::Open(open)) => Some(self.etag(open)),
            _ => None,
        }
    }

    /// Makes every database read ids by the rules that hold for it; one where that fails goes on as it was.
    pub(super) fn apply_all(&self) {
        for open in self.all_open() {
            if let Err(error) = self.apply(&open) {
                tracing::error!(name: "database.naming.failed", database = %open.name, error = %error.detail(), "the rules of ids of a database can't be applied");
            }
        }
    }

    /// Makes a database read ids by the rules that hold for it.
    pub(super) fn apply(&self, open: &OpenDatabase) -> Result<(), ApiError> {
        let effective = self.effective(open).filter(|settings| !settings.is_disabled());
        let mut rules = self.rules().clone();
        open.own.read().names.apply(&mut rules);
        if let Some(separator) = effective.as_ref().map_or(Ok(None), ClientSettings::separator)? {
            rules.separator = separator;
        }
        Ok(open.database.store().set_id_rules(&rules)?)
    }

    /// Rises with every change of either configuration; 0 where nothing ever said anything.
    fn etag(&self, open: &OpenDatabase) -> u64 {
        let own_rules = u64::from(self.rules().separator != IdRules::default().separator);
        own_rules + self.server_wide.read().etag + open.own.read().client.etag
    }

    fn effective(&self, open: &OpenDatabase) -> Option<ClientSettings> {
        let own = open.own.read().client.settings.clone();
        let server_wide = || self.server_wide.read().settings.clone();
        let mut effective = match own {
            Some(own) if !own.is_disabled() => Some(own),
            own => server_wide().or(own),
        };
        // Clients must be told where the server's own rules differ from what they take for granted.
        let separator = self.rules().separator;
        if separator != IdRules::default().separator {
            let told = effective.get_or_insert_default();
            if !told.is_disabled() {
                told.identity_parts_separator.get_or_insert_with(|| separator.to_string());
            }
        }
        effective
    }

    fn rules(&self) -> &IdRules {
        &self.settings.store.id_rules
    }

    fn all_open(&self) -> Vec<Arc<OpenDatabase>> {
        let entries = self.entries.read();
        entries
            .values()
            .filter_map(|entry| if let Entry::Open(open) = entry { Some(Arc::clone(open)) } else { None })
            .collect()
    }
}

impl Lease {
    /// The database's settings about ids.
    pub(crate) fn names(&self) -> NameSettings {
        self.open.own.read().names.clone()
    }
}

/// The settings about ids in a database's record.
pub(crate) fn read_names(settings: &BTreeMap<String, Option<String>>) -> Result<NameSettings, ApiError> {
    Ok(NameSettings::read(settings)?)
}

fn put_value<T: Serialize + DeserializeOwned + Default>(
    database: &Database,
    name: &str,
    change: impl Fn(T) -> T,
) -> Result<T, ApiError> {
    let coordinator = database.store().coordinator();
    for _ in 0..TRIES_MAX {
        let former = coordinator.value(name)?;
        let next = change(decode(name, former.as_deref())?);
        if coordinator.compare_and_set(name, former, Some(encode(&next)?))? {
            return Ok(next);
        }
    }
    Err(StoreError::Busy(format!("the configuration '{name}' changes too fast; try again")).into())
}

fn decode<T: DeserializeOwned + Default>(name: &str, bytes: Option<&[u8]>) -> Result<T, ApiError> {
    let Some(bytes) = bytes else { return Ok(T::default()) };
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::internal(format!("The stored configuration '{name}' can't be read: {error}")))
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|error| ApiError::internal(format!("A configuration can't be written: {error}")))
}
