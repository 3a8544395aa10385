//! `/indexes/{name}/results`: what an index holds, by reduce key and ranges of keys, as CouchDB's views are asked.
//!
//! Keys are JSON and ordered by type and value. Ascending begins with `startkey` and ends with `endkey`; `descending` turns that
//! around, so bounds in the wrong order hold nothing. Without more each group is a row; `group_level=n` adds groups up whose
//! array keys begin with the same n elements; `reduce=false` gives the entries with their documents' ids.
//!
//! Next on the walk: `index::ranges`.

use std::ops::Bound;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json;
use super::queries;
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Ended, Sink};
use super::wire::text::write_string;
use crate::index::ordered_key::ordered_key;
use crate::index::ranges::{Answered, Asked, Go, Shape};
use crate::index::read::KeyBounds;
use crate::script::encoding::encode_json;
use crate::script::{Fault, Limits, STACK_BYTES};
use crate::store::scan::Direction;

/// What CouchDB has and would change the answer.
const UNSUPPORTED: [&str; 7] = [
    "include_docs",
    "startkey_docid",
    "endkey_docid",
    "start_key_doc_id",
    "end_key_doc_id",
    "conflicts",
    "attachments",
];

#[derive(Deserialize)]
struct Keys {
    keys: Vec<Box<RawValue>>,
}

/// One page of rows.
struct Page {
    asked: Asked,
    skip: u64,
    limit: u64,
}

/// Answers what the URL asks.
pub(crate) async fn get(
    State(host): State<Shared>,
    lease: Lease,
    Path((_, name)): Path<(String, String)>,
    query: Query,
) -> Result<Response, ApiError> {
    let keys = query.text("keys").map(str::to_owned);
    let keys = keys
        .map(|keys| serde_json::from_str::<Vec<Box<RawValue>>>(&keys).map_err(|_| bad("keys", &keys, "a JSON array")));
    answer(host, lease, name, query, keys.transpose()?).await
}

/// The same with a list of keys in the body.
pub(crate) async fn post(
    State(host): State<Shared>,
    lease: Lease,
    Path((_, name)): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let keys: Keys = json::read(payload.bytes(), "an object with \"keys\": […]")?;
    answer(host, lease, name, query, Some(keys.keys)).await
}

async fn answer(
    host: Shared,
    lease: Lease,
    name: String,
    query: Query,
    keys: Option<Vec<Box<RawValue>>>,
) -> Result<Response, ApiError> {
    query.refuse(&UNSUPPORTED, "an index's results")?;
    let wait = waits(&query)?;
    let Some(has_reduce) = lease.index_reduces(&name) else { return Err(ApiError::no_index(&name)) };
    let page = page(&query, keys, has_reduce)?;
    if wait {
        let timeout = query.time_span("waitForNonStaleResultsTimeout")?.unwrap_or(queries::WAIT);
        queries::wait(&host, &lease, &name, timeout.min(host.settings.limits.wait_max)).await?;
    }
    let asked_name = name.clone();
    let stand = move || {
        let standing = lease.index_standing(&asked_name)?.ok_or_else(|| ApiError::no_index(&asked_name))?;
        Ok((lease, standing.is_stale))
    };
    let (lease, is_stale) = host.blocking(stand).await?;
    stream::listing(&host.clone(), json::CONTENT_TYPE, move |sink| {
        // Totals call scripts, which need more stack than the threads of listings have.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("index-results".to_owned()).stack_size(STACK_BYTES);
            let writing = thread.spawn_scoped(scope, || write(&host, &lease, &name, &page, is_stale, sink));
            match writing.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(written)) => written,
                Ok(Err(_)) => Err(ApiError::internal("A thread that read an index broke.").into()),
                Err(error) => Err(ApiError::busy(format!("No thread could be started: {error}")).into()),
            }
        })
    })
    .await
}

/// Whether the answer is to be current: `update=true`, `stale=false` or RavenDB's word for it.
fn waits(query: &Query) -> Result<bool, ApiError> {
    let by_stale = match query.text("stale") {
        None | Some("ok" | "update_after") => false,
        Some("false") => true,
        Some(other) => return Err(bad("stale", other, "ok, update_after or false")),
    };
    let by_update = match query.text("update") {
        None | Some("false" | "lazy") => false,
        Some("true") => true,
        Some(other) => return Err(bad("update", other, "true, false or lazy")),
    };
    Ok(by_stale || by_update || query.switch("waitForNonStaleResults", false)?)
}

fn page(query: &Query, keys: Option<Vec<Box<RawValue>>>, has_reduce: bool) -> Result<Page, ApiError> {
    let direction = if query.switch("descending", false)? { Direction::Backward } else { Direction::Forward };
    let level = query.number("group_level")?.map(|level| usize::try_from(level).unwrap_or(usize::MAX));
    let reduces = query.switch("reduce", has_reduce)?;
    if reduces && !has_reduce {
        return Err(ApiError::argument("This index has no reduce; leave reduce=true out."));
    }
    if !reduces && (level.is_some() || query.switch("group", false)?) {
        return Err(ApiError::argument("Entries are not grouped; leave group and group_level out, or reduce=false."));
    }
    let shape = match level {
        _ if !reduces => Shape::Entries,
        Some(level) => Shape::Level(level),
        None if query.switch("group", true)? => Shape::Groups,
        None => Shape::Level(0),
    };
    let bounds = |names: [&'static str; 2]| names.iter().find_map(|name| query.text(name).map(|value| (*name, value)));
    let (start, end) = (bounds(["startkey", "start_key"]), bounds(["endkey", "end_key"]));
    let ranges = match (query.text("key"), keys) {
        (Some(_), _) | (_, Some(_)) if start.is_some() || end.is_some() => {
            return Err(ApiError::argument(
                "Give key, keys, or a range with startkey and endkey, not several of them.",
            ));
        }
        (Some(_), Some(_)) => return Err(ApiError::argument("Give key or keys, not both.")),
        (Some(key), None) => vec![exactly(key_of("key", key)?)],
        (None, Some(keys)) => {
            keys.iter().map(|key| Ok(exactly(key_of("keys", key.get())?))).collect::<Result<_, ApiError>>()?
        }
        (None, None) => vec![range(query, start, end, direction)?],
    };
    Ok(Page {
        asked: Asked { ranges, direction, shape },
        skip: query.number("skip")?.unwrap_or(0),
        limit: query.number("limit")?.unwrap_or(u64::MAX),
    })
}

fn exactly(key: Vec<u8>) -> KeyBounds {
    KeyBounds { from: Bound::Included(key.clone()), to: Bound::Included(key) }
}

fn range(
    query: &Query,
    start: Option<(&'static str, &str)>,
    end: Option<(&'static str, &str)>,
    direction: Direction,
) -> Result<KeyBounds, ApiError> {
    let start = start.map(|(name, key)| key_of(name, key)).transpose()?.map_or(Bound::Unbounded, Bound::Included);
    let includes_end = query.switch("inclusive_end", true)?;
    let end = match end.map(|(name, key)| key_of(name, key)).transpose()? {
        None => Bound::Unbounded,
        Some(end) if includes_end => Bound::Included(end),
        Some(end) => Bound::Excluded(end),
    };
    Ok(match direction {
        Direction::Forward => KeyBounds { from: start, to: end },
        Direction::Backward => KeyBounds { from: end, to: start },
    })
}

/// Reads a key of a parameter as an ordered key.
fn key_of(name: &str, text: &str) -> Result<Vec<u8>, ApiError> {
    let mut canonical = Vec::new();
    encode_json(text, Limits::default().depth_max, &mut canonical)
        .map_err(|error| bad(name, text, &format!("a key as JSON ({error}; a string stands in quotes)")))?;
    Ok(ordered_key(&canonical))
}

fn write(host: &Shared, lease: &Lease, name: &str, page: &Page, is_stale: bool, sink: &mut Sink) -> Result<(), Ended> {
    let (has_gone, closing) = (sink.watch_reader(), lease.stop_signal());
    let (mut skipped, mut written, mut read) = (0, 0, 0_u64);
    sink.buffer.extend_from_slice(b"{\"rows\":[");
    let mut each = |row: Answered| {
        read += 1;
        if read.is_multiple_of(256) && (has_gone() || host.is_stopping() || *closing.borrow()) {
            return Err(Ended::Gone);
        }
        if skipped < page.skip {
            skipped += 1;
            return Ok(Go::On);
        }
        if written >= page.limit {
            return Ok(Go::Stop);
        }
        if written > 0 {
            sink.buffer.push(b',');
        }
        write_row(&row, sink);
        written += 1;
        sink.send_if_full()?;
        Ok(if written >= page.limit { Go::Stop } else { Go::On })
    };
    if page.limit > 0 {
        lease.index_rows(name, &page.asked, &mut each)?;
    }
    drop(has_gone);
    sink.buffer.extend_from_slice(b"],\"index\":");
    write_string(name, &mut sink.buffer);
    sink.buffer.extend_from_slice(if is_stale { b",\"stale\":true}" } else { b",\"stale\":false}" });
    Ok(())
}

fn write_row(row: &Answered, sink: &mut Sink) {
    sink.buffer.push(b'{');
    if let Some(id) = &row.id {
        sink.buffer.extend_from_slice(b"\"id\":");
        write_string(id, &mut sink.buffer);
        sink.buffer.push(b',');
    }
    sink.buffer.extend_from_slice(b"\"key\":");
    sink.buffer.extend_from_slice(row.key.as_bytes());
    match &row.value {
        Ok(value) => {
            sink.buffer.extend_from_slice(b",\"value\":");
            sink.buffer.extend_from_slice(value.as_bytes());
        }
        Err(fault) => {
            sink.buffer.extend_from_slice(b",\"error\":");
            write_string(&fault.to_string(), &mut sink.buffer);
        }
    }
    sink.buffer.push(b'}');
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Failed(ApiError::internal(format!("The index's script does not run: {fault}")))
    }
}
