//! RavenDB's `/changes`: a WebSocket that tells what happens in a database, as `store.changes()` of its clients uses it.
//!
//! A client says what it watches (`watches`); `connection` follows the feed of documents, the indexes and the operations and
//! tells it. Only what is durable is told, in etag order. There is no queue: a connection reads the feed at its own pace, so
//! one that is slow sees several changes of a document as one, and one that reads nothing for `unread_max` is cut off.
//!
//! Next on the walk: `watches`, `connection`.

mod connection;
mod watches;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use tracing::Instrument;

use super::error::ApiError;
use super::host::InHand;
use super::registry::Lease;
use super::router::Shared;
use connection::Connection;

/// Bytes of one command.
const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// Opens the socket.
pub(crate) async fn open(
    State(host): State<Shared>,
    Extension(held): Extension<InHand>,
    lease: Lease,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|error| {
        ApiError::argument(format!(
            "/changes is a WebSocket ({error}); open it as one, or follow the changes over HTTP at /_changes."
        ))
    })?;
    let upgrade = upgrade.max_message_size(COMMAND_BYTES_MAX).max_frame_size(COMMAND_BYTES_MAX);
    let span = tracing::Span::current();
    Ok(upgrade.on_upgrade(move |socket| {
        async move {
            let _held = held;
            Connection::new(host, lease, socket).run().await;
        }
        .instrument(span)
    }))
}
