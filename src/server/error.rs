//! Errors as callers see them: one mapping from what went wrong to a status and to the `Type` by which RavenDB's clients
//! tell errors apart.
//!
//! Handlers return an [`ApiError`]; `observe` adds the URL and writes the body, so that every error of the server looks
//! alike, those of the router and of a panic included.
//!
//! Next on the walk: `documents`.

use std::error::Error;
use std::fmt::Write as _;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::backup::BackupError;
use crate::database::DatabaseError;
use crate::id::IdError;
use crate::query::QueryError;
use crate::script::Fault;
use crate::store::document::DocumentError;
use crate::store::{ErrorKind, StoreError};

/// The names by which RavenDB's clients tell errors apart.
pub(crate) mod names {
    pub(crate) const ARGUMENT: &str = "System.ArgumentException";
    pub(crate) const AUTHORIZATION: &str = "Raven.Client.Exceptions.Security.AuthorizationException";
    pub(crate) const BAD_REQUEST: &str = "Raven.Client.Exceptions.BadRequestException";
    pub(crate) const BULK_INSERT_ABORTED: &str =
        "Raven.Client.Exceptions.Documents.BulkInsert.BulkInsertAbortedException";
    pub(crate) const BUSY: &str = "Raven.Client.Exceptions.RavenException";
    pub(crate) const COMPILATION: &str = "Raven.Client.Exceptions.Documents.Compilation.IndexCompilationException";
    pub(crate) const CONCURRENCY: &str = "Raven.Client.Exceptions.ConcurrencyException";
    pub(crate) const DATABASE_FAILED: &str = "Raven.Client.Exceptions.Database.DatabaseLoadFailureException";
    pub(crate) const DATABASE_MISSING: &str = "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException";
    pub(crate) const DOCUMENT_MISSING: &str = "Raven.Client.Exceptions.Documents.DocumentDoesNotExistException";
    pub(crate) const INDEX_INVALID: &str = "Raven.Client.Exceptions.Documents.Indexes.IndexInvalidException";
    pub(crate) const INDEX_MISSING: &str = "Raven.Client.Exceptions.Documents.Indexes.IndexDoesNotExistException";
    pub(crate) const INTERNAL: &str = "Raven.Client.Exceptions.RavenException";
    pub(crate) const INVALID_COMMAND: &str = "Raven.Server.Exceptions.InvalidCommandTypeException";
    pub(crate) const INVALID_DATA: &str = "System.IO.InvalidDataException";
    pub(crate) const INVALID_OPERATION: &str = "System.InvalidOperationException";
    pub(crate) const NOT_SUPPORTED: &str = "System.NotSupportedException";
    pub(crate) const QUERY_INVALID: &str = "Raven.Client.Exceptions.InvalidQueryException";
    pub(crate) const QUERY_PARSE: &str = "Raven.Server.Documents.Queries.Parser.QueryParser+ParseException";
    pub(crate) const ROUTE: &str = "Raven.Client.Exceptions.Routing.RouteNotFoundException";
    pub(crate) const SUBSCRIPTION_CLOSED: &str =
        "Raven.Client.Exceptions.Documents.Subscriptions.SubscriptionClosedException";
    pub(crate) const SUBSCRIPTION_INVALID: &str =
        "Raven.Client.Exceptions.Documents.Subscriptions.SubscriptionInvalidStateException";
    pub(crate) const SUBSCRIPTION_IN_USE: &str =
        "Raven.Client.Exceptions.Documents.Subscriptions.SubscriptionInUseException";
    pub(crate) const SUBSCRIPTION_MISSING: &str =
        "Raven.Client.Exceptions.Documents.Subscriptions.SubscriptionDoesNotExistException";
    pub(crate) const TIMEOUT: &str = "System.TimeoutException";
}

/// An error on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    status: StatusCode,
    type_name: &'static str,
    message: String,
    /// What lies beneath the message, for the operator.
    cause: Option<String>,
    versions: Option<Versions>,
    header: Option<(HeaderName, HeaderValue)>,
}

/// The document and the change vectors that a failed expectation is about.
#[derive(Clone, Debug)]
pub(crate) struct Versions {
    /// The document.
    pub(crate) id: String,
    /// What was expected; empty for a new document.
    pub(crate) expected: String,
    /// What is there.
    pub(crate) actual: Option<String>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, type_name: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { status, type_name, message: message.into(), cause: None, versions: None, header: None }))
    }

    /// A request that breaks a rule of the interface: 400.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, names::ARGUMENT, message)
    }

    /// A body that is not what it must be: 400.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, names::INVALID_DATA, message)
    }

    /// Something that RavenDB or CouchDB has and Treepie has not: 501, naming it.
    pub(crate) fn unsupported(what: &str) -> Self {
        let message = format!("Treepie does not support {what}.");
        Self::new(StatusCode::NOT_IMPLEMENTED, names::NOT_SUPPORTED, message)
    }

    /// Not now; ask again: 503.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, names::BUSY, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The server failed: 500.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, names::INTERNAL, message)
    }

    /// There is no such index: 404.
    pub(crate) fn no_index(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, names::INDEX_MISSING, format!("There is no index '{name}'."))
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    /// Says where in the request the error lies: `command 3 (PUT 'users/1'): …`.
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(crate) fn type_name(&self) -> &'static str {
        self.0.type_name
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    pub(crate) fn versions(&self) -> Option<&Versions> {
        self.0.versions.as_ref()
    }

    /// The type, the message and what lies beneath, in one text.
    pub(crate) fn detail(&self) -> String {
        let mut text = format!("{}: {}", self.0.type_name, self.0.message);
        if let Some(cause) = &self.0.cause {
            text.push_str("\n ---> ");
            text.push_str(cause);
        }
        text
    }

    fn with_cause(mut self, error: &dyn Error) -> Self {
        let mut text = String::new();
        let mut next = error.source();
        while let Some(cause) = next {
            if !text.is_empty() {
                text.push_str("\n ---> ");
            }
            // Writing to a string does not fail.
            let _ = write!(text, "{cause}");
            next = cause.source();
        }
        self.0.cause = (!text.is_empty()).then_some(text);
        self
    }
}

/// The answer carries the error itself; `observe` turns it into the body, which needs the request's URL.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        if let Some((name, value)) = &self.0.header {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The status of an error by who must act.
fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Caller => StatusCode::BAD_REQUEST,
        ErrorKind::Missing => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Gone => StatusCode::GONE,
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The type of an error that has no name of its own.
fn type_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Caller => names::ARGUMENT,
        ErrorKind::Missing | ErrorKind::Conflict | ErrorKind::Gone => names::INVALID_OPERATION,
        ErrorKind::Busy => names::BUSY,
        ErrorKind::Corrupt => names::INVALID_DATA,
        ErrorKind::Internal => names::INTERNAL,
    }
}

impl From<IdError> for ApiError {
    fn from(error: IdError) -> Self {
        Self::argument(error.to_string())
    }
}

impl From<DocumentError> for ApiError {
    fn from(error: DocumentError) -> Self {
        Self::data(error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let kind = error.kind();
        let type_name = match &error {
            StoreError::Document(_) => names::INVALID_DATA,
            StoreError::Concurrency { .. } | StoreError::Taken { .. } => names::CONCURRENCY,
            _ => type_of(kind),
        };
        let mut answer = Self::new(status_of(kind), type_name, error.to_string()).with_cause(&error);
        if kind == ErrorKind::Busy {
            answer = answer.with_header(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let StoreError::Concurrency { id, expected, actual } = error {
            answer.0.versions = Some(Versions { id, expected, actual });
        }
        answer
    }
}

impl From<DatabaseError> for ApiError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Store(error) => error.into(),
            DatabaseError::Script { name, fault } => refused_script(&name, &fault),
            DatabaseError::Definition { .. } => {
                Self::new(StatusCode::BAD_REQUEST, names::INDEX_INVALID, error.to_string())
            }
            DatabaseError::NoIndex { name } => Self::no_index(&name),
            // Not 408 or 503: a client with several nodes would send the batch, which is written, to the next one.
            DatabaseError::StillStale { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                names::TIMEOUT,
                format!("{error}. What the request wrote is stored."),
            ),
            DatabaseError::Patch { .. } => {
                Self::new(StatusCode::BAD_REQUEST, names::INVALID_OPERATION, error.to_string())
            }
            // Which write it is the caller of a batch adds.
            DatabaseError::Write { reason, .. } => Self::argument(reason),
        }
    }
}

impl From<BackupError> for ApiError {
    fn from(error: BackupError) -> Self {
        let (kind, text) = (error.kind(), error.to_string());
        match error {
            BackupError::Store(error) => error.into(),
            // A busy place is nothing that a client should try again by itself: the other backup may take long.
            BackupError::Busy { .. } => Self::new(StatusCode::CONFLICT, names::CONCURRENCY, text),
            _ => Self::new(status_of(kind), type_of(kind), text),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            QueryError::Syntax { .. } => Self::new(StatusCode::BAD_REQUEST, names::QUERY_PARSE, message),
            QueryError::Unsupported { .. } => Self::new(StatusCode::NOT_IMPLEMENTED, names::NOT_SUPPORTED, message),
            QueryError::Rule(_) | QueryError::TooLarge(_) => {
                Self::new(StatusCode::BAD_REQUEST, names::QUERY_INVALID, message)
            }
            QueryError::NoIndex { name } => Self::no_index(&name),
            QueryError::Replaced { .. } => Self::busy(message),
            QueryError::Cancelled => Self::busy("The server or the database stops, and the query with it."),
            QueryError::Id(error) => error.into(),
            QueryError::Store(error) => error.into(),
        }
    }
}

/// A script that was refused, with its place.
pub(crate) fn refused_script(index: &str, fault: &Fault) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, names::COMPILATION, format!("Index '{index}' is refused: {fault}"))
}
