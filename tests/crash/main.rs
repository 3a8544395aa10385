//! A process that is killed at any moment leaves a database that reopens whole: every acknowledged write is there, batches are not
//! torn, no etag comes twice, and the artificial documents equal their recomputation.
//!
//! `child` is the process that works and is killed; `workload` says what it writes, so that the state after any batch is known;
//! `crashes_leave_no_torn_batch` kills it and looks. `TREEPIE_CRASH_ROUNDS=10` makes ten times as many rounds.

#[cfg(test)]
mod child;
#[cfg(test)]
mod crashes_leave_no_torn_batch;
#[cfg(test)]
mod workload;

#[cfg(test)]
#[path = "../index/models.rs"]
#[allow(dead_code, reason = "shared with the index tests, which use the rest")]
mod models;
#[cfg(test)]
#[path = "../index/oracle.rs"]
#[allow(dead_code, reason = "shared with the index tests, which use the rest")]
mod oracle;
#[cfg(test)]
#[path = "../index/shape.rs"]
mod shape;
#[cfg(test)]
#[path = "../index/world.rs"]
#[allow(dead_code, reason = "shared with the index tests, which use the rest")]
mod world;
