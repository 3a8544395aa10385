//! What the server counts about requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use crate::store::{Distribution, Spread};

/// Microseconds from a request's head to that of its answer.
const ANSWER_STEPS: &[u64] = &[
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    60_000_000,
];

/// The classes of statuses, in the order of their first digit.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counts of requests since the server was started.
#[derive(Debug)]
pub(crate) struct Counts {
    answers: [AtomicU64; CLASSES.len()],
    answer_micros: Distribution,
    /// Connections that are open.
    connections: AtomicU64,
    /// Requests that were refused for want of credentials or of their permission.
    refused: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            answers: Default::default(),
            answer_micros: Distribution::new(ANSWER_STEPS),
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }
}

impl Counts {
    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        if let Some(count) = self.answers.get(usize::from(status.as_u16() / 100).wrapping_sub(1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        self.answer_micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a connection for as long as what is returned is held.
    pub(crate) fn connected(self: &std::sync::Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(std::sync::Arc::clone(self))
    }

    pub(super) fn answers(&self) -> [u64; CLASSES.len()] {
        std::array::from_fn(|class| self.answers.get(class).map_or(0, |count| count.load(Ordering::Relaxed)))
    }

    pub(super) fn answer_micros(&self) -> Spread {
        self.answer_micros.read()
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connected(std::sync::Arc<Counts>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
