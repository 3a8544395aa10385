//! `/bulk_docs`: many writes, all or nothing.
//!
//! This is the way of bulk loads, so the batch is never built as a tree of values: commands are read in one pass with
//! their documents as slices of the body's text, and each slice goes to `Document::parse` as it stands.

use std::collections::{BTreeMap, HashMap};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::body::{self, BodyLimit, Payload};
use super::documents::check_inner_id;
use super::error::{ApiError, names};
use super::index_wait::IndexWait;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::settings::ServerLimits;
use super::unsupported::SCRIPT_PATCHES;
use super::wire::batch::{Note, write_results};
use super::{json, json_patch};
use crate::database::{DatabaseError, JsonPatch, Write};
use crate::store::commit::Expected;
use crate::store::document::Document;

/// Batches up to this many bytes are parsed where they are: a hop to another thread costs more.
const PARSE_IN_PLACE_BYTES: usize = 32 * 1024;

/// The types of RavenDB's commands that Treepie does not have.
const KNOWN_TYPES: [&str; 15] = [
    "ForceRevisionCreation",
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
    #[serde(borrow, rename = "JsonPatch")]
    json_patch: Option<&'a RawValue>,
    #[serde(rename = "ReturnDocument")]
    return_document: Option<bool>,
    /// Versions that documents must be in, by id.
    #[serde(rename = "TrackedEntities")]
    tracked: Option<BTreeMap<String, String>>,
}

/// A command that was checked.
enum Asked {
    Put(Document, Expected),
    Delete(Expected),
    Patch(JsonPatch, Expected),
    Track(BTreeMap<String, String>),
}

/// The writes of a batch, and what its answer must say beside their results.
#[derive(Default)]
struct Writes {
    writes: Vec<Write>,
    notes: HashMap<usize, Note>,
}

/// Writes a batch.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    if is_multipart(&headers) {
        return Err(ApiError::unsupported("attachments (a batch in a multipart body)"));
    }
    let limits = host.settings.limits.clone();
    let wait = IndexWait::read(&query, &lease, &limits)?;
    let payload = body::read(&host, &headers, body, BodyLimit::batch(&limits)).await?;
    let Writes { writes, notes } = if payload.bytes().len() <= PARSE_IN_PLACE_BYTES {
        read_batch(&payload, &limits)?
    } else {
        host.blocking(move || read_batch(&payload, &limits)).await?
    };
    let done = lease.done_async(writes).await.map_err(|error| refused(error, &notes))?;
    if let Some(wait) = wait {
        wait.wait(&host, lease, &done.committed).await?;
    }
    Ok(json::json_bytes(StatusCode::CREATED, write_results(&done, &notes)))
}

/// Only batches with attachments come in several parts.
fn is_multipart(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("multipart/"))
}

fn read_batch(payload: &Payload, limits: &ServerLimits) -> Result<Writes, ApiError> {
    let batch: Batch<'_> = serde_json::from_slice(payload.bytes())
        .map_err(|error| ApiError::data(format!("The body is not a batch {{\"Commands\":[…]}}: {error}")))?;
    if let Some(mode) = batch.transaction_mode.filter(|mode| !mode.eq_ignore_ascii_case("SingleNode")) {
        return Err(ApiError::unsupported(&format!("the transaction mode '{mode}'")));
    }
    let commands = batch.commands.0;
    let mut read = Writes { writes: Vec::with_capacity(commands.len()), ..Writes::default() };
    for (position, command) in commands.into_iter().enumerate() {
        let asked = check_command(&command, limits).map_err(|error| error.at(&place(position, &command)))?;
        read.add(asked, command);
    }
    Ok(read)
}

impl Writes {
    fn add(&mut self, asked: Asked, command: Command<'_>) {
        let id = command.id;
        match asked {
            Asked::Put(document, expected) => self.writes.push(Write::Put { id, document, expected }),
            Asked::Delete(expected) => self.writes.push(Write::Delete { id: id.unwrap_or_default(), expected }),
            Asked::Patch(patch, expected) => {
                let return_document = command.return_document.unwrap_or(false);
                self.notes.insert(self.writes.len(), Note::Patch { return_document });
                self.writes.push(Write::Patch { id: id.unwrap_or_default(), patch, expected });
            }
            Asked::Track(versions) => {
                self.notes.insert(self.writes.len(), Note::Tracked { checks: versions.len() });
                let check = |(id, vector)| Write::Check { id, expected: Expected::ChangeVector(vector) };
                self.writes.extend(versions.into_iter().map(check));
            }
        }
    }
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
        Asked::Delete(_) | Asked::Patch(..) | Asked::Track(_) => {
            Err(ApiError::argument("A bulk insert takes PUT only; use bulk_docs for other commands."))
        }
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
        Some(kind @ ("DELETE" | "JsonPatch")) if command.id.as_deref().is_none_or(|id| id.trim().is_empty()) => {
            Err(ApiError::argument(format!("A {kind} needs an 'Id'.")))
        }
        Some("DELETE") => Ok(Asked::Delete(expected)),
        Some("JsonPatch") => match command.json_patch {
            Some(patch) => Ok(Asked::Patch(json_patch::check(patch.get().as_bytes(), limits)?, expected)),
            None => Err(ApiError::argument("A JsonPatch needs its operations in 'JsonPatch'.")),
        },
        Some("BatchTrackChanges") => match &command.tracked {
            Some(versions) if !versions.is_empty() => Ok(Asked::Track(versions.clone())),
            _ => Err(ApiError::argument("A BatchTrackChanges needs change vectors by id in 'TrackedEntities'.")),
        },
        Some("PATCH" | "BatchPATCH") => Err(ApiError::unsupported(SCRIPT_PATCHES)),
        Some(other) if KNOWN_TYPES.contains(&other) => {
            Err(ApiError::unsupported(&format!("commands of type '{other}'")))
        }
        Some(other) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            names::INVALID_COMMAND,
            format!("'{other}' is no type of command; use PUT, DELETE or JsonPatch."),
        )),
        None => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            names::INVALID_OPERATION,
            "A command needs a 'Type': PUT, DELETE or JsonPatch.",
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
fn refused(error: DatabaseError, notes: &HashMap<usize, Note>) -> ApiError {
    let (DatabaseError::Write { operation, .. } | DatabaseError::Patch { operation, .. }) = &error else {
        return error.into();
    };
    // A command that names the versions of documents became several operations.
    let more = notes.iter().map(|(start, note)| match note {
        Note::Tracked { checks } if start < operation => checks.saturating_sub(1).min(operation - start),
        _ => 0,
    });
    let position = operation - more.sum::<usize>().min(*operation);
    ApiError::from(error).at(&format!("Nothing was written: command {position}, counted from 0"))
}

/// Names a command in an error.
fn place(position: usize, command: &Command<'_>) -> String {
    let kind = command.kind.as_deref().unwrap_or("no type");
    let id: String = command.id.as_deref().unwrap_or("").chars().take(80).collect();
    format!("Nothing was written: command {position}, counted from 0 ({kind} '{id}')")
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
