//! Map-reduce indexes: changes in, artificial documents out.
//!
//! `registry` holds the definitions; each index has a `worker` thread, which first makes a `first_build` and then one `run` after the
//! other: `map` a changed document, compare its `entry`s with what it emitted before, take the differences into the reduce
//! `tree` of each `group`, and `publish` index rows, artificial documents and watermark in one commit. `retire` cleans up.
//!
//! `tryout`, `explain`, `verify` and `progress` answer questions about all this and change nothing.
//!
//! Next on the walk: `registry`.

pub(crate) mod context;
mod counters;
pub mod definition;
mod entry;
pub mod explain;
mod faults;
mod first_build;
mod graph;
mod group;
mod live;
mod map;
#[allow(dead_code, reason = "the rows in key order that it is for come next")]
mod ordered_key;
mod pace;
mod planned;
pub mod progress;
mod publish;
pub mod pulse;
mod records;
mod reduce;
pub(crate) mod registry;
mod retire;
mod rows;
mod run;
pub mod status;
mod tree;
pub mod tryout;
pub mod verify;
pub(crate) mod wait;
mod worker;

pub use counters::IndexCounters;
pub use registry::INDEXES_MAX;
