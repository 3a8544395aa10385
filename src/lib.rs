//! Treepie: a document database whose map-reduce indexes write their results back as documents.

pub mod database;
pub mod id;
pub mod index;
pub mod script;
pub mod server;
pub mod store;

pub use database::{Database, DatabaseError, DatabaseSettings};
