//! Runs a planned query over one snapshot: reads rows, keeps those that pass, groups or sorts them, and shows one page.
//!
//! Rows are shown while they are read wherever their order allows it. A page is read from one snapshot; the next one begins
//! behind the place of the last row, so documents that come and go move no other.

use std::borrow::Cow;

use super::bind::Bound;
use super::error::QueryError;
use super::filter::Test;
use super::group::Grouper;
use super::keys::Keys;
use super::plan::{Access, Plan, is_in};
use super::project::Distinct;
use super::row::Row;
use super::sort::{Kept, Memory, Place, Sorter};
use crate::id::DocumentId;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::document::StoredDocument;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Documents read at once by id.
const READ_AT_ONCE: usize = 128;
/// Rows after which it is asked whether anybody still waits.
const CANCEL_ROWS: u64 = 256;

/// One run of a query.
pub(crate) struct Run<'a> {
    pub(crate) snapshot: &'a Snapshot<'a>,
    pub(crate) bound: &'a Bound,
    pub(crate) plan: &'a Plan,
    /// Bytes that the run may hold for each of sorting, grouping and telling rows apart.
    pub(crate) memory_max: usize,
    /// Whether pages follow each other by place.
    pub(crate) is_paged: bool,
    /// Whether all rows are counted.
    pub(crate) counts: bool,
    /// The place of the last row of the page before.
    pub(crate) after: Option<&'a Place>,
    /// Whether nobody waits any more.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Rows in all, on every page; unknown where pages follow each other by place.
    pub(crate) total: Option<u64>,
    /// Rows left out because they showed what another one had shown.
    pub(crate) duplicates: u64,
    /// Rows read.
    pub(crate) read: u64,
    /// Rows shown.
    pub(crate) shown: u64,
    /// The place of the last row, where there is another page.
    pub(crate) next: Option<Place>,
}

/// Whether reading goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    On,
    Stop,
}

type Show<'s, E> = &'s mut dyn FnMut(&Row<'_>) -> Result<(), E>;

impl Run<'_> {
    /// Shows the rows of the page.
    ///
    /// # Cost
    /// Reads what the plan says; with conditions, to the end, because all rows are counted, unless pages follow by place.
    ///
    /// # Errors
    /// The storage fails, memory runs out, nobody waits any more, or `show` fails.
    pub(crate) fn run<E: From<QueryError>>(&self, show: Show<'_, E>) -> Result<Outcome, E> {
        let distinct = Distinct::of(self.bound.select.as_ref(), self.memory());
        let mut pager = Pager {
            order: &self.bound.order,
            skip: if self.after.is_some() { 0 } else { self.bound.offset },
            limit: self.bound.limit.unwrap_or(u64::MAX),
            is_paged: self.is_paged,
            counts: self.counts && self.plan.total.is_none(),
            distinct,
            outcome: Outcome { total: Some(0), ..Outcome::default() },
            last: None,
            has_more: false,
            show,
        };
        let mut read = 0;
        if pager.limit > 0 || pager.counts {
            match (&self.bound.group, self.plan.must_sort) {
                (Some(_), _) => self.grouped(&mut pager, &mut read)?,
                (None, true) => self.sorted(&mut pager, &mut read)?,
                (None, false) => self.streamed(&mut pager, &mut read)?,
            }
        }
        let mut outcome = pager.outcome;
        outcome.read = read;
        outcome.next = pager.last.filter(|_| pager.has_more);
        outcome.total = match self.plan.total {
            Some(total) => Some(total),
            None => outcome.total.filter(|_| self.counts),
        };
        Ok(outcome)
    }

    pub(super) fn memory(&self) -> Memory {
        Memory::new(self.memory_max)
    }

    fn streamed<E: From<QueryError>>(&self, pager: &mut Pager<'_, '_, E>, read: &mut u64) -> Result<(), E> {
        self.matching(read, &mut |row| {
            if self.is_before(&row) {
                return Ok(Go::On);
            }
            pager.offer(&row)
        })
    }

    fn sorted<E: From<QueryError>>(&self, pager: &mut Pager<'_, '_, E>, read: &mut u64) -> Result<(), E> {
        let mut sorter = self.sorter();
        let mut matched = 0;
        self.matching(read, &mut |row| {
            matched += 1;
            let place = Place::of(&row, &self.bound.order);
            if self.after.is_none_or(|after| place > *after) {
                sorter.add(place, row)?;
            }
            Ok(Go::On)
        })?;
        self.show_sorted(sorter, pager, matched)
    }

    fn grouped<E: From<QueryError>>(&self, pager: &mut Pager<'_, '_, E>, read: &mut u64) -> Result<(), E> {
        let Some(group) = &self.bound.group else { return Ok(()) };
        let mut grouper = Grouper::new(group, self.memory());
        self.matching(read, &mut |row| {
            grouper.add(&row)?;
            Ok(Go::On)
        })?;
        let mut sorter = self.sorter();
        let mut matched = 0;
        for group_row in grouper.into_rows() {
            let row = Row::Group(group_row?);
            if !group.having.matches(&row) {
                continue;
            }
            matched += 1;
            let place = Place::of(&row, &self.bound.order);
            if self.after.is_none_or(|after| place > *after) {
                sorter.add(place, row)?;
            }
        }
        self.show_sorted(sorter, pager, matched)
    }

    /// Of a page with a limit only its rows, those before it and one more are kept.
    fn sorter(&self) -> Sorter {
        let is_distinct = self.bound.select.as_ref().is_some_and(|select| select.distinct);
        let skipped = if self.after.is_some() { 0 } else { self.bound.offset };
        let kept = self.bound.limit.map(|limit| limit.saturating_add(skipped).saturating_add(1));
        Sorter::new(kept.filter(|_| !is_distinct), self.memory())
    }

    fn show_sorted<E: From<QueryError>>(
        &self,
        sorter: Sorter,
        pager: &mut Pager<'_, '_, E>,
        matched: u64,
    ) -> Result<(), E> {
        if pager.distinct.is_none() {
            pager.counts = false;
            pager.outcome.total = Some(matched);
        }
        let mut rows = sorter.into_rows().map(|(_, row)| row).peekable();
        while rows.peek().is_some() {
            let chunk: Vec<Kept> = rows.by_ref().take(READ_AT_ONCE).collect();
            for row in self.read_again(chunk)? {
                if pager.offer(&row)? == Go::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the documents of which only the ids were kept.
    fn read_again(&self, kept: Vec<Kept>) -> Result<Vec<Row<'static>>, QueryError> {
        let ids = kept.iter().filter_map(|row| match row {
            Kept::Id(id) => Some(DocumentId::stored(id)),
            Kept::Row(_) => None,
        });
        let mut documents = self.snapshot.get_many(&ids.collect::<Vec<_>>())?.into_iter().flatten();
        let rows = kept.into_iter().filter_map(|row| match row {
            Kept::Id(_) => documents.next().map(|document| Row::Document(Cow::Owned(document))),
            Kept::Row(row) => Some(row),
        });
        Ok(rows.collect())
    }

    fn is_before(&self, row: &Row<'_>) -> bool {
        self.after.is_some_and(|after| Place::of(row, &self.bound.order) <= *after)
    }

    /// Calls `each` with the rows that pass the conditions.
    fn matching<E: From<QueryError>>(
        &self,
        read: &mut u64,
        each: &mut dyn FnMut(Row<'_>) -> Result<Go, E>,
    ) -> Result<(), E> {
        let all = matches!(self.bound.filter, Test::Always(true));
        self.rows(&mut |row| {
            *read += 1;
            if read.is_multiple_of(CANCEL_ROWS) && (self.cancelled)() {
                return Err(QueryError::Cancelled.into());
            }
            if all || self.bound.filter.matches(&row) { each(row) } else { Ok(Go::On) }
        })
    }

    /// Calls `each` with every row of the plan.
    fn rows<E: From<QueryError>>(&self, each: &mut dyn FnMut(Row<'_>) -> Result<Go, E>) -> Result<(), E> {
        match &self.plan.access {
            Access::Nothing => Ok(()),
            Access::ById(ids) => self.by_id(ids, each),
            Access::Ids(range) => {
                for document in self.snapshot.documents_in(range.clone(), self.plan.direction) {
                    if self.offer_document(document.map_err(QueryError::from)?, each)? == Go::Stop {
                        break;
                    }
                }
                Ok(())
            }
            Access::Gathered => self.by_id(&self.gather()?, each),
            Access::Feed { after, through } => self.feed(*after, *through, each),
            Access::Keys { index, held, ranges } => Keys { run: self, index, ranges }.read(held, each),
        }
    }

    fn by_id<E: From<QueryError>>(
        &self,
        ids: &[DocumentId],
        each: &mut dyn FnMut(Row<'_>) -> Result<Go, E>,
    ) -> Result<(), E> {
        let mut ids: Vec<DocumentId> = ids.to_vec();
        if self.plan.direction == Direction::Backward {
            ids.reverse();
        }
        for some in ids.chunks(READ_AT_ONCE) {
            for document in self.snapshot.get_many(some).map_err(QueryError::from)?.into_iter().flatten() {
                if self.offer_document(document, each)? == Go::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn feed<E: From<QueryError>>(
        &self,
        after: u64,
        through: u64,
        each: &mut dyn FnMut(Row<'_>) -> Result<Go, E>,
    ) -> Result<(), E> {
        let feed = self.plan.collection.clone().map_or(Feed::All, Feed::Collection);
        let mut changes = self.snapshot.changes(&feed, after, through, self.plan.direction).peekable();
        while changes.peek().is_some() {
            let mut ids = Vec::with_capacity(READ_AT_ONCE);
            for change in changes.by_ref().take(READ_AT_ONCE) {
                let change = change.map_err(QueryError::from)?;
                if change.kind == ChangeKind::Put {
                    ids.push(DocumentId::stored(&change.id));
                }
            }
            for document in self.snapshot.get_many(&ids).map_err(QueryError::from)?.into_iter().flatten() {
                if self.offer_document(document, each)? == Go::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The ids of the collection's documents, in order. Their number is bounded by the plan.
    fn gather(&self) -> Result<Vec<DocumentId>, QueryError> {
        let feed = self.plan.collection.clone().map_or(Feed::All, Feed::Collection);
        let through = self.snapshot.progress().written;
        let mut ids = Vec::new();
        for change in self.snapshot.changes(&feed, 0, through, Direction::Forward) {
            let change = change?;
            if change.kind == ChangeKind::Put {
                ids.push(DocumentId::stored(&change.id));
            }
        }
        ids.sort_unstable_by(|a, b| a.lower().cmp(b.lower()));
        Ok(ids)
    }

    pub(super) fn offer_document<E>(
        &self,
        document: StoredDocument,
        each: &mut dyn FnMut(Row<'_>) -> Result<Go, E>,
    ) -> Result<Go, E> {
        if !is_in(self.plan.collection.as_deref(), &document.collection) {
            return Ok(Go::On);
        }
        each(Row::Document(Cow::Owned(document)))
    }
}

/// Cuts a page out of the rows.
struct Pager<'r, 's, E> {
    order: &'r [super::syntax::Order],
    skip: u64,
    limit: u64,
    is_paged: bool,
    /// Whether rows are counted that are not shown.
    counts: bool,
    distinct: Option<Distinct<'r>>,
    outcome: Outcome,
    last: Option<Place>,
    has_more: bool,
    show: Show<'s, E>,
}

impl<E: From<QueryError>> Pager<'_, '_, E> {
    fn offer(&mut self, row: &Row<'_>) -> Result<Go, E> {
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_new(row)?
        {
            self.outcome.duplicates += 1;
            return Ok(Go::On);
        }
        if self.counts {
            self.outcome.total = self.outcome.total.map(|total| total + 1);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(Go::On);
        }
        if self.outcome.shown >= self.limit {
            self.has_more = true;
            return Ok(if self.counts { Go::On } else { Go::Stop });
        }
        (self.show)(row)?;
        self.outcome.shown += 1;
        let is_full = self.outcome.shown >= self.limit;
        if self.is_paged && is_full {
            self.last = Some(Place::of(row, self.order));
        }
        Ok(if is_full && !self.counts && !self.is_paged { Go::Stop } else { Go::On })
    }
}
