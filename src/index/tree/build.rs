//! Builds the reduce tree of one group from all its entries, in order, in one pass.
//!
//! Memory: the open node of each level, and the entries while there are few. The oracle for `update`, in production and in tests.

use super::{Children, Partial, Reduce, SMALL_GROUP_ENTRIES, TreeError, level};

/// Takes the entries of one group in order and hands out nodes as they are finished.
#[derive(Default)]
pub(crate) struct TreeBuilder {
    count: u64,
    small: Vec<(Vec<u8>, Vec<u8>)>,
    levels: Vec<OpenNode>,
}

/// The node of one level to which children are still being added.
struct OpenNode {
    start: Vec<u8>,
    children: Children,
    closed: u64,
}

/// Takes a finished node: level, start, stored bytes.
pub(crate) type NodeSink<'a> = &'a mut dyn FnMut(u8, &[u8], &[u8]);

/// A group's tree, once it is built.
pub(crate) struct Built {
    /// The number of entries.
    pub count: u64,
    /// The level of the root, 0 without a tree.
    pub height: u8,
    /// The group's result.
    pub result: Partial,
}

impl TreeBuilder {
    /// Adds the next entry.
    pub(crate) fn push(
        &mut self,
        entry: &[u8],
        value: &[u8],
        reduce: &mut dyn Reduce,
        sink: NodeSink<'_>,
    ) -> Result<(), TreeError> {
        self.count += 1;
        if self.count <= SMALL_GROUP_ENTRIES {
            self.small.push((entry.to_vec(), value.to_vec()));
            return Ok(());
        }
        for (entry, value) in std::mem::take(&mut self.small) {
            self.add(&entry, &value, reduce, sink)?;
        }
        self.add(entry, value, reduce, sink)
    }

    /// Closes the tree. There must have been an entry.
    pub(crate) fn finish(mut self, reduce: &mut dyn Reduce, sink: NodeSink<'_>) -> Result<Built, TreeError> {
        if self.count <= SMALL_GROUP_ENTRIES {
            let values: Vec<&[u8]> = self.small.iter().map(|(_, value)| value.as_slice()).collect();
            return Ok(Built { count: self.count, height: 0, result: reduce.reduce(&values)? });
        }
        let mut below = 0;
        loop {
            let node = self.close(below, reduce, sink)?;
            let is_root = self.levels.get(below).is_none_or(|open| open.closed == 1);
            if is_root {
                let height = u8::try_from(below + 1).unwrap_or(u8::MAX);
                return Ok(Built { count: self.count, height, result: node });
            }
            below += 1;
        }
    }

    fn add(
        &mut self,
        entry: &[u8],
        value: &[u8],
        reduce: &mut dyn Reduce,
        sink: NodeSink<'_>,
    ) -> Result<(), TreeError> {
        if self.levels.is_empty() {
            self.levels.push(OpenNode::at(entry));
        } else {
            for below in 0..usize::from(level(entry)) {
                self.close(below, reduce, sink)?;
                if let Some(open) = self.levels.get_mut(below) {
                    open.start = entry.to_vec();
                }
            }
        }
        if let Some(leaf) = self.levels.first_mut() {
            leaf.children.push(value);
        }
        Ok(())
    }

    /// Finishes the open node of level `below + 1`, hands it out and gives it to the level above, which begins with it.
    fn close(&mut self, below: usize, reduce: &mut dyn Reduce, sink: NodeSink<'_>) -> Result<Partial, TreeError> {
        let Some(open) = self.levels.get_mut(below) else {
            return Err(TreeError::Order);
        };
        let partial = open.children.partial(reduce)?;
        let stored = partial.encode();
        sink(u8::try_from(below + 1).unwrap_or(u8::MAX), &open.start, &stored);
        open.children.clear();
        open.closed += 1;
        if self.levels.len() == below + 1 {
            let start = self.levels.get(below).map(|open| open.start.clone()).unwrap_or_default();
            self.levels.push(OpenNode::at(&start));
        }
        if let Some(above) = self.levels.get_mut(below + 1) {
            above.children.push(&stored);
        }
        Ok(partial)
    }
}

impl OpenNode {
    fn at(start: &[u8]) -> Self {
        Self { start: start.to_vec(), children: Children::default(), closed: 0 }
    }
}
