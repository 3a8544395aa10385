//! RQL: asking for documents and index results by value.
//!
//! The walk: `token` and `parse` read a query's text into `syntax`; `bind` puts the parameters in and checks the rules;
//! `plan` chooses how rows are read, `key_range` which keys of an index; `run` reads them from one snapshot (`keys`: from an
//! index), keeps those that `filter` lets pass, orders them (`sort`), groups them (`group`) and shows them (`project`). `value`
//! is the one order between values; `predicate` asks the same conditions of one document.
//!
//! Nothing builds a whole result in memory: what must be sorted or grouped is, within a stated number of bytes.

mod bind;
mod continuation;
mod error;
mod filter;
mod group;
mod key_range;
mod keys;
mod number;
mod parse;
mod path;
mod plan;
mod predicate;
mod project;
mod request;
mod row;
mod run;
mod sort;
mod syntax;
mod token;
mod value;

pub use bind::Parameters;
pub use error::{Position, QueryError};
pub use number::Number;
pub use parse::{TEXT_BYTES_MAX, parse};
pub use path::{Path, Step};
#[allow(unused_imports, reason = "subscriptions will ask it")]
pub(crate) use predicate::Predicate;
pub(crate) use request::Prepared;
pub use request::{MEMORY_MAX, Request, Summary};
pub(crate) use row::Row;
pub use syntax::{Comparison, Condition, Field, From, Group, Operand, Order, Query, Reading, Select, Subject};
pub use value::Value;
