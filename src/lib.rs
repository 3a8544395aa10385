//! Treepie is a document database whose map-reduce indexes write their results back as documents.
//!
//! Documents are JSON, stored in RocksDB. Every write is a change event. Index scripts, written in Rhai, map each changed
//! document and reduce what was mapped; each result becomes an *artificial document* `OutputCollection/<reduce-key-hash>`,
//! which can be read, listed, indexed again and watched like any other.
//!
//! # A tour of the crate
//!
//! A document walks through the rooms in this order, and this is also a good order to read them in:
//!
//! 1. [`server`] takes an HTTP request apart; [`database`] does the same for a program that embeds Treepie.
//! 2. [`id`] turns what the caller wrote into the document's name: given, GUID, server-side or identity.
//! 3. [`store::commit`] puts the write through the one pipeline of its database: checked, given an etag, written with
//!    everything else that is waiting, synced once.
//! 4. [`store::changes`] is the feed this leaves behind: every live document and tombstone once, in etag order.
//! 5. [`index`] has a thread for each index that reads the feed, and runs the map functions of its
//! 6. [`script`] on each changed document, in a sandbox with exact numbers.
//! 7. The index compares the emitted entries with those of the document's former version, takes the differences into the reduce
//!    tree of each group, and makes each changed group's artificial document.
//! 8. Those go through [`store::commit`] again, together with the index's own rows and its watermark, in one commit.
//! 9. [`store::changes`] shows them to indexes over the output collection, and to
//! 10. [`subscription`], which hands them to whoever subscribed, and waits to hear that they arrived.
//!
//! [`query`] reads all of this by value: it plans a question in RQL over documents and results of indexes, and runs it.
//!
//! What an index did can be doubted: [`index::tryout`] tells what a definition would do, [`index::explain`] why a value is what it
//! is, and [`index::verify`] computes everything again and compares.
//!
//! Off this way lie the rooms of whoever operates it: [`settings`] is everything a server can be told, [`access`] who gets in,
//! [`backup`] how a database is copied and brought back. `/metrics`, export and import are files of the server.
//!
//! Beside them stands [`client`], which is for programs that talk to a server. It needs nothing of the other rooms but [`id`],
//! and is all that is left without the cargo feature `server`.
//!
//! Arrows between rooms run one way: `settings` → `server` → `database` → `subscription` → `query` → `index` → `script` and
//! `store` → `id`, and from `server` to `access` and `backup`, of which only the latter knows the store. The store
//! knows nothing of indexes, indexes nothing of HTTP, and only `store` knows about RocksDB and bytes.
//!
//! # Invariants worth knowing
//!
//! - Etag order is commit order; a reader of the feed never misses an etag that appears later.
//! - A batch, and a run of an index, is all there or not at all, also after a crash.
//! - An index's rows and artificial documents follow from the documents and the definition alone, byte for byte, whatever
//!   the history. `index::tree` says how.
//! - A deletion stays in the feed until every index has passed it; a reader that comes later than that is told so.
//! - A document contributes all of its entries or none. A group that fails has no document.

#![cfg_attr(
    not(feature = "server"),
    allow(rustdoc::broken_intra_doc_links, reason = "the tour goes through rooms that are not there")
)]

#[cfg(feature = "server")]
pub mod access;
#[cfg(feature = "server")]
pub mod backup;
pub mod client;
#[cfg(feature = "server")]
pub mod database;
pub mod id;
#[cfg(feature = "server")]
pub mod index;
#[cfg(feature = "server")]
pub mod query;
#[cfg(feature = "server")]
pub mod script;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod settings;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod subscription;

#[cfg(feature = "server")]
pub use database::{Database, DatabaseError, DatabaseSettings};
