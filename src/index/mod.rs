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
mod keyed;
mod live;
mod loads;
mod map;
pub(crate) mod ordered_key;
mod pace;
mod planned;
mod publish;
pub(crate) mod queried;
pub(crate) mod ranges;
pub(crate) mod read;
pub(crate) mod records;
mod reduce;
mod reference;
pub(crate) mod registry;
mod regroup;
mod retire;
mod rows;
mod run;
pub(crate) mod standing;
pub mod status;
mod tree;
pub(crate) mod wait;
mod worker;

pub use counters::IndexCounters;
pub use registry::INDEXES_MAX;
