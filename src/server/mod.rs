//! HTTP: the paths, bodies and status codes of RavenDB's interface, and CouchDB's `_changes` and `_all_docs`, over Treepie's
//! databases.
//!
//! A request walks from `connection` (accept, limits) through `router` and `observe` (span, errors) to one file per
//! resource, which leases a database from `registry` and either answers with `json` or streams through `stream`.
//! The JSON's casing lives in `wire`; handlers know nothing of RocksDB or scripts and never block a thread of the runtime.
//!
//! Next on the walk: `connection`, `router`.

mod access;
mod backups;
mod body;
mod bulk;
mod bulk_insert;
mod changes;
mod collections;
mod conditions;
mod configuration;
mod connection;
mod couch;
mod databases;
mod delete_by_query;
mod documents;
mod drain;
mod error;
mod explain;
mod exposure;
mod files;
mod hilo;
mod host;
mod identity;
mod includes;
mod index_operations;
mod index_reports;
mod index_results;
mod index_test;
mod index_wait;
mod indexes;
mod json;
mod json_body;
mod json_patch;
mod listing;
mod lull;
mod metrics;
mod multi_get;
mod node;
mod observe;
mod operations;
mod patterns;
mod progress;
mod queries;
mod query;
mod registry;
mod router;
mod settings;
mod stats;
mod stream;
mod streams;
mod subscriptions;
mod tls;
mod tombstones;
mod transfer;
mod unsupported;
mod verify_index;
mod wire;

pub use connection::Server;
pub use settings::{Exposure, ServerLimits, ServerSettings};
pub use tls::TlsFiles;
pub use wire::tryout::TryOutBody;
