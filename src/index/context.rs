//! What every step of one generation needs: where it reads and writes, and the program it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::counters::Counters;
use super::reference::Reference;
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
    /// The reference documents it writes.
    pub reference: Option<Arc<Reference>>,
    /// The feeds it reads: one for each distinct source collection, in declaration order, then one for each that it loads from.
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

    /// How many of its feeds are of sources; the others are of collections that it loads from.
    pub(crate) fn source_feeds(&self) -> usize {
        self.feeds.len().saturating_sub(self.program.loads.len())
    }

    /// See [`sources_of`].
    pub(crate) fn sources_of<'a>(&'a self, collection: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        sources_of(&self.program, collection)
    }
}

/// The map functions, by their place in `program.sources`, that take documents of a collection, and the collection's name as they spell it.
pub(crate) fn sources_of<'a>(program: &'a Program, collection: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    program.sources.iter().enumerate().filter_map(move |(n, source)| match &source.collection {
        SourceCollection::Named(name) if same_name(name, collection) => Some((n, name.as_str())),
        SourceCollection::All if !collection.starts_with('@') => Some((n, collection)),
        _ => None,
    })
}

/// The feeds that a program reads: those of its sources, then those of what it loads, also where one is both.
pub(crate) fn feeds(program: &Program) -> Arc<[Feed]> {
    let loaded = program.loads.iter().map(|name| Feed::Collection(name.clone()));
    if program.sources.iter().any(|source| source.collection == SourceCollection::All) {
        return std::iter::once(Feed::All).chain(loaded).collect();
    }
    let mut names: Vec<&str> = Vec::new();
    for source in &program.sources {
        match &source.collection {
            SourceCollection::Named(name) if !names.iter().any(|known| same_name(known, name)) => names.push(name),
            _ => {}
        }
    }
    names.into_iter().map(|name| Feed::Collection(name.to_owned())).chain(loaded).collect()
}

/// The watermarks with which a generation begins: sources from the start; whoever loads a document later reads it as it is then.
pub(crate) fn first_watermarks(program: &Program, written: u64) -> Vec<u64> {
    let feeds = feeds(program).len();
    (0..feeds).map(|feed| if feed + program.loads.len() < feeds { 0 } else { written }).collect()
}

/// Whether two names of collections or indexes mean the same.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a == b || crate::id::lower(a) == crate::id::lower(b)
}
