//! What of a feed was handed out, to whom, and what was acknowledged: one subscription's books, without a disk.
//!
//! Every etag of the feed is in one of these states: acknowledged (everything through `through`, and the ranges `above`),
//! open (handed to a worker, or waiting to be), or not yet looked at (above `scanned`). An open item covers the etags after
//! the row before it, so that gaps, and rows that nobody wants, are acknowledged together with their neighbours.
//!
//! Invariants: no id is in two workers' hands; an item leaves the books only by being settled, or when the last worker goes
//! and the feed is read again from `through`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Items that may be open at once.
pub(super) const OPEN_MAX: usize = 65_536;
/// Ranges above `through` that may be acknowledged at once: they are written down with every acknowledgement.
pub(super) const RANGES_MAX: usize = 1_024;

/// A worker's number.
pub(super) type WorkerNumber = u64;

/// The books of one subscription.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    through: u64,
    /// Acknowledged ranges above `through`: exclusive beginning → inclusive end; they neither touch nor overlap.
    above: BTreeMap<u64, u64>,
    scanned: u64,
    /// By etag.
    open: BTreeMap<u64, Item>,
    /// How many items wait for a worker.
    waiting: usize,
    /// Ids in workers' hands.
    held: HashMap<Arc<str>, u64>,
}

#[derive(Debug)]
struct Item {
    /// The etag of the row before, down to which the item covers.
    after: u64,
    /// Lower-cased.
    id: Arc<str>,
    holder: Option<WorkerNumber>,
}

/// What became of a row of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// It is the worker's.
    Taken,
    /// Another version of its document is in a worker's hands; it waits.
    Deferred,
    /// It was acknowledged, or is open already.
    Known,
}

impl Ledger {
    pub(super) fn new(through: u64, above: &[(u64, u64)]) -> Self {
        let mut ledger = Self { through, scanned: through, ..Self::default() };
        for &(after, until) in above {
            ledger.acknowledge_range(after, until);
        }
        ledger
    }

    /// Everything through this etag is acknowledged.
    pub(super) fn through(&self) -> u64 {
        self.through
    }

    /// The acknowledged ranges above it, exclusive and inclusive.
    pub(super) fn above(&self) -> Vec<(u64, u64)> {
        self.above.iter().map(|(after, until)| (*after, *until)).collect()
    }

    /// The feed was looked at through this etag.
    pub(super) fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Whether more of the feed may be looked at before something is settled.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < OPEN_MAX && self.above.len() < RANGES_MAX
    }

    /// How many items a worker holds.
    pub(super) fn held_by(&self, worker: WorkerNumber) -> usize {
        self.open.values().filter(|item| item.holder == Some(worker)).count()
    }

    /// Hands a worker up to `max` items above `after` that wait, in etag order: etag and lower-cased id.
    pub(super) fn take_waiting(&mut self, worker: WorkerNumber, after: u64, max: usize) -> Vec<(u64, Arc<str>)> {
        let mut taken = Vec::new();
        if self.waiting == 0 {
            return taken;
        }
        for (etag, item) in self.open.range_mut(after.saturating_add(1)..) {
            if taken.len() >= max {
                break;
            }
            if item.holder.is_none() && !self.held.contains_key(&item.id) {
                item.holder = Some(worker);
                self.held.insert(Arc::clone(&item.id), *etag);
                taken.push((*etag, Arc::clone(&item.id)));
            }
        }
        self.waiting -= taken.len();
        taken
    }

    /// Takes the next row of the feed in; `after` is the etag of the row before, or where this look began.
    pub(super) fn offer(&mut self, worker: WorkerNumber, etag: u64, after: u64, id: &str) -> Offered {
        self.scanned = self.scanned.max(etag);
        if self.is_acknowledged(etag) {
            // What lay between, and was open once, has moved on in the feed.
            self.acknowledge_range(after, etag);
            return Offered::Known;
        }
        if self.open.contains_key(&etag) {
            return Offered::Known;
        }
        let id: Arc<str> = id.into();
        let is_held = self.held.contains_key(&id);
        if is_held {
            self.waiting += 1;
        } else {
            self.held.insert(Arc::clone(&id), etag);
        }
        let holder = (!is_held).then_some(worker);
        self.open.insert(etag, Item { after, id, holder });
        if is_held { Offered::Deferred } else { Offered::Taken }
    }

    /// Acknowledges the etags after `after` through `until`, in which the feed has no open row.
    pub(super) fn pass(&mut self, after: u64, until: u64) {
        self.scanned = self.scanned.max(until);
        self.acknowledge_range(after, until);
    }

    /// Acknowledges one open item.
    pub(super) fn settle(&mut self, etag: u64) {
        let Some(item) = self.open.remove(&etag) else { return };
        match item.holder {
            None => self.waiting -= 1,
            Some(_) => {
                self.held.remove(&item.id);
            }
        }
        self.acknowledge_range(item.after, etag);
    }

    /// Acknowledges what a worker holds, through `until` at most. Returns the etags.
    pub(super) fn acknowledge(&mut self, worker: WorkerNumber, until: u64) -> Vec<u64> {
        let held = self.open.range(..=until).filter(|(_, item)| item.holder == Some(worker));
        let etags: Vec<u64> = held.map(|(etag, _)| *etag).collect();
        for etag in &etags {
            self.settle(*etag);
        }
        etags
    }

    /// Acknowledges everything through `until`, whoever holds it, also what was never looked at. Returns the etags that were open.
    pub(super) fn acknowledge_all(&mut self, until: u64) -> Vec<u64> {
        let etags: Vec<u64> = self.open.range(..=until).map(|(etag, _)| *etag).collect();
        for etag in &etags {
            self.settle(*etag);
        }
        if until > self.through {
            let after = self.through;
            self.pass(after, until);
        }
        etags
    }

    /// Takes back what a worker holds; it waits for another one.
    pub(super) fn give_back(&mut self, worker: WorkerNumber) {
        for item in self.open.values_mut().filter(|item| item.holder == Some(worker)) {
            item.holder = None;
            self.held.remove(&item.id);
            self.waiting += 1;
        }
    }

    /// Forgets what is open: the feed will be read again from `through`.
    pub(super) fn rewind(&mut self) {
        self.open.clear();
        self.held.clear();
        self.waiting = 0;
        self.scanned = self.through;
    }

    /// Whether an etag was acknowledged.
    pub(super) fn is_acknowledged(&self, etag: u64) -> bool {
        etag <= self.through || self.above.range(..etag).next_back().is_some_and(|(_, until)| etag <= *until)
    }

    fn acknowledge_range(&mut self, after: u64, until: u64) {
        let (mut after, mut until) = (after.max(self.through), until);
        if until <= after {
            return;
        }
        if let Some((&before, &end)) = self.above.range(..=after).next_back()
            && end >= after
        {
            self.above.remove(&before);
            (after, until) = (before, until.max(end));
        }
        while let Some((&next, &end)) = self.above.range(after..=until).next() {
            self.above.remove(&next);
            until = until.max(end);
        }
        if after <= self.through {
            self.through = until;
        } else {
            self.above.insert(after, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Hands the rows above what was looked at to a worker, as a batch does.
    fn scan(ledger: &mut Ledger, worker: WorkerNumber, feed: &[(u64, &str)], max: usize) -> Vec<u64> {
        let mut taken: Vec<u64> = ledger.take_waiting(worker, 0, max).into_iter().map(|(etag, _)| etag).collect();
        let mut after = ledger.scanned();
        for (etag, id) in feed.iter().filter(|(etag, _)| *etag > after).copied().collect::<Vec<_>>() {
            if taken.len() >= max {
                break;
            }
            if ledger.offer(worker, etag, after, id) == Offered::Taken {
                taken.push(etag);
            }
            after = etag;
        }
        taken
    }

    const FEED: [(u64, &str); 4] = [(3, "a"), (5, "b"), (6, "c"), (9, "d")];

    #[test]
    fn what_one_worker_has_another_is_not_given() {
        let mut ledger = Ledger::new(0, &[]);
        assert_eq!(scan(&mut ledger, 1, &FEED, 2), [3, 5]);
        assert_eq!(scan(&mut ledger, 2, &FEED, 2), [6, 9]);
        ledger.acknowledge(2, u64::MAX);
        assert_eq!((ledger.through(), ledger.above()), (0, vec![(5_u64, 9_u64)]));
        ledger.acknowledge(1, u64::MAX);
        assert_eq!((ledger.through(), ledger.above()), (9, vec![]));
    }

    #[test]
    fn a_document_in_hand_waits_until_it_is_settled() {
        let mut ledger = Ledger::new(0, &[]);
        assert_eq!(scan(&mut ledger, 1, &[(3, "a")], 9), [3]);
        assert_eq!(scan(&mut ledger, 2, &[(4, "a"), (5, "b")], 9), [5]);
        assert!(ledger.take_waiting(2, 0, 9).is_empty());
        ledger.acknowledge(1, u64::MAX);
        assert_eq!(ledger.take_waiting(2, 0, 9), [(4, "a".into())]);
        assert_eq!(ledger.through(), 3);
    }

    #[test]
    fn what_a_worker_leaves_goes_to_the_next() {
        let mut ledger = Ledger::new(0, &[]);
        scan(&mut ledger, 1, &FEED, 3);
        ledger.acknowledge(1, 3);
        ledger.give_back(1);
        assert_eq!(scan(&mut ledger, 2, &FEED, 9), [5, 6, 9]);
        assert_eq!(ledger.held_by(2), 3);
    }

    #[test]
    fn after_a_restart_what_was_acknowledged_out_of_turn_is_not_given_again() {
        let mut ledger = Ledger::new(0, &[]);
        scan(&mut ledger, 1, &FEED, 1);
        scan(&mut ledger, 2, &FEED, 2);
        ledger.acknowledge(2, u64::MAX);
        let mut again = Ledger::new(ledger.through(), &ledger.above());
        assert_eq!(scan(&mut again, 3, &FEED, 9), [3, 9]);
    }

    #[test]
    fn everything_through_an_etag_can_be_acknowledged_unseen() {
        let mut ledger = Ledger::new(2, &[]);
        scan(&mut ledger, 1, &FEED, 1);
        assert_eq!(ledger.acknowledge_all(8), [3]);
        assert_eq!((ledger.through(), ledger.scanned(), ledger.open.is_empty()), (8, 8, true));
        assert!(ledger.acknowledge_all(4).is_empty());
        assert_eq!(ledger.through(), 8);
    }

    #[derive(Clone, Debug)]
    enum Act {
        Write(u8),
        Read(u8, u8),
        Acknowledge(u8, bool),
        Leave(u8),
        Restart,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => (0..6_u8).prop_map(Act::Write),
            4 => (1..4_u8, 1..4_u8).prop_map(|(worker, max)| Act::Read(worker, max)),
            3 => (1..4_u8, any::<bool>()).prop_map(|(worker, half)| Act::Acknowledge(worker, half)),
            1 => (1..4_u8).prop_map(Act::Leave),
            1 => Just(Act::Restart),
        ];
        proptest::collection::vec(act, 1..60)
    }

    /// The feed as a list of rows, newest of each id only, and who was given and acknowledged what, kept in the plainest way.
    #[derive(Default)]
    struct World {
        feed: Vec<(u64, u8)>,
        last: u64,
        hands: BTreeMap<u8, BTreeMap<u64, u8>>,
        acknowledged: BTreeSet<u64>,
    }

    impl World {
        fn read(&mut self, ledger: &mut Ledger, worker: u8, max: u8) {
            let (max, id) = (usize::from(max), |id: u8| id.to_string());
            let mut given = Vec::new();
            for (etag, name) in ledger.take_waiting(u64::from(worker), 0, max) {
                if self.feed.contains(&(etag, name.parse().unwrap())) {
                    given.push((etag, name.parse().unwrap()));
                } else {
                    ledger.settle(etag);
                }
            }
            let mut after = ledger.scanned();
            for (etag, of) in self.feed.clone() {
                if etag <= ledger.scanned() || given.len() >= max {
                    continue;
                }
                if ledger.offer(u64::from(worker), etag, after, &id(of)) == Offered::Taken {
                    given.push((etag, of));
                }
                after = etag;
            }
            for (etag, of) in given {
                let in_hand = self.hands.values().any(|hand| hand.values().any(|held| *held == of));
                assert!(!in_hand, "{of} is in two hands");
                assert!(!self.acknowledged.contains(&etag), "{etag} was acknowledged and is given again");
                self.hands.entry(worker).or_default().insert(etag, of);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn nothing_is_lost_or_given_twice(acts in acts()) {
            let (mut world, mut ledger) = (World::default(), Ledger::new(0, &[]));
            for act in acts {
                match act {
                    Act::Write(id) => {
                        world.last += 1;
                        world.feed.retain(|(_, of)| *of != id);
                        world.feed.push((world.last, id));
                    }
                    Act::Read(worker, max) => world.read(&mut ledger, worker, max),
                    Act::Acknowledge(worker, half) => {
                        let hand = world.hands.entry(worker).or_default();
                        let until = if half { hand.keys().nth(hand.len() / 2).copied().unwrap_or(0) } else { u64::MAX };
                        let wanted: Vec<u64> = hand.keys().copied().filter(|etag| *etag <= until).collect();
                        prop_assert_eq!(&ledger.acknowledge(u64::from(worker), until), &wanted);
                        hand.retain(|etag, _| *etag > until);
                        world.acknowledged.extend(wanted);
                    }
                    Act::Leave(worker) => {
                        ledger.give_back(u64::from(worker));
                        world.hands.remove(&worker);
                        if world.hands.values().all(BTreeMap::is_empty) {
                            world.hands.clear();
                            ledger.rewind();
                        }
                    }
                    Act::Restart => {
                        ledger = Ledger::new(ledger.through(), &ledger.above());
                        world.hands.clear();
                    }
                }
                let open = world.feed.iter().filter(|(etag, _)| !world.acknowledged.contains(etag));
                let lowest = open.map(|(etag, _)| *etag).min();
                prop_assert!(lowest.is_none_or(|lowest| ledger.through() < lowest), "{:?} at {:?}", lowest, ledger);
            }
            // In the end one worker gets all that was not acknowledged, in order.
            ledger = Ledger::new(ledger.through(), &ledger.above());
            world.hands.clear();
            let wanted: Vec<u64> =
                world.feed.iter().map(|(etag, _)| *etag).filter(|etag| !world.acknowledged.contains(etag)).collect();
            world.read(&mut ledger, 9, u8::MAX);
            let given: Vec<u64> = world.hands.remove(&9).unwrap_or_default().into_keys().collect();
            prop_assert_eq!(given, wanted);
            ledger.acknowledge(9, u64::MAX);
            let last = world.last;
            let after = ledger.scanned();
            ledger.pass(after, last);
            prop_assert_eq!((ledger.through(), ledger.above()), (last, vec![]));
        }
    }
}
