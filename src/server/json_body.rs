//! A request's body that is JSON of a known shape, read within the limit that requests have.

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json;
use super::router::Shared;

/// A shape of bodies, with the words for it in a refusal.
pub(crate) trait BodyShape: DeserializeOwned {
    /// What the body must be: `an object with …`.
    const WHAT: &'static str;
}

/// The body of a request; the last argument of a handler.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: BodyShape> FromRequest<Shared> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, host: &Shared) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let limit = BodyLimit::request(&host.settings.limits);
        let payload = body::read(host, &parts.headers, body, limit).await?;
        json::read(payload.bytes(), T::WHAT).map(Self)
    }
}
