//! `/export` and `/import`: a database as JSON lines, out and in.
//!
//! The first line says what it is; then come the numbers that must not be given out again (identities, HiLo), the documents
//! in id order, and the indexes; the last line says that nothing is missing. Artificial documents are left out, because the
//! indexes make them again. Both ways are streams in bounded memory.
//!
//! Next on the walk: `export`, `import`; the lines themselves are in `wire::transfer`.

mod export;
mod import;
mod lines;

pub(crate) use export::run as export;
pub(crate) use import::run as import;
