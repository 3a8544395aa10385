//! Map-reduce through `Database`: every file is a behaviour, every function a sentence about it.
//!
//! `world` is a database under test, `gate` holds one of its threads at a step; `oracle`, `shape` and `models` say what an index must give without any code of the product.

#[cfg(test)]
mod gate;
#[cfg(test)]
mod models;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod world;

#[cfg(test)]
mod all_documents_are_a_source_too;
#[cfg(test)]
mod definitions_are_checked;
#[cfg(test)]
mod definitions_change_side_by_side;
#[cfg(test)]
mod definitions_change_under_way;
#[cfg(test)]
mod faults_stay_where_they_happen;
#[cfg(test)]
mod hostile_scripts_harm_nobody;
#[cfg(test)]
mod index_equals_recomputation;
#[cfg(test)]
mod indexes_feed_indexes;
#[cfg(test)]
mod keys_and_numbers_are_exact;
#[cfg(test)]
mod loads_follow_what_they_load;
#[cfg(test)]
mod map_only_indexes_sort_entries;
#[cfg(test)]
mod outputs_follow_their_sources;
#[cfg(test)]
mod queries_agree_with_sqlite;
#[cfg(test)]
mod queries_are_read;
#[cfg(test)]
mod random_lives_end_like_a_fresh_build;
#[cfg(test)]
mod references_list_their_results;
#[cfg(test)]
mod tombstones_wait_for_indexes;
#[cfg(test)]
mod unchanged_results_are_not_written;
#[cfg(test)]
mod updates_touch_only_what_changed;
#[cfg(test)]
mod verification_finds_damage;
