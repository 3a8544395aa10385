//! `/indexes/verify`: everything an index keeps is computed again and compared; with POST it is mended.
//!
//! The answer is one JSON object a line: differences, progress twice a second, and at the end `Done`. One that ends without
//! was broken off.

use std::ops::ControlFlow;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;

use super::error::ApiError;
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Sink};
use super::wire::verify::VerifyLine;
use crate::database::VerifyOptions;
use crate::index::verify::VerifyEvent;

/// Differences that are named where nobody asked for another number, and at most.
const NAMED: u64 = 100;
const NAMED_MAX: u64 = 100_000;

/// How long an index that is being built is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reports what differs.
pub(crate) async fn report(state: State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    run(state, lease, query, false).await
}

/// Reports what differs, and mends it.
pub(crate) async fn repair(state: State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    run(state, lease, query, true).await
}

async fn run(State(host): State<Shared>, lease: Lease, query: Query, repair: bool) -> Result<Response, ApiError> {
    let heavy = host.take_heavy()?;
    let index = query.text("name").map(str::to_owned);
    let named_max = query.count("limit")?.unwrap_or(NAMED).min(NAMED_MAX);
    let patience = query.time_span("timeout")?.unwrap_or(PATIENCE);
    if let Some(name) = &index
        && lease.index(name).is_none()
    {
        return Err(ApiError::no_index(name));
    }
    let options = VerifyOptions { index, repair, patience };
    let (stopping, closing) = (host.stop_signal(), lease.stop_signal());
    let produce = move |sink: &mut Sink| {
        let _heavy = heavy;
        let mut lines = Lines { sink, named: 0, named_max, not_named: 0 };
        // The head of the answer goes out at once: the first line may take long.
        lines.sink.send()?;
        let verified = lease.verify(&options, &mut |event| {
            let is_over = *stopping.borrow() || *closing.borrow();
            if is_over { ControlFlow::Break(()) } else { lines.event(event) }
        });
        let not_named = lines.not_named;
        let last = match verified {
            Ok(Some(differences)) => VerifyLine::Done { differences, not_named },
            Ok(None) => VerifyLine::Failed { message: "The verification was ended early.".to_owned() },
            Err(error) => VerifyLine::Failed { message: ApiError::from(error).message().to_owned() },
        };
        lines.line(&last);
        Ok(())
    };
    stream::report(&host, HeaderValue::from_static("application/x-ndjson; charset=utf-8"), produce).await
}

/// Writes the lines of one answer.
struct Lines<'a> {
    sink: &'a mut Sink,
    named: u64,
    named_max: u64,
    not_named: u64,
}

impl Lines<'_> {
    fn event(&mut self, event: VerifyEvent) -> ControlFlow<()> {
        let is_difference = matches!(event, VerifyEvent::Difference(_));
        if is_difference && self.named >= self.named_max {
            self.not_named += 1;
            return ControlFlow::Continue(());
        }
        self.named += u64::from(is_difference);
        self.line(&VerifyLine::new(event));
        match if is_difference { self.sink.send_if_full() } else { self.sink.send() } {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn line(&mut self, line: &VerifyLine) {
        // Neither these lines nor a vector make it fail.
        if serde_json::to_writer(&mut self.sink.buffer, line).is_ok() {
            self.sink.buffer.push(b'\n');
        }
    }
}
