//! Map-reduce indexes.

pub mod definition;
pub mod status;
