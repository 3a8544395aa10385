//! What one connection watches: a set that commands add to and take from.
//!
//! Ids, prefixes and names are compared without regard to case. A change that several watches match is told once; the
//! clients share it out themselves.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::id::lower;
use crate::server::wire::changes::Command;
use crate::store::changes::{Change, Feed};

/// Things that one connection may watch.
const WATCHES_MAX: usize = 4_096;

/// What is watched.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    all_documents: bool,
    ids: BTreeSet<String>,
    prefixes: BTreeSet<String>,
    collections: BTreeSet<String>,
    all_indexes: bool,
    indexes: BTreeSet<String>,
    all_operations: bool,
    operations: BTreeSet<String>,
}

impl Watches {
    /// Does what a command says.
    ///
    /// # Errors
    /// The command is not known, has no parameter, or watches too much; in words for the client.
    pub(super) fn apply(&mut self, command: &Command) -> Result<(), String> {
        let Command { command: name, param, .. } = command;
        let (is_watched, what) = match name.split_once('-') {
            Some(("watch", what)) => (true, what),
            Some(("unwatch", what)) => (false, what),
            _ => return Err(unknown(name)),
        };
        let every = match what {
            "docs" => Some(&mut self.all_documents),
            "indexes" => Some(&mut self.all_indexes),
            "operations" => Some(&mut self.all_operations),
            // There is one node: its topology never changes.
            "topology-change" => return Ok(()),
            _ => None,
        };
        if let Some(every) = every {
            *every = is_watched;
            return Ok(());
        }
        let is_full = self.count() >= WATCHES_MAX;
        let set = match what {
            "doc" => &mut self.ids,
            "prefix" => &mut self.prefixes,
            "collection" => &mut self.collections,
            "index" => &mut self.indexes,
            "operation" => &mut self.operations,
            _ => return Err(unknown(name)),
        };
        let text = match param {
            Value::String(text) if !text.is_empty() => lower(text),
            Value::Number(number) => number.to_string(),
            _ => return Err(format!("'{name}' needs a \"Param\": what it is about.")),
        };
        if !is_watched {
            set.remove(&text);
        } else if is_full {
            return Err(format!(
                "One connection may watch {WATCHES_MAX} things; watch a prefix, a collection or all documents instead."
            ));
        } else {
            set.insert(text);
        }
        Ok(())
    }

    fn count(&self) -> usize {
        [&self.ids, &self.prefixes, &self.collections, &self.indexes, &self.operations].map(BTreeSet::len).iter().sum()
    }

    /// The feed that has all documents that are watched; `None` where there are none.
    pub(super) fn feed(&self) -> Option<Feed> {
        if self.all_documents || !self.ids.is_empty() || !self.prefixes.is_empty() {
            return Some(Feed::All);
        }
        match (self.collections.first(), self.collections.len()) {
            (Some(only), 1) => Some(Feed::Collection(only.clone())),
            (Some(_), _) => Some(Feed::All),
            (None, _) => None,
        }
    }

    pub(super) fn wants_document(&self, change: &Change) -> bool {
        if self.all_documents || self.collections.contains(&lower(&change.collection)) {
            return true;
        }
        let id = lower(&change.id);
        self.ids.contains(&id) || self.prefixes.iter().any(|prefix| id.starts_with(prefix.as_str()))
    }

    pub(super) fn has_indexes(&self) -> bool {
        self.all_indexes || !self.indexes.is_empty()
    }

    pub(super) fn wants_index(&self, name: &str) -> bool {
        self.all_indexes || self.indexes.contains(&lower(name))
    }

    pub(super) fn has_operations(&self) -> bool {
        self.all_operations || !self.operations.is_empty()
    }

    pub(super) fn wants_operation(&self, id: u64) -> bool {
        self.all_operations || self.operations.contains(&id.to_string())
    }
}

fn unknown(command: &str) -> String {
    let shown: String = command.chars().take(80).collect();
    format!(
        "Treepie does not support '{shown}' of the changes API; there are watch- and unwatch- with doc, docs, prefix, \
         collection, index, indexes, operation and operations."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::changes::ChangeKind;

    fn watching(commands: &[(&str, &str)]) -> Watches {
        let mut watches = Watches::default();
        for (name, param) in commands {
            watches.apply(&command(name, param)).unwrap();
        }
        watches
    }

    fn command(name: &str, param: &str) -> Command {
        Command { command_id: 1, command: name.to_owned(), param: Value::from(param) }
    }

    fn change(id: &str, collection: &str) -> Change {
        Change { etag: 1, kind: ChangeKind::Put, id: id.to_owned(), collection: collection.to_owned(), run: None }
    }

    #[test]
    fn a_document_is_wanted_by_id_prefix_or_collection() {
        let watches = watching(&[("watch-doc", "Users/1"), ("watch-prefix", "ORDERS/"), ("watch-collection", "items")]);
        for (id, collection, wanted) in [
            ("users/1", "x", true),
            ("users/10", "x", false),
            ("orders/7", "x", true),
            ("order", "x", false),
            ("z", "Items", true),
            ("z", "Items2", false),
        ] {
            assert_eq!(watches.wants_document(&change(id, collection)), wanted, "{id} in {collection}");
        }
    }

    #[test]
    fn the_feed_is_no_larger_than_what_is_watched() {
        assert_eq!(watching(&[]).feed(), None);
        assert_eq!(watching(&[("watch-indexes", "")]).feed(), None);
        assert_eq!(watching(&[("watch-collection", "Items")]).feed(), Some(Feed::Collection("items".to_owned())));
        assert_eq!(watching(&[("watch-collection", "a"), ("watch-collection", "b")]).feed(), Some(Feed::All));
        assert_eq!(watching(&[("watch-docs", ""), ("unwatch-docs", "")]).feed(), None);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let mut watches = Watches::default();
        let refused = watches.apply(&command("watch-counters", "")).unwrap_err();
        assert!(refused.contains("'watch-counters'"), "{refused}");
        assert!(watches.apply(&command("watch-doc", "")).unwrap_err().contains("Param"));
        for n in 0..WATCHES_MAX {
            watches.apply(&command("watch-doc", &n.to_string())).unwrap();
        }
        assert!(watches.apply(&command("watch-doc", "one more")).unwrap_err().contains("4096"));
    }
}
