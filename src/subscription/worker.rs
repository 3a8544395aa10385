//! A worker that has a subscription open: takes its share of the feed part by part, and acknowledges it.
//!
//! A part is read from one snapshot, never past what is durable. Rows are put into the books first and read then, a few at a
//! time: a document that was changed meanwhile has moved on in the feed, and is met there.
//!
//! Next on the walk: `delivery`, then `server::subscriptions`.

use std::sync::Arc;

use tokio::sync::watch;

use super::definition::Checked;
use super::delivery::{Delivery, News, Shaped};
use super::error::{End, SubscriptionError};
use super::ledger::{Offered, WorkerNumber};
use super::live::{Live, State, UNWRITTEN_MAX};
use super::record::FaultRow;
use super::sieving::{Said, Sieving};
use crate::id::{DocumentId, lower};
use crate::script::Fault;
use crate::script::sieve::Sifted;
use crate::store::changes::{Change, ChangeKind, Feed};
use crate::store::commit::now_micros;
use crate::store::document::StoredDocument;
use crate::store::previous::Kept;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;
use crate::store::{Store, StoreError};

/// Rows that one part looks at, wanted or not.
const LOOKED_AT_MAX: usize = 8_192;

/// Rows that are looked at while the books are locked.
const LOOKED_AT_ONCE: usize = 1_024;

/// Documents that are read at once.
const GROUP_MAX: usize = 256;

/// What a document is taken to have, in bytes, before one was seen.
const BYTES_GUESSED: usize = 16 * 1024;

/// How much a part may hold; one document more than `bytes` at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) documents: usize,
    pub(crate) bytes: usize,
    /// Nothing at or below this etag: what the batch has already.
    pub(crate) after: u64,
    /// Nothing above this etag.
    pub(crate) until: u64,
}

/// A part of what there is to deliver.
#[derive(Debug)]
pub(crate) struct Part {
    /// In etag order.
    pub(crate) deliveries: Vec<Delivery>,
    /// Whether nothing durable is left for this worker.
    pub(crate) is_caught_up: bool,
    /// Whether nothing is left that there was room for by etag.
    pub(crate) is_end: bool,
    /// The etag through which the feed was looked at.
    pub(crate) through: u64,
    /// Where everything was delivered: the etag of the index's sources through which its results are complete.
    pub(crate) complete_through: Option<u64>,
}

/// An open subscription. Gives back what it holds when it is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    live: Arc<Live>,
    number: WorkerNumber,
    id: String,
    feed: Feed,
    include_deletes: bool,
    include_previous: bool,
    sieving: Option<Sieving>,
    end: watch::Receiver<Option<End>>,
    bell: watch::Receiver<()>,
    changed: watch::Receiver<()>,
    /// Bytes of a document, by those seen last.
    average_bytes: usize,
}

/// Rows that a worker took into its hands.
struct Taken {
    changes: Vec<Change>,
    looked_at: usize,
    /// Whether the feed has no more that is durable.
    is_end: bool,
}

/// One row that is the worker's now.
struct Row {
    change: Change,
    document: Option<StoredDocument>,
    kept: Vec<Kept>,
}

impl Worker {
    pub(super) fn new(
        live: Arc<Live>,
        number: WorkerNumber,
        id: String,
        checked: &Checked,
        end: watch::Receiver<Option<End>>,
    ) -> Self {
        let (bell, changed) = (live.store.follow(&checked.feed), live.follow());
        Self {
            live,
            number,
            id,
            feed: checked.feed.clone(),
            include_deletes: checked.record.include_deletes,
            include_previous: checked.record.include_previous,
            sieving: checked.sieve.clone().map(Sieving::new),
            end,
            bell,
            changed,
            average_bytes: BYTES_GUESSED,
        }
    }

    /// What it calls itself, or its number.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The store that it reads.
    pub(crate) fn store(&self) -> &Store {
        &self.live.store
    }

    /// Why it is no worker any more, where it is none.
    pub(crate) fn ended(&self) -> Option<End> {
        *self.end.borrow()
    }

    /// Whether it holds nothing that is not acknowledged.
    pub(crate) fn is_settled(&self) -> bool {
        self.live.state.lock().ledger.held_by(self.number) == 0
    }

    /// Completes when there may be something to read, when something was acknowledged, or when the worker has ended. What
    /// happened since the last call counts.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(crate) async fn stirred(&mut self) {
        let closed = tokio::select! {
            changed = self.bell.changed() => changed.is_err(),
            changed = self.changed.changed() => changed.is_err(),
            changed = self.end.changed() => changed.is_err(),
        };
        if closed {
            // The store is gone; the caller hears of it elsewhere.
            std::future::pending::<()>().await;
        }
    }

    /// Reads the next part. Blocking.
    ///
    /// # Errors
    /// The worker has ended, or the storage fails.
    pub(crate) fn read(&mut self, room: Room) -> Result<Part, SubscriptionError> {
        self.bell.borrow_and_update();
        self.changed.borrow_and_update();
        let store = self.live.store.clone();
        let durable = store.progress().durable;
        if self.include_previous {
            // Before the snapshot: what is read from it is kept from now on.
            self.live.keep(durable);
        }
        let snapshot = store.snapshot();
        let mut part =
            Part { deliveries: Vec::new(), is_caught_up: false, is_end: false, through: 0, complete_through: None };
        let (mut bytes, mut looked_at, mut after) = (0, 0, room.after);
        while part.deliveries.len() < room.documents && bytes < room.bytes && looked_at < LOOKED_AT_MAX {
            let left = (room.bytes - bytes) / self.average_bytes.max(1);
            let group = left.clamp(1, GROUP_MAX).min(room.documents - part.deliveries.len());
            let taken = self.take_rows(&snapshot, after, durable.min(room.until), group)?;
            looked_at += taken.looked_at;
            if taken.looked_at == 0 {
                part.is_caught_up = taken.is_end && durable <= room.until;
                part.is_end = taken.is_end;
                break;
            }
            let rows = self.read_rows(&snapshot, taken.changes)?;
            for delivery in self.sift(rows)? {
                let delivered = delivery.bytes();
                bytes += delivered;
                self.average_bytes = usize::midpoint(self.average_bytes, delivered);
                after = delivery.etag;
                part.deliveries.push(delivery);
            }
        }
        self.finish(&snapshot, durable, &mut part)?;
        Ok(part)
    }

    /// Acknowledges what it holds, through `until` at most (`None`: all). Answers when that is durable.
    ///
    /// # Errors
    /// The worker has ended, or the storage fails.
    pub(crate) fn acknowledge(
        &self,
        until: Option<u64>,
    ) -> Result<impl Future<Output = Result<(), SubscriptionError>> + Send + use<>, SubscriptionError> {
        let mut state = self.live.state.lock();
        self.check(&state)?;
        let etags = state.ledger.acknowledge(self.number, until.unwrap_or(u64::MAX));
        Ok(self.live.write_acknowledgement(&mut state, &etags))
    }

    fn check(&self, state: &State) -> Result<(), SubscriptionError> {
        if state.workers.iter().any(|entry| entry.number == self.number) {
            return Ok(());
        }
        Err(SubscriptionError::Ended(self.ended().unwrap_or(End::Dropped)))
    }

    /// Takes up to `max` rows into the books as its own. What waits at or below `last`, with which its batch has come to, stays
    /// for the next batch, so that each is in order.
    fn take_rows(
        &self,
        snapshot: &Snapshot<'_>,
        last: u64,
        until: u64,
        max: usize,
    ) -> Result<Taken, SubscriptionError> {
        let mut state = self.live.state.lock();
        self.check(&state)?;
        let waiting = state.ledger.take_waiting(self.number, last, max);
        let mut taken = Taken { changes: Vec::new(), looked_at: waiting.len(), is_end: false };
        for (etag, _) in waiting {
            let row = snapshot.changes(&self.feed, etag - 1, etag, Direction::Forward).next().transpose()?;
            match row {
                Some(change) => taken.changes.push(change),
                // A later write superseded it, and stands further on.
                None => state.ledger.settle(etag),
            }
        }
        if taken.changes.len() >= max || !state.ledger.has_room() {
            return Ok(taken);
        }
        let mut after = state.ledger.scanned();
        for change in snapshot.changes(&self.feed, after, until, Direction::Forward) {
            let change = change?;
            let etag = change.etag;
            taken.looked_at += 1;
            if change.kind == ChangeKind::Delete && !self.include_deletes {
                state.ledger.pass(after, etag);
            } else if state.ledger.offer(self.number, etag, after, &lower(&change.id)) == Offered::Taken {
                taken.changes.push(change);
            }
            after = etag;
            if taken.changes.len() >= max || taken.looked_at >= LOOKED_AT_ONCE || !state.ledger.has_room() {
                return Ok(taken);
            }
        }
        state.ledger.pass(after, until);
        taken.is_end = true;
        Ok(taken)
    }

    fn read_rows(&self, snapshot: &Snapshot<'_>, changes: Vec<Change>) -> Result<Vec<Row>, StoreError> {
        let puts = changes.iter().filter(|change| change.kind == ChangeKind::Put);
        let ids: Vec<DocumentId> = puts.map(|change| DocumentId::stored(&change.id)).collect();
        let mut documents = snapshot.get_many(&ids)?.into_iter();
        let mut rows = Vec::with_capacity(changes.len());
        for change in changes {
            let document = match change.kind {
                ChangeKind::Put => documents.next().flatten(),
                ChangeKind::Delete => None,
            };
            let kept = match self.include_previous {
                true => snapshot.kept(self.live.number, &lower(&change.id))?,
                false => Vec::new(),
            };
            rows.push(Row { change, document, kept });
        }
        Ok(rows)
    }

    /// Runs the script, settles what nobody wants, and makes deliveries of the rest.
    fn sift(&mut self, rows: Vec<Row>) -> Result<Vec<Delivery>, SubscriptionError> {
        let mut former = Vec::with_capacity(rows.len());
        {
            let mut state = self.live.state.lock();
            for row in &rows {
                let seen = |kept: &&Kept| state.ledger.is_acknowledged(kept.document.etag);
                former.push(row.kept.iter().rev().find(seen).map(|kept| kept.document.clone()));
                let keys = row.kept.iter().map(|kept| kept.key.clone()).collect();
                state.let_go_with(row.change.etag, keys);
            }
        }
        let Some(sieving) = &mut self.sieving else {
            let whole = |document| Shaped { document, projection: None };
            return Ok(rows
                .into_iter()
                .zip(former)
                .map(|(row, former)| {
                    let news = row.document.map_or(News::Deleted, |document| News::Written(whole(document)));
                    self.delivery(row.change, news, former.map(whole))
                })
                .collect());
        };
        let (mut changes, mut pairs, mut deletions) = (Vec::new(), Vec::new(), Vec::new());
        for (row, former) in rows.into_iter().zip(former) {
            match row.document {
                Some(document) => {
                    changes.push(row.change);
                    pairs.push((document, former));
                }
                None => deletions.push((row.change, former)),
            }
        }
        let (pairs, said) = match pairs.is_empty() {
            true => (pairs, Vec::new()),
            false => sieving.sift(pairs)?,
        };
        let mut deliveries = Vec::new();
        let mut state = self.live.state.lock();
        for ((change, (document, former)), said) in changes.into_iter().zip(pairs).zip(said) {
            match judge(&mut state, &change, document, former, said) {
                Some((news, previous)) => deliveries.push(self.delivery(change, news, previous)),
                None => state.ledger.settle(change.etag),
            }
        }
        drop(state);
        let whole = |document| Shaped { document, projection: None };
        deliveries.extend(
            deletions.into_iter().map(|(change, former)| self.delivery(change, News::Deleted, former.map(whole))),
        );
        deliveries.sort_unstable_by_key(|delivery| delivery.etag);
        Ok(deliveries)
    }

    fn delivery(&self, change: Change, news: News, previous: Option<Shaped>) -> Delivery {
        let Change { etag, id, collection, run, .. } = change;
        let change_vector = match &news {
            News::Written(written) => written.document.change_vector.clone(),
            News::Failed(document, _) => document.change_vector.clone(),
            // A tombstone keeps no change vector; it would have been this one.
            News::Deleted => change_vector(&self.live.store, etag),
        };
        Delivery { etag, change_vector, id, collection, run, news, previous }
    }

    fn finish(&self, snapshot: &Snapshot<'_>, durable: u64, part: &mut Part) -> Result<(), SubscriptionError> {
        let mut state = self.live.state.lock();
        self.check(&state)?;
        part.through = state.ledger.scanned();
        self.live.write_progress(&mut state, UNWRITTEN_MAX);
        let is_alone = state.workers.len() == 1;
        drop(state);
        if let (true, true, Feed::Collection(name)) = (part.is_caught_up, is_alone, &self.feed) {
            let complete = snapshot.complete(name)?.filter(|run| run.number <= durable);
            part.complete_through = complete.and_then(|run| run.complete_through);
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut state = self.live.state.lock();
        if state.remove_worker(self.number) {
            self.live.write_progress(&mut state, 1);
            drop(state);
            self.live.changed.send_replace(());
        }
    }
}

/// The change vector of a write with this etag.
pub(crate) fn change_vector(store: &Store, etag: u64) -> String {
    format!("{}:{etag}-{}", store.id_rules().node_tag, store.incarnation())
}

/// What the script's words make of a document; `None`: nobody wants it.
fn judge(
    state: &mut State,
    change: &Change,
    document: StoredDocument,
    former: Option<StoredDocument>,
    said: Said,
) -> Option<(News, Option<Shaped>)> {
    let mut fault = |fault: &Fault| {
        let (id, etag) = (change.id.clone(), change.etag);
        state.add_fault(FaultRow { at_micros: now_micros(), id, etag, fault: fault.clone() });
        fault.to_string()
    };
    let projection = match said.document {
        Ok(Sifted::Dropped) => return None,
        Ok(Sifted::Whole) => None,
        Ok(Sifted::Projected(json)) => Some(json),
        Err(failed) => return Some((News::Failed(document, fault(&failed)), None)),
    };
    let previous = match (former, said.previous) {
        (Some(document), Some(Ok(Sifted::Whole))) => Some(Shaped { document, projection: None }),
        (Some(document), Some(Ok(Sifted::Projected(json)))) => Some(Shaped { document, projection: Some(json) }),
        (_, Some(Err(failed))) => return Some((News::Failed(document, fault(&failed)), None)),
        _ => None,
    };
    Some((News::Written(Shaped { document, projection }), previous))
}
