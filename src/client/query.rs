//! Queries: rows as they come, one after the other, however many there are.
//!
//! Next on the walk: `http`.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::stream::{self, Stream};
use reqwest::{Method, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::conventions::Document;
use super::error::ClientError;
use super::held::mismatch;
use super::link::Link;

/// The most bytes of one row.
const ROW_BYTES_MAX: usize = 256 << 20;

/// A query that is being put together; [`Query::stream`] asks it.
#[derive(Clone, Debug)]
#[must_use = "a query is asked by `stream`, `all` or `count`"]
pub struct Query<T> {
    link: Arc<Link>,
    text: String,
    /// A parameter whose value is no JSON is told when the query is asked.
    parameters: Result<BTreeMap<String, Box<RawValue>>, String>,
    wait: Option<Duration>,
    of: PhantomData<fn() -> T>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Asked<'a> {
    query: &'a str,
    query_parameters: &'a BTreeMap<String, Box<RawValue>>,
    wait_for_non_stale_results: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_for_non_stale_results_timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line {
    item: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Counted {
    total_results: i64,
}

impl<T: Document> Query<T> {
    pub(super) fn new(link: Arc<Link>, text: &str) -> Self {
        Self { link, text: text.to_owned(), parameters: Ok(BTreeMap::new()), wait: None, of: PhantomData }
    }

    /// Gives `$name` a value.
    pub fn parameter(mut self, name: &str, value: impl Serialize) -> Self {
        match (&mut self.parameters, to_raw_value(&value)) {
            (Ok(parameters), Ok(value)) => {
                parameters.insert(name.trim_start_matches('$').to_owned(), value);
            }
            (Ok(_), Err(error)) => self.parameters = Err(format!("the parameter ${name} is no JSON: {error}")),
            (Err(_), _) => {}
        }
        self
    }

    /// Waits, at most so long, until the index behind the results has taken in what was written before.
    pub fn wait_for_non_stale_results(mut self, at_most: Duration) -> Self {
        self.wait = Some(at_most);
        self
    }

    /// Asks the query. Rows are read as they are taken; a document's id stands in the type's id field, as in a session, and
    /// the documents belong to no session.
    ///
    /// # Errors
    /// As items of the stream, the last of them: the query is refused, a row does not fit the type, the server breaks off.
    pub fn stream(self) -> impl Stream<Item = Result<T, ClientError>> + Send {
        stream::try_unfold(State::Unasked(self), |mut state| async move {
            loop {
                state = match state {
                    State::Unasked(query) => State::Reading(query.ask().await?),
                    State::Reading(mut rows) => {
                        let row = rows.next().await?;
                        return Ok(row.map(|row| (row, State::Reading(rows))));
                    }
                };
            }
        })
    }

    /// Asks the query and gathers its rows.
    ///
    /// # Errors
    /// The query is refused, a row does not fit the type, or the server can't be reached.
    pub async fn all(self) -> Result<Vec<T>, ClientError> {
        let mut rows = self.ask().await?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().await? {
            all.push(row);
        }
        Ok(all)
    }

    /// Counts the rows, without those that a `limit` leaves out.
    ///
    /// # Errors
    /// The query is refused, or the server can't be reached.
    pub async fn count(self) -> Result<u64, ClientError> {
        let body = self.body(Some(0))?;
        let call = self.link.call(Method::POST, "queries").body(body).repeatable(true);
        let answer = self.link.send(call.extra_wait(self.wait.unwrap_or_default())).await?;
        let counted: Counted = answer.json()?;
        u64::try_from(counted.total_results).map_err(|_| answer.wrong("it does not say how many rows there are"))
    }

    fn body(&self, page_size: Option<u64>) -> Result<Vec<u8>, ClientError> {
        let parameters = self.parameters.as_ref().map_err(|reason| ClientError::Usage(reason.clone()))?;
        let wait = self.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let asked = Asked {
            query: &self.text,
            query_parameters: parameters,
            wait_for_non_stale_results: wait.is_some(),
            wait_for_non_stale_results_timeout: wait,
            page_size,
        };
        serde_json::to_vec(&asked).map_err(|error| ClientError::Usage(error.to_string()))
    }

    async fn ask(self) -> Result<Rows<T>, ClientError> {
        let call = self.link.call(Method::POST, "streams/queries").query("format", "jsonl").body(self.body(None)?);
        let response = self.link.open(call.repeatable(true).extra_wait(self.wait.unwrap_or_default())).await?;
        Ok(Rows { link: self.link, response, buffer: BytesMut::new(), lines: VecDeque::new(), of: PhantomData })
    }
}

enum State<T> {
    Unasked(Query<T>),
    Reading(Rows<T>),
}

/// The rows of an answer, read as they are asked for.
struct Rows<T> {
    link: Arc<Link>,
    response: Response,
    buffer: BytesMut,
    lines: VecDeque<BytesMut>,
    of: PhantomData<fn() -> T>,
}

impl<T: Document> Rows<T> {
    async fn next(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            while let Some(line) = self.lines.pop_front() {
                let line: Line = serde_json::from_slice(&line).map_err(|error| broken(&error.to_string()))?;
                if let Some(row) = line.item {
                    return self.entity(&row).map(Some);
                }
            }
            match self.link.next_chunk(&mut self.response).await? {
                Some(chunk) => self.take(&chunk)?,
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(broken("it ends in the middle of a row")),
            }
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.buffer.extend_from_slice(piece);
            if self.buffer.len() > ROW_BYTES_MAX {
                return Err(broken(&format!("a row is longer than {ROW_BYTES_MAX} bytes")));
            }
            if piece.ends_with(b"\n") {
                self.lines.push_back(self.buffer.split());
            }
        }
        Ok(())
    }

    fn entity(&self, row: &RawValue) -> Result<T, ClientError> {
        super::held::entity(row, &self.link.conventions.describe::<T>()).map_err(|reason| {
            let shown: String = row.get().chars().take(80).collect();
            mismatch::<T>(&shown, reason)
        })
    }
}

fn broken(reason: &str) -> ClientError {
    ClientError::Answer { request: "POST streams/queries".to_owned(), reason: reason.to_owned() }
}
