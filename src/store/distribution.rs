//! How values are spread, counted in fixed steps: cheap enough for the committer, and what `/metrics` shows.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of values by size, while they come in.
#[derive(Debug)]
pub(crate) struct Distribution {
    /// The greatest value of each step, rising; greater values are counted in one more.
    bounds: &'static [u64],
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

/// Counts of values by size, as read at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The greatest value of each step, rising.
    pub bounds: &'static [u64],
    /// Values in each step, and those above the last one.
    pub counts: Vec<u64>,
    /// All values together.
    pub sum: u64,
}

impl Distribution {
    /// Begins to count; `bounds` must rise.
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), sum: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, value: u64) {
        let step = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(step) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Spread {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Spread { bounds: self.bounds, counts, sum: self.sum.load(Ordering::Relaxed) }
    }
}

impl Spread {
    /// How many values there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_in_the_first_step_that_holds_it() {
        let distribution = Distribution::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 100, 101, 5_000] {
            distribution.add(value);
        }
        let spread = distribution.read();
        assert_eq!((spread.counts.as_slice(), spread.sum, spread.count()), (&[2, 2, 2, 2][..], 5_225, 8));
    }
}
