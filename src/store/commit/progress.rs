//! How far the database has come, for those who wait for it: threads (a condition variable) and tasks (a watch channel).

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use crate::store::Progress;

/// The published progress of one store.
#[derive(Debug)]
pub(crate) struct Progression {
    state: Mutex<State>,
    changed: Condvar,
    watch: watch::Sender<Progress>,
}

#[derive(Debug)]
struct State {
    progress: Progress,
    wakes: u64,
}

impl Progression {
    pub(crate) fn new(progress: Progress) -> Self {
        let state = Mutex::new(State { progress, wakes: 0 });
        Self { state, changed: Condvar::new(), watch: watch::Sender::new(progress) }
    }

    pub(crate) fn get(&self) -> Progress {
        self.state.lock().progress
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.watch.subscribe()
    }

    /// Publishes progress that is never behind what was published before.
    pub(super) fn publish(&self, progress: Progress) {
        self.state.lock().progress = progress;
        self.changed.notify_all();
        self.watch.send_if_modified(|published| std::mem::replace(published, progress) != progress);
    }

    /// How often [`Progression::wake`] was called.
    pub(crate) fn wakes(&self) -> u64 {
        self.state.lock().wakes
    }

    pub(crate) fn wake(&self) {
        self.state.lock().wakes += 1;
        self.changed.notify_all();
    }

    /// Blocks until `written` is above `etag`, the time is over, or there were more wakes than `wakes` (`None`: than now).
    pub(crate) fn wait_written_above(&self, etag: u64, wakes: Option<u64>, timeout: Duration) -> Progress {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.state.lock();
        let wakes = wakes.unwrap_or(state.wakes);
        while state.progress.written <= etag && state.wakes == wakes {
            match deadline {
                None => self.changed.wait(&mut state),
                Some(deadline) => {
                    if self.changed.wait_until(&mut state, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        state.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::MAX;

    #[test]
    fn a_waiter_sees_what_is_published() {
        let progression = Progression::new(Progress::default());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| progression.wait_written_above(4, None, NEVER));
            for written in 1..=5 {
                progression.publish(Progress { written, durable: 0 });
            }
            assert_eq!(waiter.join().unwrap().written, 5);
        });
        assert_eq!(progression.watch().borrow().written, 5);
    }

    #[test]
    fn a_wake_since_the_count_was_read_is_not_lost() {
        let progression = Progression::new(Progress::default());
        let wakes = progression.wakes();
        progression.wake();
        assert_eq!(progression.wait_written_above(0, Some(wakes), NEVER), Progress::default());
    }

    #[test]
    fn the_time_may_be_over() {
        let progression = Progression::new(Progress { written: 3, durable: 3 });
        assert_eq!(progression.wait_written_above(3, None, Duration::ZERO).written, 3);
    }
}
