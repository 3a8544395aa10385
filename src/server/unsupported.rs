//! Paths without a route: what RavenDB or CouchDB has and Treepie has not is 501 with its name; the rest is 404.

use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::error::{ApiError, names};

/// First segments below `/databases/{db}/` of operations that Treepie does not have, with their names.
const DATABASE_OPERATIONS: [(&str, &str); 36] = [
    ("streams", "this stream"),
    ("subscriptions", "this operation on subscriptions"),
    ("operations", "operations"),
    ("revisions", "revisions"),
    ("attachments", "attachments"),
    ("counters", "counters"),
    ("timeseries", "time series"),
    ("cmpxchg", "compare-exchange values"),
    ("transformers", "transformers"),
    ("docs/size", "the size of a document"),
    ("facets", "facets"),
    ("smuggler", "export and import in RavenDB's own format; use export and import"),
    ("replication", "replication"),
    ("etl", "ETL"),
    ("tasks", "tasks"),
    ("task", "tasks"),
    ("admin/tasks", "tasks"),
    ("admin/configuration", "changing this part of the configuration"),
    ("admin/revisions", "revisions"),
    ("admin/expiration", "expiration"),
    ("admin/sorters", "sorters"),
    ("admin/analyzers", "analyzers"),
    ("indexes/terms", "the terms of an index"),
    ("indexes/debug", "the debug views of an index"),
    ("info", "RavenDB's TCP protocol"),
    ("studio/sample-data", "sample data"),
    ("_all_docs/queries", "several queries in one of _all_docs"),
    ("_bulk_docs", "_bulk_docs; use bulk_docs"),
    ("_bulk_get", "_bulk_get; use docs"),
    ("_find", "_find"),
    ("_index", "_index; use indexes"),
    ("_design", "design documents; use indexes"),
    ("_design_docs", "design documents; use indexes"),
    ("_local", "_local documents"),
    ("_revs_diff", "replication"),
    ("_security", "_security"),
];

/// The same for whole paths.
const SERVER_OPERATIONS: [(&str, &str); 12] = [
    ("/admin/databases/enable", "enabling and disabling databases"),
    ("/admin/databases/disable", "enabling and disabling databases"),
    ("/admin/databases/set-lock", "locking databases"),
    ("/admin/databases/promote", "clusters"),
    ("/admin/compact", "compacting databases by request"),
    ("/admin/logs", "changing the log by request"),
    ("/admin/configuration", "changing this part of the configuration"),
    ("/configuration", "this part of the server-wide configuration"),
    ("/info", "RavenDB's TCP protocol"),
    ("/admin/cluster", "clusters"),
    ("/admin/certificates", "certificates"),
    ("/_all_dbs", "_all_dbs here; use /databases/_all_dbs"),
];

/// Patches by a script in JavaScript, and the way out.
pub(crate) const SCRIPT_PATCHES: &str =
    "patches by script; use JSON Patch (PATCH json-patch?id=…, or JsonPatch in a batch)";

/// Answers what no route answers.
pub(crate) async fn refuse(method: Method, uri: Uri) -> Response {
    refusal(&method, uri.path()).into_response()
}

pub(crate) fn refusal(method: &Method, path: &str) -> ApiError {
    let below = path.strip_prefix("/databases/").and_then(|rest| rest.split_once('/')).map(|(_, below)| below);
    if let Some(below) = below {
        if let Some((_, what)) = DATABASE_OPERATIONS.iter().find(|(operation, _)| is_below(below, operation)) {
            return ApiError::unsupported(what);
        }
        if (method.as_str(), below) == ("PATCH", "docs") {
            return ApiError::unsupported(SCRIPT_PATCHES);
        }
    }
    if method == Method::POST && path.strip_prefix("/databases/").is_some_and(|name| !name.contains('/')) {
        return ApiError::unsupported("documents at CouchDB's paths; use docs or bulk_docs");
    }
    if let Some((_, what)) = SERVER_OPERATIONS.iter().find(|(operation, _)| is_below(path, operation)) {
        return ApiError::unsupported(what);
    }
    let shown: String = path.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, names::ROUTE, format!("There is no handler for {method} {shown}."))
}

fn is_below(path: &str, operation: &str) -> bool {
    path.strip_prefix(operation).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, path: &str) -> u16 {
        refusal(&method.parse().unwrap(), path).status().as_u16()
    }

    #[test]
    fn what_ravendb_has_and_treepie_has_not_is_named() {
        for (method, path) in [
            ("GET", "/databases/x/streams/timeseries"),
            ("PATCH", "/databases/x/docs"),
            ("POST", "/databases/x/_all_docs/queries"),
            ("POST", "/databases/x"),
            ("POST", "/admin/databases/disable"),
            ("POST", "/admin/databases/set-lock"),
            ("POST", "/admin/compact"),
        ] {
            assert_eq!(status(method, path), 501, "{method} {path}");
        }
        let error = refusal(&Method::POST, "/databases/x/subscriptions");
        assert_eq!(error.message(), "Treepie does not support this operation on subscriptions.");
    }

    #[test]
    fn what_nobody_has_is_not_found() {
        for (method, path) in [
            ("GET", "/databases/x/nope"),
            ("PATCH", "/databases/x/collections/stats"),
            ("GET", "/databases/x/queriesx"),
            ("GET", "/"),
            ("PATCH", "/databases/x"),
        ] {
            assert_eq!(status(method, path), 404, "{method} {path}");
        }
    }
}
