//! Takes changes of entries into the reduce tree of one group.
//!
//! A changed entry dirties the node that holds it at each level and, if it starts (or ceases to start) a node, the node to its
//! left. When the group's first entry changes, the old first one counts as changed too. Dirty nodes are recomputed once,
//! bottom-up. One change in a group of n entries reads about (2F - 1) · log n / log F values.
//!
//! Next on the walk: `group`, which turns a group's result into its artificial document.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::{Children, Partial, Reduce, SMALL_GROUP_ENTRIES, TreeBuilder, TreeError, level};
use crate::store::StoreError;

/// Reads the rows of one group as they were before the changes.
pub(crate) trait Tree {
    /// Visits entries with key ≥ `from` in order, until `visit` says false.
    fn entries(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError>;
    /// Visits nodes of a level with start ≥ `from` in order, until `visit` says false.
    fn nodes(&self, level: u8, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError>;
    /// The start of the last node of a level that starts before `before`.
    fn last_node(&self, level: u8, before: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
}

/// What becomes of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Whether the entry was there before.
    pub was_present: bool,
    /// Its value now; `None` where it is gone.
    pub value: Option<Vec<u8>>,
}

/// The changes of a group's entries, by entry key.
pub(crate) type Changes = BTreeMap<Vec<u8>, Change>;

/// A group after its changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Updated {
    /// The number of entries.
    pub count: u64,
    /// The level of the root, 0 without a tree.
    pub height: u8,
    /// Whether all former nodes go before `nodes` are written.
    pub clear_nodes: bool,
    /// Nodes to write, or to delete (`None`), by level and start.
    pub nodes: BTreeMap<(u8, Vec<u8>), Option<Vec<u8>>>,
    /// The group's result; `None` where it has no entries.
    pub result: Option<Partial>,
}

/// Takes `changes` into a group of `count` entries whose tree has `height` levels.
pub(crate) fn update(
    tree: &dyn Tree,
    count: u64,
    height: u8,
    changes: &Changes,
    reduce: &mut dyn Reduce,
) -> Result<Updated, TreeError> {
    let added = changes.values().filter(|change| !change.was_present && change.value.is_some()).count() as u64;
    let removed = changes.values().filter(|change| change.was_present && change.value.is_none()).count() as u64;
    let count = (count + added).checked_sub(removed).ok_or(TreeError::Order)?;
    if count == 0 {
        let nodes = BTreeMap::new();
        return Ok(Updated { count, height: 0, clear_nodes: height > 0, nodes, result: None });
    }
    if height == 0 || count <= SMALL_GROUP_ENTRIES {
        return rebuild(tree, height, changes, reduce);
    }
    Update::new(tree, height, changes)?.run(count, reduce)
}

/// Computes a small group, or the first tree of one that has just outgrown being small.
fn rebuild(tree: &dyn Tree, height: u8, changes: &Changes, reduce: &mut dyn Reduce) -> Result<Updated, TreeError> {
    let mut entries = Vec::new();
    merge_entries(tree, changes, &[], &mut |entry, value| {
        entries.push((entry.to_vec(), value.to_vec()));
        true
    })?;
    let mut nodes = BTreeMap::new();
    let mut builder = TreeBuilder::default();
    let sink = &mut |level: u8, start: &[u8], stored: &[u8]| {
        nodes.insert((level, start.to_vec()), Some(stored.to_vec()));
    };
    for (entry, value) in &entries {
        builder.push(entry, value, reduce, sink)?;
    }
    let built = builder.finish(reduce, sink)?;
    Ok(Updated { count: built.count, height: built.height, clear_nodes: height > 0, nodes, result: Some(built.result) })
}

/// An update of a tree that stays a tree.
struct Update<'a> {
    tree: &'a dyn Tree,
    old_height: u8,
    changes: &'a Changes,
    old_first: Vec<u8>,
    first: Vec<u8>,
    nodes: BTreeMap<(u8, Vec<u8>), Option<Vec<u8>>>,
}

impl<'a> Update<'a> {
    fn new(tree: &'a dyn Tree, old_height: u8, changes: &'a Changes) -> Result<Self, TreeError> {
        let mut old_first = None;
        tree.entries(&[], &mut |entry, _| {
            old_first = Some(entry.to_vec());
            false
        })?;
        let Some(old_first) = old_first else { return Err(TreeError::Order) };
        let first = first_entry(tree, changes, &old_first)?;
        Ok(Self { tree, old_height, changes, old_first, first, nodes: BTreeMap::new() })
    }

    fn run(mut self, count: u64, reduce: &mut dyn Reduce) -> Result<Updated, TreeError> {
        let mut touched: BTreeSet<Vec<u8>> = self.changes.keys().cloned().collect();
        if self.first != self.old_first {
            touched.insert(self.old_first.clone());
            touched.insert(self.first.clone());
        }
        let mut dirty = touched.clone();
        for at in 1..=u8::MAX {
            let again = self.restructure(at, &dirty)?;
            for start in &again {
                let partial = self.children(at, start)?.partial(reduce)?;
                self.nodes.insert((at, start.clone()), Some(partial.encode()));
            }
            if let Some(root) = self.root(at)? {
                self.delete_above(at, &touched);
                let result = Some(Partial::decode(&root)?);
                return Ok(Updated { count, height: at, clear_nodes: false, nodes: self.nodes, result });
            }
            let stays = |entry: &Vec<u8>| level(entry) >= at || *entry == self.first || *entry == self.old_first;
            dirty = again.into_iter().chain(dirty.into_iter().filter(stays)).collect();
        }
        Err(TreeError::Order)
    }

    /// Settles which nodes start at a level, deletes those that no longer do, and returns the starts of all that must be recomputed.
    fn restructure(&mut self, at: u8, dirty: &BTreeSet<Vec<u8>>) -> Result<BTreeSet<Vec<u8>>, StoreError> {
        let is_new_level = at > self.old_height;
        let mut added = BTreeSet::new();
        if is_new_level {
            added.insert(self.first.clone());
        }
        for entry in dirty {
            let was_start = !is_new_level && self.was_start(entry, at);
            match (was_start, self.is_start(entry, at)) {
                (true, false) => drop(self.nodes.insert((at, entry.clone()), None)),
                (false, true) => drop(added.insert(entry.clone())),
                _ => {}
            }
        }
        let mut again = added.clone();
        for entry in dirty {
            let through = [entry.as_slice(), &[0]].concat();
            let holder = self.last_start(at, &through, &added)?.unwrap_or_else(|| self.first.clone());
            if holder == *entry
                && let Some(left) = self.last_start(at, entry, &added)?
            {
                again.insert(left);
            }
            again.insert(holder);
        }
        Ok(again)
    }

    /// The last node of a level, as it will be, that starts before `before`.
    fn last_start(&self, at: u8, before: &[u8], added: &BTreeSet<Vec<u8>>) -> Result<Option<Vec<u8>>, StoreError> {
        let new = added.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(before))).next_back();
        let mut old = None;
        if at == self.old_height {
            let is_left = self.nodes.get(&(at, self.old_first.clone())) != Some(&None);
            old = (is_left && self.old_first.as_slice() < before).then(|| self.old_first.clone());
        } else if at < self.old_height {
            old = self.tree.last_node(at, before)?;
            while let Some(start) = &old {
                if self.nodes.get(&(at, start.clone())) != Some(&None) {
                    break;
                }
                old = self.tree.last_node(at, start)?;
            }
        }
        Ok(old.max(new.cloned()))
    }

    /// Reads the children of the node that starts at `start`: entries for level 1, else nodes of the level below.
    fn children(&self, at: u8, start: &[u8]) -> Result<Children, StoreError> {
        let mut children = Children::default();
        let visit = &mut |key: &[u8], value: &[u8]| {
            if key != start && level(key) >= at {
                return false;
            }
            children.push(value);
            true
        };
        if at == 1 {
            merge_entries(self.tree, self.changes, start, visit)?;
        } else {
            self.merge_nodes(at - 1, start, visit)?;
        }
        Ok(children)
    }

    /// The root, if the level has just one node.
    fn root(&self, at: u8) -> Result<Option<Vec<u8>>, StoreError> {
        let of_level = self.nodes.range((at, Vec::new())..(at + 1, Vec::new()));
        if at < self.old_height && of_level.clone().all(|(_, stored)| stored.is_some()) {
            return Ok(None); // it had several, and lost none
        }
        if at >= self.old_height && (at > self.old_height || self.nodes.contains_key(&(at, self.old_first.clone()))) {
            let mut left = of_level.filter_map(|(_, stored)| stored.clone()); // all its nodes have been looked at
            return Ok(left.next().filter(|_| left.next().is_none()));
        }
        let mut found = 0;
        let mut root = None;
        self.merge_nodes(at, &[], &mut |_, stored| {
            found += 1;
            root = Some(stored.to_vec());
            found < 2
        })?;
        Ok(root.filter(|_| found == 1))
    }

    /// Deletes the nodes of levels that no longer exist. Their starts are the old first entry and changed entries, or the level of
    /// the root would have had a second node.
    fn delete_above(&mut self, root: u8, touched: &BTreeSet<Vec<u8>>) {
        for at in root + 1..=self.old_height {
            let starts: Vec<_> = touched.iter().filter(|entry| self.was_start(entry, at)).cloned().collect();
            for start in starts.into_iter().chain([self.old_first.clone()]) {
                self.nodes.insert((at, start), None);
            }
        }
    }

    fn was_start(&self, entry: &[u8], at: u8) -> bool {
        let was_present = self.changes.get(entry).is_none_or(|change| change.was_present);
        was_present && (level(entry) >= at || entry == self.old_first)
    }

    fn is_start(&self, entry: &[u8], at: u8) -> bool {
        let is_present = self.changes.get(entry).is_none_or(|change| change.value.is_some());
        is_present && (level(entry) >= at || entry == self.first)
    }

    fn merge_nodes(&self, at: u8, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        let changed = self.nodes.range((at, from.to_vec())..(at + 1, Vec::new()));
        let changed = changed.map(|((_, start), stored)| (start.as_slice(), stored.as_deref()));
        let read = |visit: &mut dyn FnMut(&[u8], &[u8]) -> bool| match at <= self.old_height {
            true => self.tree.nodes(at, from, visit),
            false => Ok(()),
        };
        merge(changed, read, visit)
    }
}

/// The first entry of a group as it will be, which has one. Reads where the old first one goes.
fn first_entry(tree: &dyn Tree, changes: &Changes, old_first: &[u8]) -> Result<Vec<u8>, TreeError> {
    if changes.get(old_first).is_none_or(|change| change.value.is_some()) {
        let smallest = changes.iter().find(|(_, change)| change.value.is_some()).map(|(entry, _)| entry.as_slice());
        return Ok(smallest.map_or(old_first, |smallest| smallest.min(old_first)).to_vec());
    }
    let mut first = None;
    merge_entries(tree, changes, &[], &mut |entry, _| {
        first = Some(entry.to_vec());
        false
    })?;
    first.ok_or(TreeError::Order)
}

/// Visits a group's entries from `from` on, as they will be.
fn merge_entries(
    tree: &dyn Tree,
    changes: &Changes,
    from: &[u8],
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), StoreError> {
    let changed = changes
        .range::<[u8], _>((Bound::Included(from), Bound::Unbounded))
        .map(|(entry, change)| (entry.as_slice(), change.value.as_deref()));
    merge(changed, |visit| tree.entries(from, visit), visit)
}

/// Visits stored rows and changed ones in one order; a changed row hides the stored one of the same key.
fn merge<'a>(
    changed: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    read: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError>,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), StoreError> {
    let mut changed = changed.peekable();
    let mut goes_on = true;
    read(&mut |key, value| {
        while goes_on && let Some((changed_key, changed_value)) = changed.next_if(|(changed_key, _)| *changed_key < key)
        {
            goes_on = changed_value.is_none_or(|value| visit(changed_key, value));
        }
        if goes_on {
            goes_on = match changed.next_if(|(changed_key, _)| *changed_key == key) {
                Some((_, None)) => true,
                Some((_, Some(value))) => visit(key, value),
                None => visit(key, value),
            };
        }
        goes_on
    })?;
    while goes_on && let Some((key, value)) = changed.next() {
        goes_on = value.is_none_or(|value| visit(key, value));
    }
    Ok(())
}
