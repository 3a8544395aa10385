//! What every step of one generation needs: where it reads and writes, and the program it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::counters::Counters;
use crate::script::{Fault, Program, Runner, SourceCollection};
use crate::store::Store;
use crate::store::changes::Feed;
use crate::store::keyspace::Generation;

/// One generation of one index.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub store: Store,
    /// The index's number.
    pub number: u32,
    /// The index's name.
    pub name: Arc<str>,
    pub generation: Generation,
    pub program: Arc<Program>,
    /// The output collection.
    pub output: Option<String>,
    /// The feeds it reads: one for each distinct source collection, in declaration order.
    pub feeds: Arc<[Feed]>,
    /// Whether another generation serves in its stead, and it must not touch a document yet.
    pub hidden: Arc<AtomicBool>,
    pub counters: Arc<Counters>,
    /// Becomes true when the index is to stop.
    pub stop: Arc<AtomicBool>,
}

impl Context {
    /// Whether it writes rows only, and no documents.
    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden.load(Ordering::Relaxed)
    }

    /// An engine for this thread.
    pub(crate) fn runner(&self) -> Result<Runner, Fault> {
        Runner::new(Arc::clone(&self.program), Arc::clone(&self.stop))
    }

    /// The map functions, by their place in `program.sources`, that take documents of a collection, and the collection's name as they spell it.
    pub(crate) fn sources_of<'a>(&'a self, collection: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        self.program.sources.iter().enumerate().filter_map(move |(n, source)| match &source.collection {
            SourceCollection::Named(name) if same_name(name, collection) => Some((n, name.as_str())),
            SourceCollection::All if !collection.starts_with('@') => Some((n, collection)),
            _ => None,
        })
    }
}

/// The feeds that a program reads.
pub(crate) fn feeds(program: &Program) -> Arc<[Feed]> {
    let mut names: Vec<&str> = Vec::new();
    for source in &program.sources {
        match &source.collection {
            SourceCollection::Named(name) if names.iter().any(|known| same_name(known, name)) => {}
            SourceCollection::Named(name) => names.push(name),
            SourceCollection::All => return Arc::new([Feed::All]),
        }
    }
    names.into_iter().map(|name| Feed::Collection(name.to_owned())).collect()
}

/// Whether two names of collections or indexes mean the same.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a == b || crate::id::lower(a) == crate::id::lower(b)
}
