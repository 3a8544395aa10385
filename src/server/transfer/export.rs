//! Writes a database as JSON lines, from one snapshot.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use serde::Serialize;

use crate::index::status::{IndexState, IndexStatus};
use crate::server::error::ApiError;
use crate::server::index_reports::statuses;
use crate::server::query::Query;
use crate::server::registry::Lease;
use crate::server::router::Shared;
use crate::server::stream::{self, Ended, Sink};
use crate::server::wire::index::Definition;
use crate::server::wire::text::now;
use crate::server::wire::transfer::{End, Head, Number, VERSION, Written};
use crate::store::scan::Direction;
use crate::store::snapshot::IdRange;

/// Streams the database.
pub(crate) async fn run(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let artificial = query.switch("artificial", false)?;
    let lines = HeaderValue::from_static("application/x-ndjson; charset=utf-8");
    stream::listing(&host, lines, move |sink| write(&lease, artificial, sink)).await
}

fn write(lease: &Lease, artificial: bool, sink: &mut Sink) -> Result<(), Ended> {
    let store = lease.store();
    // Before the numbers: those that are given out meanwhile are in the export, too.
    let snapshot = store.snapshot();
    line(
        &Written::Head(Head {
            version: VERSION,
            database: lease.name().to_owned(),
            exported: now(),
            last_etag: snapshot.progress().written,
            artificial,
        }),
        sink,
    )?;
    for (name, last) in store.list_identities()? {
        line(&Written::Identity(Number { name, last }), sink)?;
    }
    for (name, last) in lease.list_hilo().map_err(ApiError::from)? {
        line(&Written::HiLo(Number { name, last }), sink)?;
    }
    let mut documents = 0;
    let all = IdRange { direction: Direction::Forward, ..IdRange::default() };
    for document in snapshot.documents(&all) {
        let document = document?;
        if document.flags.artificial && !artificial {
            continue;
        }
        let begin = sink.buffer.len();
        document.write_json(&mut sink.buffer);
        // In JSON a line break can only be white space between tokens.
        for byte in sink.buffer.iter_mut().skip(begin).filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        sink.buffer.push(b'\n');
        documents += 1;
        sink.send_if_full()?;
    }
    // Whoever has the artificial documents has no room for the indexes that would write them again.
    for (definition, status) in statuses(lease)? {
        if !(artificial && status.output.is_some()) {
            line(&Written::Index(Box::new(Definition::new(definition, &as_put(status)))), sink)?;
        }
    }
    line(&Written::End(End { documents }), sink)
}

/// What of an index's status belongs to its definition: an output that its script names is left to the script, and whether
/// it was paused or stopped for its faults is of this database only.
fn as_put(status: IndexStatus) -> IndexStatus {
    let state = if status.state == IndexState::Disabled { IndexState::Disabled } else { IndexState::Normal };
    IndexStatus { output: None, state, ..status }
}

fn line(value: &impl Serialize, sink: &mut Sink) -> Result<(), Ended> {
    serde_json::to_writer(&mut sink.buffer, value)
        .map_err(|error| ApiError::internal(format!("A line of the export could not be written: {error}")))?;
    sink.buffer.push(b'\n');
    sink.send_if_full()
}
