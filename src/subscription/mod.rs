//! Subscriptions: named, persistent cursors over the change feed.
//!
//! A `definition` says which collection (`query`), what a Rhai script makes of its documents (`sieving`), and whether
//! deletions and former versions are wanted. `registry` keeps them; each is a `live` subscription with its books (`ledger`),
//! which workers open (`opening`) and read part by part (`worker`). `record` is what of this stands on disk, `floor` what
//! the clean-up of tombstones must leave.
//!
//! What holds: delivery is at least once and in etag order, never past what is durable; what is acknowledged is never
//! delivered again unless it changes; a document is in one worker's hands at a time.
//!
//! Next on the walk: `query`, `definition`, `registry`.

mod definition;
mod delivery;
mod error;
mod floor;
mod ledger;
mod live;
mod opening;
mod query;
mod record;
mod registry;
mod sieving;
mod worker;

pub(crate) use definition::{Definition, Start, position};
pub(crate) use delivery::{Delivery, News, Shaped};
pub(crate) use error::{End, SubscriptionError};
pub(crate) use floor::{Floor, floors};
pub(crate) use live::{Live, Status};
pub(crate) use opening::{Opened, Strategy};
pub(crate) use record::FaultRow;
pub(crate) use registry::{Key, Subscriptions, Update};
pub(crate) use worker::{Part, Room, Worker, change_vector};
