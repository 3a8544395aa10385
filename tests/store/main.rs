//! The behaviour of the store, through its public API. One binary, because each links RocksDB again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, also in what it is helped by")]

mod claims_keep_others_out;
mod collections_count;
mod commits_are_all_or_nothing;
mod crashes_lose_nothing_durable;
mod damage_is_found;
mod feed_keeps_the_newest_row;
mod format_1_stays_readable;
mod groups_share_a_sync;
mod identities_are_never_reused;
mod ids_are_finished_by_the_committer;
mod model_agrees;
mod snapshots_read_ranges;
mod stops_are_told_apart;
mod tombstones_go_and_are_not_forgotten;
mod world;
