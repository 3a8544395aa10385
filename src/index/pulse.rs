//! Whether an index moves: when it last did, and what keeps it from moving.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::store::commit::now_micros;

/// Failures in a row after which an index counts as stuck: one or two are a busy moment.
const FAILURES_MIN: u32 = 3;

/// The time without any movement after which one that has something to do counts as stuck; no call of a script takes as long.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// When an index last moved, and what kept it from moving since.
#[derive(Debug)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug)]
struct State {
    moved: Instant,
    /// There was nothing to do then: it waits to be woken.
    rests: bool,
    trouble: Option<Trouble>,
}

#[derive(Clone, Debug)]
struct Trouble {
    error: String,
    failures: u32,
    since_micros: i64,
}

/// Why an index does not move though it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// What is known of the cause.
    pub reason: String,
    /// Since when, microseconds since 1970.
    pub since_micros: i64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Mutex::new(State { moved: Instant::now(), rests: false, trouble: None }))
    }
}

impl Pulse {
    /// It has done a step, or begins again after a rest.
    pub(crate) fn beat(&self) {
        *self.0.lock() = State { moved: Instant::now(), rests: false, trouble: None };
    }

    /// It has found that there is nothing to do.
    pub(crate) fn rest(&self) {
        *self.0.lock() = State { moved: Instant::now(), rests: true, trouble: None };
    }

    /// A step has failed and will be tried again.
    pub(crate) fn fail(&self, error: &dyn std::fmt::Display, failures: u32) {
        let mut state = self.0.lock();
        let since_micros = state.trouble.as_ref().map_or_else(now_micros, |trouble| trouble.since_micros);
        state.trouble = Some(Trouble { error: error.to_string(), failures, since_micros });
    }

    /// Why one that runs and has something to do does not move.
    pub(crate) fn stuck(&self) -> Option<Stuck> {
        self.stuck_at(Instant::now(), now_micros())
    }

    fn stuck_at(&self, now: Instant, now_micros: i64) -> Option<Stuck> {
        let state = self.0.lock();
        if let Some(trouble) = state.trouble.as_ref().filter(|trouble| trouble.failures >= FAILURES_MIN) {
            let reason = format!("its last {} tries failed: {}", trouble.failures, trouble.error);
            return Some(Stuck { reason, since_micros: trouble.since_micros });
        }
        let quiet = now.saturating_duration_since(state.moved);
        let quiet_micros = i64::try_from(quiet.as_micros()).unwrap_or(i64::MAX);
        (quiet > QUIET_MAX && !state.rests).then(|| Stuck {
            reason: format!("nothing has moved for {} s", quiet.as_secs()),
            since_micros: now_micros.saturating_sub(quiet_micros),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_are_being_stuck_and_a_step_ends_it() {
        let pulse = Pulse::default();
        pulse.fail(&"the disk is full", 1);
        pulse.fail(&"the disk is full", 2);
        assert_eq!(pulse.stuck(), None);
        pulse.fail(&"the disk is full", 3);
        assert_eq!(pulse.stuck().unwrap().reason, "its last 3 tries failed: the disk is full");
        pulse.beat();
        assert_eq!(pulse.stuck(), None);
    }

    #[test]
    fn long_silence_is_being_stuck() {
        let pulse = Pulse::default();
        let at = |seconds| pulse.stuck_at(Instant::now() + Duration::from_secs(seconds), 100_000_000);
        assert_eq!(at(29), None);
        let stuck = at(40).unwrap();
        assert_eq!(stuck.reason, "nothing has moved for 40 s");
        assert!((59_000_000..=60_000_000).contains(&stuck.since_micros), "{stuck:?}");
        pulse.rest();
        assert_eq!(pulse.stuck_at(Instant::now() + Duration::from_secs(40), 0), None, "it has nothing to do");
    }
}
