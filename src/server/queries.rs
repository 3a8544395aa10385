//! `/queries` and `/streams/queries`: RQL over HTTP.
//!
//! How current the answer is, and its etag, are read before the snapshot that the rows come from: the rows hold at least what
//! they say. Rows go out as they are read; an error after the first piece breaks the answer off.
//!
//! Next on the walk: `database::query`, `query`.

use std::hash::Hasher;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use siphasher::sip::SipHasher24;

use super::body::{self, BodyLimit};
use super::conditions;
use super::error::ApiError;
use super::host::{Host, signalled};
use super::includes::Named;
use super::json;
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Ended, Sink};
use super::wire::query::{Asked, Explained, Head, Tail, Timings, millis, total};
use super::wire::text::{now, time};
use crate::database::DatabaseError;
use crate::query::{Parameters, Prepared, QueryError, Request, Row, Subject, Value};

/// How long a query waits for an index, unless its caller says.
pub(crate) const WAIT: Duration = Duration::from_secs(15);
/// The time of what has none, as RavenDB writes it.
const NEVER: &str = "0001-01-01T00:00:00.0000000";

/// A query that may be answered.
struct Ready {
    lease: Lease,
    prepared: Prepared,
    metadata_only: bool,
    is_paged: bool,
    includes_max: usize,
    index_name: String,
    index_timestamp: String,
    is_stale: bool,
    etag: u64,
    node_tag: String,
    began: Instant,
    waited: Duration,
}

/// Answers a query in the URL.
pub(crate) async fn get(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    answer(&host, lease, &query, asked_in_url(&query)?, &headers).await
}

/// Answers a query in the body.
pub(crate) async fn post(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let asked = asked_in_body(&host, &headers, body).await?;
    answer(&host, lease, &query, asked, &headers).await
}

/// Streams the rows of a query in the URL.
pub(crate) async fn stream_get(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    stream_rows(&host, lease, &query, asked_in_url(&query)?).await
}

/// Streams the rows of a query in the body.
pub(crate) async fn stream_post(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let asked = asked_in_body(&host, &headers, body).await?;
    stream_rows(&host, lease, &query, asked).await
}

/// Refuses patches by query.
pub(crate) async fn refuse_patch(_: Lease) -> ApiError {
    ApiError::unsupported("patching by query")
}

/// Reads a query from a body.
pub(crate) async fn asked_in_body(host: &Host, headers: &HeaderMap, body: Body) -> Result<Asked, ApiError> {
    let payload = body::read(host, headers, body, BodyLimit::request(&host.settings.limits)).await?;
    json::read(payload.bytes(), "an object with \"Query\": \"from …\"")
}

fn asked_in_url(query: &Query) -> Result<Asked, ApiError> {
    let raw = |name: &str| {
        let text = query.text(name).map(|text| serde_json::value::RawValue::from_string(text.to_owned()));
        text.transpose()
            .map_err(|error| ApiError::argument(format!("The query parameter '{name}' is no JSON: {error}")))
    };
    let number =
        |name: &str| Ok::<_, ApiError>(query.count(name)?.map(|count| i64::try_from(count).unwrap_or(i64::MAX)));
    Ok(Asked {
        query: Some(query.required("query")?.to_owned()),
        query_parameters: raw("parameters")?,
        start: number("start")?,
        page_size: number("pageSize")?,
        wait_for_non_stale_results: Some(query.switch("waitForNonStaleResults", false)?),
        continuation: query.get("continuation").map(str::to_owned),
        ..Asked::default()
    })
}

/// Makes the request of the room `query`; what would change the answer and is not there is refused.
pub(crate) fn request(asked: &Asked, host: &Host) -> Result<Request, ApiError> {
    let behavior = asked.projection_behavior.as_deref().unwrap_or("Default");
    if !["Default", "FromDocument"].iter().any(|known| known.eq_ignore_ascii_case(behavior)) {
        return Err(ApiError::unsupported(&format!("the projection behavior '{behavior}', only FromDocument")));
    }
    let Some(text) = asked.query.clone() else {
        return Err(ApiError::argument("The body has no \"Query\"; write {\"Query\": \"from Orders\"}."));
    };
    let parameters = match asked.query_parameters.as_deref().map(serde_json::value::RawValue::get) {
        None | Some("null") => Parameters::default(),
        Some(json) => Parameters::parse(json)?,
    };
    let count = |count: Option<i64>| count.map(|count| u64::try_from(count).unwrap_or(0));
    let page_size = asked.page_size.filter(|size| *size != i64::from(i32::MAX));
    Ok(Request {
        parameters,
        start: count(asked.start),
        page_size: count(page_size),
        counts: asked.skip_statistics != Some(true),
        continuation: asked.continuation.clone(),
        memory_max: host.settings.limits.query_memory_max,
        ..Request::new(&text)
    })
}

/// Prepares a query, waits where it was asked for, and learns how current the answer will be.
async fn ready(host: &Host, lease: Lease, query: &Query, asked: Asked) -> Result<Ready, ApiError> {
    let began = Instant::now();
    let request = request(&asked, host)?;
    let prepare = move || {
        let prepared = lease.prepare_query(&request).map_err(|error| refused(error, &request.text))?;
        let index = lease.index_behind(&prepared)?;
        Ok((lease, prepared, index))
    };
    let (lease, prepared, index) = host.blocking(prepare).await?;
    if let Some(index) = &index
        && asked.wait_for_non_stale_results == Some(true)
    {
        let timeout = asked.timeout().map_err(|text| bad("WaitForNonStaleResultsTimeout", &text, "a time span"))?;
        wait(host, &lease, index, timeout.unwrap_or(WAIT).min(host.settings.limits.wait_max)).await?;
    }
    let waited = began.elapsed();
    let index_name = match (&prepared.index, prepared.collection()) {
        (Some(index), _) => index.clone(),
        (None, Some(collection)) => format!("collection/{collection}"),
        (None, None) => "AllDocs".to_owned(),
    };
    let stand = move || {
        let standing = index.map(|index| lease.index_standing(&index)).transpose()?.flatten();
        let durable = lease.store().progress().durable;
        Ok((lease, standing, durable))
    };
    let (lease, standing, durable) = host.blocking(stand).await?;
    let is_stale = standing.as_ref().is_some_and(|standing| standing.is_stale);
    let version = standing.as_ref().map_or(&[][..], |standing| standing.version.as_slice());
    let run = standing.as_ref().and_then(|standing| standing.last_run_micros);
    Ok(Ready {
        metadata_only: query.switch("metadataOnly", false)?,
        is_paged: asked.continuation.is_some(),
        includes_max: host.settings.limits.includes_max,
        index_name,
        index_timestamp: run.map_or_else(|| NEVER.to_owned(), time),
        is_stale,
        etag: result_etag(durable, is_stale, version),
        node_tag: host.node.tag.clone(),
        lease,
        prepared,
        began,
        waited,
    })
}

/// Waits for an index and all that it feeds on; an answer that is stale all the same says so.
pub(crate) async fn wait(host: &Host, lease: &Lease, index: &str, timeout: Duration) -> Result<(), ApiError> {
    let (mut stopping, mut closing) = (host.stop_signal(), lease.stop_signal());
    let outcome = tokio::select! {
        outcome = lease.wait_for_indexes_async(Some(vec![index.to_owned()]), timeout) => outcome,
        () = signalled(&mut stopping) => return Err(ApiError::busy("The server stops.")),
        () = signalled(&mut closing) => return Err(ApiError::busy("The database closes.")),
    };
    match outcome {
        Ok(()) | Err(DatabaseError::StillStale { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A number that changes with everything that could change an answer; JavaScript keeps 53 bits of it.
fn result_etag(durable: u64, is_stale: bool, version: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(b"treepie/results1");
    hasher.write_u64(durable);
    hasher.write_u8(u8::from(is_stale));
    hasher.write(version);
    hasher.finish() >> 11
}

/// The refusal of a query, with its text, as RavenDB shows it.
pub(crate) fn refused(error: QueryError, text: &str) -> ApiError {
    let shows_text = matches!(error, QueryError::Syntax { .. } | QueryError::Unsupported { .. } | QueryError::Rule(_));
    let error = ApiError::from(error);
    if !shows_text {
        return error;
    }
    let shown: String = text.chars().take(2_000).collect();
    ApiError::new(error.status(), error.type_name(), format!("{}\nQuery:\n{shown}", error.message()))
}

async fn answer(
    host: &Shared,
    lease: Lease,
    query: &Query,
    asked: Asked,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let debug = query.text("debug").map(str::to_owned);
    if let Some(other) = debug.as_deref().filter(|debug| !debug.eq_ignore_ascii_case("explain")) {
        return Err(ApiError::unsupported(&format!("debug={other} of a query, only debug=explain")));
    }
    let ready = ready(host, lease, query, asked).await?;
    let etag = HeaderValue::from_str(&format!("\"{}\"", ready.etag))
        .map_err(|_| ApiError::internal("An etag does not fit into a header."))?;
    if debug.is_none() && conditions::is_known(headers, &ready.etag.to_string())? {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let stopping = Shared::clone(host);
    let mut response = stream::listing(host, json::CONTENT_TYPE, move |sink| match debug {
        Some(_) => explain(&ready, &stopping, sink),
        None => write(&ready, &stopping, sink),
    })
    .await?;
    response.headers_mut().insert(header::ETAG, etag);
    Ok(response)
}

fn write(ready: &Ready, host: &Host, sink: &mut Sink) -> Result<(), Ended> {
    let began = Instant::now();
    let snapshot = ready.lease.store().snapshot();
    let (mut named, mut is_first) = (Named::default(), true);
    sink.buffer.extend_from_slice(b"{\"Results\":[");
    let cancelled = ready.cancelled(host, sink);
    let summary = ready.prepared.run(&snapshot, &cancelled, &mut |row| {
        if !std::mem::take(&mut is_first) {
            sink.buffer.push(b',');
        }
        ready.prepared.write(row, ready.metadata_only, &mut sink.buffer);
        ready.include(row, &mut named)?;
        sink.send_if_full()
    })?;
    drop(cancelled);
    sink.buffer.extend_from_slice(b"],\"Includes\":");
    named.write(&snapshot, sink)?;
    let paths = ready.prepared.includes();
    let timings = ready.prepared.wants_timings();
    append(
        sink,
        &Tail {
            total_results: total(summary.total),
            skipped_results: summary.duplicates,
            scanned_results: summary.read,
            duration_in_ms: millis(ready.began.elapsed()),
            included_paths: (!paths.is_empty()).then(|| paths.iter().map(ToString::to_string).collect()),
            index_name: &ready.index_name,
            index_timestamp: &ready.index_timestamp,
            last_query_time: &now(),
            is_stale: ready.is_stale,
            result_etag: ready.etag,
            node_tag: &ready.node_tag,
            continuation: ready.is_paged.then(|| summary.continuation.into()),
            timings: timings.then(|| Timings::parts(ready.waited, began.elapsed())),
        },
    )
}

fn explain(ready: &Ready, host: &Host, sink: &mut Sink) -> Result<(), Ended> {
    let began = Instant::now();
    let cancelled = ready.cancelled(host, sink);
    let snapshot = ready.lease.store().snapshot();
    let summary = ready.prepared.run(&snapshot, &cancelled, &mut |_| Ok::<(), Ended>(()))?;
    drop(cancelled);
    let explained = Explained::new(&summary, began.elapsed(), &ready.index_name, ready.is_stale);
    serde_json::to_writer(&mut sink.buffer, &explained).map_err(|error| broken(&error).into())
}

/// Answers with the rows one by one: JSON lines, or one object.
async fn stream_rows(host: &Shared, lease: Lease, query: &Query, asked: Asked) -> Result<Response, ApiError> {
    let is_lines = match query.text("format").unwrap_or("json") {
        "json" => false,
        "jsonl" => true,
        other => return Err(bad("format", other, "json or jsonl")),
    };
    if asked.continuation.is_some() {
        return Err(ApiError::argument("A stream has no pages; leave the continuation out, or ask /queries."));
    }
    let ready = ready(host, lease, query, asked).await?;
    if !ready.prepared.includes().is_empty() {
        return Err(ApiError::unsupported("'include' in a stream; ask /queries"));
    }
    let content_type = match is_lines {
        true => HeaderValue::from_static("application/x-ndjson; charset=utf-8"),
        false => json::CONTENT_TYPE,
    };
    let stopping = Shared::clone(host);
    stream::listing(host, content_type, move |sink| write_stream(&ready, &stopping, is_lines, sink)).await
}

fn write_stream(ready: &Ready, host: &Host, is_lines: bool, sink: &mut Sink) -> Result<(), Ended> {
    let snapshot = ready.lease.store().snapshot();
    let head = Head {
        result_etag: ready.etag,
        is_stale: ready.is_stale,
        index_name: &ready.index_name,
        total_results: total(ready.prepared.total(&snapshot)?),
        index_timestamp: &ready.index_timestamp,
    };
    let head = serde_json::to_string(&head).map_err(|error| broken(&error))?;
    let (begin, before, between, after, end) = match is_lines {
        true => (format!("{{\"Stats\":{head}}}\n"), "{\"Item\":", "", "}\n", ""),
        false => (format!("{},\"Results\":[", head.trim_end_matches('}')), "", ",", "", "]}"),
    };
    sink.buffer.extend_from_slice(begin.as_bytes());
    let cancelled = ready.cancelled(host, sink);
    let mut is_first = true;
    ready.prepared.run(&snapshot, &cancelled, &mut |row| {
        if !std::mem::take(&mut is_first) {
            sink.buffer.extend_from_slice(between.as_bytes());
        }
        sink.buffer.extend_from_slice(before.as_bytes());
        ready.prepared.write(row, ready.metadata_only, &mut sink.buffer);
        sink.buffer.extend_from_slice(after.as_bytes());
        sink.send_if_full()
    })?;
    drop(cancelled);
    sink.buffer.extend_from_slice(end.as_bytes());
    Ok(())
}

fn broken(error: &serde_json::Error) -> ApiError {
    ApiError::internal(format!("An answer could not be written as JSON: {error}"))
}

impl Ready {
    /// Whether nobody waits for the rows any more, or the server has no time left for them.
    fn cancelled<'a>(&self, host: &'a Host, sink: &Sink) -> impl Fn() -> bool + use<'a> {
        let (has_gone, closing) = (sink.watch_reader(), self.lease.stop_signal());
        move || has_gone() || host.is_stopping() || *closing.borrow()
    }

    fn include(&self, row: &Row<'_>, named: &mut Named) -> Result<(), ApiError> {
        let mut outcome = Ok(());
        for path in self.prepared.includes() {
            row.visit(&Subject::Path(path.clone()), &mut |value| {
                if let (Value::String(id), true) = (value, outcome.is_ok()) {
                    outcome = named.add(id, self.includes_max);
                }
            });
        }
        outcome
    }
}

/// Ends the object of an answer with these fields.
fn append(sink: &mut Sink, tail: &Tail<'_>) -> Result<(), Ended> {
    let tail = serde_json::to_string(tail).map_err(|error| broken(&error))?;
    sink.buffer.push(b',');
    sink.buffer.extend_from_slice(tail.trim_start_matches('{').as_bytes());
    Ok(())
}
