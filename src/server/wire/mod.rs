//! The JSON of the HTTP interface, as RavenDB's clients read and write it. Its casing and its oddities stay in here.

pub(crate) mod backup;
pub(crate) mod batch;
pub(crate) mod changes;
pub(crate) mod configuration;
pub(crate) mod couch;
pub(crate) mod database;
pub(crate) mod definition;
pub(crate) mod explain;
pub(crate) mod fault;
pub(crate) mod index;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod patch;
pub(crate) mod progress;
pub(crate) mod query;
pub(crate) mod stats;
pub(crate) mod subscription;
pub(crate) mod text;
pub(crate) mod tombstones;
pub(crate) mod transfer;
pub(crate) mod tryout;
pub(crate) mod verify;
