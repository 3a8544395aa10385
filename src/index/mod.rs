//! Map-reduce indexes: changes in, artificial documents out.
//!
//! `registry` holds the definitions; each index has a `worker` thread, which first makes a `first_build` and then one `run` after the
//! other: `map` a changed document, compare its `entry`s with what it emitted before, take the differences into the reduce
//! `tree` of each `group`, and `publish` index rows, artificial documents and watermark in one commit. `retire` cleans up.
//!
//! Next on the walk: `registry`.

mod context;
mod counters;
pub mod definition;
mod entry;
mod faults;
mod first_build;
mod graph;
mod group;
pub(crate) mod keys;
mod live;
mod map;
#[allow(dead_code, reason = "the rows in key order that it is for come next")]
pub(crate) mod ordered_key;
mod pace;
mod planned;
mod publish;
pub(crate) mod ranges;
mod records;
mod reduce;
pub(crate) mod registry;
mod regroup;
pub(crate) mod results;
mod retire;
mod rows;
mod run;
pub mod status;
mod tree;
pub(crate) mod wait;
mod worker;

pub use counters::IndexCounters;
pub use registry::INDEXES_MAX;
