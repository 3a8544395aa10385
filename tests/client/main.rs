//! The Rust client against a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect has failed"
)]

mod bulk_insert;
mod child;
mod documentation_samples;
mod hilo_ranges_are_shared;
mod ids_in_fields;
mod operations;
mod patches;
mod queries;
mod requests_are_repeated_where_it_does_no_harm;
mod sessions_load;
mod sessions_save;
mod slow_workers_cost_little;
mod subscriptions;
mod subscriptions_survive_kills;
mod support;
