//! The HTTP interface, through the real server on a free port: one module a behaviour, one function a sentence.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect has failed"
)]

mod access;
mod backups;
mod batches;
mod bulk_inserts;
mod change_feed;
mod changes_socket;
mod clients_that_go_away;
mod collections_and_statistics;
mod configuration_of_names;
mod databases;
mod deletions_that_are_gone;
mod documents;
mod expectations;
mod exports;
mod hilo_ranges_never_overlap;
mod identities_by_request;
mod identities_without_a_majority;
mod idle_feeds;
mod ids_follow_the_written_rules;
mod ids_in_ranges;
mod ids_on_the_url;
mod index_lives;
mod index_results;
mod indexes;
mod json_that_parsers_disagree_on;
mod keys_and_numbers;
mod levels_of_indexes;
mod limits;
mod lists;
mod metrics;
mod names_are_never_given_twice;
mod nodes_and_routes;
mod patches;
mod progress_of_indexes;
mod queries;
mod queries_by_index;
mod reads_together_and_streams;
mod results_stay_right;
mod rubbish_on_the_wire;
mod scripts_are_contained;
mod shutdown;
mod subscription;
mod subscriptions_are_defined;
mod subscriptions_are_shared;
mod subscriptions_deliver;
mod subscriptions_over_tcp;
mod sums;
mod support;
mod trying_out;
mod verification;
mod why_this_value;
