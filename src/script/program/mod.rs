//! From the texts of an index to a checked definition and to what a thread runs.
//!
//! `text` compiles one text: tokens are looked at on the way (`tokens`), the syntax tree is checked (`check`), roles get
//! names of their own (`rewrite`), what keys look like is noted (`shape`), then the top level runs once. `definition` puts the texts together and checks the whole.
//! Next on the walk: `runner`.

pub(super) mod check;
pub(super) mod definition;
pub(super) mod rewrite;
mod shape;
pub(super) mod text;
pub(super) mod tokens;
pub(super) mod words;
