//! The ways to name a document, and the rules every id keeps.
//!
//! A caller's text becomes an [`IdRequest`]: a finished [`DocumentId`] (`users/ayende`, or a GUID for nothing), a prefix
//! for a server-side id (`users/`), or an identity (`users|`). The committer finishes server-side ids with the etag of the
//! write; identities are finished before the write is queued; from `hilo` ranges clients make finished ids themselves. Ids
//! compare by their lower-cased bytes (`case`).
//!
//! Next on the walk: `rules`, then `request`; after this room `store::commit`.

#[cfg(feature = "server")]
pub mod artificial;
mod case;
mod document_id;
pub mod guid;
pub mod hilo;
pub mod identity;
mod request;
mod rules;
pub mod server_side;

pub use case::{UNICODE_VERSION, lower};
pub use document_id::{DocumentId, ID_BYTES_MAX};
pub use identity::IdentityName;
pub use request::IdRequest;
pub(crate) use rules::cut;
pub use rules::{IdError, IdRules, check_node_tag};
