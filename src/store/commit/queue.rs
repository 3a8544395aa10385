//! Where commits wait for the committer: bounded in number and bytes, first come, first served.
//!
//! A blocking caller waits for room. An asynchronous one never blocks its thread: its commit is taken at once, up to a
//! higher bound, and refused as busy beyond it.
//!
//! Next on the walk: `pipeline`.

use std::collections::VecDeque;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{Commit, Committed, Operation, PutId, RowChange};
use crate::store::StoreError;

/// Commits that may wait before blocking callers have to.
const WAITING_MAX: usize = 1_024;
/// Bytes that may wait before blocking callers have to; a single larger commit is taken when nothing waits.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// How much more asynchronous callers may put in.
const ASYNC_FACTOR: usize = 4;
/// Commits in one group.
const GROUP_MAX: usize = 1_024;
/// Bytes in one group, unless a single commit has more.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// Bytes of one commit: RocksDB holds a batch in memory, twice.
const COMMIT_BYTES_MAX: usize = 256 << 20;

/// A commit that waits for its turn.
#[derive(Debug)]
pub(crate) struct Request {
    pub(super) commit: Commit,
    pub(super) answer: Answer,
    /// From the store itself: may write the store's own `meta` rows, and is answered after a real sync in any case.
    pub(super) internal: bool,
    bytes: usize,
}

/// Where the answer goes.
#[derive(Debug)]
pub(super) enum Answer {
    Thread(Sender<Result<Committed, StoreError>>),
    Task(oneshot::Sender<Result<Committed, StoreError>>),
}

impl Answer {
    pub(super) fn send(self, result: Result<Committed, StoreError>) {
        // Nobody may be waiting any more: a dropped future. The commit happens all the same.
        match self {
            Answer::Thread(sender) => drop(sender.send(result)),
            Answer::Task(sender) => drop(sender.send(result)),
        }
    }
}

impl Request {
    /// Makes a request that a thread waits for.
    pub(crate) fn blocking(commit: Commit, internal: bool) -> (Self, Receiver<Result<Committed, StoreError>>) {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        (Self { bytes: size(&commit), commit, answer: Answer::Thread(sender), internal }, receiver)
    }

    /// Makes a request that a task waits for.
    pub(crate) fn task(commit: Commit) -> (Self, oneshot::Receiver<Result<Committed, StoreError>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { bytes: size(&commit), commit, answer: Answer::Task(sender), internal: false }, receiver)
    }

    fn check_size(&self) -> Result<(), StoreError> {
        if self.bytes <= COMMIT_BYTES_MAX {
            return Ok(());
        }
        Err(StoreError::Condition(format!(
            "a commit may have {COMMIT_BYTES_MAX} bytes, and this one has {}; split it",
            self.bytes
        )))
    }
}

/// What the committer is to do next.
#[derive(Debug)]
pub(super) enum Work {
    /// These commits, together.
    Group(Vec<Request>),
    /// Nothing came until the deadline.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

/// The queue of one store.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Request>,
    bytes: usize,
    closed: Option<String>,
}

impl Waiting {
    fn has_room(&self, bytes: usize, factor: usize) -> bool {
        self.requests.is_empty()
            || (self.requests.len() < factor * WAITING_MAX && self.bytes + bytes <= factor * WAITING_BYTES_MAX)
    }

    fn push(&mut self, request: Request) -> Result<(), StoreError> {
        if let Some(reason) = &self.closed {
            return Err(StoreError::Closed(reason.clone()));
        }
        self.bytes += request.bytes;
        self.requests.push_back(request);
        Ok(())
    }
}

impl Queue {
    /// Puts a request in; blocks while there is no room.
    pub(crate) fn push_blocking(&self, request: Request) -> Result<(), StoreError> {
        request.check_size()?;
        let mut waiting = self.waiting.lock();
        while waiting.closed.is_none() && !waiting.has_room(request.bytes, 1) {
            self.emptied.wait(&mut waiting);
        }
        waiting.push(request)?;
        self.filled.notify_one();
        Ok(())
    }

    /// Puts a request in without waiting.
    pub(crate) fn push_now(&self, request: Request) -> Result<(), StoreError> {
        request.check_size()?;
        let mut waiting = self.waiting.lock();
        if waiting.closed.is_none() && !waiting.has_room(request.bytes, ASYNC_FACTOR) {
            return Err(StoreError::Busy(format!(
                "{} writes with {} bytes are waiting for the disk already; repeat the write a little later",
                waiting.requests.len(),
                waiting.bytes
            )));
        }
        waiting.push(request)?;
        self.filled.notify_one();
        Ok(())
    }

    /// Takes what is waiting, within the bounds of a group; waits for something, at most until `deadline`.
    pub(super) fn take(&self, deadline: Option<Instant>) -> Work {
        let mut waiting = self.waiting.lock();
        while waiting.requests.is_empty() {
            if waiting.closed.is_some() {
                return Work::Closed;
            }
            match deadline {
                None => self.filled.wait(&mut waiting),
                Some(deadline) => {
                    if self.filled.wait_until(&mut waiting, deadline).timed_out() && waiting.requests.is_empty() {
                        return Work::Idle;
                    }
                }
            }
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        while let Some(request) = waiting.requests.front() {
            let fits = group.is_empty() || (group.len() < GROUP_MAX && bytes + request.bytes <= GROUP_BYTES_MAX);
            if !fits {
                break;
            }
            bytes += request.bytes;
            group.extend(waiting.requests.pop_front());
        }
        waiting.bytes -= bytes;
        self.emptied.notify_all();
        Work::Group(group)
    }

    /// Refuses requests from now on, with this reason. Those that wait already are still served.
    pub(crate) fn close(&self, reason: &str) {
        let mut waiting = self.waiting.lock();
        waiting.closed.get_or_insert_with(|| reason.to_owned());
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// Why the queue is closed, where it is.
    pub(crate) fn closed(&self) -> Option<String> {
        self.waiting.lock().closed.clone()
    }

    /// Drops what waits: those who asked learn that the store is closed.
    pub(super) fn clear(&self) {
        let dropped = std::mem::take(&mut self.waiting.lock().requests);
        let reason = self.closed().unwrap_or_default();
        for request in dropped {
            request.answer.send(Err(StoreError::Closed(reason.clone())));
        }
    }
}

/// Bytes of a commit, about.
fn size(commit: &Commit) -> usize {
    const ROW: usize = 64;
    let operations = commit.operations.iter().map(|operation| match operation {
        Operation::Put { id, document, .. } => {
            let id = match id {
                PutId::Given(id) | PutId::MustBeNew(id) => id.lower().len(),
                PutId::ServerSide(prefix) => prefix.len(),
            };
            3 * (ROW + id) + document.body.len() + document.metadata.len()
        }
        Operation::Delete { id, .. } | Operation::Check { id, .. } => 3 * (ROW + id.lower().len()),
    });
    let rows = commit.rows.iter().map(|row| match row {
        RowChange::Put { key, value, .. } => ROW + key.len() + value.len(),
        RowChange::Delete { key, .. } => ROW + key.len(),
        RowChange::DeleteRange { range, .. } => ROW + range.from.len() + range.before.as_ref().map_or(0, Vec::len),
    });
    let purges = commit.purges.iter().map(|purge| 3 * (ROW + purge.lower.len()));
    operations.chain(rows).chain(purges).sum::<usize>() + ROW * (1 + commit.claims.len() + commit.conditions.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::keyspace::Family;

    fn commit(bytes: usize) -> Commit {
        let row = RowChange::Put { family: Family::Meta, key: Vec::new(), value: vec![0; bytes] };
        Commit { rows: vec![row], ..Commit::default() }
    }

    fn group(queue: &Queue) -> usize {
        match queue.take(None) {
            Work::Group(group) => group.len(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_group_is_bounded_in_number_and_bytes() {
        let queue = Queue::default();
        for _ in 0..=GROUP_MAX {
            queue.push_now(Request::task(commit(1)).0).unwrap();
        }
        assert_eq!((group(&queue), group(&queue)), (GROUP_MAX, 1));
        for bytes in [GROUP_BYTES_MAX / 2, GROUP_BYTES_MAX / 2, 2 * GROUP_BYTES_MAX, 1] {
            queue.push_now(Request::task(commit(bytes)).0).unwrap();
        }
        assert_eq!([group(&queue), group(&queue), group(&queue), group(&queue)], [1, 1, 1, 1]);
    }

    #[test]
    fn tasks_are_refused_when_the_queue_is_full_and_taken_when_it_is_empty() {
        let queue = Queue::default();
        queue.push_now(Request::task(commit(ASYNC_FACTOR * WAITING_BYTES_MAX)).0).unwrap();
        let error = queue.push_now(Request::task(commit(1)).0).unwrap_err();
        assert!(matches!(&error, StoreError::Busy(message) if message.contains("1 writes")), "{error}");
        assert_eq!(group(&queue), 1);
        queue.push_now(Request::task(commit(1)).0).unwrap();
    }

    #[test]
    fn a_commit_that_no_batch_can_hold_is_refused() {
        let error = Queue::default().push_now(Request::task(commit(COMMIT_BYTES_MAX)).0).unwrap_err();
        assert!(error.to_string().contains("split it"), "{error}");
    }

    #[test]
    fn a_closed_queue_serves_what_waits_and_refuses_the_rest() {
        let queue = Queue::default();
        queue.push_now(Request::task(commit(1)).0).unwrap();
        queue.close("it is closing");
        let error = queue.push_now(Request::task(commit(1)).0).unwrap_err();
        assert_eq!(error.to_string(), "the database does not take writes: it is closing");
        assert_eq!(group(&queue), 1);
        assert!(matches!(queue.take(None), Work::Closed));
    }

    #[test]
    fn what_is_cleared_is_answered() {
        let queue = Queue::default();
        let (request, answer) = Request::blocking(commit(1), false);
        queue.push_now(request).unwrap();
        queue.close("it failed");
        queue.clear();
        assert!(matches!(answer.recv(), Ok(Err(StoreError::Closed(_)))));
    }
}
