//! `_all_docs`: documents by id, a range or a list of them, alone or with their content.
//!
//! A listing is read from one snapshot and written as it is read. `offset`, the number of documents before the first that is
//! shown, is told where it costs nothing: at the beginning of all documents; elsewhere it is null, as CouchDB has it for `keys`.
//!
//! Next on the walk: `range`, then [`crate::store::span`].

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value};

use super::document::write_document;
use super::lease::CouchLease;
use super::range::{self, Wanted};
use crate::id::DocumentId;
use crate::server::body::{self, BodyLimit};
use crate::server::error::ApiError;
use crate::server::json;
use crate::server::query::Query;
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::stream::{self, Ended, Sink};
use crate::server::wire::text::{write_number, write_string};
use crate::store::document::StoredDocument;
use crate::store::snapshot::Snapshot;
use crate::store::span::IdSpan;

/// Documents that are read at once by id.
const READ_AT_ONCE: usize = 64;

/// What a caller asks for.
struct Asked {
    wanted: Wanted,
    skip: u64,
    limit: u64,
    include_docs: bool,
    update_seq: bool,
}

/// Lists documents.
pub(crate) async fn get(
    State(host): State<Shared>,
    CouchLease(lease): CouchLease,
    query: Query,
) -> Result<Response, ApiError> {
    list(&host, lease, &query).await
}

/// The same with parameters in the body too, which win over those of the URL.
pub(crate) async fn post(
    State(host): State<Shared>,
    CouchLease(lease): CouchLease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let parameters: Map<String, Value> = match payload.bytes() {
        [] => Map::new(),
        bytes => json::read(bytes, "a JSON object such as {\"keys\": [\"users/1\"]}")?,
    };
    let pairs = parameters.into_iter().map(|(name, value)| (name, value.to_string()));
    list(&host, lease, &query.behind(pairs.collect())).await
}

async fn list(host: &Shared, lease: Lease, query: &Query) -> Result<Response, ApiError> {
    query.refuse(&["attachments", "att_encoding_info", "collection", "queries"], "_all_docs")?;
    let asked = Asked {
        wanted: range::read(query)?,
        skip: query.number("skip")?.unwrap_or(0),
        limit: query.number("limit")?.unwrap_or(u64::MAX),
        include_docs: query.switch("include_docs", false)?,
        update_seq: query.switch("update_seq", false)?,
    };
    stream::listing(host, json::CONTENT_TYPE, move |sink| asked.write(&lease, sink)).await
}

impl Asked {
    fn write(&self, lease: &Lease, sink: &mut Sink) -> Result<(), Ended> {
        let snapshot = lease.store().snapshot();
        let total = snapshot.count()?.documents;
        let head = &mut sink.buffer;
        head.extend_from_slice(b"{\"total_rows\":");
        write_number(total, head);
        if self.update_seq {
            head.extend_from_slice(b",\"update_seq\":");
            write_number(snapshot.progress().durable, head);
        }
        head.extend_from_slice(b",\"offset\":");
        if self.begins_at_the_beginning() {
            write_number(self.skip.min(total), head);
        } else {
            head.extend_from_slice(b"null");
        }
        head.extend_from_slice(b",\"rows\":[\n");
        let mut rows = Rows { sink, left: self.limit, written: 0 };
        match &self.wanted {
            Wanted::Range(None) => {}
            Wanted::Range(Some(span)) if self.include_docs => self.documents(&snapshot, span, &mut rows)?,
            Wanted::Range(Some(span)) => self.heads(&snapshot, span, &mut rows)?,
            Wanted::Keys(keys) => self.keys(&snapshot, keys, &mut rows)?,
        }
        sink.buffer.extend_from_slice(b"\n]}\n");
        Ok(())
    }

    fn begins_at_the_beginning(&self) -> bool {
        use std::ops::Bound::Unbounded;

        use crate::store::scan::Direction;

        let Wanted::Range(Some(span)) = &self.wanted else { return false };
        let first = if span.direction == Direction::Forward { &span.from } else { &span.to };
        *first == Unbounded && span.prefix.is_empty()
    }

    fn heads(&self, snapshot: &Snapshot<'_>, span: &IdSpan, rows: &mut Rows<'_>) -> Result<(), Ended> {
        for head in snapshot.heads_between(span).skip(usize::try_from(self.skip).unwrap_or(usize::MAX)) {
            let head = head?;
            if !rows.begin() {
                break;
            }
            write_found(&head.id, None, &head.change_vector, &mut rows.sink.buffer);
            rows.end()?;
        }
        Ok(())
    }

    fn documents(&self, snapshot: &Snapshot<'_>, span: &IdSpan, rows: &mut Rows<'_>) -> Result<(), Ended> {
        // What is skipped is not decoded.
        let mut span = span.clone();
        if self.skip > 0 {
            let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
            let Some(last) = snapshot.heads_between(&span).take(skip).last().transpose()? else { return Ok(()) };
            span = span.behind(&last.id);
        }
        for document in snapshot.documents_between(&span) {
            let document = document?;
            if !rows.begin() {
                break;
            }
            write_found(&document.id, None, &document.change_vector, &mut rows.sink.buffer);
            write_content(&document, &mut rows.sink.buffer)?;
            rows.end()?;
        }
        Ok(())
    }

    fn keys(&self, snapshot: &Snapshot<'_>, keys: &[Value], rows: &mut Rows<'_>) -> Result<(), Ended> {
        let keys = keys.get(usize::try_from(self.skip).unwrap_or(usize::MAX)..).unwrap_or_default();
        let keys = keys.get(..usize::try_from(self.limit).unwrap_or(usize::MAX)).unwrap_or(keys);
        for keys in keys.chunks(READ_AT_ONCE) {
            // A key that can be no id has no document.
            let ids = keys.iter().map(|key| key.as_str().and_then(|id| DocumentId::existing(id).ok()));
            let ids: Vec<Option<DocumentId>> = ids.collect();
            let possible: Vec<DocumentId> = ids.iter().flatten().cloned().collect();
            let mut found = snapshot.get_many(&possible)?.into_iter();
            for (key, id) in keys.iter().zip(&ids) {
                let document = id.as_ref().and_then(|_| found.next().flatten());
                if !rows.begin() {
                    return Ok(());
                }
                self.write_key(key, document.as_ref(), &mut rows.sink.buffer)?;
                rows.end()?;
            }
        }
        Ok(())
    }

    fn write_key(&self, key: &Value, document: Option<&StoredDocument>, into: &mut Vec<u8>) -> Result<(), Ended> {
        match document {
            Some(document) => {
                write_found(&document.id, Some(key), &document.change_vector, into);
                if self.include_docs {
                    return write_content(document, into);
                }
            }
            None => {
                into.extend_from_slice(b"{\"key\":");
                into.extend_from_slice(key.to_string().as_bytes());
                into.extend_from_slice(b",\"error\":\"not_found\"");
            }
        }
        Ok(())
    }
}

/// Appends a row but for its end.
fn write_found(id: &str, key: Option<&Value>, rev: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(b"{\"id\":");
    write_string(id, into);
    into.extend_from_slice(b",\"key\":");
    match key {
        None => write_string(id, into),
        Some(key) => into.extend_from_slice(key.to_string().as_bytes()),
    }
    into.extend_from_slice(b",\"value\":{\"rev\":");
    write_string(rev, into);
    into.push(b'}');
}

fn write_content(document: &StoredDocument, into: &mut Vec<u8>) -> Result<(), Ended> {
    into.extend_from_slice(b",\"doc\":");
    Ok(write_document(document, into)?)
}

/// The rows under way.
struct Rows<'a> {
    sink: &'a mut Sink,
    left: u64,
    written: u64,
}

impl Rows<'_> {
    /// Makes room for a row; `false` where no more are wanted.
    fn begin(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        if self.written > 0 {
            self.sink.buffer.extend_from_slice(b",\n");
        }
        self.written += 1;
        true
    }

    fn end(&mut self) -> Result<(), Ended> {
        self.sink.buffer.push(b'}');
        self.sink.send_if_full()
    }
}
