//! `/bulk_docs`: many writes, all or nothing.
//!
//! This is the way of bulk loads, so the batch is never built as a tree of values: commands are read in one pass with
//! their documents as slices of the body's text, and each slice goes to `Document::parse` as it stands.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::body::{self, BodyLimit, Payload};
use super::documents::check_inner_id;
use super::error::{ApiError, names};
use super::index_wait::IndexWait;
use super::json;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::settings::ServerLimits;
use super::wire::text::{time, write_string};
use crate::database::{DatabaseError, Write};
use crate::store::commit::{Expected, OperationResult};
use crate::store::document::Document;

/// Batches up to this many bytes are parsed where they are: a hop to another thread costs more.
const PARSE_IN_PLACE_BYTES: usize = 32 * 1024;

/// The types of RavenDB's commands that Treepie does not have.
const KNOWN_TYPES: [&str; 19] = [
    "PATCH",
    "BatchPATCH",
    "JsonPatch",
    "ForceRevisionCreation",
    "BatchTrackChanges",
    "AttachmentPUT",
    "AttachmentDELETE",
    "AttachmentMOVE",
    "AttachmentCOPY",
    "Counters",
    "BatchCounters",
    "TimeSeries",
    "TimeSeriesBulkInsert",
    "TimeSeriesCopy",
    "TimeSeriesWithIncrements",
    "CompareExchangePUT",
    "CompareExchangeDELETE",
    "CompareExchangePatch",
    "HeartBeat",
];

/// The most commands of one batch: each takes some 200 bytes of memory beside the text.
const COMMANDS_MAX: usize = 1_000_000;

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow, rename = "Commands")]
    commands: Commands<'a>,
    #[serde(rename = "TransactionMode")]
    transaction_mode: Option<String>,
}

/// The commands, read so that an error names its position.
struct Commands<'a>(Vec<Command<'a>>);

#[derive(Deserialize)]
struct Command<'a> {
    #[serde(rename = "Type")]
    kind: Option<String>,
    #[serde(rename = "Id")]
    id: Option<String>,
    #[serde(rename = "ChangeVector")]
    change_vector: Option<String>,
    #[serde(borrow, rename = "Document")]
    document: Option<&'a RawValue>,
    #[serde(rename = "IdPrefixed", default)]
    id_prefixed: Option<bool>,
    #[serde(rename = "ForceRevisionCreationStrategy")]
    force_revision: Option<String>,
}

/// A command that was checked.
enum Asked {
    Put(Document, Expected),
    Delete(Expected),
}

/// Writes a batch.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let limits = host.settings.limits.clone();
    let wait = IndexWait::read(&query, &lease, &limits)?;
    let payload = body::read(&host, &headers, body, BodyLimit::batch(&limits)).await?;
    let writes = if payload.bytes().len() <= PARSE_IN_PLACE_BYTES {
        read_batch(&payload, &limits)?
    } else {
        host.blocking(move || read_batch(&payload, &limits)).await?
    };
    let committed = lease.write_async(writes).await.map_err(refused)?;
    if let Some(wait) = wait {
        wait.wait(&host, lease, &committed).await?;
    }
    Ok(json::json_bytes(StatusCode::CREATED, write_results(&committed.results)))
}

fn read_batch(payload: &Payload, limits: &ServerLimits) -> Result<Vec<Write>, ApiError> {
    let batch: Batch<'_> = serde_json::from_slice(payload.bytes())
        .map_err(|error| ApiError::data(format!("The body is not a batch {{\"Commands\":[…]}}: {error}")))?;
    if let Some(mode) = batch.transaction_mode.filter(|mode| !mode.eq_ignore_ascii_case("SingleNode")) {
        return Err(ApiError::unsupported(&format!("the transaction mode '{mode}'")));
    }
    let commands = batch.commands.0;
    let mut writes = Vec::with_capacity(commands.len());
    for (position, command) in commands.into_iter().enumerate() {
        let asked = check_command(&command, limits).map_err(|error| error.at(&place(position, &command)))?;
        writes.push(match asked {
            Asked::Put(document, expected) => Write::Put { id: command.id, document, expected },
            Asked::Delete(expected) => Write::Delete { id: command.id.unwrap_or_default(), expected },
        });
    }
    Ok(writes)
}

/// Reads one element of a bulk insert; `None` for a heartbeat.
///
/// # Errors
/// It is no PUT, or its document is refused.
pub(crate) fn read_insert(json: &[u8], limits: &ServerLimits) -> Result<Option<Write>, ApiError> {
    let command: Command<'_> = serde_json::from_slice(json).map_err(|error| {
        ApiError::data(format!("It is not {{\"Id\":…,\"Type\":\"PUT\",\"Document\":{{…}}}}: {error}"))
    })?;
    if command.kind.as_deref() == Some("HeartBeat") {
        return Ok(None);
    }
    match check_command(&command, limits)? {
        Asked::Put(document, expected) => Ok(Some(Write::Put { id: command.id, document, expected })),
        Asked::Delete(_) => Err(ApiError::argument("A bulk insert takes PUT only; delete with bulk_docs.")),
    }
}

fn check_command(command: &Command<'_>, limits: &ServerLimits) -> Result<Asked, ApiError> {
    let expected = match command.change_vector.as_deref() {
        None => Expected::Any,
        Some("") => Expected::New,
        Some(vector) => Expected::ChangeVector(vector.to_owned()),
    };
    match command.kind.as_deref() {
        Some("PUT") => Ok(Asked::Put(check_put(command, limits)?, expected)),
        Some("DELETE") if command.id_prefixed == Some(true) => {
            Err(ApiError::unsupported("DELETE by prefix (IdPrefixed)"))
        }
        Some("DELETE") if command.id.as_deref().is_none_or(|id| id.trim().is_empty()) => {
            Err(ApiError::argument("A DELETE needs an 'Id'."))
        }
        Some("DELETE") => Ok(Asked::Delete(expected)),
        Some(other) if KNOWN_TYPES.contains(&other) => {
            Err(ApiError::unsupported(&format!("commands of type '{other}'")))
        }
        Some(other) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            names::INVALID_COMMAND,
            format!("'{other}' is no type of command; use PUT or DELETE."),
        )),
        None => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            names::INVALID_OPERATION,
            "A command needs a 'Type': PUT or DELETE.",
        )),
    }
}

fn check_put(command: &Command<'_>, limits: &ServerLimits) -> Result<Document, ApiError> {
    if let Some(strategy) = command.force_revision.as_deref().filter(|strategy| *strategy != "None") {
        return Err(ApiError::unsupported(&format!("ForceRevisionCreationStrategy '{strategy}'")));
    }
    let Some(document) = command.document else {
        return Err(ApiError::argument("A PUT needs a 'Document'."));
    };
    let json = document.get().as_bytes();
    if json.len() > limits.document_bytes_max {
        return Err(BodyLimit::document(limits).exceeded());
    }
    let parsed = Document::parse(json)?;
    check_inner_id(&parsed, command.id.as_deref())?;
    Ok(parsed.document)
}

/// Names the command that a write was refused for.
fn refused(error: DatabaseError) -> ApiError {
    let operation = match &error {
        DatabaseError::Write { operation, .. } => Some(*operation),
        _ => None,
    };
    match operation {
        Some(position) => ApiError::from(error).at(&format!("Nothing was written: command {position}, counted from 0")),
        None => error.into(),
    }
}

/// Names a command in an error.
fn place(position: usize, command: &Command<'_>) -> String {
    let kind = command.kind.as_deref().unwrap_or("no type");
    let id: String = command.id.as_deref().unwrap_or("").chars().take(80).collect();
    format!("Nothing was written: command {position}, counted from 0 ({kind} '{id}')")
}

fn write_results(results: &[OperationResult]) -> Vec<u8> {
    let mut into = Vec::with_capacity(32 + results.len() * 192);
    let mut last_time = (i64::MIN, String::new());
    into.extend_from_slice(b"{\"Results\":[");
    for (position, result) in results.iter().enumerate() {
        if position > 0 {
            into.push(b',');
        }
        match result {
            OperationResult::Put { id, change_vector, collection, modified_micros, .. } => {
                if last_time.0 != *modified_micros {
                    last_time = (*modified_micros, time(*modified_micros));
                }
                into.extend_from_slice(b"{\"Type\":\"PUT\",\"@id\":");
                write_string(id, &mut into);
                into.extend_from_slice(b",\"@collection\":");
                write_string(collection, &mut into);
                into.extend_from_slice(b",\"@change-vector\":");
                write_string(change_vector, &mut into);
                into.extend_from_slice(b",\"@last-modified\":");
                write_string(&last_time.1, &mut into);
                into.push(b'}');
            }
            OperationResult::Delete { id, existed, .. } => {
                into.extend_from_slice(b"{\"Id\":");
                write_string(id, &mut into);
                into.extend_from_slice(b",\"Type\":\"DELETE\",\"Deleted\":");
                into.extend_from_slice(if *existed { b"true" } else { b"false" });
                into.extend_from_slice(b",\"ChangeVector\":null}");
            }
        }
    }
    into.extend_from_slice(b"]}");
    into
}

impl<'de: 'a, 'a> Deserialize<'de> for Commands<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Commands<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of commands")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut commands = Vec::new();
                loop {
                    if commands.len() > COMMANDS_MAX {
                        return Err(A::Error::custom(format!(
                            "a batch has at most {COMMANDS_MAX} commands; send several"
                        )));
                    }
                    match seq.next_element::<Command<'de>>() {
                        Ok(Some(command)) => commands.push(command),
                        Ok(None) => return Ok(Commands(commands)),
                        Err(error) => {
                            let position = commands.len();
                            return Err(A::Error::custom(format!("command {position}, counted from 0: {error}")));
                        }
                    }
                }
            }
        }

        deserializer.deserialize_seq(Reader)
    }
}
