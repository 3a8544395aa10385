//! A query on its way: asked for, prepared, run.
//!
//! `prepare` needs no disk; a prepared query can be run over any snapshot, and is planned anew for each.

use std::cell::Cell;

use super::bind::{Bound, Parameters, bind};
use super::continuation;
use super::error::QueryError;
use super::parse::parse;
use super::path::Path;
use super::plan::{Access, Source, intersection, plan};
use super::project;
use super::row::Row;
use super::run::{Outcome, Run};
use super::sort::Place;
use super::syntax::{From, Query};
use super::value::Value;
use crate::index::queried::QueriedIndex;
use crate::store::document::StoredDocument;
use crate::store::keyspace::KeyRange;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Bytes that a query may hold for each of sorting, grouping and telling rows apart, unless told otherwise.
pub const MEMORY_MAX: usize = 64 * 1024 * 1024;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The query.
    pub text: String,
    /// The values of its `$parameters`.
    pub parameters: Parameters,
    /// Rows to skip, where the query itself does not say.
    pub start: Option<u64>,
    /// The most rows, where the query itself does not say.
    pub page_size: Option<u64>,
    /// Where the page begins: empty for the first of pages that follow each other by place, then the token of the page before.
    pub continuation: Option<String>,
    /// Whether all rows are counted, also those that no page shows; a query with conditions then reads to the end. Default true.
    pub counts: bool,
    /// Bytes that it may hold for each of sorting, grouping and telling rows apart.
    pub memory_max: usize,
}

/// What came of a query, beside its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Rows in all, on every page; `None` where pages follow each other by place, and nobody counts.
    pub total: Option<u64>,
    /// Rows left out by `distinct`.
    pub duplicates: u64,
    /// Rows read from the disk.
    pub read: u64,
    /// Rows shown.
    pub shown: u64,
    /// Where the next page begins, where pages follow each other by place and there is one.
    pub continuation: Option<String>,
    /// How the rows were read, for people.
    pub plan: String,
}

/// How a run of a query ends early: by itself, or because its rows can't be shown.
enum Ended<E> {
    Query(QueryError),
    Show(E),
}

impl<E> std::convert::From<QueryError> for Ended<E> {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

/// A query that can be run.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    bound: Bound,
    source: Source,
    /// Map-only indexes that may stand in for a scan.
    secondary: Vec<QueriedIndex>,
    /// The index that it names, as its author spelled it.
    pub(crate) index: Option<String>,
    fingerprint: u64,
    continuation: Option<String>,
    counts: bool,
    memory_max: usize,
}

impl Request {
    /// Asks a query without parameters.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            parameters: Parameters::default(),
            start: None,
            page_size: None,
            continuation: None,
            counts: true,
            memory_max: MEMORY_MAX,
        }
    }
}

impl Prepared {
    /// Reads a query and checks all that can be checked without the documents.
    ///
    /// # Errors
    /// It is refused, or names an index that `find` does not know. `secondary` gives the map-only indexes of a collection.
    pub(crate) fn prepare(
        request: &Request,
        find: impl Fn(&str) -> Option<QueriedIndex>,
        secondary: impl Fn(&str) -> Vec<QueriedIndex>,
    ) -> Result<Self, QueryError> {
        let query = parse(&request.text)?;
        let mut bound = bind(&query, &request.parameters)?;
        if query.limit.is_none() && query.offset.is_none() {
            (bound.offset, bound.limit) = (request.start.unwrap_or(0), request.page_size);
        }
        let (source, index) = source(&query, find)?;
        let secondary = match &source {
            Source::Collection(name) => secondary(name),
            _ => Vec::new(),
        };
        Ok(Self {
            bound,
            source,
            secondary,
            index,
            fingerprint: continuation::fingerprint(&query, &request.parameters),
            continuation: request.continuation.clone(),
            counts: request.counts,
            memory_max: request.memory_max,
        })
    }

    /// The same query, where it chooses documents and nothing more.
    ///
    /// # Errors
    /// It has a clause that shapes an answer, or reads results that are no documents.
    pub(crate) fn choosing_documents(self) -> Result<Self, QueryError> {
        let bound = &self.bound;
        let clauses = [
            ("group by", bound.group.is_some()),
            ("select", bound.select.is_some()),
            ("include", !bound.include.is_empty() || bound.timings),
            ("order by", !bound.order.is_empty()),
            ("limit", bound.limit.is_some() || bound.offset > 0),
        ];
        if let Some((clause, _)) = clauses.iter().find(|(_, is_there)| *is_there) {
            return Err(QueryError::Rule(format!(
                "'{clause}' has no meaning here; only 'from' and 'where' choose documents"
            )));
        }
        match &self.source {
            Source::Results(_) | Source::Entries(_) => {
                Err(QueryError::Rule("the results of this index are no documents; query a collection".to_owned()))
            }
            _ => Ok(self),
        }
    }

    /// One page of the same query: at most `limit` rows behind the place that `token` tells, from the first where it is empty.
    pub(crate) fn page(&self, limit: u64, token: &str) -> Self {
        let mut page = self.clone();
        page.bound.limit = Some(limit);
        page.continuation = Some(token.to_owned());
        // In id order a page goes on where the last one ended; an index would be read from its beginning for each.
        page.secondary = Vec::new();
        page
    }

    /// Calls `each` with the documents of the page, and tells where the next page begins.
    pub(crate) fn documents(
        &self,
        snapshot: &Snapshot<'_>,
        cancelled: &dyn Fn() -> bool,
        each: &mut dyn FnMut(&StoredDocument),
    ) -> Result<Option<String>, QueryError> {
        let summary = self.run(snapshot, cancelled, &mut |row| {
            if let Row::Document(document) = row {
                each(document);
            }
            Ok::<(), QueryError>(())
        })?;
        Ok(summary.continuation)
    }

    /// The collection whose documents are queried.
    pub(crate) fn collection(&self) -> Option<&str> {
        match &self.source {
            Source::Collection(name) | Source::Outputs(_, name) => Some(name),
            Source::AllDocs | Source::Results(_) | Source::Entries(_) => None,
        }
    }

    /// Paths to the ids of documents that are to be sent along.
    pub(crate) fn includes(&self) -> &[Path] {
        &self.bound.include
    }

    /// Whether the answer is to say how long it took.
    pub(crate) fn wants_timings(&self) -> bool {
        self.bound.timings
    }

    /// Appends a row as it is answered.
    pub(crate) fn write(&self, row: &Row<'_>, metadata_only: bool, into: &mut Vec<u8>) {
        project::write(row, self.bound.select.as_ref(), metadata_only, into);
    }

    /// How many rows there are in all, where that is known without reading them.
    pub(crate) fn total(&self, snapshot: &Snapshot<'_>) -> Result<Option<u64>, QueryError> {
        Ok(plan(&mut self.bound.clone(), &self.source, &self.secondary, snapshot)?.total)
    }

    /// Runs the query and calls `show` with each row of its page.
    ///
    /// # Cost
    /// As [`Run::run`].
    ///
    /// # Errors
    /// The continuation is refused, the storage fails, memory runs out, `cancelled` says so, or `show` fails.
    pub(crate) fn run<E: std::convert::From<QueryError>>(
        &self,
        snapshot: &Snapshot<'_>,
        cancelled: &dyn Fn() -> bool,
        show: &mut dyn FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<Summary, E> {
        let has_shown = Cell::new(false);
        let mut first = |row: &Row<'_>| {
            has_shown.set(true);
            show(row).map_err(Ended::Show)
        };
        if let Source::Results(index) | Source::Outputs(index, _) | Source::Entries(index) = &self.source
            && !index.is_in(snapshot).map_err(QueryError::from)?
        {
            return Err(QueryError::Replaced { name: index.name.clone() }.into());
        }
        let outcome = match self.run_with(&self.secondary, snapshot, cancelled, &mut first) {
            // What an index finds in its own order may be too much to sort, where a scan would stream it.
            Err(Ended::Query(QueryError::TooLarge(_))) if !self.secondary.is_empty() && !has_shown.get() => {
                self.run_with(&[], snapshot, cancelled, &mut first)
            }
            outcome => outcome,
        };
        outcome.map_err(|ended| match ended {
            Ended::Query(error) => error.into(),
            Ended::Show(error) => error,
        })
    }

    fn run_with<E>(
        &self,
        secondary: &[QueriedIndex],
        snapshot: &Snapshot<'_>,
        cancelled: &dyn Fn() -> bool,
        show: &mut dyn FnMut(&Row<'_>) -> Result<(), Ended<E>>,
    ) -> Result<Summary, Ended<E>> {
        let mut bound = self.bound.clone();
        let mut plan = plan(&mut bound, &self.source, secondary, snapshot)?;
        let token = self.continuation.as_deref().filter(|token| !token.is_empty());
        let after = token.map(|token| continuation::read(token, self.fingerprint, &bound.order)).transpose()?;
        if let Some(after) = &after
            && !plan.must_sort
        {
            narrow(&mut plan.access, plan.direction, after);
        }
        let run = Run {
            snapshot,
            bound: &bound,
            plan: &plan,
            memory_max: self.memory_max,
            is_paged: self.continuation.is_some(),
            counts: self.counts && self.continuation.is_none(),
            after: after.as_ref(),
            cancelled,
        };
        let Outcome { total, duplicates, read, shown, next } = run.run(show)?;
        let continuation = next.map(|place| continuation::write(&place, self.fingerprint)).transpose()?;
        Ok(Summary { total, duplicates, read, shown, continuation, plan: plan.to_string() })
    }
}

fn source(query: &Query, find: impl Fn(&str) -> Option<QueriedIndex>) -> Result<(Source, Option<String>), QueryError> {
    let name = match &query.from {
        From::Collection(name) => return Ok((Source::Collection(name.clone()), None)),
        From::AllDocs => return Ok((Source::AllDocs, None)),
        From::Index(name) => name,
    };
    let index = find(name).ok_or_else(|| QueryError::NoIndex { name: name.clone() })?;
    let name = index.name.clone();
    let source = match index.output.clone() {
        Some(output) => Source::Outputs(index, output),
        None if index.has_reduce => Source::Results(index),
        None => Source::Entries(index),
    };
    Ok((source, Some(name)))
}

/// Leaves out what lies before a place, where rows are read in the order of places.
fn narrow(access: &mut Access, direction: Direction, after: &Place) {
    match (access, direction) {
        (Access::Ids(range), Direction::Forward) => {
            let from = [after.tie.as_slice(), &[0]].concat();
            *range = intersection(range, KeyRange { from, before: None });
        }
        (Access::Ids(range), Direction::Backward) => {
            *range = intersection(range, KeyRange { from: Vec::new(), before: Some(after.tie.clone()) });
        }
        (Access::ById(ids), Direction::Forward) => ids.retain(|id| id.lower().as_bytes() > after.tie.as_slice()),
        (Access::ById(ids), Direction::Backward) => ids.retain(|id| id.lower().as_bytes() < after.tie.as_slice()),
        (Access::Feed { after: from, through }, direction) => {
            let etag = after.key.first().and_then(|part| match part.value() {
                Value::Number(number) => number.to_string().parse::<u64>().ok(),
                _ => None,
            });
            match (etag, direction) {
                (Some(etag), Direction::Forward) => *from = etag.max(*from),
                (Some(etag), Direction::Backward) => *through = etag.saturating_sub(1).min(*through),
                (None, _) => {}
            }
        }
        _ => {}
    }
}
