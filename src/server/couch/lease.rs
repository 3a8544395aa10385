//! A database in use by a request in CouchDB's shape: one that is missing is 404, as CouchDB has it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};

use crate::server::error::{ApiError, names};
use crate::server::registry::Lease;
use crate::server::router::Shared;

/// A leased database.
#[derive(Debug)]
pub(crate) struct CouchLease(pub(crate) Lease);

impl FromRequestParts<Shared> for CouchLease {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, host: &Shared) -> Result<Self, ApiError> {
        Lease::from_request_parts(parts, host).await.map(Self).map_err(missing_is_not_found)
    }
}

/// RavenDB's 503 for a missing database as CouchDB's 404.
pub(super) fn missing_is_not_found(error: ApiError) -> ApiError {
    if error.type_name() != names::DATABASE_MISSING {
        return error;
    }
    ApiError::new(StatusCode::NOT_FOUND, names::DATABASE_MISSING, error.message())
        .with_header(HeaderName::from_static("database-missing"), HeaderValue::from_static("true"))
}
