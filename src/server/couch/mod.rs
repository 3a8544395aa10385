//! The paths with CouchDB's shape: `_changes`, `_all_docs`, and a database's own path.
//!
//! They stand under `/databases`, so a client of CouchDB takes `http://host:port/databases` for its server's URL. `changes`
//! follows the feed (`changes_request` reads what is asked, `feed` reads the rows, `seq` is the place in them); `all_docs`
//! lists documents by id (`range` reads its bounds); `database` tells of a database. Documents get `_id` and `_rev` in
//! `document`. Errors have CouchDB's `error` and `reason` beside RavenDB's fields.
//!
//! Next on the walk: `changes`.

mod all_docs;
mod changes;
mod changes_request;
mod database;
mod document;
mod feed;
mod lease;
mod range;
mod seq;

pub(crate) use all_docs::{get as all_docs, post as post_all_docs};
pub(crate) use changes::{get as changes, post as post_changes};
pub(crate) use database::{create, delete, info, list};

use axum::http::StatusCode;

/// Whether a path has CouchDB's shape.
pub(crate) fn is_path(path: &str) -> bool {
    path.strip_prefix("/databases/").is_some_and(|rest| match rest.split_once('/') {
        None => !rest.is_empty(),
        Some((_, below)) => below.starts_with('_'),
    })
}

/// What CouchDB calls an error.
pub(crate) fn error_name(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::CONFLICT => "conflict",
        StatusCode::GONE => "gone",
        StatusCode::PRECONDITION_FAILED => "file_exists",
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::NOT_IMPLEMENTED => "not_implemented",
        StatusCode::SERVICE_UNAVAILABLE => "service_unavailable",
        status if status.is_server_error() => "internal_server_error",
        _ => "bad_request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_a_database_that_begin_with_an_underscore_are_couchdbs() {
        for path in ["/databases/db", "/databases/_all_dbs", "/databases/db/_changes", "/databases/db/_bulk_docs"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["/databases", "/databases/", "/databases/db/docs", "/admin/databases", "/"] {
            assert!(!is_path(path), "{path}");
        }
    }
}
