//! The client: documents of a Treepie server as Rust values. It needs none of the server's features
//! (`default-features = false`).
//!
//! A program has one [`DocumentStore`], and opens a short [`Session`] for each piece of work. The session remembers what it
//! loaded and stored, and [`Session::save_changes`] writes what changed, all or nothing.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use treepie::client::DocumentStore;
//!
//! #[derive(Serialize, Deserialize)]
//! struct User {
//!     #[serde(default)]
//!     id: String,
//!     name: String,
//! }
//!
//! # #[cfg(feature = "server")]
//! # async fn start() -> Result<(String, tempfile::TempDir), Box<dyn std::error::Error>> {
//! #     use treepie::server::{Server, ServerSettings};
//! #     let data = tempfile::tempdir()?;
//! #     let settings = ServerSettings::new(data.path().to_owned(), ([127, 0, 0, 1], 0).into(), Default::default());
//! #     let server = Server::bind(settings).await?;
//! #     let url = format!("http://{}", server.local_address()?);
//! #     tokio::spawn(server.run(std::future::pending()));
//! #     Ok((url, data))
//! # }
//! # #[cfg(feature = "server")]
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (url, _data) = start().await?;
//! let store = DocumentStore::new(&url, "shop")?;
//! store.databases().create_if_missing("shop").await?;
//!
//! let mut session = store.session();
//! let ayende = session.store_as(User { id: String::new(), name: "Oren".into() }, "users/ayende").await?;
//! let john = session.store(User { id: String::new(), name: "John".into() }).await?;
//! assert_eq!(session.document_id(&john), Some("users/1-A"));
//! session.save_changes().await?;
//! session.get_mut(&ayende)?.name = "Oren Eini".into();
//! session.save_changes().await?;
//!
//! let mut another = store.session();
//! let loaded = another.load::<User>("users/ayende").await?.ok_or("it is there")?;
//! let user = another.get(&loaded)?;
//! assert_eq!((user.id.as_str(), user.name.as_str()), ("users/ayende", "Oren Eini"));
//! another.delete(&loaded)?;
//! another.save_changes().await?;
//!
//! store.close().await?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "server"))]
//! # fn main() {}
//! ```
//!
//! # Ids
//!
//! An entity's id stands in its field `Id` or `id`: a `String`, a `Uuid`, an integer, or an `Option` of one; [`Conventions`]
//! can name another place. It is not stored in the document. Where it is empty (`""`, `None`, 0, the nil UUID),
//! [`Session::store`] makes one: `users/33-A` from a range that all sessions of the store share (a `Uuid` gets a UUID). An
//! integer holds the number alone, of `users/33-A` 33; one that you set yourself, 7, asks for `users/7`.
//!
//! # Subscriptions
//!
//! A [`SubscriptionWorker`] is told what changes in a collection, those that indexes write too: at least once, in order, with
//! deletions where they are asked for. `examples/etl.rs` carries a collection into an SQLite database with it.
//!
//! # Failures
//!
//! [`ClientError::kind`] says who must act. Requests are sent again, after growing pauses, when the server was not reached or
//! had too much to do, and when its answer was lost but a second run does no harm.
//!
//! Next on the walk: `store`, `session`, `subscriptions`.

mod batch;
mod bulk_insert;
mod configuration;
mod conventions;
mod credentials;
mod databases;
mod error;
mod fields;
mod held;
mod hilo;
mod http;
mod identities;
mod indexes;
mod link;
mod operations;
mod patch;
mod plural;
mod query;
mod retry;
mod session;
mod shape;
mod store;
mod subscriptions;

pub use bulk_insert::BulkInsert;
pub use configuration::{ClientConfiguration, Configuration};
pub use conventions::{Conventions, Document, IdGeneration};
pub use credentials::Credentials;
pub use databases::Databases;
pub use error::{ClientError, ErrorKind, Refusal};
pub use identities::Identities;
pub use indexes::{IndexDefinition, IndexStats, Indexes, LockMode, Priority};
pub use patch::{Patch, Patched};
pub use query::Query;
pub use retry::RetryPolicy;
pub use session::{Entity, Loader, Saved, Session};
pub use store::{DocumentStore, StoreSettings};
pub use subscriptions::{
    Batch, Change, Strategy, SubscriptionDefinition, SubscriptionState, SubscriptionWorker, Subscriptions,
    WorkerOptions,
};
