//! Everything that a server can be told, in one table: names, what they mean, defaults, bounds.
//!
//! A setting comes from its default, the file, the environment or the command line, and the later one wins. Everything that
//! is wrong is reported together. What `print` writes is a file that reads as the same settings.
//!
//! `table` is the table, `value` the kinds of values, `sources` where they come from, `server` what becomes of them.
//!
//! Next on the walk: `table`.

mod print;
mod server;
mod size;
mod sources;
mod table;
mod value;

pub use print::print;
pub use size::Size;
pub use sources::{Given, read};
pub use table::{Entry, Settings, entries};
pub use value::{Duration, Guid, Storage, TrailingSlash};
