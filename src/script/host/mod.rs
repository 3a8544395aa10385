//! The values that scripts see without their being decoded: objects, lists, and cells inside them.
//!
//! A document, a part of it, a reduced value and the `values` of `reduce` are [`Object`]s and [`List`]s over JSON text
//! or canonical bytes. Only what a script touches becomes a Rhai value ([`decode`]); aggregates look at [`cell`]s and
//! decode nothing else. A script that changes an object or list changes a copy of its own. Next: `engine`.

pub(super) mod cell;
pub(super) mod convert;
pub(super) mod decode;
pub(super) mod list;
pub(super) mod object;

pub(super) use cell::Cell;
pub(super) use list::List;
pub(super) use object::{About, Object};
