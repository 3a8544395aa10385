//! Which etag was the last at a moment of the past: a row of (microseconds since 1970, durable etag), a few dozen at most.
//!
//! A moment is noted when the newest one is older than a 32nd of the time that is looked back, and only where something was
//! written since: an idle database writes nothing. Answers are never too high: what was written after a moment that was noted
//! counts as younger, up to that 32nd.

use std::time::Duration;

use crate::store::commit::{Commit, RowChange};
use crate::store::keyspace::Family;
use crate::store::{Store, StoreError};

/// The row in `meta`.
const ROW: &str = "tombstone-clock";
/// Moments in the time that is looked back.
const MOMENTS: u32 = 32;

/// A moment, microseconds since 1970, and the last durable etag then.
type Moment = (i64, u64);

/// The last etag that was durable `back` before `now`, as far as is known; notes the present one when it is time. Blocking.
///
/// # Cost
/// One read; one commit, `MOMENTS` times in `back` at most.
pub(super) fn etag_at(store: &Store, back: Duration, now: i64, durable: u64) -> Result<u64, StoreError> {
    let row = store.snapshot().row(Family::Meta, ROW.as_bytes())?;
    let mut moments: Vec<Moment> = match row.as_deref().map(serde_json::from_slice) {
        None => Vec::new(),
        Some(Ok(moments)) => moments,
        Some(Err(error)) => return Err(StoreError::corrupt(Family::Meta, ROW.as_bytes(), error)),
    };
    if note(&mut moments, back, now, durable) {
        let value = serde_json::to_vec(&moments).unwrap_or_default();
        let row = RowChange::Put { family: Family::Meta, key: ROW.into(), value };
        store.commit(Commit { rows: vec![row], ..Commit::default() })?;
    }
    Ok(at(&moments, now.saturating_sub(micros(back))))
}

/// Adds the present moment where it is time, and forgets those before the newest that is old enough. `false`: nothing changed.
fn note(moments: &mut Vec<Moment>, back: Duration, now: i64, durable: u64) -> bool {
    let gap = micros(back / MOMENTS);
    // A clock that was put back counts as one that stands.
    let is_time = moments.last().is_none_or(|(then, etag)| *etag < durable && now.saturating_sub(*then) >= gap);
    if !is_time {
        return false;
    }
    moments.push((now, durable));
    let old = now.saturating_sub(micros(back));
    let first = moments.iter().rposition(|(then, _)| *then <= old).unwrap_or(0);
    moments.drain(..first);
    true
}

/// The highest etag noted at or before a moment.
fn at(moments: &[Moment], moment: i64) -> u64 {
    moments.iter().filter(|(then, _)| *then <= moment).map(|(_, etag)| *etag).max().unwrap_or(0)
}

/// Microseconds of a span of time.
pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK: Duration = Duration::from_secs(32);
    const SECOND: i64 = 1_000_000;

    #[test]
    fn an_etag_is_as_old_as_the_first_moment_noted_after_it() {
        let mut moments = Vec::new();
        for second in 0..100 {
            note(&mut moments, BACK, second * SECOND, u64::try_from(second).unwrap() * 10);
            let expected = u64::try_from((second - 32).max(0)).unwrap() * 10;
            assert_eq!(at(&moments, (second - 32) * SECOND), expected, "at {second}");
            assert!(moments.len() <= 34, "{}", moments.len());
        }
    }

    #[test]
    fn an_idle_database_notes_nothing() {
        let mut moments = vec![(0, 5)];
        assert!(!note(&mut moments, BACK, 1_000 * SECOND, 5));
        assert_eq!(at(&moments, 968 * SECOND), 5);
        assert!(note(&mut moments, BACK, 1_000 * SECOND, 6));
        assert_eq!(at(&moments, 968 * SECOND), 5);
    }

    #[test]
    fn a_clock_that_is_put_back_makes_nothing_older() {
        let mut moments = vec![(100 * SECOND, 5)];
        assert!(!note(&mut moments, BACK, 50 * SECOND, 9));
        assert_eq!(at(&moments, 18 * SECOND), 0);
    }
}
