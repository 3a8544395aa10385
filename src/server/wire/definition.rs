//! Reads an index definition in RavenDB's JSON.
//!
//! What would change the results and Treepie does not have is refused by its name; what would not is accepted.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use crate::index::definition::IndexDefinition;
use crate::index::status::{LockMode, Priority};
use crate::script::Texts;
use crate::server::error::{ApiError, names};

/// Settings with the values that are read, mean nothing here, or mean what Treepie does.
const HARMLESS: [(&str, &[&str]); 9] = [
    ("Priority", &["Low", "Normal", "High"]),
    ("State", &["Normal", "Idle", "Disabled"]),
    ("LockMode", &["Unlock", "LockedIgnore", "LockedError"]),
    ("Type", &["None", "Map", "MapReduce", "JavaScriptMap", "JavaScriptMapReduce"]),
    ("IndexType", &["None", "Map", "MapReduce", "JavaScriptMap", "JavaScriptMapReduce"]),
    ("SourceType", &["None", "Documents"]),
    ("IndexSourceType", &["None", "Documents"]),
    ("DeploymentMode", &["Parallel", "Rolling"]),
    ("SearchEngineType", &["None"]),
];

/// Settings that are read.
const READ: [&str; 6] = [
    "Name",
    "Maps",
    "Reduce",
    "OutputReduceToCollection",
    "PatternForOutputReduceToCollectionReferences",
    "PatternReferencesCollectionName",
];

/// Settings that the server itself writes into definitions.
const ANSWERED: [&str; 2] = ["ReduceOutputIndex", "@metadata"];

/// A definition, and what is to be set of its index.
#[derive(Debug)]
pub(crate) struct PutDefinition {
    pub(crate) definition: IndexDefinition,
    pub(crate) lock: Option<LockMode>,
    pub(crate) priority: Option<Priority>,
    pub(crate) is_disabled: bool,
}

impl From<IndexDefinition> for PutDefinition {
    fn from(definition: IndexDefinition) -> Self {
        Self { definition, lock: None, priority: None, is_disabled: false }
    }
}

/// Reads a lock mode.
pub(crate) fn lock_mode(name: &str) -> Option<LockMode> {
    [LockMode::Unlock, LockMode::LockedIgnore, LockMode::LockedError].into_iter().find(|&lock| lock_name(lock) == name)
}

/// A lock mode in RavenDB's words.
pub(crate) fn lock_name(lock: LockMode) -> &'static str {
    match lock {
        LockMode::Unlock => "Unlock",
        LockMode::LockedIgnore => "LockedIgnore",
        LockMode::LockedError => "LockedError",
    }
}

/// Reads a priority.
pub(crate) fn priority(name: &str) -> Option<Priority> {
    [Priority::Low, Priority::Normal, Priority::High].into_iter().find(|&priority| priority_name(priority) == name)
}

/// A priority in RavenDB's words.
pub(crate) fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "Low",
        Priority::Normal => "Normal",
        Priority::High => "High",
    }
}

/// Reads one definition.
///
/// # Errors
/// 400: no name or maps, a value of the wrong kind, or a setting that is not supported.
pub(crate) fn read_definition(fields: &Map<String, Value>) -> Result<PutDefinition, ApiError> {
    let name = match fields.get("Name") {
        Some(Value::String(name)) if !name.trim().is_empty() => name.clone(),
        _ => return Err(invalid("An index definition needs a 'Name'.")),
    };
    for (setting, value) in fields {
        check_setting(&name, setting, value)?;
    }
    let maps = match fields.get("Maps") {
        Some(Value::Array(maps)) if !maps.is_empty() => {
            maps.iter().map(|map| script(&name, map)).collect::<Result<_, _>>()?
        }
        _ => return Err(invalid(format!("Index '{name}' needs 'Maps': one or more Rhai scripts."))),
    };
    let texts = Texts { maps, reduce: text(&name, fields, "Reduce")? };
    let lock = text(&name, fields, "LockMode")?.as_deref().and_then(lock_mode);
    let priority = text(&name, fields, "Priority")?.as_deref().and_then(priority);
    let is_disabled = fields.get("State").and_then(Value::as_str) == Some("Disabled");
    let definition = IndexDefinition {
        texts,
        output: text(&name, fields, "OutputReduceToCollection")?,
        reference_pattern: text(&name, fields, "PatternForOutputReduceToCollectionReferences")?,
        reference_collection: text(&name, fields, "PatternReferencesCollectionName")?,
        name,
    };
    Ok(PutDefinition { definition, lock, priority, is_disabled })
}

fn check_setting(name: &str, setting: &str, value: &Value) -> Result<(), ApiError> {
    if READ.contains(&setting) || ANSWERED.contains(&setting) || is_unset(value) {
        return Ok(());
    }
    match HARMLESS.iter().find(|(known, _)| *known == setting) {
        Some((_, values)) if value.as_str().is_some_and(|value| values.contains(&value)) => Ok(()),
        Some((_, values)) => Err(invalid(format!(
            "Index '{name}': the setting '{setting}' can only be one of {}, but is {value}.",
            values.join(", ")
        ))),
        None => Err(invalid(format!("Index '{name}': the setting '{setting}' is not supported; leave it out."))),
    }
}

/// Whether a setting says nothing: clients send every one that they know.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_unset),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn script(name: &str, value: &Value) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => Err(invalid(format!("Index '{name}': 'Maps' must hold scripts as strings, but has {other}."))),
    }
}

fn text(name: &str, fields: &Map<String, Value>, setting: &str) -> Result<Option<String>, ApiError> {
    match fields.get(setting) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(other) => Err(invalid(format!("Index '{name}': '{setting}' must be a string, but is {other}."))),
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, names::INDEX_INVALID, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &Value) -> Result<IndexDefinition, ApiError> {
        read_definition(json.as_object().unwrap()).map(|put| put.definition)
    }

    #[test]
    fn what_the_clients_send_by_default_is_accepted() {
        let definition = read(&serde_json::json!({
            "Name": "Sales", "Maps": ["m"], "Reduce": "r", "OutputReduceToCollection": "Out", "Priority": "Normal",
            "State": null, "LockMode": "Unlock", "AdditionalSources": {}, "AdditionalAssemblies": [], "CompoundFields": [],
            "Fields": {"x": {"Indexing": null, "Storage": null}}, "Configuration": {}, "IndexType": "JavaScriptMapReduce",
            "DeploymentMode": null, "ReduceOutputIndex": 7, "PatternForOutputReduceToCollectionReferences": null,
        }))
        .unwrap();
        assert_eq!(definition.name, "Sales");
        assert_eq!(definition.texts, Texts { maps: vec!["m".to_owned()], reduce: Some("r".to_owned()) });
        assert_eq!(definition.output.as_deref(), Some("Out"));
        assert_eq!(definition.reference_pattern, None);
    }

    #[test]
    fn settings_that_would_change_results_are_refused_by_name() {
        for (setting, value) in [
            ("Fields", serde_json::json!({"x": {"Indexing": "Search"}})),
            ("AdditionalSources", serde_json::json!({"a.cs": "…"})),
            ("Configuration", serde_json::json!({"Indexing.Static.SearchEngineType": "Lucene"})),
            ("LockMode", "Locked".into()),
            ("State", "Error".into()),
            ("SourceType", "TimeSeries".into()),
            ("Frobnicate", true.into()),
        ] {
            let error = read(&serde_json::json!({"Name": "A", "Maps": ["m"], setting: value})).unwrap_err();
            assert_eq!(error.status(), StatusCode::BAD_REQUEST);
            assert!(error.message().contains(setting), "{}", error.message());
        }
    }

    #[test]
    fn a_definition_needs_a_name_and_maps() {
        for bad in [
            serde_json::json!({"Maps": ["m"]}),
            serde_json::json!({"Name": " ", "Maps": ["m"]}),
            serde_json::json!({"Name": "A"}),
            serde_json::json!({"Name": "A", "Maps": []}),
            serde_json::json!({"Name": "A", "Maps": [1]}),
            serde_json::json!({"Name": "A", "Maps": ["m"], "Reduce": 1}),
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
