//! Which tombstones may go: those that every reader which needs them has passed.
//!
//! Three kinds of readers hold tombstones back. Indexes, by their watermarks, for however long that takes: one that missed a
//! deletion would be wrong. Subscriptions, by what they have acknowledged, until nobody has used them for
//! `subscription_idle_max`. And readers that the server does not know, who come back to `_changes` with a position: for them
//! everything is kept for `kept_min`; one that comes later is told so ([`StoreError::Purged`]).
//!
//! Ages are told by a row of moments (`clock`), since tombstones themselves hold no time.
//!
//! Next on the walk: `clean_up`, which runs this now and then, and `store::purge`.

use std::time::Duration;

use crate::id::lower;
use crate::index::registry::Registry;
use crate::store::changes::Feed;
use crate::store::commit::now_micros;
use crate::store::snapshot::CollectionCount;
use crate::store::{Store, StoreError};
use crate::subscription::{Floor, floors};

use super::clock::{self, micros};

/// How long tombstones are kept.
#[derive(Clone, Copy, Debug)]
pub struct TombstoneSettings {
    /// For so long every tombstone is kept, for readers of the feed that the server does not know. Default 14 days.
    pub kept_min: Duration,
    /// A subscription that nobody has used for so long holds no tombstones back any more. Default 90 days.
    pub subscription_idle_max: Duration,
    /// The time between two rounds of clean-up. Default 5 min.
    pub every: Duration,
}

/// The tombstones of one collection, and who needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TombstoneStatus {
    /// The collection.
    pub collection: String,
    /// How many there are.
    pub tombstones: u64,
    /// The etag of the newest that was removed, 0 where none was.
    pub purged_through: u64,
    /// The etag through which they may go now.
    pub removable_through: u64,
    /// Who needs those after that, in words; `None`: nobody, they only have to be durable.
    pub held_by: Option<String>,
}

/// Somebody who needs the tombstones of a feed after an etag.
#[derive(Clone, Debug)]
struct Hold {
    who: String,
    /// Lower-cased; `None`: every collection's.
    collection: Option<String>,
    through: u64,
}

/// Everybody who holds tombstones back at one moment.
#[derive(Debug)]
pub(super) struct Holds {
    /// Nothing that is not durable goes.
    durable: u64,
    holds: Vec<Hold>,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for TombstoneSettings {
    fn default() -> Self {
        Self { kept_min: DAY * 14, subscription_idle_max: DAY * 90, every: Duration::from_secs(300) }
    }
}

impl Holds {
    /// Asks everybody. What is durable is read first: whoever begins to read after that sees every deletion through it done
    /// already, and does not need its tombstone.
    pub(super) fn read(store: &Store, registry: &Registry, settings: &TombstoneSettings) -> Result<Self, StoreError> {
        let durable = store.progress().durable;
        let now = now_micros();
        let mut holds = Vec::new();
        if !settings.kept_min.is_zero() {
            let through = clock::etag_at(store, settings.kept_min, now, durable)?;
            holds.push(Hold { who: format!("the last {:?}", settings.kept_min), collection: None, through });
        }
        for (index, feed, through) in registry.watermarks() {
            let collection = match feed {
                Feed::All => None,
                Feed::Collection(name) => Some(lower(&name)),
            };
            holds.push(Hold { who: format!("index '{index}'"), collection, through });
        }
        let used_since = now.saturating_sub(micros(settings.subscription_idle_max));
        let needed = floors(&store.snapshot())?;
        holds.extend(needed.into_iter().filter_map(|floor| of_subscription(floor, used_since)));
        Ok(Self { durable, holds })
    }

    /// The etag through which the tombstones of a collection may go, and who needs the next.
    pub(super) fn of(&self, collection: &str) -> (u64, Option<&str>) {
        let collection = lower(collection);
        let theirs = self.holds.iter().filter(|hold| hold.collection.as_ref().is_none_or(|held| *held == collection));
        match theirs.min_by_key(|hold| hold.through) {
            Some(hold) if hold.through < self.durable => (hold.through, Some(&hold.who)),
            _ => (self.durable, None),
        }
    }
}

/// What a subscription holds, unless nobody has used it since a moment.
fn of_subscription(floor: Floor, used_since: i64) -> Option<Hold> {
    let Floor { collection, through, touched_micros } = floor;
    let who = "a subscription that delivers deletions".to_owned();
    (touched_micros >= used_since).then(|| Hold { who, collection: collection.as_deref().map(lower), through })
}

/// Tells how a collection's tombstones stand.
pub(super) fn status(count: CollectionCount, purged_through: u64, holds: &Holds) -> TombstoneStatus {
    let (removable_through, held_by) = holds.of(&count.name);
    TombstoneStatus {
        tombstones: count.tombstones,
        purged_through,
        removable_through,
        held_by: held_by.map(str::to_owned),
        collection: count.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(durable: u64, holds: &[(&str, Option<&str>, u64)]) -> Holds {
        let holds = holds.iter().map(|(who, collection, through)| Hold {
            who: (*who).to_owned(),
            collection: collection.map(str::to_owned),
            through: *through,
        });
        Holds { durable, holds: holds.collect() }
    }

    #[test]
    fn the_slowest_reader_of_a_collection_holds_its_tombstones() {
        let holds = holds(90, &[("ix", Some("orders"), 20), ("all", None, 40), ("fast", Some("orders"), 80)]);
        assert_eq!(holds.of("Orders"), (20, Some("ix")));
        assert_eq!(holds.of("Users"), (40, Some("all")));
    }

    #[test]
    fn a_subscription_holds_tombstones_until_nobody_has_used_it_for_long() {
        let floor = |touched_micros| Floor { collection: Some("Orders".to_owned()), through: 5, touched_micros };
        let hold = of_subscription(floor(100), 100).unwrap();
        assert_eq!((hold.collection.as_deref(), hold.through), (Some("orders"), 5));
        assert!(of_subscription(floor(99), 100).is_none());
    }

    #[test]
    fn nothing_goes_that_is_not_durable() {
        assert_eq!(holds(7, &[]).of("Orders"), (7, None));
        assert_eq!(holds(7, &[("ix", None, 9)]).of("Orders"), (7, None));
    }
}
