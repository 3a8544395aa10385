//! How much work an index takes on at once: as much as it does in half a second.
//!
//! A script that takes long for each document gets few of them at a time, so that its faults are judged soon, a stop is quick, and
//! what it did becomes visible. Only the size of runs depends on this, never a result.

use std::time::Duration;

/// The time that a portion of work should take.
const PORTION: Duration = Duration::from_millis(500);

/// Documents of the next portion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    documents: usize,
    documents_max: usize,
}

impl Pace {
    /// Begins with few documents, until it is known how long they take.
    const FIRST: usize = 64;
    /// The smallest portion.
    const MIN: usize = 16;

    /// A pace of at most `documents_max`.
    pub(crate) fn new(documents_max: usize) -> Self {
        Self { documents: Self::FIRST.min(documents_max), documents_max }
    }

    /// Documents of the next portion.
    pub(crate) fn documents(self) -> usize {
        self.documents
    }

    /// Learns how long a portion took: halves it when that was too long, doubles it when a portion as large as this one was quick.
    pub(crate) fn learn(&mut self, documents: usize, took: Duration) {
        if took > PORTION {
            self.documents = (self.documents / 2).max(Self::MIN);
        } else if documents * 2 > self.documents {
            self.documents = (self.documents * 2).min(self.documents_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_work_comes_in_ever_larger_portions_up_to_the_limit() {
        let mut pace = Pace::new(300);
        for _ in 0..5 {
            pace.learn(pace.documents(), Duration::from_millis(1));
        }
        assert_eq!(pace.documents(), 300);
    }

    #[test]
    fn slow_work_comes_in_small_portions() {
        let mut pace = Pace::new(4_096);
        for _ in 0..5 {
            pace.learn(pace.documents(), Duration::from_secs(1));
        }
        assert_eq!(pace.documents(), Pace::MIN);
    }

    #[test]
    fn small_portions_teach_nothing_about_larger_ones() {
        let mut pace = Pace::new(4_096);
        pace.learn(1, Duration::ZERO);
        assert_eq!(pace.documents(), Pace::FIRST);
    }
}
