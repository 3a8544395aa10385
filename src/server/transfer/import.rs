//! Reads a database from JSON lines, and stores them while they arrive.
//!
//! Documents are committed in batches, each whole or not at all; numbers are raised and indexes put in their turn. A line
//! that can't be taken ends the import: the answer names it, and the line from which to go on. Doing that again from the
//! start is no harm either: what is stored is replaced by the same.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;

use super::lines::{Line, Lines};
use crate::database::Database;
use crate::id::{DocumentId, IdentityName};
use crate::server::body::Share;
use crate::server::bulk_insert::Unpacker;
use crate::server::error::{ApiError, names};
use crate::server::host::signalled;
use crate::server::indexes::put_one;
use crate::server::json::json;
use crate::server::query::Query;
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::wire::definition::read_definition;
use crate::server::wire::transfer::{End, Imported, Read, VERSION};
use crate::store::StoreError;
use crate::store::commit::{Commit, Expected, Operation, PutId};
use crate::store::document::{Document, DocumentFlags};

/// Lines that are looked at together.
const BATCH_LINES: usize = 2_048;
/// Bytes of lines that are looked at together, unless a single one has more.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// What a line may have besides its document.
const ENVELOPE_BYTES: usize = 64 * 1024;

/// Stores what the body brings.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let from_line = query.number("fromLine")?.unwrap_or(1).max(1);
    let (mut stopping, mut closing) = (host.stop_signal(), lease.stop_signal());
    let mut import = Import::new(Shared::clone(&host), lease, from_line);
    let outcome = tokio::select! {
        outcome = import.run(Unpacker::new(&headers)?, body) => outcome,
        () = signalled(&mut stopping) => Err(ApiError::busy("The server stops.")),
        () = signalled(&mut closing) => Err(ApiError::busy("The database closes.")),
    };
    match outcome {
        Ok(()) => Ok(json(StatusCode::OK, &import.done)),
        Err(error) => {
            let (lines, documents) = (import.done.lines, import.done.documents);
            let place = format!(
                "The import was broken off; lines 1 to {lines} are stored, {documents} documents of them by this import. \
                 Go on with fromLine={}",
                lines + 1
            );
            Err(error.at(&place))
        }
    }
}

struct Import {
    host: Shared,
    lease: Arc<Lease>,
    share: Share,
    from_line: u64,
    /// What is stored.
    done: Imported,
    /// Whether the first line was there, or stands before `from_line`.
    has_begun: bool,
    end: Option<End>,
}

impl Import {
    fn new(host: Shared, lease: Lease, from_line: u64) -> Self {
        let share = Share::none(&host);
        let done = Imported { lines: from_line - 1, ..Imported::default() };
        Self { host, lease: Arc::new(lease), share, from_line, done, has_begun: from_line > 1, end: None }
    }

    async fn run(&mut self, mut unpacker: Unpacker, body: Body) -> Result<(), ApiError> {
        let limits = self.host.settings.limits.clone();
        let mut lines = Lines::new(limits.document_bytes_max.saturating_add(ENVELOPE_BYTES));
        let mut stream = body.into_data_stream();
        let (mut waiting, mut waiting_bytes) = (Vec::new(), 0);
        loop {
            let piece = match tokio::time::timeout(limits.body_pause_max, stream.next()).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(ApiError::data(format!("The request was cut off: {error}."))),
                Err(_) => {
                    let pause = limits.body_pause_max;
                    let message = format!("Nothing came for {pause:?} (body_pause_max).");
                    return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, names::TIMEOUT, message));
                }
            };
            unpacker.push(&piece, |bytes| {
                waiting_bytes += bytes.len();
                self.share.grow_to(waiting_bytes)?;
                lines.push(bytes, &mut waiting)
            })?;
            if waiting.len() >= BATCH_LINES || waiting_bytes >= BATCH_BYTES {
                self.take(std::mem::take(&mut waiting)).await?;
                self.done.lines = self.done.lines.max(lines.ended());
                waiting_bytes = 0;
            }
        }
        lines.finish(&mut waiting);
        self.take(waiting).await?;
        self.done.lines = self.done.lines.max(lines.ended());
        self.check_end()
    }

    /// Stores some lines.
    async fn take(&mut self, mut lines: Vec<Line>) -> Result<(), ApiError> {
        lines.retain(|line| line.number >= self.from_line);
        if lines.is_empty() {
            return Ok(());
        }
        let lease = Arc::clone(&self.lease);
        let (mut done, has_begun) = (self.done.clone(), self.has_begun);
        // What is stored is known also where a later line is refused.
        let work = self.host.blocking(move || {
            let mut end = None;
            let outcome = store(&lease, &lines, has_begun, &mut done, &mut end);
            Ok((done, end, outcome))
        });
        let (done, end, outcome) = work.await?;
        self.done = done;
        self.has_begun = true;
        if end.is_some() {
            self.end = end;
        }
        outcome
    }

    fn check_end(&self) -> Result<(), ApiError> {
        match &self.end {
            None => Err(ApiError::data(
                "The last line, {\"@end\":…}, is not there: the export was cut off, and documents may be missing.",
            )),
            Some(end) if self.from_line == 1 && end.documents != self.done.documents => Err(ApiError::data(format!(
                "The last line says that {} documents were exported, and {} have arrived.",
                end.documents, self.done.documents
            ))),
            Some(_) => Ok(()),
        }
    }
}

/// Stores lines in their order: documents that follow each other in one commit. Blocking.
fn store(
    lease: &Lease,
    lines: &[Line],
    mut has_begun: bool,
    done: &mut Imported,
    end: &mut Option<End>,
) -> Result<(), ApiError> {
    let mut batch = Batch::default();
    for line in lines {
        let at = |error: ApiError| error.at(&format!("Line {}", line.number));
        if let Some(end) = end {
            return Err(at(ApiError::data(format!("It comes after the last line ({} documents).", end.documents))));
        }
        match read(line, has_begun) {
            Err(error) => {
                batch.commit(lease, done)?;
                return Err(at(error));
            }
            Ok(Item::Document(id, document)) => batch.add(line.number, id, document),
            Ok(Item::Other(other)) => {
                batch.commit(lease, done)?;
                match *other {
                    Read::End(last) => *end = Some(last),
                    other => apply(lease, other, done).map_err(at)?,
                }
                done.lines = line.number;
            }
        }
        has_begun = true;
    }
    batch.commit(lease, done)
}

enum Item {
    Document(DocumentId, Document),
    Other(Box<Read>),
}

fn read(line: &Line, has_begun: bool) -> Result<Item, ApiError> {
    let text = line.text.trim_ascii();
    let is_other = text.strip_prefix(b"{\"@").is_some_and(|rest| !rest.starts_with(b"metadata\""));
    if is_other && let Ok(other) = serde_json::from_slice::<Read>(text) {
        return Ok(Item::Other(Box::new(other)));
    }
    if !has_begun {
        return Err(ApiError::data(
            "It must be {\"@treepie\":…}, as an export begins; load other JSON lines with `treepie load`.",
        ));
    }
    let parsed = Document::parse(text)?;
    let id = parsed.id.ok_or_else(|| ApiError::data("The document has no @metadata.@id."))?;
    if id.ends_with('|') {
        return Err(ApiError::argument(format!("'{id}' can't be the id of a stored document: it ends in '|'.")));
    }
    Ok(Item::Document(DocumentId::existing(&id)?, parsed.document))
}

fn apply(lease: &Lease, line: Read, done: &mut Imported) -> Result<(), ApiError> {
    match line {
        Read::Head(head) if head.version == VERSION => {}
        Read::Head(head) => {
            return Err(ApiError::data(format!(
                "The export has version {}, and this version of Treepie reads version {VERSION}; import it with the \
                 version that wrote it.",
                head.version
            )));
        }
        Read::Identity(number) => {
            let store = lease.store();
            let name = IdentityName::new(&number.name, &store.id_rules())?;
            store.seed_identity(&name, number.last, false)?;
            done.identities += 1;
        }
        Read::HiLo(number) => {
            lease.raise_hilo(&number.name, number.last)?;
            done.hilo += 1;
        }
        Read::Index(fields) => {
            put_one(lease, read_definition(&fields)?)?;
            done.indexes += 1;
        }
        Read::End(_) => {}
    }
    Ok(())
}

/// Documents of one commit.
#[derive(Default)]
struct Batch {
    operations: Vec<Operation>,
    lines: Vec<u64>,
}

impl Batch {
    fn add(&mut self, line: u64, id: DocumentId, document: Document) {
        let flags = DocumentFlags::default();
        self.operations.push(Operation::Put { id: PutId::Given(id), document, flags, expected: Expected::Any });
        self.lines.push(line);
    }

    fn commit(&mut self, database: &Database, done: &mut Imported) -> Result<(), ApiError> {
        let (operations, lines) = (std::mem::take(&mut self.operations), std::mem::take(&mut self.lines));
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Ok(()) };
        let ids: Vec<String> = operations.iter().filter_map(put_id).collect();
        database.store().commit(Commit { operations, ..Commit::default() }).map_err(|error| {
            let line = match &error {
                StoreError::Owned { id, .. } => ids.iter().position(|it| it == id).and_then(|at| lines.get(at)),
                _ => None,
            };
            let place = line.map_or_else(|| format!("Lines {first} to {last}"), |line| format!("Line {line}"));
            ApiError::from(error).at(&place)
        })?;
        done.documents += ids.len() as u64;
        done.lines = *last;
        Ok(())
    }
}

fn put_id(operation: &Operation) -> Option<String> {
    match operation {
        Operation::Put { id: PutId::Given(id), .. } => Some(id.as_str().to_owned()),
        _ => None,
    }
}
