//! The JSON of configurations: what clients are told to do, and what a database's settings say about ids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{IdError, IdRules};

/// A configuration of clients, as it is put and as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ClientSettings {
    pub(crate) identity_parts_separator: Option<String>,
    pub(crate) disabled: Option<bool>,
    pub(crate) max_number_of_requests_per_session: Option<u32>,
    pub(crate) read_balance_behavior: Option<ReadBalance>,
    pub(crate) load_balance_behavior: Option<LoadBalance>,
    pub(crate) load_balancer_context_seed: Option<i32>,
}

/// Which node a client reads from; with one node it makes no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReadBalance {
    #[default]
    None,
    RoundRobin,
    FastestNode,
}

/// Which node a session keeps to; with one node it makes no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoadBalance {
    #[default]
    None,
    UseSessionContext,
}

/// A configuration and how often it was put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Versioned {
    pub(crate) etag: u64,
    pub(crate) settings: Option<ClientSettings>,
}

/// The Node.js client looks for the first `"Etag":` in the text, so it must come first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ClientConfiguration {
    etag: u64,
    configuration: Option<Configuration>,
}

/// All fields are there: the Python client reads them without asking.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Configuration {
    identity_parts_separator: Option<String>,
    etag: u64,
    disabled: bool,
    max_number_of_requests_per_session: Option<u32>,
    read_balance_behavior: ReadBalance,
    load_balance_behavior: LoadBalance,
    load_balancer_context_seed: i32,
}

/// What a database's settings say about ids, by the names they have in its record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameSettings(BTreeMap<String, String>);

impl ClientSettings {
    pub(crate) fn is_disabled(&self) -> bool {
        self.disabled == Some(true)
    }

    /// The separator it sets.
    ///
    /// # Errors
    /// It is not one character, or one that can't separate.
    pub(crate) fn separator(&self) -> Result<Option<char>, IdError> {
        let Some(text) = self.identity_parts_separator.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(separator), None) => {
                IdRules { separator, ..IdRules::default() }.check()?;
                Ok(Some(separator))
            }
            _ => Err(IdError::new(format!(
                "IdentityPartsSeparator '{}' is refused: it must be a single character, for example '/'",
                crate::id::cut(text)
            ))),
        }
    }
}

impl Configuration {
    pub(crate) fn new(settings: &ClientSettings, etag: u64) -> Self {
        Self {
            identity_parts_separator: settings.identity_parts_separator.clone().filter(|text| !text.is_empty()),
            etag,
            disabled: settings.is_disabled(),
            max_number_of_requests_per_session: settings.max_number_of_requests_per_session,
            read_balance_behavior: settings.read_balance_behavior.unwrap_or_default(),
            load_balance_behavior: settings.load_balance_behavior.unwrap_or_default(),
            load_balancer_context_seed: settings.load_balancer_context_seed.unwrap_or_default(),
        }
    }
}

impl ClientConfiguration {
    pub(crate) fn new(settings: Option<&ClientSettings>, etag: u64) -> Self {
        Self { etag, configuration: settings.map(|settings| Configuration::new(settings, etag)) }
    }
}

impl NameSettings {
    const TRAILING_SLASH: &'static str = "trailing_slash";
    const GUID: &'static str = "guid";

    /// Takes the settings about ids out of all of a database's.
    ///
    /// # Errors
    /// One of them has a value that it can't have.
    pub(crate) fn read(settings: &BTreeMap<String, Option<String>>) -> Result<Self, IdError> {
        let mut read = BTreeMap::new();
        for (name, values) in [(Self::TRAILING_SLASH, ["server-side", "identity"]), (Self::GUID, ["v4", "v7"])] {
            let given = settings.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            let Some(value) = given.and_then(|(_, value)| value.as_deref()) else { continue };
            let Some(value) = values.iter().find(|allowed| allowed.eq_ignore_ascii_case(value)) else {
                return Err(IdError::new(format!(
                    "the setting '{name}' can't be '{}'; it is {} or {}",
                    crate::id::cut(value),
                    values[0],
                    values[1]
                )));
            };
            read.insert(name.to_owned(), (*value).to_owned());
        }
        Ok(Self(read))
    }

    /// Changes what they set.
    pub(crate) fn apply(&self, rules: &mut IdRules) {
        if let Some(value) = self.0.get(Self::TRAILING_SLASH) {
            rules.trailing_slash_is_identity = value == "identity";
        }
        if let Some(value) = self.0.get(Self::GUID) {
            rules.guid_v7 = value == "v7";
        }
    }
}
