//! HiLo: ranges of numbers that a client takes at once and finishes ids from by itself, `users/33-A`.
//!
//! Pure: how long the next range is, where it begins, and whether an unused rest can be taken back. What was handed out last
//! is kept beside the document that clients see (`Raven/Hilo/users`), so that nothing is handed out twice where somebody
//! deletes that document or lowers it. `database::hilo` reads and writes both.

use std::time::Duration;

use super::rules::IdError;

/// The length of a first range, and the least of any.
pub const SIZE_MIN: u64 = 32;
/// The length that doubling stops at.
pub const SIZE_MAX: u64 = 1 << 20;
/// The highest number of any range: i64's, which is what clients count in.
pub const NUMBER_MAX: u64 = i64::MAX as u64;

/// Asked again sooner than this, a client gets twice as many.
const SOON: Duration = Duration::from_secs(30);
/// Asked again later than this, a client gets half as many.
const LATE: Duration = Duration::from_secs(60);

/// What a client says about the range it had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HiloRequest {
    /// The length of its last range; 0: it had none.
    pub last_size: u64,
    /// How long ago it took that range; `None`: never.
    pub since_last: Option<Duration>,
    /// The end of its last range; the next one begins above it.
    pub last_max: u64,
}

/// Numbers handed out together, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiloRange {
    /// The first.
    pub low: u64,
    /// The last.
    pub high: u64,
}

impl HiloRange {
    /// How many numbers it has.
    #[must_use]
    pub fn size(&self) -> u64 {
        (self.high + 1).saturating_sub(self.low)
    }
}

/// Plans the next range: above `max`, which the document says, above `handed`, the last range that was handed out, and above
/// what the client has already.
///
/// # Errors
/// No numbers are left.
pub fn plan_next(tag: &str, max: u64, handed: Option<HiloRange>, request: &HiloRequest) -> Result<HiloRange, IdError> {
    let last = max.max(request.last_max).max(handed.map_or(0, |range| range.high));
    let high = last.checked_add(size(request)).filter(|high| *high <= NUMBER_MAX);
    let high = high.ok_or_else(|| {
        IdError::new(format!(
            "HiLo tag '{}' has no range left above {last}: numbers end at {NUMBER_MAX}; use another tag",
            super::cut(tag)
        ))
    })?;
    Ok(HiloRange { low: last + 1, high })
}

/// Plans what is left of the range that was handed out last once a client gives back what comes after `last`. `None`: it is
/// not the end of that range, something was handed out since, or another client's numbers would come back too.
#[must_use]
pub fn plan_return(max: u64, handed: Option<HiloRange>, end: u64, last: u64) -> Option<HiloRange> {
    let handed = handed?;
    let is_newest = handed.high == end && max == end;
    // Numbers below the range's own belong to whoever had the range before.
    let is_of_this_range = last + 1 >= handed.low && last < end;
    // What stays is spent: a second return, of the same client or another, finds nothing above `high` to give.
    (is_newest && is_of_this_range).then_some(HiloRange { low: last + 1, high: last })
}

fn size(request: &HiloRequest) -> u64 {
    let last = request.last_size;
    let size = match request.since_last {
        Some(since) if since < SOON => last.saturating_mul(2),
        Some(since) if since <= LATE => last,
        _ => last / 2,
    };
    size.clamp(SIZE_MIN, SIZE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(last_size: u64, seconds: u64) -> HiloRequest {
        HiloRequest { last_size, since_last: Some(Duration::from_secs(seconds)), last_max: 0 }
    }

    fn next(max: u64, handed: Option<HiloRange>, request: &HiloRequest) -> (u64, u64) {
        let range = plan_next("users", max, handed, request).unwrap();
        (range.low, range.high)
    }

    #[test]
    fn the_first_range_is_1_to_32() {
        assert_eq!(next(0, None, &HiloRequest::default()), (1, 32));
        assert_eq!(next(0, None, &asked(0, 0)), (1, 32));
    }

    #[test]
    fn ranges_double_when_asked_for_soon_and_halve_when_late() {
        for (last_size, seconds, size) in [
            (1, 0, 32),
            (32, 0, 64),
            (32, 29, 64),
            (32, 31, 32),
            (256, 29, 512),
            (256, 31, 256),
            (256, 59, 256),
            (256, 61, 128),
            (32, 600, 32),
            (1 << 19, 0, 1 << 20),
            (1 << 20, 0, 1 << 20),
            (1 << 20, 61, 1 << 19),
            (u64::MAX, 0, 1 << 20),
            (u64::MAX, 45, 1 << 20),
        ] {
            assert_eq!(super::size(&asked(last_size, seconds)), size, "{last_size} after {seconds} s");
        }
        assert_eq!(
            super::size(&HiloRequest { last_size: 256, ..HiloRequest::default() }),
            128,
            "never asked: long ago"
        );
    }

    #[test]
    fn a_range_begins_above_everything_known() {
        let handed = Some(HiloRange { low: 33, high: 96 });
        assert_eq!(next(32, handed, &HiloRequest::default()), (97, 128), "the document was lowered");
        assert_eq!(next(0, handed, &HiloRequest::default()), (97, 128), "the document was deleted");
        assert_eq!(next(500, handed, &HiloRequest::default()), (501, 532), "the document was raised");
        assert_eq!(next(500, handed, &HiloRequest { last_max: 5000, ..HiloRequest::default() }), (5001, 5032));
    }

    #[test]
    fn numbers_end_where_i64_does() {
        assert!(plan_next("users", NUMBER_MAX - 32, None, &HiloRequest::default()).is_ok());
        for max in [NUMBER_MAX - 31, NUMBER_MAX, u64::MAX] {
            let error = plan_next("users", max, None, &HiloRequest::default()).unwrap_err().to_string();
            assert!(error.contains("'users'") && error.contains("another tag"), "{error}");
        }
    }

    #[test]
    fn only_the_rest_of_the_newest_range_comes_back_and_only_once() {
        let handed = Some(HiloRange { low: 33, high: 64 });
        let rest = plan_return(64, handed, 64, 40).unwrap();
        assert_eq!(next(40, Some(rest), &HiloRequest::default()), (41, 72));
        assert_eq!(plan_return(40, Some(rest), 40, 35), None, "what was returned is not returned again");
        assert_eq!(plan_return(64, handed, 64, 32), Some(HiloRange { low: 33, high: 32 }), "nothing of it was used");
        assert_eq!(plan_return(64, handed, 64, 31), None, "31 is another client's");
        assert_eq!(plan_return(64, handed, 32, 10), None, "not the newest range");
        assert_eq!(plan_return(70, handed, 64, 40), None, "the document was raised");
        assert_eq!(plan_return(64, handed, 64, 64), None, "nothing is left of it");
        assert_eq!(plan_return(64, None, 64, 40), None, "nothing was ever handed out");
    }
}
