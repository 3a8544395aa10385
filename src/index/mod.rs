//! Map-reduce indexes: changes in, artificial documents out.
//!
//! `registry` takes definitions, `roster` knows them; each generation of an index has a `worker` thread, which first makes a
//! `first_build` and then one `run` after the other: `map` a changed document and those that had `loads` of it, compare its `entry`s
//! with what it emitted before (`keyed` ones without a reduce), take the differences into the reduce `tree` of each `group`, list
//! its result in a `reference` document, and `publish` rows, documents and watermark in one commit. A changed definition builds a
//! second generation beside the one that serves; `swap` exchanges them. `read` finds results by key.
//!
//! `tryout`, `explain`, `verify` and `progress` answer questions about all this and change nothing.
//!
//! Next on the walk: `registry`.

mod blocked;
mod change;
pub(crate) mod context;
mod counters;
pub mod definition;
mod entry;
pub mod explain;
mod faults;
mod first_build;
mod graph;
mod group;
mod keyed;
pub(crate) mod live;
mod loads;
mod map;
mod open;
mod operation;
pub(crate) mod ordered_key;
mod pace;
mod planned;
pub mod progress;
mod publish;
pub mod pulse;
pub(crate) mod queried;
pub(crate) mod ranges;
pub(crate) mod read;
pub(crate) mod records;
mod reduce;
mod reference;
pub(crate) mod registry;
mod regroup;
mod retire;
mod roster;
mod rows;
mod run;
mod settle;
pub(crate) mod standing;
pub mod status;
mod swap;
mod tree;
pub mod tryout;
pub mod verify;
pub(crate) mod wait;
mod watermarks;
mod worker;

pub use counters::IndexCounters;
pub use registry::INDEXES_MAX;
pub(crate) use roster::replacement_of;
