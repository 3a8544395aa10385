//! Who may open a subscription while others have it: RavenDB's strategies.
//!
//! Next on the walk: `worker`.

use std::sync::Arc;

use tokio::sync::watch;

use super::error::{End, SubscriptionError};
use super::live::{Entry, Live, State};
use super::worker::Worker;
use crate::store::commit::now_micros;

/// Workers that may share one subscription.
const WORKERS_MAX: usize = 64;

/// What a worker does about others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Strategy {
    /// It is refused while another has the subscription.
    #[default]
    OpenIfFree,
    /// It waits until the subscription is free.
    WaitForFree,
    /// It ends the one that has the subscription, unless that one took over too.
    TakeOver,
    /// It shares the subscription with others of its kind; each document is in one worker's hands.
    Concurrent,
}

impl Strategy {
    /// By its name on the wire, without regard to case.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let all = [Self::OpenIfFree, Self::WaitForFree, Self::TakeOver, Self::Concurrent];
        all.into_iter().find(|strategy| strategy.name().eq_ignore_ascii_case(name))
    }

    /// Its name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenIfFree => "OpenIfFree",
            Self::WaitForFree => "WaitForFree",
            Self::TakeOver => "TakeOver",
            Self::Concurrent => "Concurrent",
        }
    }
}

/// What became of an attempt to open.
pub(crate) enum Opened {
    /// It is open.
    Worker(Box<Worker>),
    /// Another has it; try again when this changes.
    Wait(watch::Receiver<()>),
}

/// What the strategies say.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Open,
    Wait,
    TakeOver,
    Refuse(&'static str),
}

fn decide(strategy: Strategy, present: Option<Strategy>) -> Verdict {
    match (strategy, present) {
        (_, None) | (Strategy::Concurrent, Some(Strategy::Concurrent)) => Verdict::Open,
        (Strategy::Concurrent, Some(_)) => Verdict::Refuse("is not concurrent: one worker has it alone"),
        (_, Some(Strategy::Concurrent)) => {
            Verdict::Refuse("is shared by concurrent workers, and takes only their kind")
        }
        (Strategy::OpenIfFree, Some(_)) => Verdict::Refuse("is occupied by another worker"),
        (Strategy::WaitForFree, Some(_)) => Verdict::Wait,
        (Strategy::TakeOver, Some(Strategy::TakeOver)) => Verdict::Refuse("is occupied by a worker that took it over"),
        (Strategy::TakeOver, Some(_)) => Verdict::TakeOver,
    }
}

impl Live {
    /// Opens the subscription for a worker; an empty id gets a number. Blocking.
    ///
    /// # Errors
    /// It is deleted, disabled, left behind or in use.
    pub(crate) fn open(self: &Arc<Self>, strategy: Strategy, worker_id: &str) -> Result<Opened, SubscriptionError> {
        self.check_not_abandoned()?;
        let changed = self.follow();
        let mut state = self.state.lock();
        let name = || state.checked.record.name.clone();
        if state.is_deleted {
            return Err(SubscriptionError::Ended(End::Deleted));
        }
        if state.checked.record.is_disabled {
            return Err(SubscriptionError::Disabled { name: name() });
        }
        match decide(strategy, state.workers.first().map(|entry| entry.strategy)) {
            Verdict::Open if state.workers.len() >= WORKERS_MAX => {
                return Err(SubscriptionError::InUse(format!(
                    "subscription '{}' has {WORKERS_MAX} workers already, which is the most",
                    name()
                )));
            }
            Verdict::Open => {}
            Verdict::Wait => return Ok(Opened::Wait(changed)),
            Verdict::TakeOver => state.end_workers(End::TakenOver),
            Verdict::Refuse(reason) => {
                return Err(SubscriptionError::InUse(format!(
                    "subscription '{}' {reason}; it can't be opened with the strategy {}",
                    name(),
                    strategy.name()
                )));
            }
        }
        Ok(Opened::Worker(Box::new(self.admit(&mut state, strategy, worker_id))))
    }

    fn admit(self: &Arc<Self>, state: &mut State, strategy: Strategy, worker_id: &str) -> Worker {
        let now = now_micros();
        state.workers_ever += 1;
        let number = state.workers_ever;
        let id = if worker_id.is_empty() { format!("{number}") } else { worker_id.to_owned() };
        let (end, ended) = watch::channel(None);
        state.workers.push(Entry { number, id: id.clone(), strategy, opened_micros: now, end });
        state.cursor.connected_micros = Some(now);
        state.cursor.touched_micros = now;
        self.write_progress(state, 0);
        Worker::new(Arc::clone(self), number, id, &state.checked, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_decide_as_in_ravendb() {
        use Strategy::{Concurrent, OpenIfFree, TakeOver, WaitForFree};

        for strategy in [OpenIfFree, WaitForFree, TakeOver, Concurrent] {
            assert_eq!(decide(strategy, None), Verdict::Open);
            assert_eq!(Strategy::parse(&strategy.name().to_ascii_lowercase()), Some(strategy));
        }
        assert_eq!(decide(WaitForFree, Some(TakeOver)), Verdict::Wait);
        assert_eq!(decide(TakeOver, Some(OpenIfFree)), Verdict::TakeOver);
        assert_eq!(decide(Concurrent, Some(Concurrent)), Verdict::Open);
        for (strategy, present) in [
            (OpenIfFree, WaitForFree),
            (TakeOver, TakeOver),
            (Concurrent, OpenIfFree),
            (WaitForFree, Concurrent),
            (TakeOver, Concurrent),
        ] {
            assert!(matches!(decide(strategy, Some(present)), Verdict::Refuse(_)), "{strategy:?} {present:?}");
        }
    }
}
