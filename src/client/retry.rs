//! When a request is sent again, and how long to wait before.
//!
//! Only what can do no harm is repeated: a request that was not carried out (no connection, or the server said that it was
//! too busy), and one whose second run leaves what its first left.

use std::time::Duration;

/// How often, and after which pauses, a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often one request is sent at most, the first time included. 1: never again. Default 5.
    pub attempts_max: u32,
    /// The pause before the second attempt; each further one is twice as long, and each is shortened by chance by up to a
    /// half, so that many clients don't come back together. Default 100 ms.
    pub first_pause: Duration,
    /// The longest pause, also where the server names a longer one. Default 3 s.
    pub pause_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts_max: 5, first_pause: Duration::from_millis(100), pause_max: Duration::from_secs(3) }
    }
}

impl RetryPolicy {
    /// The pause after attempt `attempt` (from 1); `chance` is between 0 and 255.
    pub(super) fn pause(&self, attempt: u32, asked: Option<Duration>, chance: u8) -> Duration {
        let doubled = self.first_pause.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        let shortened = doubled.mul_f64(1.0 - f64::from(chance) / 512.0);
        shortened.max(asked.unwrap_or_default()).min(self.pause_max)
    }
}

/// A byte of chance; where the system has none, the longest pause is as good.
pub(super) fn chance() -> u8 {
    let mut byte = [0];
    match getrandom::fill(&mut byte) {
        Ok(()) => byte[0],
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let policy = RetryPolicy::default();
        let pauses: Vec<u128> = (1..8).map(|attempt| policy.pause(attempt, None, 0).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3000, 3000]);
        assert!(policy.pause(200, None, 0) <= policy.pause_max);
        assert_eq!(policy.pause(1, Some(Duration::from_secs(1)), 0), Duration::from_secs(1));
        assert!(policy.pause(2, None, 255) >= Duration::from_millis(100));
    }
}
