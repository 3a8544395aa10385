//! `/docs`: documents by id, one or many, lists of them, and single writes.
//!
//! Next on the walk: `store::commit`, by way of [`crate::database::Database::write_async`].

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::body::{self, BodyLimit};
use super::conditions;
use super::error::ApiError;
use super::host::Host;
use super::includes::{Includes, Named};
use super::index_wait::IndexWait;
use super::json;
use super::listing::{self, Framing, Page, Selection};
use super::patterns::Patterns;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Ended, Sink};
use super::wire::text::write_string;
use crate::database::Write;
use crate::id::{self, DocumentId};
use crate::store::changes::Feed;
use crate::store::commit::OperationResult;
use crate::store::document::{Document, ParsedDocument};

/// Bodies up to this many bytes are parsed where they are: a hop to another thread costs more.
const PARSE_IN_PLACE_BYTES: usize = 32 * 1024;

/// Documents that are read at once by id.
const READ_AT_ONCE: usize = 64;

#[derive(Deserialize)]
struct IdList {
    #[serde(rename = "Ids")]
    ids: Vec<Option<String>>,
}

/// Reads documents by id, or lists them.
pub(crate) async fn get(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let ids: Vec<String> = query.all("id").map(str::to_owned).collect();
    let metadata_only = query.switch("metadataOnly", false)?;
    let includes = Includes::read(&query, host.settings.limits.includes_max)?;
    match ids.as_slice() {
        [] => list(&host, lease, &query, metadata_only).await,
        [id] => get_one(&host, lease, id, Form { metadata_only, includes }, &headers).await,
        _ => get_by_ids(&host, lease, ids, Form { metadata_only, includes }).await,
    }
}

/// Reads many documents by an id list in the body.
pub(crate) async fn get_many(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let list: IdList = json::read(payload.bytes(), "an object with \"Ids\": [\"…\"]")?;
    let includes = Includes::read(&query, host.settings.limits.includes_max)?;
    let ids = list.ids.into_iter().map(Option::unwrap_or_default).collect();
    get_by_ids(&host, lease, ids, Form { metadata_only: query.switch("metadataOnly", false)?, includes }).await
}

/// Says whether a document exists, and its version.
pub(crate) async fn head(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = DocumentId::existing(query.required("id")?)?;
    let found = host.blocking(move || Ok(lease.store().snapshot().get(&id)?)).await?;
    let Some(document) = found else { return Ok(absent()) };
    let known = conditions::is_known(&headers, &document.change_vector)?;
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    Ok((status, [etag(&document.change_vector)?, (header::CONTENT_TYPE, json::CONTENT_TYPE)]).into_response())
}

/// Writes one document.
pub(crate) async fn put(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let id = query.get("id").map(str::to_owned);
    let expected = conditions::expected(&headers)?;
    let wait = IndexWait::read(&query, &lease, &host.settings.limits)?;
    let payload = body::read(&host, &headers, body, BodyLimit::document(&host.settings.limits)).await?;
    let parsed = if payload.bytes().len() <= PARSE_IN_PLACE_BYTES {
        Document::parse(payload.bytes())?
    } else {
        host.blocking(move || Ok(Document::parse(payload.bytes())?)).await?
    };
    check_inner_id(&parsed, id.as_deref())?;
    let committed = lease.write_async(vec![Write::Put { id, document: parsed.document, expected }]).await?;
    let Some(OperationResult::Put { id, change_vector, .. }) = committed.results.first() else {
        return Err(ApiError::internal("The commit of a put has no result of a put."));
    };
    if let Some(wait) = wait {
        wait.wait(&host, lease, &committed).await?;
    }
    let mut answer = b"{\"Id\":".to_vec();
    write_string(id, &mut answer);
    answer.extend_from_slice(b",\"ChangeVector\":");
    write_string(change_vector, &mut answer);
    answer.push(b'}');
    Ok(json::json_bytes(StatusCode::CREATED, answer))
}

/// Deletes one document; one that is missing is deleted already.
pub(crate) async fn delete(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = query.required("id")?.to_owned();
    let expected = conditions::expected(&headers)?;
    let wait = IndexWait::read(&query, &lease, &host.settings.limits)?;
    let committed = lease.write_async(vec![Write::Delete { id, expected }]).await?;
    if let Some(wait) = wait {
        wait.wait(&host, lease, &committed).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Refuses a body whose own `@metadata.@id` is not the id that it is written under.
pub(crate) fn check_inner_id(parsed: &ParsedDocument, id: Option<&str>) -> Result<(), ApiError> {
    let Some(inner) = parsed.id.as_deref() else { return Ok(()) };
    let given = id.unwrap_or_default();
    if id::lower(inner) == id::lower(given) {
        return Ok(());
    }
    let shown = |id: &str| id.chars().take(80).collect::<String>();
    let inner = shown(inner);
    let written = if given.trim().is_empty() { "no id".to_owned() } else { format!("id '{}'", shown(given)) };
    Err(ApiError::argument(format!(
        "The document's @metadata.@id is '{inner}', but it is written under {written}; give one and the same id, or leave @id out."
    )))
}

/// How documents are answered.
struct Form {
    metadata_only: bool,
    includes: Includes,
}

async fn get_one(host: &Host, lease: Lease, id: &str, form: Form, headers: &HeaderMap) -> Result<Response, ApiError> {
    if id.trim().is_empty() {
        return Err(ApiError::argument(
            "The query parameter 'id' is empty; give an id, or leave it out to list documents.",
        ));
    }
    let id = DocumentId::existing(id)?;
    let read = move || {
        let found = lease.store().snapshot().get(&id)?;
        Ok((lease, id, found))
    };
    let (lease, id, found) = host.blocking(read).await?;
    let Some(document) = found else { return Ok(absent()) };
    if !form.includes.is_empty() {
        // Without an ETag: it would say nothing about the documents that are sent along.
        return write_all(host, lease, vec![Some(id)], form).await;
    }
    if conditions::is_known(headers, &document.change_vector)? {
        return Ok((StatusCode::NOT_MODIFIED, [etag(&document.change_vector)?]).into_response());
    }
    let mut answer = Vec::with_capacity(document.body.len() + document.metadata.len() + 256);
    answer.extend_from_slice(b"{\"Results\":[");
    listing::write_document(&document, form.metadata_only, &mut answer);
    answer.extend_from_slice(b"],\"Includes\":{}}");
    let mut response = json::json_bytes(StatusCode::OK, answer);
    let (name, value) = etag(&document.change_vector)?;
    response.headers_mut().insert(name, value);
    Ok(response)
}

/// Among others an empty id stands for no document: clients send the ids of entities as they find them.
async fn get_by_ids(host: &Host, lease: Lease, ids: Vec<String>, form: Form) -> Result<Response, ApiError> {
    let read = |id: &String| (!id.trim().is_empty()).then(|| DocumentId::existing(id)).transpose();
    let ids = ids.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    write_all(host, lease, ids, form).await
}

async fn write_all(host: &Host, lease: Lease, ids: Vec<Option<DocumentId>>, form: Form) -> Result<Response, ApiError> {
    stream::listing(host, json::CONTENT_TYPE, move |sink| write_by_ids(&lease, &ids, &form, sink)).await
}

fn write_by_ids(lease: &Lease, ids: &[Option<DocumentId>], form: &Form, sink: &mut Sink) -> Result<(), Ended> {
    let (store, mut named) = (lease.store(), Named::default());
    let snapshot = store.snapshot();
    sink.buffer.extend_from_slice(b"{\"Results\":[");
    let mut first = true;
    for some in ids.chunks(READ_AT_ONCE) {
        let given: Vec<DocumentId> = some.iter().flatten().cloned().collect();
        let mut found = snapshot.get_many(&given)?.into_iter();
        for id in some {
            let document = id.as_ref().and_then(|_| found.next().flatten());
            if !std::mem::take(&mut first) {
                sink.buffer.push(b',');
            }
            match document {
                Some(document) => {
                    form.includes.collect(&document, &mut named)?;
                    listing::write_document(&document, form.metadata_only, &mut sink.buffer);
                }
                None => sink.buffer.extend_from_slice(b"null"),
            }
            sink.send_if_full()?;
        }
    }
    sink.buffer.extend_from_slice(b"],\"Includes\":");
    named.write(&snapshot, sink)?;
    sink.buffer.push(b'}');
    Ok(())
}

async fn list(host: &Host, lease: Lease, query: &Query, metadata_only: bool) -> Result<Response, ApiError> {
    query.refuse(&["include"], "a list of documents")?;
    let page = page(query, metadata_only)?;
    let selection = select(query)?;
    stream::listing(host, json::CONTENT_TYPE, move |sink| {
        listing::write(&lease, &selection, page, Framing::RESULTS_AND_INCLUDES, sink)
    })
    .await
}

/// Reads `start` and `pageSize`.
pub(crate) fn page(query: &Query, metadata_only: bool) -> Result<Page, ApiError> {
    let start = query.count("start")?.unwrap_or(0);
    Ok(Page { start, size: query.count("pageSize")?.unwrap_or(u64::MAX), metadata_only })
}

/// Reads which documents are wanted, and in which order.
pub(crate) fn select(query: &Query) -> Result<Selection, ApiError> {
    let matches = Patterns::parse("matches", query.text("matches"))?;
    let exclude = Patterns::parse("exclude", query.text("exclude"))?;
    let after = query.text("startAfter").map(str::to_owned);
    let prefix = query.get("startsWith");
    if prefix.is_none() && matches.is_none() && exclude.is_none() && after.is_none() {
        return Ok(match query.number("etag")? {
            Some(etag) => Selection::FromEtag(etag),
            None => Selection::Newest(Feed::All),
        });
    }
    query.refuse(&["etag"], "a list of documents in id order")?;
    Ok(Selection::Ids { prefix: prefix.unwrap_or_default().to_owned(), after, matches, exclude })
}

/// The answer for a document that is not there: 404 with no body.
fn absent() -> Response {
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, json::CONTENT_TYPE)]).into_response()
}

fn etag(change_vector: &str) -> Result<(HeaderName, HeaderValue), ApiError> {
    match HeaderValue::from_str(&format!("\"{change_vector}\"")) {
        Ok(value) => Ok((header::ETAG, value)),
        Err(_) => Err(ApiError::internal(format!("The change vector '{change_vector}' does not fit into a header."))),
    }
}
