//! Subscriptions over the wire: their definitions (`manage`), and three ways to read them.
//!
//! `tcp` speaks RavenDB's protocol on the port of HTTP; `stream` answers with lines of JSON or server-sent events and takes
//! acknowledgements by a second request. Both read parts through `reading` and write them with `render`; neither holds more
//! than a part in memory.
//!
//! Next on the walk: `manage`, `stream`, `tcp`.

pub(crate) mod manage;
mod messages;
mod reading;
mod render;
pub(crate) mod stream;
pub(crate) mod tcp;

use axum::http::StatusCode;

use super::error::{ApiError, names};
use crate::subscription::SubscriptionError;

impl From<SubscriptionError> for ApiError {
    fn from(error: SubscriptionError) -> Self {
        let message = error.to_string();
        let answer = |status, name| Self::new(status, name, message.clone());
        match &error {
            SubscriptionError::Missing { .. } => answer(StatusCode::NOT_FOUND, names::SUBSCRIPTION_MISSING),
            SubscriptionError::Exists { .. } => answer(StatusCode::CONFLICT, names::CONCURRENCY),
            SubscriptionError::Definition { .. } | SubscriptionError::Position(_) => Self::argument(message),
            SubscriptionError::Unsupported(what) => Self::unsupported(what),
            SubscriptionError::Script { .. } => answer(StatusCode::BAD_REQUEST, names::COMPILATION),
            SubscriptionError::InUse(_) => answer(StatusCode::CONFLICT, names::SUBSCRIPTION_IN_USE),
            SubscriptionError::Disabled { .. } | SubscriptionError::NoWorker { .. } | SubscriptionError::Ended(_) => {
                answer(StatusCode::CONFLICT, names::SUBSCRIPTION_CLOSED)
            }
            SubscriptionError::Abandoned { .. } => answer(StatusCode::CONFLICT, names::SUBSCRIPTION_INVALID),
            SubscriptionError::Store(_) => match error {
                SubscriptionError::Store(error) => error.into(),
                _ => Self::internal(message),
            },
        }
    }
}
