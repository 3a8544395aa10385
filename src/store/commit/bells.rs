//! Who waits for which collection: a write that has become durable wakes those who follow its collection, and nobody else.
//!
//! A thousand followers of quiet collections so cost a busy one nothing.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Stands for all collections; no collection has an empty name.
const ALL: &str = "";

/// The bells of one store, by lower-cased name of the collection.
#[derive(Debug, Default)]
pub(crate) struct Bells(Mutex<HashMap<String, watch::Sender<()>>>);

impl Bells {
    /// Follows a collection (`None`: all) by its lower-cased name. What is durable before the call does not ring.
    pub(crate) fn follow(&self, lower_collection: Option<&str>) -> watch::Receiver<()> {
        let mut bells = self.0.lock();
        let name = lower_collection.unwrap_or(ALL);
        if let Some(bell) = bells.get(name) {
            return bell.subscribe();
        }
        bells.retain(|_, bell| bell.receiver_count() > 0);
        bells.entry(name.to_owned()).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Rings for collections whose changes have become durable.
    pub(super) fn ring<'n>(&self, lower_collections: impl Iterator<Item = &'n str>) {
        let bells = self.0.lock();
        if bells.is_empty() {
            return;
        }
        let mut rung = false;
        for name in lower_collections {
            rung = true;
            if let Some(bell) = bells.get(name) {
                bell.send_replace(());
            }
        }
        if let (true, Some(all)) = (rung, bells.get(ALL)) {
            all.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_followers_of_the_collection_are_woken() {
        let bells = Bells::default();
        let (orders, users, all) = (bells.follow(Some("orders")), bells.follow(Some("users")), bells.follow(None));
        bells.ring(["orders", "unknown"].into_iter());
        let woken = [orders, users, all].map(|receiver| receiver.has_changed().unwrap());
        assert_eq!(woken, [true, false, true]);
    }

    #[test]
    fn bells_that_nobody_follows_go() {
        let bells = Bells::default();
        drop(bells.follow(Some("orders")));
        let _users = bells.follow(Some("users"));
        assert_eq!(bells.0.lock().len(), 1);
    }
}
