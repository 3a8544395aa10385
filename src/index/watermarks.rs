//! How far the indexes of a database have come, for the clean-up of tombstones.

use super::registry::Registry;
use crate::store::changes::Feed;

impl Registry {
    /// How far each feed was taken in, by index: a deletion after that must still be shown to it.
    ///
    /// Covers every generation that reads a feed or will go on reading one where it stopped, those that are being built, are
    /// frozen or turned off included; one that begins anew needs no deletion from before it began. An index whose script this
    /// version refuses may be taken up by another version, and reads who knows what.
    pub(crate) fn watermarks(&self) -> Vec<(String, Feed, u64)> {
        let mut all = Vec::new();
        for slot in self.roster.slots() {
            for index in [&slot.serving].into_iter().chain(&slot.replacement) {
                let watermarks = index.progress.lock().watermarks.clone();
                let feeds = index.context.feeds.iter().cloned().zip(watermarks);
                all.extend(feeds.map(|(feed, watermark)| (index.shown_name(), feed, watermark)));
            }
        }
        let unloaded = self.roster.all_unloaded();
        all.extend(unloaded.iter().map(|unloaded| (unloaded.record.name.clone(), Feed::All, 0)));
        all
    }
}
