//! Map-reduce indexes: changes in, artificial documents out.
//!
//! `registry` takes definitions, `roster` knows them; each generation of an index has a `worker` thread, which first makes a
//! `first_build` and then one `run` after the other: `map` a changed document, compare its `entry`s with what it emitted before,
//! take the differences into the reduce `tree` of each `group`, and `publish` index rows, artificial documents and watermark
//! in one commit. A changed definition builds a second generation beside the one that serves; `swap` exchanges them.
//!
//! Next on the walk: `registry`.

mod blocked;
mod change;
mod context;
mod counters;
pub mod definition;
mod entry;
mod faults;
mod first_build;
mod graph;
mod group;
mod live;
mod map;
mod open;
mod operation;
#[allow(dead_code, reason = "the rows in key order that it is for come next")]
mod ordered_key;
mod pace;
mod planned;
mod publish;
mod records;
mod reduce;
pub(crate) mod registry;
mod retire;
mod roster;
mod rows;
mod run;
mod settle;
pub mod status;
mod swap;
mod tree;
pub(crate) mod wait;
mod worker;

pub use counters::IndexCounters;
pub use registry::INDEXES_MAX;
pub(crate) use roster::replacement_of;
