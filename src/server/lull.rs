//! How soon a reader of the feed looks again: one whose filter keeps finding nothing while others write looks less often, so
//! that a thousand of them cost little beside a busy writer.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::store::Progress;

/// The longest time after a change until a reader looks that has found nothing for long.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The looks of one reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lull {
    /// Looks in a row that found nothing.
    empty: u32,
    /// When to look again at the earliest.
    pub(crate) until: Instant,
}

impl Lull {
    pub(crate) fn new() -> Self {
        Self { empty: 0, until: Instant::now() }
    }

    /// Notes a look.
    pub(crate) fn looked(&mut self, has_found: bool) {
        self.empty = if has_found { 0 } else { self.empty.saturating_add(1) };
        self.until = Instant::now() + pause(self.empty);
    }
}

/// Waits until something above `etag` is durable and it is time to look; `false`: the database was closed.
pub(crate) async fn changed(progress: &mut watch::Receiver<Progress>, etag: u64, lull: Lull) -> bool {
    let is_open = progress.wait_for(|progress| progress.durable > etag).await.is_ok();
    tokio::time::sleep_until(lull.until).await;
    is_open
}

/// None after the first few empty looks, then twice as long after each.
fn pause(empty: u32) -> Duration {
    const FREE: u32 = 4;
    match empty.checked_sub(FREE) {
        None => Duration::ZERO,
        Some(more) => Duration::from_millis(1 << more.min(10)).min(PAUSE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_empty_looks_and_ends_with_a_find() {
        assert_eq!([0, 3, 4, 6, 20].map(|empty| pause(empty).as_millis()), [0, 0, 1, 4, 250]);
        let mut lull = Lull::new();
        for _ in 0..20 {
            lull.looked(false);
        }
        assert!(lull.until > Instant::now());
        lull.looked(true);
        assert!(lull.until <= Instant::now());
    }
}
